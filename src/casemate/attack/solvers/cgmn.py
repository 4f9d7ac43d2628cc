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

from dataclasses import replace
from typing import Any

import numpy as np

from casemate.attack.solvers.iteration import (
    FLAT,
    Progress,
    Solved,
    after,
    iterate,
    relative_residual,
)
from casemate.attack.solvers.kaczmarz import coefficient, own
from casemate.attack.solvers.least_squares import least_squares
from casemate.compiled import compiled
from casemate.exact import ANY_ORDER, Floats, Rows

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
        slow = len(self._residuals) > 4 and self.residual > SLOWEST * self._residuals[-5]
        return self.residual <= tolerance or slow or not self._falls

    @property
    def _falls(self) -> bool:
        """Whether a sweep still moves the point by more than rounding."""
        return self._squared > FLAT**2 * self._first

    def step(self) -> None:
        """A few times to the best point in the direction; then see what is left."""
        for _ in range(OFTEN):
            if self._falls:
                self._go()
                self.steps += 1
        self._residuals.append(self._measure(self.point))

    def _go(self) -> None:
        image = self._direction - self._swept(self._nothing, self._direction)
        length = self._squared / float(self._direction @ image)
        self.point += length * self._direction
        self._gap -= length * image
        before, self._squared = self._squared, float(self._gap @ self._gap)
        self._direction *= self._squared / before
        self._direction += self._gap

    def _swept(self, right: Floats, point: Floats) -> Floats:
        moved = point.copy()
        forth_and_back(self._equations.compiled, right, RELAXED, moved)
        return moved


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
