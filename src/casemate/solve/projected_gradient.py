"""Accelerated projected gradients: least squares where only the nearest allowed point is needed.

Source     Source document 002, "Handling many queries", asks for gradient methods with box
           constraints. The method is A. Beck and M. Teboulle, "A fast iterative shrinkage-
           thresholding algorithm", SIAM J. Imaging Sciences 2, 2009 (FISTA); restarted as in
           B. O'Donoghue and E. Candès, "Adaptive restart for accelerated gradient schemes",
           Foundations of Computational Mathematics 15, 2015.
Method     A step down the gradient from a point ahead, then to the nearest allowed point, then
           ahead along the way just made; that is forgotten whenever it points uphill. The length
           of steps adapts to the curvature that was met, from above.
Converged  The equations hold, or the step that a gradient and a projection make together, over its
           length, is `tolerance` of the residual: at a minimum it is 0.
Cost       Two passes over the equations a step. The steps grow with the root of the condition
           number: `box_squares` needs fewer where most values are away from their bounds.
"""

from collections.abc import Callable, Sequence

import numpy as np

from casemate.solve.bowls import Bowl, Squares
from casemate.solve.least_squares import FLAT, Progress, Solved, descend
from casemate.solve.projections import Allowed
from casemate.solve.rows import Floats, Passes

Nearest = Callable[[Floats, float], Floats]
"""The nearest allowed point to a point, for a step of this length."""

ROUNDING = 1e-10
"""Curvatures are compared up to this much."""


def projected_gradient(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations come closest to holding.

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, -1]]))
    >>> projected_gradient(rows, np.array([6.0, 2.0]), low=0.0, high=3.0).values.round(3).tolist()
    [3.0, 2.0]
    """
    allowed = Allowed.of(equations.width, low, high)
    begin = np.zeros(equations.width) if start is None else start
    work = Residuals(equations, right, nearest=lambda point, _: allowed.nearest(point), start=begin)
    return descend(work, tolerance, most, progress)


class Accelerated:
    """A point on its way down the sum of some bowls, among allowed points."""

    def __init__(self, bowls: Sequence[Bowl], nearest: Nearest, start: Floats) -> None:
        self._bowls, self._nearest = bowls, nearest
        self.point = nearest(start.astype(np.float64), 0.0)
        self.images = self._seen(self.point)
        self._before, self._images_before = self.point, self.images
        self._pace, self._curvature = 1.0, 0.0
        self.flatness = np.inf  # the step over its length: 0 at a minimum
        self.met_a_constraint = bool((self.point != start).any())

    def _seen(self, point: Floats) -> list[Floats]:
        return [bowl.image(point) for bowl in self._bowls]

    def step(self) -> None:
        """Down the gradient from the point ahead, and to the nearest allowed point."""
        pace = (1 + np.sqrt(1 + 4 * self._pace**2)) / 2
        ahead = (self._pace - 1) / pace
        origin = self.point + ahead * (self.point - self._before)
        pairs = list(zip(self.images, self._images_before, strict=True))
        images = [now + ahead * (now - before) for now, before in pairs]
        found, found_images = self._down(origin, images)
        self._before, self._images_before = self.point, self.images
        uphill = (origin - found) @ (found - self.point) > 0
        self.point, self.images, self._pace = found, found_images, pace
        if uphill:
            self._before, self._images_before, self._pace = found, found_images, 1.0

    def _down(self, origin: Floats, images: list[Floats]) -> tuple[Floats, list[Floats]]:
        """The step, as long as the curvature that it meets allows."""
        parts = [bowl.slope(seen) for bowl, seen in zip(self._bowls, images, strict=True)]
        slope: Floats = np.sum(parts, axis=0)
        self._curvature = self._curvature or self._first_curvature(slope)
        while True:
            wish = origin - slope / self._curvature
            found = self._nearest(wish, 1 / self._curvature)
            seen = self._seen(found)
            step = found - origin
            bend = self._bend([a - b for a, b in zip(seen, images, strict=True)])
            squared = float(step @ step)
            if bend <= self._curvature * squared * (1 + ROUNDING) or squared == 0:
                break
            self._curvature = max(2 * self._curvature, bend / squared)
        self.met_a_constraint |= bool((wish != found).any())
        self.flatness = self._curvature * np.sqrt(squared)
        return found, seen

    def _bend(self, images: list[Floats]) -> float:
        return sum(bowl.bend(seen) for bowl, seen in zip(self._bowls, images, strict=True))

    def _first_curvature(self, slope: Floats) -> float:
        squared = float(slope @ slope)
        return (self._bend(self._seen(slope)) / squared if squared > 0 else 0.0) or 1.0


class Residuals:
    """Least squares among allowed points, for `descend`; a pull keeps it from ending early."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        *,
        nearest: Nearest,
        start: Floats,
        pull: bool = False,
    ) -> None:
        self._target = right / equations.lengths
        self._size = float(np.linalg.norm(self._target)) or 1.0
        self._work = Accelerated([Squares(equations, self._target)], nearest, start)
        self._first: float | None = None
        self._pull = pull
        self.point, self.steps = self._work.point, 0

    @property
    def met_a_constraint(self) -> bool:
        """Whether a constraint was ever met."""
        return self._work.met_a_constraint

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._work.images[0] - self._target)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether the equations hold, or no way leads nearer to that."""
        if self.residual <= tolerance and not self._pull:
            return True
        if self._first is None:
            return False
        flat = self._work.flatness <= FLAT * self._first
        return flat or self._work.flatness / self._size <= tolerance * self.residual

    def step(self) -> None:
        """Go on."""
        self._work.step()
        self.point, self.steps = self._work.point, self.steps + 1
        if self._first is None:
            self._first = self._work.flatness
