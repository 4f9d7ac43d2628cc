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
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from casemate.solve.box import Bound, Box, Region
from casemate.solve.propagation_grid import LEAST_GAIN, MOST_GAINS, Grid, propagate_on


@dataclass(frozen=True)
class Propagation:
    """A box at most as large that holds the same solutions.

    `contradiction` is the equation that cannot hold within the bounds that the others imply, or
    None; `complete` is False when small gains were left untaken.
    """

    box: Box
    contradiction: int | None
    complete: bool


def propagate(region: Region) -> Propagation:
    """Tighten the bounds of every column until no equation implies more.

    >>> from casemate.solve.system import System
    >>> two = System.of([[1, 1, 0], [0, 1, 1]], [2, 1])
    >>> tightened = propagate(Region.of(two, Box.of(3, 0, 1, integer=True)))
    >>> [int(value) for value in tightened.box.low + tightened.box.high]
    [1, 1, 0, 1, 1, 0]
    """
    region = region.within(region.box.inward())
    grid = Grid.of(region)
    if grid is not None:
        done = propagate_on(grid)
        if done is not None:
            box = grid.box_of(done, region.box)
            return Propagation(box, done.contradiction, done.complete)
    return propagate_rationals(region)


def propagate_rationals(region: Region) -> Propagation:
    """The same with Python's rationals, for weights, huge numbers and mixed denominators."""
    state = _Passes(region)
    active = set(range(region.system.rows))
    while active and state.contradiction is None:
        active = state.one_pass(active)
    if state.contradiction is not None:
        return Propagation(region.box, state.contradiction, True)
    box = Box(tuple(state.low), tuple(state.high), region.box.integer)
    return Propagation(box, None, state.complete)


class _Passes:
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
