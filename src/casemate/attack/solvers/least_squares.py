"""Least squares over many sparse equations: the shortest of the best points.

Source     Source document 002, "Solving the equations": min |A x - b|, by pseudo-inverse there.
Method     Conjugate gradients on the normal equations of rows scaled to length 1, in the form that
           keeps the residual itself, from the start given (0 gives the point of least length).
           SciPy's `lsmr` is as fast, but nobody can watch it or stop it.
Cost       Two passes over the equations a step; the number of steps grows with the condition
           number, and is a few dozen for random subsets.
Departure  Rows are scaled, which changes nothing where the equations can all hold; where they
           cannot, long and short rows count alike, unless an `EquationView` weighs them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress, Solved, iterate, norm
from casemate.exact import Floats, Passes

ROUNDING_SLOPE = 1e-13
"""A slope so much smaller than the first one is rounding."""


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
    work = _ConjugateGradients(equations, right / equations.lengths, start)
    return iterate(work, tolerance, most, progress)


class _ConjugateGradients:
    """The point on its way, what is left of the equations there, and the direction to go."""

    def __init__(self, equations: Passes, right: Floats, start: Floats | None) -> None:
        self._equations = equations
        self.point = np.zeros(equations.width) if start is None else start.astype(np.float64)
        self._left = right - equations.times(self.point)
        self._size = norm(right)
        self._direction = equations.transpose_times(self._left)
        self._steepness = self._first = float(self._direction @ self._direction)
        self.steps = 0

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._left)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or no direction leads nearer to that."""
        slope = float(np.sqrt(self._steepness)) / self._size
        flat = self._steepness <= ROUNDING_SLOPE**2 * self._first
        return flat or self.residual <= tolerance or slope <= tolerance * self.residual

    def step(self) -> None:
        """Go to the best point in the direction, and choose the next one."""
        image = self._equations.times(self._direction)
        length = self._steepness / float(image @ image)
        self.point += length * self._direction
        self._left -= length * image
        gradient = self._equations.transpose_times(self._left)
        before, self._steepness = self._steepness, float(gradient @ gradient)
        self._direction *= self._steepness / before
        self._direction += gradient
        self.steps += 1


# Equations seen in another way: some of their unknowns only, or weighted; nothing is copied -----


@dataclass(frozen=True, eq=False)
class EquationView:
    """Equations multiplied by weights, in the unknowns that are free; the others count as 0."""

    equations: Passes
    weights: Floats | float = 1.0
    free: NDArray[np.bool_] | bool = True

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
        """What right sides are to be divided by; those of unknowns that are not free count."""
        return self.equations.lengths / self.weights

    def times(self, point: Floats) -> Floats:
        """What each weighted equation comes to at a point."""
        return self.weights * self.equations.times(np.where(self.free, point, 0.0))

    def transpose_times(self, weights: Floats) -> Floats:
        """The weighted equations multiplied by weights and added up, where they are free."""
        return np.where(self.free, self.equations.transpose_times(self.weights * weights), 0.0)
