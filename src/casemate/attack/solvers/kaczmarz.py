"""Kaczmarz's method: one equation at a time, drawn at random or as they come.

Source     Source document 002, "Handling many queries": the step of stochastic gradient descent
           that makes the drawn equation hold; rows are drawn by their squared lengths.
Method     Each step is a projection on one equation, followed by one into the box, which keeps what
           is known of each value (the document's change of variables by a sigmoid is in `sgd`).
           Where equations contradict, the averaged form comes to rest at least squares; see
           `sweeping`. It takes each row once a pass, so that all of them count alike.
Cost       A pass costs what reading the equations costs. Loose answers come within a few passes;
           for many digits `least_squares` and `swept_squares` are faster.

Compiled projections on equations: one at a time, some at a time, and all of them forth and back.

`rows` is (starts, columns, values, shares): values are None where all of them are 1, and a share is
1 over a row's squared length. A path is (point, sums): a move is added to the sums times the number
of points `before` it, out of which the average of the whole path follows; empty sums are left
alone. `relaxed` is the part of the way that is gone.

Passes over equations in random order, by whatever step, until they hold or come no nearer.

Where the equations contradict, a step that makes each of them hold never comes to rest. The
averaged form then looks at the average of all points of a pass: where more of the equations hold
there than at its end, the point has only wandered, so it goes on from the average, with smaller
steps. After w such passes the steps are 1 / (1 + w): they fall, and their sum does not stay
bounded, which are the conditions of H. Robbins and S. Monro, "A stochastic approximation method",
1951. Averages are those of B. Polyak and A. Juditsky, "Acceleration of stochastic approximation by
averaging", 1992.

Kaczmarz's method with blocks: towards some equations at once, as far as they agree to.

Source     Source document 002, "Handling many queries", and the variants it points to. The step is
           the extrapolated average of I. Necoara, "Faster randomized block Kaczmarz algorithms",
           SIAM Journal on Matrix Analysis and Applications 40 (2019).
Method     The projections on all equations of a block are added up, and the point goes along that
           sum as far as brings it nearest to every point that keeps the block, then into the box.
           No factor of a block is computed: solving each block by least squares needed as many
           passes on range predicates and on random subsets, and a factor for each.
Cost       Three reads of the equations a pass, against two of `kaczmarz`, for about the progress of
           projections one by one; what it brings is that noise averages out within a block.

The average of the end of a path, from its moves alone.

A step that moves few of many values is added up at those values: of N points of which the last is
x, the average is x less the sum of all moves, each times the number of points before it, over N.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.least_squares import Progress, Solved
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER, Floats, Rows, ends


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
def project(equation: Any, answer: Any, share: Any, path: Any, box: Any) -> None:
    """Move a point to where one equation holds, then back into the box.

    `equation` is (columns, values), and `path` (point, sums, before).
    """
    columns, values = equation
    low, high = box
    point, sums, before = path
    trailed = sums.shape[0] > 0
    rest = (answer - at(columns, values, point)) * share
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = min(max(point[j] + coefficient(values, k) * rest, low[j]), high[j])
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved


@compiled
def sweep(rows: Any, right: Any, turns: Any, path: Any, box: Any) -> None:
    """Project on one equation after another; `turns` is (order, relaxed)."""
    starts, columns, values, shares = rows
    order, relaxed = turns
    point, sums = path
    for place in range(order.shape[0]):
        i = order[place]
        equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
        project(equation, right[i], relaxed * shares[i], (point, sums, place + 1.0), box)


@compiled(fastmath=ANY_ORDER)
def forth_and_back(rows: Any, right: Any, relaxed: Any, point: Any) -> None:
    """Go the part `relaxed` of the way to each equation, from the first to the last and back."""
    starts, columns, values, shares = rows
    height = starts.shape[0] - 1
    for place in range(2 * height):
        i = place if place < height else 2 * height - 1 - place
        taken, factors = columns[starts[i] : starts[i + 1]], own(starts, values, i)
        total = 0.0
        for k in range(taken.shape[0]):
            total += coefficient(factors, k) * point[taken[k]]
        rest = (right[i] - total) * shares[i] * relaxed
        for k in range(taken.shape[0]):
            point[taken[k]] += coefficient(factors, k) * rest


# Blocks ---------------------------------------------------------------------------------------


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


# Sweeping ---------------------------------------------------------------------------------------


Order = Callable[[Rows, np.random.Generator], NDArray[np.int64]]
"""The rows of one pass, as they are to be taken."""

NO_TRAIL: Floats = np.zeros(0)
FEWEST = 16
"""Passes before it is asked whether the second half of them led any further."""


class Sweeper(Protocol):
    """A point that one pass over the equations moves."""

    @property
    def point(self) -> Floats:
        """Where it is."""

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of each step; how many moves that were. `sums` are a trail's."""

    def jump(self, point: Floats) -> None:
        """Go on from another point."""


