"""Bound propagation on an integer grid: the passes of `propagation` as NumPy arrays.

Every bound and right side is multiplied by one common denominator. Coefficients of reals must be
1 or -1, so that what an equation implies lies on the grid again. All sums stay below 2^53, which
is checked in every pass, so that they are exact; past that the caller takes rationals instead.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casemate.solve.box import Bound, Box, Region

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

LIMIT = 2**52
"""No sum of magnitudes may pass this, so that float64 adds integers exactly."""

LEAST_GAIN = 1000
"""A column of reals ignores a gain that is smaller than its width divided by this."""

MOST_GAINS = 100
"""No column is tightened in more passes than this."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Bounds on a grid: a value, and a flag where there is none (the value is then 0)."""

    value: Integers
    absent: Flags

    @classmethod
    def of(cls, bounds: tuple[Bound, ...], unit: int) -> Self | None:
        """The bounds as multiples of 1/unit, or None if some are too large."""
        scaled: dict[Bound, int] = {}
        for bound in set(bounds):
            scaled[bound] = 0 if bound is None else int(bound * unit)
        if any(abs(each) > LIMIT for each in scaled.values()):
            return None
        value = np.fromiter((scaled[each] for each in bounds), np.int64, len(bounds))
        absent = np.fromiter((each is None for each in bounds), np.bool_, len(bounds))
        return cls(value, absent)

    def at(self, places: Integers) -> "Ends":
        """The ends of some of the columns or rows."""
        return Ends(self.value[places], self.absent[places])

    def copy(self) -> "Ends":
        """Ends that can change while these stay."""
        return Ends(self.value.copy(), self.absent.copy())


@dataclass(frozen=True, eq=False)
class Grid:
    """A region on a grid: its entries, right sides, bounds, and each column's step."""

    unit: int
    row: Integers
    column: Integers
    value: Integers
    row_low: Ends
    row_high: Ends
    low: Ends
    high: Ends
    step: Integers  # 0 for reals, else the distance between two whole numbers

    @classmethod
    def of(cls, region: Region) -> Self | None:
        """The region on the coarsest grid that fits it, or None if there is none."""
        system, box = region.system, region.box
        integer = np.array(box.integer, np.bool_)
        if system.value.dtype != np.int64 or system.rows == 0:
            return None
        if np.any((np.abs(system.value) != 1) & ~integer[system.column]):
            return None
        sides = (region.low, region.high, box.low, box.high)
        unit = math.lcm(
            *{end.denominator for side in sides for end in set(side) if end is not None}
        )
        if unit > LIMIT:
            return None
        ends = [Ends.of(side, unit) for side in sides]
        if any(each is None for each in ends):
            return None
        low, high, box_low, box_high = (each for each in ends if each is not None)
        entries = system.row, system.column, system.value
        return cls(unit, *entries, low, high, box_low, box_high, integer * np.int64(unit))

    def box_of(self, done: "Tightened", box: Box) -> Box:
        """The tightened bounds as rationals; those that did not change stay as they were."""
        low = _restored(box.low, self.low, done.low, self.unit)
        high = _restored(box.high, self.high, done.high, self.unit)
        return Box(low, high, box.integer) if done.contradiction is None else box


@dataclass(frozen=True, eq=False)
class Tightened:
    """Where the passes ended."""

    low: Ends
    high: Ends
    contradiction: int | None
    complete: bool


@dataclass(frozen=True, eq=False)
class _Side:
    """What the entries of some rows imply for one end of their columns."""

    entry: Integers
    bound: Integers


def propagate_on(grid: Grid) -> Tightened | None:
    """Pass over the active rows until nothing changes; None if a sum would not be exact."""
    passes = _Passes(grid)
    while passes.active.any() and passes.contradiction is None:
        if not passes.one_pass():
            return None
    return Tightened(passes.low, passes.high, passes.contradiction, passes.complete)


