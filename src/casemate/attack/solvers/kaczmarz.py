"""Kaczmarz's method: passes over equations in random blocks, and sweeps that give least squares.

`kaczmarz_blocks` goes towards some equations at once, as far as they agree to; `swept_squares` goes
through all of them forth and back, sped up by conjugate gradients.

Source     Source document 002, "Handling many queries": the step of stochastic gradient descent
           that makes the drawn equation hold; rows are drawn by their squared lengths. The step of
           a block is the extrapolated average of I. Necoara, "Faster randomized block Kaczmarz
           algorithms", SIAM Journal on Matrix Analysis and Applications 40 (2019); a block of one
           equation is Kaczmarz's projection. Sweeps are those of Å. Björck and T. Elfving,
           "Accelerated projection methods for computing pseudoinverse solutions of systems of
           linear equations", BIT 19 (1979).
Method     The projections on all equations of a block are added up, and the point goes along that
           sum as far as brings it nearest to every point that keeps the block, then into the box
           (the document's change of variables by a sigmoid is in `sgd`). No factor of a block is
           computed: solving each block by least squares needed as many passes on range predicates
           and on random subsets, and a factor for each.
Guarantee  The result of sweeps is that of `least_squares`: where the equations can hold, they lead
           to the nearest point to the start at which they do. Where they come no further before
           that, because the equations contradict, `least_squares` goes on from where they ended,
           which is a step within the space of the rows, so that the nearest point stays the
           nearest.
Cost       Blocks: three reads of the equations a pass, for about the progress of projections one by
           one; noise averages out within a block. Loose answers come within a few passes; for many
           digits `least_squares` and `swept_squares` are faster.
           Sweeps: four reads of the equations a step, of which two find the row in cache, in a
           third to a tenth of the steps where there are about as many equations as unknowns or
           more: two thirds of the time of `least_squares` on random subsets, a quarter on range
           predicates. With far fewer equations, and for noisy answers, it brings nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress, Solved, after, iterate, relative_residual
from casemate.attack.solvers.least_squares import ROUNDING_SLOPE, least_squares
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER, Floats, RowArrays, Rows, box_ends

BLOCK_SIZE = 32
"""Equations a block."""

FEWEST_AVERAGED_PASSES = 16
"""Passes before it is asked whether the second half of them led any further."""

NO_TRAIL: Floats = np.zeros(0)

Order = Callable[[Rows, np.random.Generator], NDArray[np.int64]]
"""The rows of one pass, as they are to be taken."""

Sweep = Callable[[float, Floats], int]
"""A pass over the rows that goes a part of each step and adds to a path's sums; how many moves."""

