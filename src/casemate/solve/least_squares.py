"""Least squares over many sparse equations: the shortest of the best points.

Source     Source document 002, "Solving the equations": min |A x - b|, by pseudo-inverse there.
Method     Conjugate gradients on the normal equations of rows scaled to length 1, in the form that
           keeps the residual itself, from the start given (0 gives the point of least length).
Cost       Two passes over the equations a step; the number of steps grows with the condition
           number, and is a few dozen for random subsets.
Departure  Rows are scaled, which changes nothing where the equations can all hold; where they
           cannot, long and short rows count alike.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casemate.solve.rows import Floats, Passes

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

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
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