class _Passes:
    """The current bounds, and the rows that have something new to read."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.low, self.high = grid.low.copy(), grid.high.copy()
        self.gains = np.zeros(len(self.low.value), np.int64)
        self.active = np.ones(len(grid.row_low.value), np.bool_)
        self.contradiction: int | None = None
        self.complete = True

    def one_pass(self) -> bool:
        """Read every active row once; False if a sum would not be exact."""
        grid = self.grid
        entries = np.flatnonzero(self.active[grid.row])
        activity = _Activity.of(grid, self.low, self.high, entries)
        if activity is None:
            return False
        self.contradiction = activity.impossible(grid, self.active)
        if self.contradiction is None:
            lows, highs = activity.implied(grid, self.low, self.high)
            changed = self._take(lows, highs)
            self.contradiction = self._crossed(changed, lows, highs)
            self.active[:] = False
            self.active[grid.row[changed[grid.column]]] = True
        return True

    def _take(self, lows: _Side, highs: _Side) -> Flags:
        """Accept the best bound of each column unless it is a crumb; which columns changed."""
        low, high = self.low, self.high
        width = np.where(low.absent | high.absent, -1, high.value - low.value)
        changed = np.zeros(len(width), np.bool_)
        for side, end, best in ((lows, low, np.maximum), (highs, high, np.minimum)):
            new, found = _best(side, self.grid.column, best, len(width))
            gain = np.abs(found - end.value) * float(LEAST_GAIN)
            crumb = (self.grid.step == 0) & (width >= 0) & (gain < width)
            take = new & ~crumb & (self.gains < MOST_GAINS)
            self.complete &= not (new & ~take).any()
            end.value[take], end.absent[take] = found[take], False
            changed |= take
        self.gains[changed] += 1
        return changed

    def _crossed(self, changed: Flags, lows: _Side, highs: _Side) -> int | None:
        """The first row whose news left some column with no value."""
        low, high, grid = self.low, self.high, self.grid
        empty = changed & ~low.absent & ~high.absent & (low.value > high.value)
        if not empty.any():
            return None
        rows = [grid.row[side.entry[empty[grid.column[side.entry]]]] for side in (lows, highs)]
        return int(np.concatenate(rows).min())


@dataclass(frozen=True, eq=False)
class _Sums:
    """Row by row the sum of the terms that have an end, and how many have none."""

    value: Integers
    open: Integers

    @classmethod
    def of(cls, row: Integers, terms: Ends, rows: int) -> Self:
        value, count = np.bincount(row, terms.value, rows), np.bincount(row, terms.absent, rows)
        return cls(value.astype(np.int64), count.astype(np.int64))


@dataclass(frozen=True, eq=False)
class _Activity:
    """The least and the greatest that each equation and each of its terms can come to."""

    entries: Integers
    least: Ends  # per entry
    greatest: Ends
    row_least: "_Sums"
    row_greatest: "_Sums"

    @classmethod
    def of(cls, grid: Grid, low: Ends, high: Ends, entries: Integers) -> Self | None:
        a, column, row = grid.value[entries], grid.column[entries], grid.row[entries]
        up = a > 0
        first, last = low.at(column), high.at(column)
        least, greatest = _terms(up, first, last, a), _terms(up, last, first, a)
        if least is None or greatest is None:
            return None
        rows = len(grid.row_low.value)
        size = np.maximum(np.abs(least.value), np.abs(greatest.value)).astype(np.float64)
        if len(entries) and np.bincount(row, size, rows).max() > LIMIT:
            return None
        return cls(
            entries, least, greatest, _Sums.of(row, least, rows), _Sums.of(row, greatest, rows)
        )

    def impossible(self, grid: Grid, active: Flags) -> int | None:
        """The first equation that no values within the bounds satisfy."""
        over = (self.row_least.open == 0) & ~grid.row_high.absent
        over &= self.row_least.value > grid.row_high.value
        under = (self.row_greatest.open == 0) & ~grid.row_low.absent
        under &= self.row_greatest.value < grid.row_low.value
        bad = np.flatnonzero((over | under) & active)
        return int(bad[0]) if len(bad) else None

    def implied(self, grid: Grid, low: Ends, high: Ends) -> tuple[_Side, _Side]:
        """Better bounds for the columns of these entries, low ones and high ones."""
        row, a = grid.row[self.entries], grid.value[self.entries]
        up = a > 0
        from_high = _room(row, self.least, self.row_least, grid.row_high)
        from_low = _room(row, self.greatest, self.row_greatest, grid.row_low)
        highs = _either(up, from_high, from_low)
        lows = _either(up, from_low, from_high)
        step = grid.step[grid.column[self.entries]]
        return (
            self._news(grid, lows, -_floor(-lows.value, a, step), low, True),
            self._news(grid, highs, _floor(highs.value, a, step), high, False),
        )

    def _news(self, grid: Grid, room: Ends, bound: Integers, old: Ends, is_low: bool) -> _Side:
        column = grid.column[self.entries]
        better = bound > old.value[column] if is_low else bound < old.value[column]
        news = ~room.absent & (old.absent[column] | better)
        return _Side(self.entries[news], bound[news])


def _room(row: Integers, own: Ends, total: _Sums, right: Ends) -> Ends:
    """Right side less the other terms; absent where another term is open."""
    value = right.value[row] - (total.value[row] - own.value)
    return Ends(value, right.absent[row] | (total.open[row] != own.absent))


def _either(first: Flags, yes: Ends, no: Ends) -> Ends:
    """Entry by entry one end or the other."""
    return Ends(np.where(first, yes.value, no.value), np.where(first, yes.absent, no.absent))


def _terms(up: Flags, yes: Ends, no: Ends, a: Integers) -> Ends | None:
    """Each entry's coefficient times one end of its column, unless that could overflow."""
    end = _either(up, yes, no)
    if np.any(np.abs(end.value.astype(np.float64) * a) > LIMIT):
        return None
    return Ends(end.value * a, end.absent)


def _floor(room: Integers, a: Integers, step: Integers) -> Integers:
    """The greatest grid point at most room / a, on whole numbers where there is a step."""
    quotient = room // a
    coarse = np.maximum(step, 1)
    return quotient // coarse * coarse


def _best(side: _Side, column: Integers, best: np.ufunc, count: int) -> tuple[Flags, Integers]:
    """Which columns have news, and the best of it."""
    places = column[side.entry]
    new = np.zeros(count, np.bool_)
    new[places] = True
    found = np.zeros(count, np.int64)
    found[places] = side.bound  # any of them, so that the best is one of them
    best.at(found, places, side.bound)
    return new, found


def _restored(old: tuple[Bound, ...], before: Ends, after: Ends, unit: int) -> tuple[Bound, ...]:
    changed = (before.value != after.value) | (before.absent != after.absent)
    kept = list(old)
    made: dict[int, Fraction] = {}
    for column, value in zip(
        np.flatnonzero(changed).tolist(), after.value[changed].tolist(), strict=True
    ):
        kept[column] = made.setdefault(value, Fraction(value, unit))
    return tuple(kept)
