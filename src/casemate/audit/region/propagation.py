"""Bound propagation: what each equation, alone with the box, says about each of its columns.

If everything else in an equation is as large as it can be, what is left for this column? That
bound is exact and costs one pass over the equations; a tighter column tightens others, so the pass
is repeated over the equations it occurs in. Whole numbers round inwards.

Exact      Rationals or integers only. Each bound is implied by the equations, so no possible value
           is ever excluded, whenever the passes stop.
Stopping   With whole numbers of small range the passes end by themselves. Otherwise a cascade can
           go on for ever, so a column of reals ignores a gain under a thousandth of its width, and
           every column stops after a hundred gains; `complete` is then False.
Cost       A pass is linear in the entries. Where everything fits on one integer grid the passes
           are NumPy's (`propagation_grid`); the rationals below are for the rest.

Bound propagation on an integer grid: the passes of `propagation` as NumPy arrays.

Every bound and right side is multiplied by one common denominator. Coefficients of reals must be
1 or -1, so that what an equation implies lies on the grid again. All sums stay below 2^53, which
is checked in every pass, so that they are exact; past that the caller takes rationals instead.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, Box, Region

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
class PropagationGrid:
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


@dataclass(frozen=True, eq=False)
class _Side:
    """What the entries of some rows imply for one end of their columns."""

    entry: Integers
    bound: Integers


def propagate_on(grid: PropagationGrid, box: Box) -> "BoundPropagation | None":
    """Pass over the active rows until nothing changes; None if a sum would not be exact."""
    passes = _Passes(grid)
    while passes.active.any() and passes.contradiction is None:
        if not passes.one_pass():
            return None
    if passes.contradiction is None:
        low = _restored(box.low, grid.low, passes.low, grid.unit)
        high = _restored(box.high, grid.high, passes.high, grid.unit)
        box = Box(low, high, box.integer)
    return BoundPropagation(box, passes.contradiction, passes.complete)


class _Passes:
    """The current bounds, and the rows that have something new to read."""

    def __init__(self, grid: PropagationGrid) -> None:
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
    def of(cls, grid: PropagationGrid, low: Ends, high: Ends, entries: Integers) -> Self | None:
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

    def impossible(self, grid: PropagationGrid, active: Flags) -> int | None:
        """The first equation that no values within the bounds satisfy."""
        over = (self.row_least.open == 0) & ~grid.row_high.absent
        over &= self.row_least.value > grid.row_high.value
        under = (self.row_greatest.open == 0) & ~grid.row_low.absent
        under &= self.row_greatest.value < grid.row_low.value
        bad = np.flatnonzero((over | under) & active)
        return int(bad[0]) if len(bad) else None

    def implied(self, grid: PropagationGrid, low: Ends, high: Ends) -> tuple[_Side, _Side]:
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

    def _news(
        self, grid: PropagationGrid, room: Ends, bound: Integers, old: Ends, is_low: bool
    ) -> _Side:
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


# Propagation ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoundPropagation:
    """A box at most as large that holds the same solutions.

    `contradiction` is the equation that cannot hold within the bounds that the others imply, or
    None; `complete` is False when small gains were left untaken.
    """

    box: Box
    contradiction: int | None
    complete: bool


def propagate(region: Region) -> BoundPropagation:
    """Tighten the bounds of every column until no equation implies more.

    >>> from casemate.exact.system import System
    >>> two = System.of([[1, 1, 0], [0, 1, 1]], [2, 1])
    >>> tightened = propagate(Region.of(two, Box.of(3, 0, 1, integer=True)))
    >>> [int(value) for value in tightened.box.low + tightened.box.high]
    [1, 1, 0, 1, 1, 0]
    """
    region = region.within(region.box.inward())
    grid = PropagationGrid.of(region)
    done = None if grid is None else propagate_on(grid, region.box)
    return propagate_rationals(region) if done is None else done


def propagate_rationals(region: Region) -> BoundPropagation:
    """The same with Python's rationals, for weights, huge numbers and mixed denominators."""
    state = _PropagationPasses(region)
    active = set(range(region.system.rows))
    while active and state.contradiction is None:
        active = state.one_pass(active)
    if state.contradiction is not None:
        return BoundPropagation(region.box, state.contradiction, True)
    box = Box(tuple(state.low), tuple(state.high), region.box.integer)
    return BoundPropagation(box, None, state.complete)