def drawn_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """As many rows as there are, each drawn by its share of all squared lengths."""
    bands = np.cumsum(equations.lengths**2)
    drawn = random.random(len(bands)) * (bands[-1] if len(bands) else 0.0)
    found: NDArray[np.int64] = np.searchsorted(bands, drawn, side="right").astype(np.int64)
    return np.minimum(found, len(bands) - 1)


def shuffled_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """Every row once, in random order."""
    return random.permutation(equations.height).astype(np.int64)


def settle(
    work: Sweeper,
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    order: Order,
    tolerance: float,
    most: int,
    progress: Progress | None,
) -> Solved:
    """Go on until the equations hold, or so many passes are made."""
    residual = relative_residual(equations, right)
    done = 0
    while True:
        left = residual(work.point)
        if progress is not None:
            progress(done, left, work.point)
        if left <= tolerance or done == most:
            return Solved(work.point, left, done, converged=left <= tolerance)
        work.sweep(order(equations, random), 1.0, NO_TRAIL)
        done += 1


def settle_averaged(
    work: Sweeper,
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    order: Order,
    tolerance: float,
    most: int,
    progress: Progress | None,
) -> Solved:
    """Go on until the equations hold, or come no nearer to that in as many passes again."""
    residual = relative_residual(equations, right)
    best = Solved(work.point.copy(), residual(work.point), 0, converged=False)
    seen, wandered = [best.residual], 0
    while len(seen) <= most and not _is_settled(seen, tolerance):
        sums = np.zeros(equations.width)
        moves = work.sweep(order(equations, random), 1 / (1 + wandered), sums)
        average = work.point - sums / (moves + 1)
        left, of_average = residual(work.point), residual(average)
        if of_average < left:
            work.jump(average)
            wandered, left = wandered + 1, of_average
        if left < best.residual:
            best = Solved(work.point.copy(), left, len(seen), converged=False)
        if progress is not None:
            progress(len(seen), left, work.point)
        seen.append(left)
    return replace(best, iterations=len(seen) - 1, converged=_is_settled(seen, tolerance))


def _is_settled(seen: list[float], tolerance: float) -> bool:
    """Whether the equations hold, or the second half of the passes led no further."""
    if seen[-1] <= tolerance:
        return True
    half = len(seen) // 2
    return len(seen) > FEWEST and min(seen[:half]) - min(seen) <= tolerance * min(seen)


def relative_residual(equations: Rows, right: Floats) -> Callable[[Floats], float]:
    """How far the equations are from holding at a point, relative to their right sides."""
    target = right / equations.lengths
    size = float(np.linalg.norm(target)) or 1.0
    return lambda point: float(np.linalg.norm(target - equations.times(point))) / size


# Kaczmarz blocks --------------------------------------------------------------------------------


SIZE = 32
"""Equations a block."""


