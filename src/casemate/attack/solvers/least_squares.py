"""Least squares over many sparse equations: the shortest of the best points.

Source     Source document 002, "Solving the equations": min |A x - b|, by pseudo-inverse there.
Method     Conjugate gradients on the normal equations of rows scaled to length 1, in the form that
           keeps the residual itself, from the start given (0 gives the point of least length).
Cost       Two passes over the equations a step; the number of steps grows with the condition
           number, and is a few dozen for random subsets.
Departure  Rows are scaled, which changes nothing where the equations can all hold; where they
           cannot, long and short rows count alike.

Equations seen in another way: some of their unknowns only, or weighted; nothing is copied.

Inner products of the columns of weighted equations: how alike any two unknowns are.

Cost       The sum of squared row lengths, or one dense matrix product in batches where rows are
           long; 4 bytes for each pair of unknowns.

A compiled pass that adds up products of the coefficients of each equation.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.exact import Floats, Passes, Rows

FLAT = 1e-13
"""A slope so much smaller than the first one is rounding."""

Progress = Callable[[int, float, Floats], None]
"""Called with the steps made, the relative residual, and the point."""


def after(progress: Progress | None, steps: int) -> Progress | None:
    """The same callback for work that follows so many steps."""
    if progress is None:
        return None
    return lambda more, residual, point: progress(steps + more, residual, point)


@dataclass(frozen=True, eq=False)
class Solved:
    """A point, how far its equations are from holding (relative to their right sides), and how
    many steps led there; `converged` says whether no better point is near."""

    values: Floats
    residual: float
    iterations: int
    converged: bool


def least_squares(
    equations: Passes,
    right: Floats,
    *,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """The point nearest to the start at which the equations come closest to holding.

    It stops when the relative residual is `tolerance`, or what is left of it is orthogonal to
    every direction to that accuracy, or after `most` steps.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 0, 2]]))
    >>> least_squares(rows, np.array([6.0, 4.0])).values.round(6).tolist()
    [3.0, 3.0, 2.0]
    """
    return descend(_Descent(equations, right / equations.lengths, start), tolerance, most, progress)


class Descent(Protocol):
    """A point on its way down."""

    point: Floats
    steps: int

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""

    def is_done(self, tolerance: float) -> bool:
        """Whether there is no better point near."""

    def step(self) -> None:
        """Go on."""


def descend(work: Descent, tolerance: float, most: int, progress: Progress | None) -> Solved:
    """Go on until it is done, or so many steps are made."""
    while work.steps < most and not work.is_done(tolerance):
        work.step()
        if progress is not None:
            progress(work.steps, work.residual, work.point)
    return Solved(work.point, work.residual, work.steps, converged=work.is_done(tolerance))


class _Descent:
    """The point on its way, what is left of the equations there, and the direction to go."""

    def __init__(self, equations: Passes, right: Floats, start: Floats | None) -> None:
        self._equations = equations
        self.point = np.zeros(equations.width) if start is None else start.astype(np.float64)
        self._left = right - equations.times(self.point)
        self._size = float(np.linalg.norm(right)) or 1.0
        self._direction = equations.transposed(self._left)
        self._steepness = self._first = float(self._direction @ self._direction)
        self.steps = 0

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._left)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or no direction leads nearer to that."""
        slope = float(np.sqrt(self._steepness)) / self._size
        flat = self._steepness <= FLAT**2 * self._first
        return flat or self.residual <= tolerance or slope <= tolerance * self.residual

    def step(self) -> None:
        """Go to the best point in the direction, and choose the next one."""
        image = self._equations.times(self._direction)
        length = self._steepness / float(image @ image)
        self.point += length * self._direction
        self._left -= length * image
        gradient = self._equations.transposed(self._left)
        before, self._steepness = self._steepness, float(gradient @ gradient)
        self._direction *= self._steepness / before
        self._direction += gradient
        self.steps += 1