INTERIOR_SHARE = 1e-12
"""A start is kept so far from the ends of the box, as a share of it."""


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
    box, right = box_ends(low, high, equations.width), right.astype(np.float64)
    moving, direction = BoxedPoint(box, start, sigmoid=False), np.zeros(equations.width)
    chosen = order or (shuffled_rows if averaged else drawn_rows)

    def one_pass(relaxation: float, sums: Floats) -> int:
        turns = BlockTurns(chosen(equations, random), size, relaxation)
        path = BlockPath(moving.point, sums, direction)
        sweep_blocks(equations.arrays, right, turns, path, box)
        return -(-len(turns.order) // size)

    work = RandomPasses(moving, one_pass, equations, right, averaged)
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


class BoxedPoint:
    """Values in a box, and the variables behind them: the values, or what a sigmoid takes."""

    def __init__(
        self, box: tuple[Floats, Floats], start: Floats | None, sigmoid: bool = True
    ) -> None:
        self.low, self.high = low, high = box
        both = np.isfinite(low) & np.isfinite(high) & sigmoid
        self.span: Floats = np.where(both, high - np.where(both, low, 0.0), 0.0)
        middle = np.where(both, low + self.span / 2, np.clip(0.0, low, high))
        self.jump(middle if start is None else start)

    def jump(self, point: Floats) -> None:
        """Go to a point, or as near to it as the inside of the box allows."""
        inside = self.span > 0
        self.point: Floats = np.clip(point.astype(np.float64), self.low, self.high)
        share = (self.point[inside] - self.low[inside]) / self.span[inside]
        share = np.clip(share, INTERIOR_SHARE, 1 - INTERIOR_SHARE)
        self.variables: Floats = self.point.copy()
        self.variables[inside] = np.log(share / (1 - share))
        self.point[inside] = self.low[inside] + self.span[inside] * share


class RandomPasses:
    """Passes over equations in random order, by whatever step, until they hold or come no nearer.

    Where the equations contradict, a step that makes each of them hold never comes to rest. The
    averaged form then looks at the average of all points of a pass: where more of the equations
    hold there than at its end, the point has only wandered, so it goes on from the average, with
    smaller steps. After w such passes the steps are 1 / (1 + w): they fall, and their sum does not
    stay bounded, which are the conditions of H. Robbins and S. Monro, "A stochastic approximation
    method", 1951. Averages are those of B. Polyak and A. Juditsky, "Acceleration of stochastic
    approximation by averaging", 1992. Of the averaged form the point is the best so far.
    """

    def __init__(
        self,
        moving: BoxedPoint,
        sweep: Sweep,
        equations: Rows,
        right: Floats,
        averaged: bool,
    ) -> None:
        self._moving, self._sweep, self._averaged = moving, sweep, averaged
        self._measure = relative_residual(equations, right)
        self.point = moving.point.copy()
        self.residual = self._measure(self.point)
        self._seen = [self.residual]
        self._wandered = self.steps = 0

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or the second half of the averaged passes led no further."""
        if self.residual <= tolerance or not self._averaged:
            return self.residual <= tolerance
        seen, least = self._seen, self.residual
        enough = len(seen) > FEWEST_AVERAGED_PASSES
        return enough and min(seen[: len(seen) // 2]) - least <= tolerance * least

    def step(self) -> None:
        """One pass."""
        work = self._moving
        sums = np.zeros(len(self.point)) if self._averaged else NO_TRAIL
        moves = self._sweep(1 / (1 + self._wandered), sums)
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


# Compiled steps ---------------------------------------------------------------------------------
#
# A move is added to a path's sums times the number of points `before` it, out of which the average
# of the whole path follows (of N points of which the last is x, it is x less the sum over N).


class BlockTurns(NamedTuple):
    """The rows of a pass, how many of them make a block, and the part of the way that is gone."""

    order: NDArray[np.int64]
    size: int
    relaxation: float


class BlockPath(NamedTuple):
    """Where a point is, and the sums out of which the average of its path follows."""

    point: Floats
    sums: Floats  # none: no average is wanted
    direction: Floats  # zeros, before a block and after it


@compiled
def coefficient(values: Floats | None, k: int) -> float:
    """One coefficient of an equation."""
    if values is None:
        return 1.0
    value: float = values[k]
    return value


@compiled
def row_values(starts: NDArray[np.int64], values: Floats | None, i: int) -> Floats | None:
    """The coefficients of one equation."""
    if values is None:
        return None
    return values[starts[i] : starts[i + 1]]


@compiled(fastmath=ANY_ORDER)
def row_value(columns: NDArray[np.uint32], values: Floats | None, point: Floats) -> float:
    """What one equation comes to at a point."""
    total = 0.0
    for k in range(columns.shape[0]):
        total += coefficient(values, k) * point[columns[k]]
    return total


@compiled
def sweep_blocks(
    rows: RowArrays,
    right: Floats,
    turns: BlockTurns,
    path: BlockPath,
    box: tuple[Floats, Floats],
) -> None:
    """Move towards some equations at once, block after block.

    The direction is the sum of the projections on each equation; the step is the one that ends
    nearest to all points that keep them.
    """
    starts, columns, values, _ = rows
    order, size, relaxation = turns
    distances = np.empty(size)
    for first in range(0, order.shape[0], size):
        block = order[first : first + size]
        gained, squared = _projections(rows, right, block, path.point, distances), 0.0
        for place in range(block.shape[0]):
            i = block[place]
            own, factors = columns[starts[i] : starts[i + 1]], row_values(starts, values, i)
            squared += _add_scaled_row(own, factors, distances[place], path.direction)
        step = relaxation * gained / squared if squared > 0 else 0.0
        for place in range(block.shape[0]):
            own = columns[starts[block[place]] : starts[block[place] + 1]]
            _step(own, step, first // size + 1.0, path, box)


@compiled
def _projections(
    rows: RowArrays, right: Floats, block: NDArray[np.int64], point: Floats, distances: Floats
) -> float:
    """How far each projection goes, in lengths of its row; the sum of the squared distances."""
    starts, columns, values, inverse_squares = rows
    gained = 0.0
    for place in range(block.shape[0]):
        i = block[place]
        own, factors = columns[starts[i] : starts[i + 1]], row_values(starts, values, i)
        residual = right[i] - row_value(own, factors, point)
        gained += residual * residual * inverse_squares[i]
        distances[place] = residual * inverse_squares[i]
    return gained


@compiled
def _add_scaled_row(
    columns: NDArray[np.uint32], values: Floats | None, factor: float, direction: Floats
) -> float:
    """Add an equation to a direction; by how much its squared length has grown."""
    grown = 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        more = factor * coefficient(values, k)
        grown += more * (2 * direction[j] + more)
        direction[j] += more
    return grown


@compiled
def _step(
    columns: NDArray[np.uint32],
    step: float,
    before: float,
    path: BlockPath,
    box: tuple[Floats, Floats],
) -> None:
    """Take the step at these columns, each once: what is done of the direction becomes 0."""
    low, high = box
    point, sums, direction = path
    averaged = sums.shape[0] > 0
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = min(max(point[j] + step * direction[j], low[j]), high[j])
        if averaged:
            sums[j] += before * (moved - point[j])
        point[j] = moved
        direction[j] = 0.0


# Sweeps: conjugate-gradient-accelerated symmetric Kaczmarz (CGMN) -------------------------------


SWEEP_RELAXATION = 0.5
"""The part of the way to each equation; few steps on range predicates and on random subsets."""

STEPS_PER_RESIDUAL = 4
"""Steps from one measurement of the residual, which is one more read, to the next."""

SLOWEST_DECAY = 0.99
"""A residual that is not below so much of what it was four measurements ago no longer falls."""


def swept_squares(
    equations: Rows,
    right: Floats,
    *,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """The point nearest to the start at which the equations come closest to holding.

    `most` counts steps in fours.

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 0, 2]]))
    >>> swept_squares(rows, np.array([6.0, 4.0])).values.round(6).tolist()
    [3.0, 3.0, 2.0]
    """
    work = _Sweeps(equations, right.astype(np.float64), start)
    swept = iterate(work, tolerance, most, progress)
    if swept.residual <= tolerance or swept.iterations >= most:
        return replace(swept, converged=swept.residual <= tolerance)
    found = least_squares(
        equations,
        right,
        start=swept.values,
        tolerance=tolerance,
        most=most - swept.iterations,
        progress=after(progress, swept.iterations),
    )
    return replace(found, iterations=swept.iterations + found.iterations)


class _Sweeps:
    """Conjugate gradients on x = sweep(x), whose difference is linear, symmetric and definite."""

    def __init__(self, equations: Rows, right: Floats, start: Floats | None) -> None:
        self._equations = equations
        self.point = np.zeros(equations.width) if start is None else start.astype(np.float64)
        self._nothing: Floats = np.zeros(equations.height)
        self._gap = self._swept(right, self.point) - self.point
        self._direction = self._gap.copy()
        self._squared = self._first = float(self._gap @ self._gap)
        self._measure = relative_residual(equations, right)
        self._residuals = [self._measure(self.point)]
        self.steps = 0

    @property
    def residual(self) -> float:
        """What the last measurement showed."""
        return self._residuals[-1]

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or the sweeps lead no nearer to that."""
        slow = len(self._residuals) > 4 and self.residual > SLOWEST_DECAY * self._residuals[-5]
        return self.residual <= tolerance or slow or not self._falls

    @property
    def _falls(self) -> bool:
        """Whether a sweep still moves the point by more than rounding."""
        return self._squared > ROUNDING_SLOPE**2 * self._first

    def step(self) -> None:
        """A few times to the best point in the direction; then see what is left."""
        for _ in range(STEPS_PER_RESIDUAL):
            if self._falls:
                self._step()
                self.steps += 1
        self._residuals.append(self._measure(self.point))

    def _step(self) -> None:
        image = self._direction - self._swept(self._nothing, self._direction)
        length = self._squared / float(self._direction @ image)
        self.point += length * self._direction
        self._gap -= length * image
        before, self._squared = self._squared, float(self._gap @ self._gap)
        self._direction *= self._squared / before
        self._direction += self._gap

    def _swept(self, right: Floats, point: Floats) -> Floats:
        moved = point.copy()
        forth_and_back(self._equations.arrays, right, SWEEP_RELAXATION, moved)
        return moved


@compiled(fastmath=ANY_ORDER)
def forth_and_back(rows: RowArrays, right: Floats, relaxation: float, point: Floats) -> None:
    """Go the part `relaxation` of the way to each equation, from the first to the last and back."""
    starts, columns, values, inverse_squares = rows
    height = starts.shape[0] - 1
    for place in range(2 * height):
        i = place if place < height else 2 * height - 1 - place
        taken, factors = columns[starts[i] : starts[i + 1]], row_values(starts, values, i)
        total = 0.0
        for k in range(taken.shape[0]):
            total += coefficient(factors, k) * point[taken[k]]
        rest = (right[i] - total) * inverse_squares[i] * relaxation
        for k in range(taken.shape[0]):
            point[taken[k]] += coefficient(factors, k) * rest
