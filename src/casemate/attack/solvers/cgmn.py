"""Least squares by sweeps: Kaczmarz's projections forth and back, sped up by conjugate gradients.

Source     Source document 002, "Handling many queries". The method is Å. Björck and T. Elfving,
           "Accelerated projection methods for computing pseudoinverse solutions of systems of
           linear equations", BIT 19 (1979).
Guarantee  The result is that of `least_squares`: where the equations can hold, the sweeps lead to
           the nearest point to the start at which they do. Where they come no further before that,
           because the equations contradict, `least_squares` goes on from where they ended, which
           is a step within the space of the rows, so that the nearest point stays the nearest.
Cost       Four reads of the equations a step, of which two find the row in cache, in a third to a
           tenth of the steps where there are about as many equations as unknowns or more: two
           thirds of the time of `least_squares` on random subsets, a quarter on range predicates.
           With far fewer equations, and for noisy answers, it brings nothing.
"""

import numpy as np

from casemate.attack.solvers.kaczmarz import relative_residual
from casemate.attack.solvers.least_squares import FLAT, Progress, Solved, least_squares
from casemate.exact import Floats, Rows

RELAXED = 0.5
"""The part of the way to each equation; few steps on range predicates and on random subsets."""

OFTEN = 4
"""Steps from one measurement of the residual, which is one more read, to the next."""

SLOWEST = 0.99
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

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 0, 2]]))
    >>> swept_squares(rows, np.array([6.0, 4.0])).values.round(6).tolist()
    [3.0, 3.0, 2.0]
    """
    residual = relative_residual(equations, right)
    work = _Sweeps(equations, right.astype(np.float64), start)
    seen = [residual(work.point)]
    while seen[-1] > tolerance and work.steps < most and not _is_slow(seen) and work.falls:
        until = min(work.steps + OFTEN, most)
        while work.steps < until and work.falls:
            work.step()
        seen.append(residual(work.point))
        if progress is not None:
            progress(work.steps, seen[-1], work.point)
    if seen[-1] <= tolerance or work.steps >= most:
        return Solved(work.point, seen[-1], work.steps, converged=seen[-1] <= tolerance)
    return _finished(work, equations, right, tolerance=tolerance, most=most, progress=progress)


def _is_slow(seen: list[float]) -> bool:
    return len(seen) > 4 and seen[-1] > SLOWEST * seen[-5]


def _finished(
    work: "_Sweeps",
    equations: Rows,
    right: Floats,
    *,
    tolerance: float,
    most: int,
    progress: Progress | None,
) -> Solved:
    """What conjugate gradients make of the point at which the sweeps ended."""

    def shown(steps: int, residual: float, point: Floats) -> None:
        if progress is not None:
            progress(work.steps + steps, residual, point)

    found = least_squares(
        equations,
        right,
        start=work.point,
        tolerance=tolerance,
        most=most - work.steps,
        progress=shown,
    )
    steps = work.steps + found.iterations
    return Solved(found.values, found.residual, steps, converged=found.converged)


class _Sweeps:
    """Conjugate gradients on x = sweep(x), whose difference is linear, symmetric and definite."""

    def __init__(self, equations: Rows, right: Floats, start: Floats | None) -> None:
        self._equations = equations
        self.point = np.zeros(equations.width) if start is None else start.astype(np.float64)
        self._nothing: Floats = np.zeros(equations.height)
        self._gap = self._swept(right, self.point) - self.point
        self._direction = self._gap.copy()
        self._squared = self._first = float(self._gap @ self._gap)
        self.steps = 0

    @property
    def falls(self) -> bool:
        """Whether a sweep still moves the point by more than rounding."""
        return self._squared > FLAT**2 * self._first

    def step(self) -> None:
        """Go to the best point in the direction, and choose the next one."""
        image = self._direction - self._swept(self._nothing, self._direction)
        length = self._squared / float(self._direction @ image)
        self.point += length * self._direction
        self._gap -= length * image
        before, self._squared = self._squared, float(self._gap @ self._gap)
        self._direction *= self._squared / before
        self._direction += self._gap
        self.steps += 1

    def _swept(self, right: Floats, point: Floats) -> Floats:
        from casemate.attack.solvers.kaczmarz import forth_and_back

        moved = point.copy()
        forth_and_back(self._equations.compiled, right, RELAXED, moved)
        return moved
