"""Kaczmarz's method with blocks: towards some equations at once, as far as they agree to.

Source     Source document 002, "Handling many queries": the step of stochastic gradient descent
           that makes the drawn equation hold; rows are drawn by their squared lengths. The step of
           a block is the extrapolated average of I. Necoara, "Faster randomized block Kaczmarz
           algorithms", SIAM Journal on Matrix Analysis and Applications 40 (2019); a block of one
           equation is Kaczmarz's projection.
Method     The projections on all equations of a block are added up, and the point goes along that
           sum as far as brings it nearest to every point that keeps the block, then into the box
           (the document's change of variables by a sigmoid is in `sgd`). No factor of a block is
           computed: solving each block by least squares needed as many passes on range predicates
           and on random subsets, and a factor for each.
Cost       Three reads of the equations a pass, for about the progress of projections one by one;
           noise averages out within a block. Loose answers come within a few passes; for many
           digits `least_squares` and `swept_squares` are faster.

Passes over equations in random order, by whatever step, until they hold or come no nearer. Where
the equations contradict, a step that makes each of them hold never comes to rest. The averaged form
then looks at the average of all points of a pass: where more of the equations hold there than at
its end, the point has only wandered, so it goes on from the average, with smaller steps. After w
such passes the steps are 1 / (1 + w): they fall, and their sum does not stay bounded, which are the
conditions of H. Robbins and S. Monro, "A stochastic approximation method", 1951. Averages are those
of B. Polyak and A. Juditsky, "Acceleration of stochastic approximation by averaging", 1992.

Kernels take `rows`, which is (starts, columns, values, shares): values are None where all of them
are 1, and a share is 1 over a row's squared length. A path is (point, sums): a move is added to the
sums times the number of points `before` it, out of which the average of the whole path follows (of
N points of which the last is x, it is x less the sum over N); empty sums are left alone. `relaxed`
is the part of the way that is gone.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress, Solved, iterate, relative_residual
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER, Floats, Rows, ends

BLOCK_SIZE = 32
"""Equations a block."""

FEWEST = 16
"""Passes before it is asked whether the second half of them led any further."""

NO_TRAIL: Floats = np.zeros(0)

Order = Callable[[Rows, np.random.Generator], NDArray[np.int64]]
"""The rows of one pass, as they are to be taken."""


def kaczmarz_blocks(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    size: int = BLOCK_SIZE,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    order: Order | None = None,
    averaged: bool = False,
    tolerance: float = 1e-4,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations nearly hold; `most` counts passes.

    `order` is `drawn_rows`, or `shuffled_rows` for the averaged form, unless it is given: all rows
    are then to count alike.

    >>> from casemate.exact.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz_blocks(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    if size < 1:
        raise ValueError(f"a block has at least one equation, not {size}")
    sweeper = _Blocks(equations, right, size, ends(low, high, equations.width), start)
    order = order or (shuffled_rows if averaged else drawn_rows)
    work = RandomPasses(sweeper, equations, right, lambda: order(equations, random), averaged)
    return iterate(work, tolerance, most, progress)


def drawn_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """As many rows as there are, each drawn by its share of all squared lengths."""
    bands = np.cumsum(equations.lengths**2)
    drawn = random.random(len(bands)) * (bands[-1] if len(bands) else 0.0)
    found: NDArray[np.int64] = np.searchsorted(bands, drawn, side="right").astype(np.int64)
    return np.minimum(found, len(bands) - 1)


def shuffled_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """Every row once, in random order."""
    return random.permutation(equations.height).astype(np.int64)


class Sweeper(Protocol):
    """A point that one pass over the equations moves."""

    @property
    def point(self) -> Floats:
        """Where it is."""

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of each step; how many moves that were. `sums` are a path's."""

    def jump(self, point: Floats) -> None:
        """Go on from another point."""