class _PropagationPasses:
    """The current bounds; every proposal of one pass looks at the bounds before that pass."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.low, self.high = list(region.box.low), list(region.box.high)
        self.gains = [0] * len(self.low)
        self.contradiction: int | None = None
        self.complete = True
        self.rows_of: list[list[int]] = [[] for _ in self.low]
        for row, line in enumerate(region.equations):
            for column, _ in line:
                self.rows_of[column].append(row)

    def one_pass(self, active: set[int]) -> set[int]:
        """Read every active equation once, and return those that have something new to read."""
        lows: dict[int, tuple[Fraction, int]] = {}
        highs: dict[int, tuple[Fraction, int]] = {}
        for row in sorted(active):
            for is_low, column, bound in self._implied(row):
                kept = lows if is_low else highs
                best = kept.get(column)
                if best is None or (bound > best[0] if is_low else bound < best[0]):
                    kept[column] = bound, row
            if self.contradiction is not None:
                return set()
        changed = [
            column for column in lows.keys() | highs.keys() if self._take(column, lows, highs)
        ]
        return {row for column in changed for row in self.rows_of[column]}

    def _implied(self, row: int) -> Iterator[tuple[bool, int, Fraction]]:
        """The bounds one equation implies that are better than the current ones."""
        line = self.region.equations[row]
        for sign, right in ((1, self.region.high[row]), (-1, self.region.low[row])):
            if right is None:
                continue
            # sign * a . x <= sign * right; the least that each term can come to:
            least = [self._least(sign * a, column) for column, a in line]
            total = sum((each for each in least if each is not None), Fraction(0))
            open_ended = sum(each is None for each in least)
            if not open_ended and total > sign * right:
                self.contradiction = row
                return
            for (column, a), own in zip(line, least, strict=True):
                if open_ended == (own is None):
                    room = sign * right - (total if own is None else total - own)
                    yield from self._better(column, sign * a, room)

    def _least(self, a: int, column: int) -> Bound:
        end = self.low[column] if a > 0 else self.high[column]
        return None if end is None else a * end

    def _better(self, column: int, a: int, room: Fraction) -> Iterator[tuple[bool, int, Fraction]]:
        """What a * x <= room says about x, if that is news."""
        bound = room / a
        is_low = a < 0
        if self.region.box.integer[column]:
            bound = Fraction(-(-bound.numerator // bound.denominator) if is_low else bound // 1)
        old = self.low[column] if is_low else self.high[column]
        if old is None or (bound > old if is_low else bound < old):
            yield is_low, column, bound

    def _take(
        self,
        column: int,
        lows: dict[int, tuple[Fraction, int]],
        highs: dict[int, tuple[Fraction, int]],
    ) -> bool:
        """Accept what a pass found for a column, unless it is a crumb; say whether it changed."""
        low, high = self.low[column], self.high[column]
        width = None if low is None or high is None else high - low
        taken = False
        for found, side, old in ((lows, self.low, low), (highs, self.high, high)):
            if column in found:
                bound, row = found[column]
                if self._worthwhile(column, bound, old, width):
                    side[column], taken = bound, True
                    self._check(column, row)
        self.gains[column] += taken
        return taken

    def _worthwhile(self, column: int, bound: Fraction, old: Bound, width: Bound) -> bool:
        crumb = (
            not self.region.box.integer[column]
            and old is not None
            and width is not None
            and abs(bound - old) * LEAST_GAIN < width
        )
        if crumb or self.gains[column] >= MOST_GAINS:
            self.complete = False
            return False
        return True

    def _check(self, column: int, row: int) -> None:
        low, high = self.low[column], self.high[column]
        if low is not None and high is not None and low > high:
            self.contradiction = row if self.contradiction is None else min(self.contradiction, row)
