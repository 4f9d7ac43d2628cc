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

Least squares within a box by exchanging many values at once between the box and its ends.

Source     Source document 002, "Incorporating background knowledge": min |A x - b| within bounds.
           The method is block principal pivoting: J. Júdice and F. Pires, "A block principal
           pivoting algorithm for large-scale strictly monotone linear complementarity problems",
           Computers & Operations Research 21 (1994).
Method     Values at an end of the box stay there while the others are solved for without a box.
           Those that left it are put to the end they passed, and those that would rather leave
           their end are let go, all at once; until nothing wants to change. Where the number of
           those that do no longer falls, it gives up: the point is then no solution.
Cost       Some rounds of least squares, each from where the last one ended: about twice the steps
           of least squares without a box on random subsets, however hard the box presses.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.least_squares import (
    FLAT,
    Freed,
    Progress,
    Solved,
    after,
    descend,
    least_squares,
)
from casemate.attack.solvers.projected_gradient import projected_gradient
from casemate.exact import Floats, Passes, ends

Flags = NDArray[np.bool_]

ROUNDS = 50
PIVOTING_PATIENCE = 3
"""Rounds after which the number of changes must have fallen."""

SLOPE = 1e-7
"""A value at an end leaves it for a slope of this share of the steepest."""

OUTSIDE = 1e-9
"""Values so little outside of the box are rounding, as a share of their size."""


def pivoting(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    start: Floats,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations come closest to holding, or not `converged`.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, 0]]))
    >>> found = pivoting(rows, np.array([6.0, 4.0]), low=0.0, high=3.0, start=np.zeros(2))
    >>> found.values.round(6).tolist(), found.converged
    ([3.0, 3.0], True)
    """
    work = _EndExchange(equations, right, ends(low, high, equations.width), start)
    fewest, patience = equations.width + 1, PIVOTING_PATIENCE
    for _ in range(ROUNDS):
        changes = work.round(tolerance, most, progress)
        if changes < fewest:
            fewest, patience = changes, PIVOTING_PATIENCE
        else:
            patience -= 1
        if changes == 0 or patience == 0 or work.steps >= most:
            break
    return replace(work.solved(), converged=changes == 0)


class _EndExchange:
    """The point, and which end each value is at: -1 the low one, 1 the high one, 0 neither."""

    def __init__(
        self, equations: Passes, right: Floats, box: tuple[Floats, Floats], start: Floats
    ) -> None:
        self._equations, self._right = equations, right / equations.lengths
        self._low, self._high = box
        self._point = start.astype(np.float64)
        self._end = np.sign(self._past()).astype(np.int8)
        self.steps = 0

    def round(self, tolerance: float, most: int, progress: Progress | None) -> int:
        """Solve for the free values, then exchange; how many values changed sides."""
        free = self._end == 0
        ended = np.where(self._end < 0, self._low, self._high)
        held = np.where(free, 0.0, ended)
        left = self._right - self._equations.times(held)
        found = least_squares(
            Freed(self._equations, free),
            left * self._equations.lengths,
            start=np.where(free, self._point, 0.0),
            tolerance=tolerance,
            most=max(1, most - self.steps),
            progress=_shown(progress, self.steps, held, _size(left) / _size(self._right)),
        )
        self.steps += found.iterations
        self._point = np.where(free, found.values, held)
        return self._exchange(free)

    def _exchange(self, free: Flags) -> int:
        past = np.where(free, self._past(), 0)
        slope = -self._equations.transposed(self._right - self._equations.times(self._point))
        least = SLOPE * float(np.abs(slope).max(initial=0.0))
        leaving = (self._end != 0) & (self._low < self._high) & (slope * self._end > least)
        changed = (past != 0) | leaving
        self._end = np.where(changed, np.sign(past), self._end).astype(np.int8)
        return int(changed.sum())

    def _past(self) -> Floats:
        """By how much each value is past an end of the box: negative below, positive above it."""
        slack = OUTSIDE * np.maximum(1.0, np.abs(self._point))
        above = np.where(self._point > self._high + slack, self._point - self._high, 0.0)
        return np.where(self._point < self._low - slack, self._point - self._low, above)

    def solved(self) -> Solved:
        """The point moved into the box, and how far its equations are from holding."""
        values = np.clip(self._point, self._low, self._high)
        left = float(np.linalg.norm(self._right - self._equations.times(values)))
        return Solved(values, left / _size(self._right), self.steps, converged=False)


def _size(right: Floats) -> float:
    return float(np.linalg.norm(right)) or 1.0


def _shown(progress: Progress | None, done: int, held: Floats, share: float) -> Progress | None:
    """Progress of the free values, told as that of all of them."""
    if progress is None:
        return None
    return lambda steps, residual, point: progress(done + steps, share * residual, point + held)


# Box squares ------------------------------------------------------------------------------------


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

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
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
    work = _BoxDescent(equations, right / equations.lengths, box, found.values)
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


class _BoxDescent:
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
