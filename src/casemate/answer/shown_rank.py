"""Quantiles, MIN and MAX from counts below every boundary of an attribute.

Guarantee  What is proven is a rank: how many records are below each boundary. The bounds of the
           value follow by inverting both ends, and are outer edges of cells. MIN and MAX are
           extreme quantiles: on the open side, where a single record decides, the declared bound
           stands. Where cells are cut, a count is between that of whole and of touched cells.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from casemate.answer.compile_rank import Rank
from casemate.answer.outcome import Estimate
from casemate.answer.shown_number import Band, Noised
from casemate.answer.shown_readings import Estimates, Room, band_between, kept, spread_between
from casemate.query.expression import Scalar

CLOSE = 1e-6
"""What is lost at most when whole numbers are computed in floats."""


@dataclass(frozen=True)
class Quantile:
    """Which of the ordered records is meant: a share of the way from the first to the last."""

    fraction: Fraction
    discrete: bool = False  # a record's own value, where the place is between two

    def indices(self, count: int) -> tuple[int, int, float]:
        """The records, from 0, between which the value lies, and how far from the first.

        >>> Quantile(Fraction(1, 2)).indices(4), Quantile(Fraction(1, 2), True).indices(4)
        ((1, 2, 0.5), (1, 1, 0.0))
        """
        if self.discrete:
            index = max(0, math.ceil(self.fraction * count) - 1)
            return index, index, 0.0
        place = self.fraction * (count - 1)
        return math.floor(place), math.ceil(place), float(place - math.floor(place))


@dataclass(frozen=True, eq=False)
class RankReading:
    """A quantile by the counts up to each of its steps."""

    part: int
    rank: Rank
    quantile: Quantile
    extreme: bool = False
    room: Room | None = None

    @property
    def needed(self) -> Mapping[int, int]:
        """All boundaries of a group, or those of either end."""
        return dict.fromkeys(self.room or (self.part,), len(self.rank.steps))

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The stand-in's quantile, and the values that the proven counts allow."""
        found = self.cells(estimates, group)
        counts = _whole([each.value for each in found])
        answer, session = (self._band(estimates, group, level) for level in (False, True))
        if counts[-1] == 0:
            return Noised.of(None, None, answer, session)
        value = self._value(counts, *self.quantile.indices(counts[-1]))
        error = self._error(estimates, group, counts)
        return Noised.of(kept(value, answer), error, answer, session)

    def cells(self, estimates: Estimates, group: int) -> Sequence[Estimate]:
        """The counts of one group, boundary after boundary."""
        return [estimates[self.part][place] for place in self._places(group)]

    def width(self, estimates: Estimates, groups: int) -> float:
        """How far, either way, a proven rank may be from the answered one."""
        return max(
            self._reach(estimates, place) for i in range(groups) for place in self._places(i)
        )

    def _places(self, group: int) -> range:
        size = len(self.rank.steps)
        return range(group * size, (group + 1) * size)

    def _ends(self, estimates: Estimates, place: int, session: bool) -> Band | None:
        """The bounds of one count, cut cells included."""
        return band_between(estimates, self.room or (self.part, self.part), place, session)

    def _reach(self, estimates: Estimates, place: int) -> float:
        ends, value = self._ends(estimates, place, False), estimates[self.part][place].value
        if ends is None:
            return math.inf
        if self.room is None:
            return (ends[1] - ends[0]) / 2
        return max(value - ends[0], ends[1] - value)

    def _value(self, counts: Sequence[int], first: int, second: int, share: float) -> Scalar:
        low, high = self._record(counts, first), self._record(counts, second)
        if not share or not isinstance(low, float) or not isinstance(high, float):
            return low
        return low + (high - low) * share

    def _record(self, counts: Sequence[int], index: int) -> Scalar:
        """The value of one of the ordered records; those of a step are spread evenly over it."""
        step = bisect_right(counts, index)
        before = counts[step - 1] if step else 0
        return self.rank.steps[step].at((index - before + 0.5) / (counts[step] - before))

    def _error(self, estimates: Estimates, group: int, counts: Sequence[int]) -> float | None:
        """What the typical error of the count around the value moves the value by."""
        first, _, _ = self.quantile.indices(counts[-1])
        place = self._places(group)[bisect_right(counts, first)]
        found = estimates[self.part][place]
        if found.error is None:
            return None
        moved = spread_between(estimates, self.room, place, found.value)
        records = math.ceil(math.hypot(found.error, moved))
        ends = (max(0, first - records), min(counts[-1] - 1, first + records))
        low, high = (self._record(counts, index) for index in ends)
        if not isinstance(low, float) or not isinstance(high, float):
            return None
        return (high - low) / 2

    def _band(
        self, estimates: Estimates, group: int, session: bool
    ) -> tuple[Scalar, Scalar] | None:
        found = [self._ends(estimates, place, session) for place in self._places(group)]
        bands = [band for band in found if band is not None]
        if len(bands) < len(found):
            return None
        least, most = _tightened(bands)
        first = self.quantile.indices(max(1, least[-1]))[0]
        last = self.quantile.indices(max(1, most[-1]))[1]
        steps = self.rank.steps
        if most[-1] < 1:  # nobody is there, and NULL is nowhere
            return steps[0].at(0.0), steps[-1].at(1.0)
        low = next((i for i, count in enumerate(most) if count > first), len(steps) - 1)
        high = next((i for i, count in enumerate(least) if count > last), len(steps) - 1)
        if self.extreme:
            low, high = (0, high) if self.quantile.fraction == 0 else (low, len(steps) - 1)
        return steps[low].at(0.0), steps[max(low, high)].at(1.0)


def _whole(values: Sequence[float]) -> list[int]:
    """Answered counts below each boundary as whole numbers that never fall."""
    found: list[int] = []
    for value in values:
        found.append(max(0, round(value), *found[-1:]))
    return found


def _tightened(bands: Sequence[Band]) -> tuple[list[int], list[int]]:
    """Whole numbers around each count; a count is no less than those before it."""
    least: list[int] = []
    for low, _ in bands:
        least.append(max(0, math.ceil(low - CLOSE), *least[-1:]))
    most: list[int] = []
    for _, high in reversed(bands):
        most.append(min(max(0, math.floor(high + CLOSE)), *most[-1:], 2**63))
    return least, most[::-1]