def kaczmarz_blocks(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    size: int = SIZE,
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

    `order` is `drawn_rows`, or `shuffled_rows` for the averaged form, unless it is given.

    >>> from casemate.exact.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz_blocks(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    if size < 1:
        raise ValueError(f"a block has at least one equation, not {size}")
    work = _Blocks(equations, right, size, ends(low, high, equations.width), start)
    go, usual = (settle_averaged, shuffled_rows) if averaged else (settle, drawn_rows)
    return go(
        work,
        equations,
        right,
        random=random,
        order=order or usual,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )


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


# Trail ------------------------------------------------------------------------------------------


class PathAverage:
    """The average of at least the last half of a path, and at most its last three quarters.

    >>> trail, point = Trail(1), np.zeros(1)
    >>> for value in (8.0, 2.0, 4.0):
    ...     sums, before = trail.next(point)
    ...     sums += before * (value - point)
    ...     point[:] = value
    >>> trail.average(point).round(6).tolist()  # of 8, 2 and 4: the start is forgotten
    [4.666667]
    """

    def __init__(self, width: int) -> None:
        self._sums: Floats = np.zeros(width)
        self._moves, self._until = 0, 1
        self._earlier: Floats = np.zeros(width)
        self._count = 0

    def next(self, point: Floats) -> tuple[Floats, float]:
        """Before each move: the sums to which it is to be added, and how often."""
        if self._moves == self._until:
            self._earlier = self._recent(point)
            self._count, self._moves, self._until = self._moves, 0, 2 * self._until
            self._sums = np.zeros(len(self._sums))
        self._moves += 1
        return self._sums, float(self._moves - 1)

    def average(self, point: Floats) -> Floats:
        """The average of the points, of which this is the last."""
        if self._moves == 0:
            return point.copy()
        share = self._count / (self._count + self._moves)
        return share * self._earlier + (1 - share) * self._recent(point)

    def _recent(self, point: Floats) -> Floats:
        """The average of the points since the last turn, without the one before the first move."""
        return point - self._sums / self._moves


# Kaczmarz ---------------------------------------------------------------------------------------


__all__ = ["EquationStream", "drawn_rows", "kaczmarz", "shuffled_rows"]


def kaczmarz(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
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

    `order` is `drawn_rows`, or `shuffled_rows` for the averaged form, unless it is given.

    >>> from casemate.exact.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    work = _Projections(
        equations, right, EquationStream(equations.width, low=low, high=high, start=start)
    )
    go, usual = (settle_averaged, shuffled_rows) if averaged else (settle, drawn_rows)
    return go(
        work,
        equations,
        right,
        random=random,
        order=order or usual,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )


class _Projections:
    """Projections on one equation after another."""

    def __init__(self, equations: Rows, right: Floats, stream: "EquationStream") -> None:
        self._equations, self._right = equations, right.astype(np.float64)
        self._box, self.point = stream.box, stream.point

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of the way to each equation."""

        turns, path = (order, relaxed), (self.point, sums)
        sweep(self._equations.compiled, self._right, turns, path, self._box)
        return len(order)

    def jump(self, point: Floats) -> None:
        """Go on from another point."""
        self.point = point


class EquationStream:
    """A point that follows equations as they come, each seen once and then forgotten.

    With `averaged` its point is the average of the end of its path, which comes to rest where
    noisy equations leave the path itself wandering.

    >>> stream = Stream(2, low=0.0)
    >>> stream.see(np.array([0, 1]), 5.0)
    >>> stream.see(np.array([1]), 2.0)
    >>> stream.point.tolist()
    [2.5, 2.0]
    """

    def __init__(
        self,
        width: int,
        *,
        low: Floats | float = -np.inf,
        high: Floats | float = np.inf,
        start: Floats | None = None,
        averaged: bool = False,
    ) -> None:
        self.box = ends(low, high, width)
        self._last: Floats = np.clip(np.zeros(width) if start is None else start, *self.box)
        self._trail = PathAverage(width) if averaged else None

    @property
    def point(self) -> Floats:
        """Where it is now, or on average."""
        return self._last if self._trail is None else self._trail.average(self._last)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""

        factors = None if values is None else values.astype(np.float64)
        squared = float(len(columns) if factors is None else factors @ factors)
        if squared > 0:
            trail = (NO_TRAIL, 0.0) if self._trail is None else self._trail.next(self._last)
            equation, path = (columns.astype(np.uint32), factors), (self._last, *trail)
            project(equation, float(answer), 1 / squared, path, self.box)
