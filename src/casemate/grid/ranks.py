"""Quantiles, MIN and MAX: the cells of an attribute in order, and the counts below each boundary.

`rank_of` puts the cells in the order of what is ranked: cells of equal values are one step, steps
must not overlap, so that the records before a boundary are those below it, and NULL is no step.
`RankReading` makes a value of the counts that come back.

Guarantee  What is proven is a rank: how many records are below each boundary. The bounds of the
           value follow by inverting both ends, and are outer edges of cells. MIN and MAX are
           extreme quantiles: on the open side, where a single record decides, the declared bound
           stands. Where cells are cut, a count is between that of whole and of touched cells.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any, cast

import numpy as np

from casemate.errors import Unsupported
from casemate.grid.product import Floats
from casemate.grid.readings import (
    USUAL_SKEW,
    Band,
    Estimate,
    Estimates,
    Noised,
    Room,
    band_between,
    clamp,
    spread_between,
)
from casemate.query.language import (
    NUMBERS,
    TIMES,
    ColumnRef,
    Expression,
    Scalar,
    columns_of,
    evaluate,
    present,
)
from casemate.query.snapping import Bits, attribute_of, selection, sum_spans
from casemate.table import (
    WHOLE,
    Attribute,
    AttributeKind,
    ColumnType,
    Point,
    Universe,
    image,
    point,
)


@dataclass(frozen=True, eq=False)
class RankedCells:
    """Cells that hold values from `low` to `high`, both of one type."""

    cells: Bits
    low: Scalar
    high: Scalar

    def at(self, share: float) -> Scalar:
        """The value so far into the step; numbers are floats, and whole where the column is."""
        if isinstance(self.low, bool | str) or self.low is None or self.high is None:
            return self.low
        if isinstance(self.low, date):  # a datetime is one, too
            return self.low if self.low == self.high else _moment(self.low, self.high, share)
        if isinstance(self.low, int) and isinstance(self.high, int):
            return float(min(self.high, self.low + int((self.high - self.low + 1) * share)))
        low, high = float(self.low), float(self.high)  # type: ignore[arg-type]  # a number like `low`
        return low + (high - low) * share


@dataclass(frozen=True, eq=False)
class Rank:
    """The attribute that is ranked by, and its steps in order."""

    place: int
    steps: tuple[RankedCells, ...]

    @property
    def step_of(self) -> tuple[int | None, ...]:
        """The step of each cell of the attribute; None for cells that are never ranked."""
        found: list[int | None] = [None] * self.steps[0].cells.size
        for number, step in enumerate(self.steps):
            for cell in np.flatnonzero(step.cells).tolist():
                found[cell] = number
        return tuple(found)

    def up_to(self, step: int) -> Bits:
        """The cells of all steps up to and with this one."""
        return np.asarray(np.any([each.cells for each in self.steps[: step + 1]], axis=0))


def rank_of(argument: Expression, universe: Universe) -> Rank:
    """The steps of an expression of one column."""
    references = sorted(columns_of(argument), key=lambda each: each.column.name)
    if len(references) != 1:
        raise Unsupported("a quantile, MIN or MAX is taken of one column; ask about one at a time")
    place = attribute_of(references[0], universe)
    attribute = universe.attributes[place]
    there = selection(present(argument), universe)
    mask = _mask(there.outer, place, attribute.size)
    spans = _spans(argument, attribute, universe)
    steps = _steps(spans, mask)
    if not steps:
        raise Unsupported("what is ranked here is always NULL; ask about a column with values")
    for before, after in pairwise(steps):
        if _comparable(after.low) < _comparable(before.high):
            raise Unsupported(
                f"the cells of {attribute.name} do not keep their order in what is ranked here; "
                f"rank {attribute.name} itself"
            )
    return Rank(place, tuple(steps))


Span = tuple[Scalar, Scalar]


def _mask(products: tuple[Any, ...], place: int, size: int) -> Bits:
    """The cells of one attribute in a union of products about it alone."""
    found = np.zeros(size, np.bool_)
    for each in products:
        found |= each.get(place, np.ones(size, np.bool_))
    return found


def _spans(argument: Expression, attribute: Attribute, universe: Universe) -> list[Span]:
    """What each cell holds, from least to most; anything for the cells of NULL."""
    if attribute.kind is AttributeKind.VALUES:
        values = [evaluate(argument, _reading(each)) for each in (*attribute.points, None)]
        return [(each, each) for each in values]
    if isinstance(argument, ColumnRef):
        return [*(_bin(attribute, cell) for cell in range(attribute.size - 1)), (None, None)]
    if argument.type not in NUMBERS:
        raise Unsupported(f"{attribute.name} is known by bins; rank {attribute.name} itself")
    return [(float(each.low), float(each.high)) for each in sum_spans(argument, universe)[1]]


def _reading(value: Point | None) -> Callable[[object], Scalar]:
    return lambda _: value


def _bin(attribute: Attribute, cell: int) -> Span:
    """The least and the most value of a bin; above a real one there is no greatest."""
    low, high = attribute.edges[cell : cell + 2]
    if attribute.type in WHOLE and cell + 2 < len(attribute.edges):
        high = point(attribute.images[cell + 1] - 1, attribute.type)
    return low, high


def _steps(spans: list[Span], mask: Bits) -> list[RankedCells]:
    """Cells with equal spans together, in order."""
    same: dict[Span, list[int]] = {}
    for cell in np.flatnonzero(mask).tolist():
        same.setdefault(spans[cell], []).append(cell)
    ordered = sorted(same.items(), key=lambda item: tuple(map(_comparable, item[0])))
    return [RankedCells(np.isin(np.arange(len(mask)), cells), *span) for span, cells in ordered]


def _comparable(value: Scalar) -> Any:
    """All values of one column have an order, whatever their type; NULL is not among them."""
    return cast(Any, value)


def _moment(low: date, high: Scalar, share: float) -> Scalar:
    kind = ColumnType.TIMESTAMP if isinstance(low, datetime) else ColumnType.DATE
    assert kind in TIMES and isinstance(high, date), "both ends are of one type"
    start, end = image(low), image(high)
    return point(Fraction(round(start + (end - start) * Fraction(share))), kind)


# From counts to a value -------------------------------------------------------------------------


FLOAT_COUNT_ERROR = 1e-6
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
        counts = _nondecreasing_counts([each.value for each in found])
        answer, session = (self._band(estimates, group, level) for level in (False, True))
        if counts[-1] == 0:
            return Noised.of(None, None, answer, session)
        value = self._value(counts, *self.quantile.indices(counts[-1]))
        error = self._error(estimates, group, counts)
        return Noised.of(clamp(value, answer), error, answer, session)

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
        """What the typical error of the count moves the value by, and where in a bin it may be."""
        first, _, _ = self.quantile.indices(counts[-1])
        step = bisect_right(counts, first)
        place = self._places(group)[step]
        found = estimates[self.part][place]
        if found.error is None:
            return None
        moved = spread_between(estimates, self.room, place, found.value)
        records = math.ceil(math.hypot(found.error, moved))
        ends = (max(0, first - records), min(counts[-1] - 1, first + records))
        low, high = (self._record(counts, index) for index in ends)
        least, most = (self.rank.steps[step].at(share) for share in (0.0, 1.0))
        if not all(isinstance(each, float) for each in (low, high, least, most)):
            return None
        low, high, least, most = cast(tuple[float, ...], (low, high, least, most))
        return math.hypot((high - low) / 2, USUAL_SKEW * (most - least))

    def _band(
        self, estimates: Estimates, group: int, session: bool
    ) -> tuple[Scalar, Scalar] | None:
        found = [self._ends(estimates, place, session) for place in self._places(group)]
        bands = [band for band in found if band is not None]
        if len(bands) < len(found):
            return None
        least, most = _monotone_bounds(bands)
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


def _nondecreasing_counts(values: Sequence[float]) -> list[int]:
    """Answered counts below each boundary as whole numbers that never fall."""
    return _whole(np.maximum.accumulate(np.maximum(np.rint(values), 0.0)))


def _monotone_bounds(bands: Sequence[Band]) -> tuple[list[int], list[int]]:
    """Whole numbers around each count; a count is no less than those before it."""
    lows, highs = np.array(bands).T
    least = np.maximum(np.ceil(lows - FLOAT_COUNT_ERROR), 0.0)
    most = np.maximum(np.floor(highs + FLOAT_COUNT_ERROR), 0.0)
    falling = np.minimum.accumulate(most[::-1])[::-1]
    return _whole(np.maximum.accumulate(least)), _whole(falling)


def _whole(counts: Floats) -> list[int]:
    return [int(each) for each in counts]