# Views ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EquationView:
    """Equations behind others, of the same size and lengths."""

    equations: Passes

    @property
    def height(self) -> int:
        """How many equations there are."""
        return self.equations.height

    @property
    def width(self) -> int:
        """How many unknowns."""
        return self.equations.width

    @property
    def lengths(self) -> Floats:
        """What right sides are to be divided by."""
        return self.equations.lengths


@dataclass(frozen=True, eq=False)
class Freed(EquationView):
    """Equations in the unknowns that are free; the others count as 0, and lengths stay."""

    free: NDArray[np.bool_]

    def times(self, point: Floats) -> Floats:
        """What each equation comes to at a point."""
        return self.equations.times(np.where(self.free, point, 0.0))

    def transposed(self, weights: Floats) -> Floats:
        """The equations multiplied by weights and added up, where they are free."""
        return np.where(self.free, self.equations.transposed(weights), 0.0)


@dataclass(frozen=True, eq=False)
class Weighted(EquationView):
    """Equations multiplied by weights."""

    weights: Floats

    @property
    def lengths(self) -> Floats:
        """What right sides are to be divided by."""
        return self.equations.lengths / self.weights

    def times(self, point: Floats) -> Floats:
        """What each weighted equation comes to at a point."""
        return self.weights * self.equations.times(point)

    def transposed(self, weights: Floats) -> Floats:
        """The weighted equations multiplied by weights and added up."""
        return self.equations.transposed(self.weights * weights)


# Inner products ---------------------------------------------------------------------------------


BATCH = 2**24
"""Entries of a dense batch of equations."""

DENSE_ADVANTAGE = 30.0
"""A dense product does this many multiplications in the time of one sparse one."""


def inner_products(equations: Rows, weights: Floats) -> NDArray[np.float32]:
    """The sum over equations of weight * coefficient * coefficient, for all pairs of unknowns.

    >>> from casemate.exact.system import System
    >>> inner_products(Rows.of(System.of([[1, 1], [0, 2]])), np.array([1.0, 3.0])).tolist()
    [[1.0, 1.0], [1.0, 13.0]]
    """
    counts = np.diff(equations.starts).astype(np.float64)
    dense = equations.height * float(equations.width) ** 2 / DENSE_ADVANTAGE
    if float(counts @ counts) > dense:
        return _by_batches(equations, np.sqrt(weights))

    found = np.zeros((equations.width, equations.width), np.float32)
    starts, columns, values, _ = equations.stored
    add_products(starts, columns, values, weights, found)
    return found


def _by_batches(equations: Rows, roots: Floats) -> NDArray[np.float32]:
    found = np.zeros((equations.width, equations.width), np.float32)
    size = max(1, BATCH // max(1, equations.width))
    for first in range(0, equations.height, size):
        last = min(first + size, equations.height)
        batch = _dense(equations, first, last) * roots[first:last, None].astype(np.float32)
        found += batch.T @ batch
    return found


def _dense(equations: Rows, first: int, last: int) -> NDArray[np.float32]:
    """Some equations as a dense matrix."""
    entries = slice(equations.starts[first], equations.starts[last])
    row = np.repeat(np.arange(last - first), np.diff(equations.starts[first : last + 1]))
    dense = np.zeros((last - first, equations.width), np.float32)
    values = equations.values
    dense[row, equations.columns[entries]] = 1 if values is None else values[entries]
    return dense


# Inner products kernel --------------------------------------------------------------------------


@compiled
def add_products(starts: Any, columns: Any, values: Any, weights: Any, found: Any) -> None:
    """Add weight * coefficient * coefficient for all pairs of each equation."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        for k in range(starts[i], starts[i + 1]):
            own = found[columns[k]]
            weight = weights[i] if plain else weights[i] * values[k]
            for other in range(starts[i], starts[i + 1]):
                own[columns[other]] += weight if plain else weight * values[other]
