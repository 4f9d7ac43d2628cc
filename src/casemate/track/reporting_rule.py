"""Reporting rules: at which of its counts a site reports, until it is told otherwise.

Every protocol of this room has the same site. It counts, and when its count reaches a trigger it
sends one report and asks its rule for the next trigger; protocols differ in the rule alone. Fixed
point: a fraction x of a count is x * ONE, a whole number, so that windows are exact.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

FIXED_POINT_ONE = 1 << 30
"""One in fixed point; counts of a site stay below 2^33 in the compiled simulator."""

UNREACHABLE_COUNT = (1 << 62) - 1
"""A count that no site reaches."""

Draw = Callable[[], float]
"""A uniform number in [0, 1); a site's own is unpredictable, a simulation's is seeded."""

UNPREDICTABLE: Draw = random.SystemRandom().random
"""Nobody can foresee what a site that draws from it reports, nor a server's noise."""


@dataclass(frozen=True, slots=True)
class SiteStanding:
    """Where a site stands in its epoch."""

    begun: int  # its count when the epoch began
    reports: int  # triggers passed since then
    trigger: int  # the last of them, or `begun`
    count: int  # what it has counted by now


@dataclass(frozen=True)
class Every:
    """Report every item."""

    def after(self, at: SiteStanding, draw: Draw) -> int:  # noqa: ARG002 - a rule without chance
        """The very next item."""
        return at.count + 1

    def top(self, count: int) -> int:
        """The largest count the site can have without another report."""
        return count


@dataclass(frozen=True)
class Growth:
    """Report when the count passes numerator / denominator times the last one reported."""

    numerator: int
    denominator: int

    def top(self, count: int) -> int:
        """The largest count the site can have without another report."""
        return count * self.numerator // self.denominator

    def after(self, at: SiteStanding, draw: Draw) -> int:  # noqa: ARG002 - a rule without chance
        """The first count outside the window that begins at the count."""
        return self.top(at.count) + 1


@dataclass(frozen=True)
class Sample:
    """Report each item by itself with this probability."""

    probability: float

    def after(self, at: SiteStanding, draw: Draw) -> int:
        """The next item that is drawn."""
        return at.trigger + gap(draw(), self.probability)


@dataclass(frozen=True)
class Blocks:
    """Report once in each block of `size` items, at a uniform point of it (Algorithm 1)."""

    size: float

    def after(self, at: SiteStanding, draw: Draw) -> int:
        """The uniform point of the block after those already reported."""
        return at.begun + math.ceil((at.reports + 1 - draw()) * self.size)


def gap(uniform: float, probability: float) -> int:
    """How many items until the next that is drawn, itself included: geometric by inversion.

    >>> gap(0.0, 0.5), gap(0.6, 0.5), gap(0.9, 1.0)
    (1, 2, 1)
    """
    if probability >= 1.0:
        return 1
    return 1 + int(math.log1p(-uniform) / math.log1p(-probability))


def step_of(rule: "Rule") -> float:
    """How many items a report stands for on average, where that is fixed; 0 where it is not.

    >>> step_of(Sample(0.25)), step_of(Blocks(8.0)), step_of(Every())
    (4.0, 8.0, 0.0)
    """
    match rule:
        case Sample(probability):
            return 1.0 / probability
        case Blocks(size):
            return size
        case _:
            return 0.0


_KINDS: dict[str, type[Every] | type[Growth] | type[Sample] | type[Blocks]] = {
    "every": Every,
    "growth": Growth,
    "sample": Sample,
    "blocks": Blocks,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
Rule = Every | Growth | Sample | Blocks
"""The rules that travel."""


def to_plain(rule: Rule) -> dict[str, Any]:
    """The rule as plain data for a message or a journal.

    >>> to_plain(Growth(3, 2))
    {'rule': 'growth', 'numerator': 3, 'denominator': 2}
    """
    return {"rule": _NAMES[type(rule)], **asdict(rule)}


def from_plain(plain: Mapping[str, Any]) -> Rule:
    """The rule that `to_plain` wrote down.

    >>> from_plain({"rule": "sample", "probability": 0.25})
    Sample(probability=0.25)
    """
    fields = dict(plain)
    return _KINDS[fields.pop("rule")](**fields)
