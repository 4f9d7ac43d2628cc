"""Bound propagation: what each equation, alone with the box, says about each of its columns.

If everything else in an equation is as large as it can be, what is left for this column? That
bound is exact and costs one pass over the equations; a tighter column tightens others, so the pass
is repeated over the equations it occurs in. Whole numbers round inwards.

Exact      Rationals or integers only. Each bound is implied by the equations, so no possible value
           is ever excluded, whenever the passes stop.
Stopping   With whole numbers of small range the passes end by themselves. Otherwise a cascade can
           go on for ever, so a column of reals ignores a gain under a thousandth of its width, and
           every column stops after a hundred gains; `complete` is then False.
Cost       A pass is linear in the entries. Where every bound and right side is a multiple of one
           fraction, coefficients of reals are 1 or -1 and no sum passes 2^52, the passes are of
           machine integers; elsewhere of rationals, by the same steps.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, Box, Region

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

GRID_LIMIT = 2**52
"""No sum of magnitudes on a grid may pass this."""

WIDTH_PER_LEAST_GAIN = 1000
"""A column of reals ignores a gain that is smaller than its width divided by this."""

MAX_GAINS_PER_COLUMN = 100
"""No column is tightened in more passes than this."""


@dataclass(frozen=True)
class BoundPropagation:
    """A box at most as large that holds the same solutions.

    `contradiction` is the equation that cannot hold within the bounds that the others imply, or
    None; `complete` is False when small gains were left untaken.
    """

    box: Box
    contradiction: int | None
    complete: bool


def propagate(region: Region, *, on_grid: bool = True) -> BoundPropagation:
    """Tighten the bounds of every column until no equation implies more.

    >>> from casemate.exact.system import System
    >>> two = System.of([[1, 1, 0], [0, 1, 1]], [2, 1])
    >>> tightened = propagate(Region.of(two, Box.of(3, 0, 1, integer=True)))
    >>> [int(value) for value in tightened.box.low + tightened.box.high]
    [1, 1, 0, 1, 1, 0]
    """
    region = region.within(region.box.inward())
    unit = grid_unit(region) if on_grid else None
    try:
        return _Passes(region, unit, np.int64).run() if unit else _Passes(region, 1, object).run()
    except OverflowError:  # on the way, though not in the beginning
        return _Passes(region, 1, object).run()


def grid_unit(region: Region) -> int | None:
    """The denominator of the coarsest grid on which everything is a machine integer, or None."""
    system, box = region.system, region.box
    integer = np.array(box.integer, np.bool_)
    if system.value.dtype != np.int64 or system.rows == 0:
        return None
    if np.any((np.abs(system.value) != 1) & ~integer[system.column]):
        return None
    sides = (region.low, region.high, box.low, box.high)
    ends = {end for side in sides for end in set(side) if end is not None}
    unit = math.lcm(*{end.denominator for end in ends})
    return (
        unit if unit <= GRID_LIMIT and all(abs(end * unit) <= GRID_LIMIT for end in ends) else None
    )


@dataclass(frozen=True, eq=False)
class _Ends:
    """Bounds in multiples of one fraction, and a flag where there is none (the value is then 0)."""

    value: NDArray[Any]
    absent: Flags

    @classmethod
    def of(cls, bounds: tuple[Bound, ...], unit: int, kind: type) -> "_Ends":
        scaled = {end: Fraction(0) if end is None else end * unit for end in set(bounds)}
        value: NDArray[Any] = np.empty(len(bounds), kind)
        value[:] = [scaled[end] if kind is object else int(scaled[end]) for end in bounds]
        return cls(value, np.array([end is None for end in bounds], np.bool_))

    def restore(self, unit: int) -> tuple[Bound, ...]:
        made = {value: Fraction(value, unit) for value in set(self.value.tolist())}
        pairs = zip(self.value.tolist(), self.absent.tolist(), strict=True)
        return tuple(None if absent else made[value] for value, absent in pairs)


@dataclass(frozen=True, eq=False)
class _News:
    """Better bounds for one end of some columns, and the equations that imply them."""

    column: Integers
    bound: NDArray[Any]
    row: Integers


class _Passes:
    """The current bounds, and the rows that have something new to read."""

    def __init__(self, region: Region, unit: int, kind: type) -> None:
        system, box = region.system, region.box
        self._box, self._unit, self._kind = box, unit, kind
        self._row, self._column = system.row, system.column
        self._value: NDArray[Any] = system.value.astype(kind)
        self._whole = np.array(box.integer, np.bool_)
        self._right = {
            1: _Ends.of(region.high, unit, kind),
            -1: _Ends.of(region.low, unit, kind),
        }
        self._low, self._high = _Ends.of(box.low, unit, kind), _Ends.of(box.high, unit, kind)
        self._gains = np.zeros(len(box), np.int64)
        self._active = np.ones(system.rows, np.bool_)
        self._contradiction: int | None = None
        self._complete = True

    def run(self) -> BoundPropagation:
        """Pass over the active rows until nothing changes."""
        while self._active.any() and self._contradiction is None:
            self._one_pass(np.flatnonzero(self._active[self._row]))
        box = self._box
        if self._contradiction is None:
            low, high = (side.restore(self._unit) for side in (self._low, self._high))
            box = Box(low, high, box.integer)
        return BoundPropagation(box, self._contradiction, self._complete)

    def _one_pass(self, entries: Integers) -> None:
        """Read every active row once; OverflowError if a sum leaves the grid."""
        self._check(entries)
        low, high, impossible = self._implied_bounds(entries, 1)
        low_too, high_too, impossible_too = self._implied_bounds(entries, -1)
        bad = np.flatnonzero((impossible | impossible_too) & self._active)
        if len(bad):
            self._contradiction = int(bad[0])
            return
        lows, highs = _join(low, low_too), _join(high, high_too)
        changed = self._take(lows, highs)
        empty = changed & ~self._low.absent & ~self._high.absent
        empty &= np.asarray(self._low.value > self._high.value, np.bool_)
        if empty.any():
            blamed = [news.row[empty[news.column]] for news in (lows, highs)]
            self._contradiction = int(np.concatenate(blamed).min())
        self._active[:] = False
        self._active[self._row[changed[self._column]]] = True

    def _check(self, entries: Integers) -> None:
        """Raise if an equation can come to more than the grid holds."""
        if self._kind is object:
            return
        column = self._column[entries]
        ends = [np.abs(side.value[column]) for side in (self._low, self._high)]
        reach = np.maximum(*ends).astype(np.float64) * np.abs(self._value[entries])
        if np.bincount(self._row[entries], reach).max(initial=0.0) > GRID_LIMIT:
            raise OverflowError("sums of this region are no machine integers")

    def _implied_bounds(self, entries: Integers, sign: int) -> tuple[_News, _News, Flags]:
        """Lower and upper bounds by sign * a . x <= sign * right, and where no values keep it."""
        row, column = self._row[entries], self._column[entries]
        a, right, rows = sign * self._value[entries], self._right[sign], len(self._active)
        up = np.asarray(a > 0, np.bool_)
        least = np.where(up, self._low.value[column], self._high.value[column]) * a
        absent = np.where(up, self._low.absent[column], self._high.absent[column])
        total: NDArray[Any] = np.zeros(rows, self._kind)
        open_ = np.bincount(row, absent, rows)
        np.add.at(total, row, least)
        most = sign * right.value
        impossible = (open_ == 0) & ~right.absent & np.asarray(total > most, np.bool_)
        tells = ~right.absent[row] & (open_[row] == absent)
        bound = self._divide(most[row] - (total[row] - least), a, self._whole[column])
        better = np.where(
            up,
            self._high.absent[column] | np.asarray(bound < self._high.value[column], np.bool_),
            self._low.absent[column] | np.asarray(bound > self._low.value[column], np.bool_),
        )
        sides = (np.flatnonzero(tells & better & side) for side in (~up, up))
        low, high = (_News(column[some], bound[some], row[some]) for some in sides)
        return low, high, impossible

    def _divide(self, room: NDArray[Any], a: NDArray[Any], whole: Flags) -> NDArray[Any]:
        """The end of x in a * x <= room, inwards to a multiple of the unit where x is whole."""
        size, way = np.abs(a), np.sign(a)
        real = room / size if self._kind is object else room  # on the grid they are 1 or -1
        return np.asarray(way * np.where(whole, room // size // self._unit * self._unit, real))

    def _take(self, lows: _News, highs: _News) -> Flags:
        """Accept the best bound of each column unless it is a crumb; which columns changed."""
        low, high = self._low, self._high
        width = np.where(low.absent | high.absent, -1, high.value - low.value)
        many = WIDTH_PER_LEAST_GAIN if self._kind is object else float(WIDTH_PER_LEAST_GAIN)
        changed = np.zeros(len(width), np.bool_)
        for news, end, best in ((lows, low, np.maximum), (highs, high, np.minimum)):
            found, new = end.value.copy(), np.zeros(len(width), np.bool_)
            found[news.column], new[news.column] = news.bound, True
            best.at(found, news.column, news.bound)
            crumb = ~self._whole & ~end.absent & np.asarray(width >= 0, np.bool_)
            crumb &= np.asarray(np.abs(found - end.value) * many < width, np.bool_)
            take = new & ~crumb & (self._gains < MAX_GAINS_PER_COLUMN)
            self._complete &= not (new & ~take).any()
            end.value[take], end.absent[take] = found[take], False
            changed |= take
        self._gains[changed] += 1
        return changed


def _join(one: _News, other: _News) -> _News:
    return _News(
        np.concatenate([one.column, other.column]),
        np.concatenate([one.bound, other.bound]),
        np.concatenate([one.row, other.row]),
    )
