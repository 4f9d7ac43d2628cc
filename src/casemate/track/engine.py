"""The part of a server in which protocols differ: an estimate, and what to order after a report.

`Server` keeps epochs, incarnations, answers and words; an `Engine` sees exact counts at the
beginning of a round, then reports, one at a time, and says what the sites shall do. Sites are
numbers here. `SiteTally` is what an engine knows of each site, as columns that a compiled loop can
keep, too.

A round is begun in one of two ways. An engine whose `summons` gives a rule costs 2k words: it goes
out with the call and the exact counts come back. One whose `summons` gives None collects first and
sends the rule that `begin` makes of the exact counts: 3k words, as source document 001 does it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.track.reporting_rule import UNREACHABLE_COUNT, Blocks, Every, Growth, Rule, Sample
from casemate.track.setting import MOST_COUNTED

Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Marks:
    """Where an engine wants to be asked again."""

    room: int = UNREACHABLE_COUNT  # (1 - alpha) U - (1 + alpha) L in fixed point, at most
    draws: int = UNREACHABLE_COUNT  # of all sampled sites since the round began
    heard: int = UNREACHABLE_COUNT  # reports of any kind
    site_draws: int = UNREACHABLE_COUNT  # of one site
    value: float = np.inf  # what is published


class SiteTally:
    """What a server knows of each site, in columns, and their sums.

    A site has a window, in which its count lies (from `reported` to `top`), or it reports by
    chance: `reported` was its count when that began and `drawn` is how often it has reported since,
    one item in 1 / `probability` or one in each block. An engine notes one report at a time; a
    simulation changes the same columns and sums item by item, compiled. Both go on until a mark is
    reached, where the engine has something to decide.
    """

    def __init__(
        self,
        sites: int,
        up: int = 1,
        down: int = 1,
        weight: float = 0.0,
        *,
        last_counts: bool = False,  # a sampled site's estimate rests on the count it reported last
    ) -> None:
        self.up, self.down = up, down  # 1 + alpha and 1 - alpha in fixed point
        self.weight = weight  # where in [low, high] the published value lies
        self.reported = np.zeros(sites, dtype=np.int64)
        self.top = np.zeros(sites, dtype=np.int64)
        self.drawn = np.zeros(sites, dtype=np.int64)
        self.reached = np.zeros(sites, dtype=np.int64)  # since `reported`, at the last report
        self.sampled = np.zeros(sites, dtype=np.bool_)
        self.numerator = np.ones(sites, dtype=np.int64)  # of the window's rule
        self.denominator = np.ones(sites, dtype=np.int64)
        self.probability = 1.0  # with which items of sampled sites are drawn
        self.block = 0.0  # or the size of their blocks; 0 where they have none
        self.low = self.high = 0  # sums of `reported` and `top` of sites with a window
        self.base = self.draws = 0  # sums of `reported` and `drawn` of sampled sites
        self.counted = self.reporters = 0  # sum of `reached`, less the last item, and of how many
        self.heard = 0  # reports so far
        self.last_counts = last_counts
        self.hidden: float | None = None  # what is published, where no report changes it
        self.marks = Marks()

    @property
    def step(self) -> float:
        """How many items a report by chance stands for; 0 where there are none."""
        if not self.sampled.any():
            return 0.0
        return self.block or 1.0 / self.probability

    def follow(self, site: int | slice, rule: Growth) -> None:
        """Note the rule of a site's window, or of those of several."""
        self.numerator[site], self.denominator[site] = rule.numerator, rule.denominator

    def note(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> bool:
        """Take a report of a site that follows the rule; whether a mark is reached."""
        self.heard += 1
        if isinstance(rule, Every | Growth):
            self.hold(site, count, rule.top(count))
        elif self.last_counts:
            self._note_last(site, begun, reports, count)
        else:
            self.sample(site, begun, reports)
        return self.due(site)

    def hold(self, site: int, count: int, top: int) -> None:
        """From now on the site's count lies in this window, as far as anybody counts."""
        self._forget(site)
        top = _reachable(count, top)
        self.reported[site], self.top[site] = count, top
        self.low += count
        self.high += top

    def sample(self, site: int, begun: int, drawn: int) -> None:
        """From now on the site is sampled, since this count and with so many draws by now."""
        self._forget(site)
        self.sampled[site] = True
        self.reported[site], self.drawn[site] = begun, drawn
        self.base += begun
        self.draws += drawn

    def _note_last(self, site: int, begun: int, reports: int, count: int) -> None:
        """Keep the count at the newest trigger; a count between triggers would be a bias."""
        if reports > self.drawn[site]:
            self.reporters += not self.reached[site]
            self.counted += count - begun - max(int(self.reached[site]), 1)
            self.reached[site], self.drawn[site] = count - begun, reports

    def widen(self, site: int, rule: Rule) -> None:
        """A site is sent this rule, and may take it with any count of its window."""
        if isinstance(rule, Growth):
            self.follow(site, rule)
            self.hold(site, int(self.reported[site]), rule.top(int(self.top[site])))

    def end_sampling(self) -> None:
        """Take the likeliest counts of the sampled sites for what they are, until they answer."""
        likeliest = self.counts()
        for site in np.flatnonzero(self.sampled):
            count = round(float(likeliest[site]))
            self.hold(int(site), count, count)
        self.probability = 1.0

    def begin(self, counts: Sequence[int] | Whole, light: Flags) -> None:
        """Every count is known exactly; the light sites are sampled from now on."""
        self.reported = np.array(counts, dtype=np.int64)
        self.drawn, self.reached = np.zeros((2, len(counts)), dtype=np.int64)
        self.sampled = light.copy()
        tops = [int(c) if light[i] else self._top(i, int(c)) for i, c in enumerate(counts)]
        self.top = np.array(tops, dtype=np.int64)
        self.low, self.high = int(self.reported[~light].sum()), int(self.top[~light].sum())
        self.base, self.draws = int(self.reported[light].sum()), 0
        self.counted = self.reporters = 0

    def begin_all(self, counts: Sequence[int] | Whole, rule: Rule) -> None:
        """Every count is known exactly, and every site follows this rule from now on."""
        self.probability = rule.probability if isinstance(rule, Sample) else 1.0
        self.block = rule.size if isinstance(rule, Blocks) else 0.0
        by_chance = isinstance(rule, Sample | Blocks)
        self.begin(counts, np.full(len(counts), by_chance))

    def _top(self, site: int, count: int) -> int:
        top = count * int(self.numerator[site]) // int(self.denominator[site])
        return _reachable(count, top)

    def _forget(self, site: int) -> None:
        if self.sampled[site]:
            self.base -= int(self.reported[site])
            self.draws -= int(self.drawn[site])
            self.sampled[site] = False
        else:
            self.low -= int(self.reported[site])
            self.high -= int(self.top[site])

    def value(self) -> float:
        """The published value: inside the windows, and the draws scaled up."""
        if self.hidden is not None:
            return self.hidden
        windows = self.low + (self.high - self.low) * self.weight
        if self.last_counts:
            return windows + (self.base + self.counted + self.reporters / self.probability)
        if self.block:
            return windows + (self.base + self.draws * self.block)
        return windows + (self.base + self.draws / self.probability)

    def excess(self) -> int:
        """By how much (1 - alpha) U - (1 + alpha) L passes its room; at most 0 is right."""
        return self.down * self.high - self.up * self.low - self.marks.room

    def due(self, site: int) -> bool:
        """Whether a mark is reached, now that this site has reported."""
        m = self.marks
        passed = self.draws >= m.draws or self.heard >= m.heard or self.value() >= m.value
        return passed or self.drawn[site] >= m.site_draws or self.excess() > 0

    def counts(self) -> Floats:
        """The likeliest count of each site."""
        windows = self.reported + (self.top - self.reported) * self.weight
        return np.where(self.sampled, self.reported + self.drawn / self.probability, windows)


def _reachable(count: int, top: int) -> int:
    """The top of a window at this count, as far as anybody counts."""
    return max(count, min(top, MOST_COUNTED))


# Engines -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RuleChange:
    """New rules for some sites in the middle of a round."""

    wider: Mapping[int, Rule] = field(default_factory=dict)  # one word each: no answer is needed
    narrower: Mapping[int, Rule] = field(default_factory=dict)  # two: it counts when answered


@dataclass(frozen=True)
class EndRound:
    """Collect the exact counts of all sites and begin again."""


Wish = RuleChange | EndRound | None
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

    def opening(self) -> Rule:
        """The rule of the first round; every count is zero, and sites are made with it."""
        ...

    def summons(self) -> Rule | None:
        """The rule that goes out with the call for exact counts; None to collect first."""
        ...

    def begin(self, counts: Sequence[int]) -> Rule | None:
        """Begin a round at these exact counts; the rule to send where `summons` gave none."""
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
