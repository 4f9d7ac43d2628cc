"""Quantiles, MIN and MAX from counts below every boundary of an attribute.

Guarantee  What is proven is a rank: how many records are below each boundary. The bounds of the
           value follow by inverting both ends, and are outer edges of cells. MIN and MAX are
           extreme quantiles: on the open side, where a single record decides, the declared bound
           stands.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from casemate.answer.compile_rank import Rank
from casemate.answer.outcome import Estimate
from casemate.answer.shown_number import Band, Noised, band_of
from casemate.answer.shown_readings import Estimates
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

    @property
    def needed(self) -> Mapping[int, int]:
        """All boundaries of a group."""
        return {self.part: len(self.rank.steps)}

    def read(self, estimates: Estimates, group: int) -> Noised:
        """The stand-in's quantile, and the values that the proven counts allow."""
        found = self.cells(estimates, group)
        counts = _whole([each.value for each in found])
        answer, session = (self._band(found, level) for level in (False, True))
        if counts[-1] == 0:
            return Noised.of(None, None, answer, session)
        value = self._value(counts, *self.quantile.indices(counts[-1]))
        return Noised.of(_kept(value, answer), self._error(found, counts), answer, session)

    def cells(self, estimates: Estimates, group: int) -> Sequence[Estimate]:
        """The counts of one group, boundary after boundary."""
        size = len(self.rank.steps)
        return estimates[self.part][group * size : (group + 1) * size]

    def width(self, estimates: Estimates, groups: int) -> float:
        """How far, either way, a proven rank may be from the answered one."""
        bands = [band_of(each, False) for i in range(groups) for each in self.cells(estimates, i)]
        return max(math.inf if each is None else (each[1] - each[0]) / 2 for each in bands)

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

    def _error(self, found: Sequence[Estimate], counts: Sequence[int]) -> float | None:
        """What the typical error of the count around the value moves the value by."""
        first, _, _ = self.quantile.indices(counts[-1])
        error = found[bisect_right(counts, first)].error
        if error is None:
            return None
        ends = (max(0, first - math.ceil(error)), min(counts[-1] - 1, first + math.ceil(error)))
        low, high = (self._record(counts, index) for index in ends)
        if not isinstance(low, float) or not isinstance(high, float):
            return None
        return (high - low) / 2

    def _band(self, found: Sequence[Estimate], session: bool) -> tuple[Scalar, Scalar] | None:
        bands = [band for each in found if (band := band_of(each, session)) is not None]
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


def _kept(value: Any, ends: tuple[Any, Any] | None) -> Scalar:
    """A value within its bounds, which counts that fall may have left."""
    kept: Scalar = value if ends is None else min(max(value, ends[0]), ends[1])
    return kept


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