class RandomPasses:
    """The passes of a sweeper; of the averaged form the best point so far."""

    def __init__(
        self,
        sweeper: Sweeper,
        equations: Rows,
        right: Floats,
        order: Callable[[], NDArray[np.int64]],
        averaged: bool,
    ) -> None:
        self._sweeper, self._order, self._averaged = sweeper, order, averaged
        self._measure = relative_residual(equations, right)
        self.point = sweeper.point.copy()
        self.residual = self._measure(self.point)
        self._seen = [self.residual]
        self._wandered = self.steps = 0

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or the second half of the averaged passes led no further."""
        if self.residual <= tolerance or not self._averaged:
            return self.residual <= tolerance
        seen, least = self._seen, self.residual
        enough = len(seen) > FEWEST
        return enough and min(seen[: len(seen) // 2]) - least <= tolerance * least

    def step(self) -> None:
        """One pass."""
        work = self._sweeper
        sums = np.zeros(len(self.point)) if self._averaged else NO_TRAIL
        moves = work.sweep(self._order(), 1 / (1 + self._wandered), sums)
        left = self._measure(work.point)
        if self._averaged:
            average = work.point - sums / (moves + 1)
            of_average = self._measure(average)
            if of_average < left:
                work.jump(average)
                self._wandered, left = self._wandered + 1, of_average
        self.steps += 1
        self._seen.append(left)
        if left < self.residual or not self._averaged:
            self.point, self.residual = work.point.copy(), left


class _Blocks:
    """Steps towards one block of equations after another."""

    def __init__(
        self,
        equations: Rows,
        right: Floats,
        size: int,
        box: tuple[Floats, Floats],
        start: Floats | None,
    ) -> None:
        self._equations, self._right = equations, right.astype(np.float64)
        self._size, self._box = size, box
        self._direction: Floats = np.zeros(equations.width)
        self.point: Floats = np.clip(self._direction if start is None else start, *box)

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of the way to each block."""
        turns, path = (order, self._size, relaxed), (self.point, sums, self._direction)
        sweep_blocks(self._equations.compiled, self._right, turns, path, self._box)
        return -(-len(order) // self._size)

    def jump(self, point: Floats) -> None:
        """Go on from another point."""
        self.point = point


# Kernels -----------------------------------------------------------------------------------------


@compiled
def coefficient(values: Any, k: Any) -> Any:
    """One coefficient of an equation."""
    if values is None:
        return 1.0
    return values[k]


@compiled
def own(starts: Any, values: Any, i: Any) -> Any:
    """The coefficients of one equation."""
    if values is None:
        return None
    return values[starts[i] : starts[i + 1]]


@compiled(fastmath=ANY_ORDER)
def at(columns: Any, values: Any, point: Any) -> Any:
    """What one equation comes to at a point."""
    total = 0.0
    for k in range(columns.shape[0]):
        total += coefficient(values, k) * point[columns[k]]
    return total


@compiled
def sweep_blocks(rows: Any, right: Any, turns: Any, path: Any, box: Any) -> None:
    """Move towards some equations at once, block after block; `turns` is (order, size, relaxed).

    The direction is the sum of the projections on each equation; the step is the one that ends
    nearest to all points that keep them. `path` is (point, sums, zeros for the direction).
    """
    order, size, relaxed = turns
    starts, columns, values, _ = rows
    point, sums, direction = path
    rests = np.empty(size)
    for first in range(0, order.shape[0], size):
        block = order[first : first + size]
        gained, squared = _rests(rows, right, block, point, rests), 0.0
        for place in range(block.shape[0]):
            i = block[place]
            equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
            squared += _laid(equation, rests[place], direction)
        step = relaxed * gained / squared if squared > 0 else 0.0
        for place in range(block.shape[0]):
            taken = columns[starts[block[place]] : starts[block[place] + 1]]
            _go(taken, step, direction, (point, sums, first // size + 1.0), box)


@compiled
def _rests(rows: Any, right: Any, block: Any, point: Any, rests: Any) -> Any:
    """How far each projection goes, in lengths of its row; the sum of the squared distances."""
    starts, columns, values, shares = rows
    gained = 0.0
    for place in range(block.shape[0]):
        i = block[place]
        rest = right[i] - at(columns[starts[i] : starts[i + 1]], own(starts, values, i), point)
        gained += rest * rest * shares[i]
        rests[place] = rest * shares[i]
    return gained


@compiled
def _laid(equation: Any, factor: Any, direction: Any) -> Any:
    """Add an equation to a direction; by how much its squared length has grown."""
    columns, values = equation
    grown = 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        more = factor * coefficient(values, k)
        grown += more * (2 * direction[j] + more)
        direction[j] += more
    return grown


@compiled
def _go(columns: Any, step: Any, direction: Any, path: Any, box: Any) -> None:
    """Take the step at these columns, each once: what is done of the direction becomes 0."""
    low, high = box
    point, sums, before = path
    trailed = sums.shape[0] > 0
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = min(max(point[j] + step * direction[j], low[j]), high[j])
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved
        direction[j] = 0.0
