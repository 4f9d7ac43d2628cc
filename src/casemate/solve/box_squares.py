"""Least squares within a box: what is known of each value holds exactly, at every step.

Source     Source document 002, "Incorporating background knowledge": min |A x - b| within bounds.
           The method is Z. Dostál's modified proportioning with reduced gradient projections
           (MPRGP), Optimal Quadratic Programming Algorithms, Springer 2009, chapter 5.
Method     From the solution without a box unless a start is given, by exchanging many values at
           once (`pivoting`): where the box holds of the truth that is nearly all, and where it
           presses that is a few rounds. Where it gives up, MPRGP: conjugate gradients on the values
           that are not at a bound; a step that would leave the box is projected into it, which
           meets many bounds at once; where that leads nowhere it stops at the first bound and is
           followed by one projected gradient step. When the gradient at the bounds outweighs the
           rest, values that should leave them are let go.
Cost       Two passes over the equations a step, two more where a bound is met.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from casemate.solve.least_squares import FLAT, Progress, Solved, after, descend, least_squares
from casemate.solve.pivoting import pivoting
from casemate.solve.projected_gradient import projected_gradient
from casemate.solve.rows import Floats, Passes, ends

PATIENCE = 300
"""Steps of MPRGP after which accelerated projected gradients go on: it may stall at many bounds."""

POWER_STEPS = 12
"""Steps of the power method that estimate the largest curvature."""

SAFE = 1.2
"""The estimate from below is raised by this much."""


def box_squares(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations come closest to holding.

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1]]))
    >>> box_squares(rows, np.array([6.0]), low=0.0, high=np.array([1.0, 9.0])).values.tolist()
    [1.0, 5.0]
    """
    steps = 0
    if start is None:
        free = least_squares(equations, right, tolerance=tolerance, most=most, progress=progress)
        start, steps = free.values, free.iterations
    found = pivoting(
        equations,
        right,
        low=low,
        high=high,
        start=start,
        tolerance=tolerance,
        most=most,
        progress=after(progress, steps),
    )
    done = found.converged or found.residual <= tolerance
    found = replace(found, iterations=steps + found.iterations, converged=done)
    if done:
        return found
    limits = (tolerance, most)
    return _descended(equations, right, (low, high), found, limits=limits, progress=progress)


def _descended(
    equations: Passes,
    right: Floats,
    box: tuple[Floats | float, Floats | float],
    found: Solved,
    *,
    limits: tuple[float, int],
    progress: Progress | None,
) -> Solved:
    """From where exchanging ended: by conjugate gradients, or by plain ones where those stall."""
    tolerance, most = limits
    work = _Descent(equations, right / equations.lengths, box, found.values)
    work.steps = found.iterations
    ended = descend(work, tolerance, work.steps + min(most, PATIENCE), progress)
    if ended.converged or most <= PATIENCE:
        return ended
    last = projected_gradient(
        equations,
        right,
        low=box[0],
        high=box[1],
        start=ended.values,
        tolerance=tolerance,
        most=most,
        progress=after(progress, ended.iterations),
    )
    return replace(last, iterations=ended.iterations + last.iterations)


class _Descent:
    """The point on its way, what is left of the equations there, and the direction to go."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        box: tuple[Floats | float, Floats | float],
        start: Floats,
    ) -> None:
        width = equations.width
        self._low, self._high = ends(*box, width)
        self._equations, self._right = equations, right
        self._size = float(np.linalg.norm(right)) or 1.0
        self.steps = 0
        self.point = np.clip(start.astype(np.float64), self._low, self._high)
        self._left: Floats = right - equations.times(self.point)
        self._gradient = self._free = self._bound = self._direction = np.zeros(width)
        self._steepness = 0.0
        self._begin()
        self._first = self._steepness

    @cached_property
    def _curvature(self) -> float:
        return _largest_curvature(self._equations)

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._left)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or no direction within the box leads nearer to that."""
        slope = float(np.sqrt(self._steepness)) / self._size
        flat = self._steepness <= FLAT**2 * self._first
        return flat or self.residual <= tolerance or slope <= tolerance * self.residual

    def step(self) -> None:
        """One step among the free values, or one that lets values go from their bounds."""
        if self._bound @ self._bound <= self._free @ self._free:
            self._among_the_free()
        else:
            image, best = self._best(self._bound)
            self._go(self._bound, min(best, self._room(self._bound)), image)
            self._direction = self._free.copy()
        self.steps += 1

    def _among_the_free(self) -> None:
        before, room = self._gradient, self._room(self._direction)
        image, best = self._best(self._direction)
        if 0 < best <= room:
            self._go(self._direction, best, image)
            turned = float(self._free @ (before - self._gradient)) / best
            self._direction = self._free - turned / float(image @ image) * self._direction
            return
        origin, left = self.point, float(self._left @ self._left)
        self._move(best, self._direction)
        self._begin()
        if float(self._left @ self._left) < left:
            return
        self.point = origin
        self._move(min(best, room), self._direction)
        self._begin()
        self._move(1 / (SAFE * self._curvature), self._free)
        self._begin()

    def _room(self, direction: Floats) -> float:
        """How far the point may go against the direction before it meets a bound."""
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.where(direction > 0, (self.point - self._low) / direction, np.inf)
            up = np.where(direction < 0, (self.point - self._high) / direction, np.inf)
        return float(min(down.min(initial=np.inf), up.min(initial=np.inf)))

    def _best(self, direction: Floats) -> tuple[Floats, float]:
        """The direction as the equations see it, and how far to go against it if there is room."""
        image = self._equations.times(direction)
        curvature = float(image @ image)
        falling = float(self._gradient @ direction)
        return image, falling / curvature if curvature > 0 else 0.0

    def _move(self, length: float, direction: Floats) -> None:
        self.point = np.clip(self.point - length * direction, self._low, self._high)

    def _go(self, direction: Floats, length: float, image: Floats) -> None:
        self._move(length, direction)
        self._left = self._left + length * image
        self._look()

    def _begin(self) -> None:
        """Compute everything from the point."""
        self._left = self._right - self._equations.times(self.point)
        self._look()
        self._direction = self._free.copy()

    def _look(self) -> None:
        """The gradient, in two parts: of free values, and of those that should leave a bound."""
        self._gradient = -self._equations.transposed(self._left)
        at_low, at_high = self.point <= self._low, self.point >= self._high
        self._free = np.where(at_low | at_high, 0.0, self._gradient)
        away = np.where(at_low, np.minimum(self._gradient, 0), np.maximum(self._gradient, 0))
        fixed = at_low & at_high
        self._bound = np.where((at_low | at_high) & ~fixed, away, 0.0)
        self._steepness = float(self._free @ self._free + self._bound @ self._bound)


def _largest_curvature(equations: Passes) -> float:
    """About the largest eigenvalue of A'A, from below."""
    point: Floats = np.ones(equations.width)
    found = 1.0
    for _ in range(POWER_STEPS):
        size = float(np.linalg.norm(point))
        if size == 0:
            return found
        point = equations.transposed(equations.times(point / size))
        found = float(np.linalg.norm(point)) or found
    return found
