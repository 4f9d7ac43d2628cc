"""The part of a server in which protocols differ: an estimate, and what to order after a report.

`Server` keeps epochs, incarnations, answers and words; an engine sees exact counts at the beginning
of a round, then reports, one at a time, and says what the sites shall do. Sites are numbers here.

A round is begun in one of two ways. An engine whose `summons` gives rules costs 2k words: they go
out with the call and the exact counts come back. One whose `summons` gives None collects first and
sends the rules that `begin` makes of the exact counts: 3k words, as source document 001 does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from casemate.track.instruction import Rule
from casemate.track.tally import SiteTally

Rules = Rule | Sequence[Rule]
"""One rule for every site, or one for each."""


@dataclass(frozen=True)
class Change:
    """New rules for some sites in the middle of a round."""

    wider: Mapping[int, Rule] = field(default_factory=dict)  # one word each: no answer is needed
    narrower: Mapping[int, Rule] = field(default_factory=dict)  # two: it counts when answered


@dataclass(frozen=True)
class EndRound:
    """Collect the exact counts of all sites and begin again."""


Wish = Change | EndRound | None
"""What an engine wants after a report; None to go on."""


@dataclass(frozen=True)
class PublishedCount:
    """A published count and what it may be off."""

    value: float
    lo: float
    hi: float
    confidence: float  # 1 where it is a theorem without chance


class Engine(Protocol):
    """What a protocol does at the server."""

    def opening(self) -> Rules:
        """The rules of the first round; every count is zero, and sites are made with them."""
        ...

    def summons(self) -> Rules | None:
        """The rules that go out with the call for exact counts; None to collect first."""
        ...

    def begin(self, counts: Sequence[int]) -> Rules | None:
        """Begin a round at these exact counts; the rules to send where `summons` gave none."""
        ...

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Take a report of a site that follows `rule`; cumulative, never older than the last."""
        ...

    def estimate(self) -> PublishedCount:
        """The count as it is published now."""
        ...


class TalliedEngine(Engine, Protocol):
    """An engine that keeps a tally, so that a compiled simulation can keep it, too."""

    @property
    def tally(self) -> SiteTally:
        """What it knows of the sites; where a mark of it is reached it has to decide something."""
        ...

    def decide(self, site: int) -> Wish:
        """What it wants now that the report of a site has reached a mark of the tally."""
        ...
