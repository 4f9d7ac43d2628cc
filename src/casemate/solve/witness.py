"""Second solutions: values that keep every equation, bound and type, yet differ from the true ones.

A column is shown to be free by a solution in which it differs from its true value by a stated
width. One vertex of the region shows that for many columns at once; where columns have no ends,
the region is cut some way from the truth first. Each vertex is solved exactly from its basis and
re-checked in rationals; one that is not whole where it must be is tried again as many times as far
from the truth as makes it so, and one that fails the check is dropped: its columns stay open.
"""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.solve.box import Bound, Box, Region
from casemate.solve.linear_program import LinearProgram, Status, Vertex
from casemate.solve.scaled import Scaled

REACH = 64
"""A column without an end is first looked for within this many widths of the truth."""


@dataclass(frozen=True)
class Witnesses:
    """Checked second solutions, for each column the index of one that differs enough, the rest."""

    tables: tuple[tuple[Fraction, ...], ...]
    shown_by: dict[int, int]
    open: frozenset[int]


def witness(
    region: Region,
    true: Sequence[Fraction],
    columns: Iterable[int],
    width: Fraction | Sequence[Fraction],
    *,
    seconds: float = float("inf"),
) -> Witnesses:
    """Find, for as many of the columns as possible, a solution that differs by at least its width.

    >>> from casemate.solve.box import Box
    >>> from casemate.solve.system import System
    >>> region = Region.of(System.of([[1, 1, 0], [0, 0, 1]], [7, 2]), Box.of(3, 0, 9))
    >>> found = witness(region, [Fraction(3), Fraction(4), Fraction(2)], range(3), Fraction(2))
    >>> sorted(found.shown_by), sorted(found.open)
    ([0, 1], [2])
    """
    widths = [width] * len(true) if isinstance(width, Fraction) else list(width)
    if min(widths, default=1) <= 0 or not region.contains(true):
        raise ValueError("witnesses need a positive width and a true solution of the equations")
    search = _Search(region, true, columns, widths, time.monotonic() + seconds)
    for box in dict.fromkeys((cut(region.box, true, widths), region.box)):
        search.within(box)
    return Witnesses(tuple(search.tables), search.shown_by, frozenset(search.left))


def cut(box: Box, true: Sequence[Fraction], width: Sequence[Fraction]) -> Box:
    """The box with ends where it has none: whole numbers, some way from the truth."""

    def end(own: Bound, column: int, way: int) -> Bound:
        far = true[column] + way * REACH * max(Fraction(1), width[column])
        return Fraction(math.ceil(far)) if own is None else own

    low = tuple(end(own, column, -1) for column, own in enumerate(box.low))
    high = tuple(end(own, column, 1) for column, own in enumerate(box.high))
    return Box(low, high, box.integer)


class _Search:
    """The columns that no solution found so far shows to be free."""

    def __init__(
        self,
        region: Region,
        true: Sequence[Fraction],
        columns: Iterable[int],
        width: Sequence[Fraction],
        deadline: float,
    ) -> None:
        self.tables: list[tuple[Fraction, ...]] = []
        self.shown_by: dict[int, int] = {}
        self.left = set(columns)
        self._region, self._true, self._width, self._deadline = region, true, width, deadline
        self._float_true = np.array([float(value) for value in true])
        self._float_width = np.array([float(value) for value in width])

    def within(self, box: Box) -> None:
        """Look for solutions in a box that may be smaller than the region's own."""
        if not self.left or time.monotonic() >= self._deadline:
            return
        self._box = box
        self._scaled = Scaled.of(self._region.within(box.inward()))
        self._program = LinearProgram(self._scaled)
        self.many_at_once()
        self.one_by_one()

    def many_at_once(self) -> None:
        """Send all open columns away from their true values, down or up, while that shows some."""
        for up in (True, False):
            while self._run(self._away(up)):
                pass

    def one_by_one(self) -> None:
        """Send each column that is still open as far as it goes, both ways."""
        for column in sorted(self.left):
            for sign in (1.0, -1.0):
                if column in self.left and time.monotonic() < self._deadline:
                    costs = np.zeros(self._scaled.columns)
                    costs[column] = sign
                    self._run(costs)

    def _away(self, up: bool) -> NDArray[np.float64]:
        """Costs that push each open column towards an end that is far enough from the truth."""
        costs = np.zeros(self._scaled.columns)
        box = self._box
        for column in self.left:
            low, high, true = box.low[column], box.high[column], self._true[column]
            above = high is not None and high - true >= self._width[column]
            below = low is not None and true - low >= self._width[column]
            if above or below:
                costs[column] = -1.0 if above and (up or not below) else 1.0
        return costs

    def _run(self, costs: NDArray[np.float64]) -> bool:
        """Solve one program; whether its vertex shows anything new."""
        if not costs.any() or time.monotonic() >= self._deadline:
            return False
        status, vertex = self._program.minimise(costs, self._deadline)
        if status is Status.UNBOUNDED:
            return self._bounded_run(costs)
        return status is Status.OPTIMAL and self._keep(vertex)

    def _bounded_run(self, costs: NDArray[np.float64]) -> bool:
        """A column without an end goes just far enough: the region is cut there for one run."""
        column = int(np.flatnonzero(costs)[0])
        way = self._width[column] if costs[column] < 0 else -self._width[column]
        far = math.ceil(self._true[column] + 2 * way) if way > 0 else self._true[column] + 2 * way
        low, high = list(self._box.low), list(self._box.high)
        (high if way > 0 else low)[column] = Fraction(far)
        shorter = Box(tuple(low), tuple(high), self._box.integer)
        scaled = Scaled.of(self._region.within(shorter.inward()))
        status, vertex = LinearProgram(scaled).minimise(costs, self._deadline)
        return status is Status.OPTIMAL and self._keep(vertex)

    def _keep(self, vertex: Vertex) -> bool:
        """Solve a vertex exactly, and keep it if it is a solution that shows something new."""
        if not self._promises(vertex):
            return False
        exact = vertex.exact_point()
        if exact is None:
            return False
        table = self._whole([vertex.scaled.restored(value) for value in exact])
        shown = {c for c in self.left if abs(table[c] - self._true[c]) >= self._width[c]}
        if not shown or not self._region.contains(table):
            return False
        self.shown_by.update(dict.fromkeys(shown, len(self.tables)))
        self.tables.append(table)
        self.left -= shown
        return True

    def _whole(self, table: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The table, or one so many times as far from the truth that whole numbers are whole."""
        kinds = zip(table, self._region.box.integer, strict=True)
        times = math.lcm(*(value.denominator for value, integer in kinds if integer))
        if times == 1:
            return tuple(table)
        pairs = zip(self._true, table, strict=True)
        return tuple(true + times * (value - true) for true, value in pairs)

    def _promises(self, vertex: Vertex) -> bool:
        """Whether the doubles say that an open column differs enough; spares exact work."""
        per_unit = float(vertex.scaled.unit * vertex.scaled.shrink)
        columns = sorted(self.left)
        away = np.abs(vertex.point[columns] / per_unit - self._float_true[columns])
        return bool((away >= self._float_width[columns] * (1 - 1e-6)).any())
