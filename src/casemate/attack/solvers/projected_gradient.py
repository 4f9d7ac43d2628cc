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

Sums that must lie in ranges are met by the augmented Lagrangian (D. Bertsekas, Constrained
Optimization and Lagrange Multiplier Methods, 1982): each round goes down the loss and the squared
distance of shifted sums from their ranges, then shifts each sum by what it lies outside (the
multiplier over the weight); the weight grows fourfold when a round has not brought the sums four
times nearer. Rounds are short at first and become exact.
"""

from collections.abc import Callable, Sequence

import numpy as np

from casemate.attack.solvers.convex_losses import ConvexLoss, RangePenalty
from casemate.attack.solvers.iteration import FLAT, Progress, Solved, iterate, norm
from casemate.attack.solvers.projections import Allowed
from casemate.exact import Floats, Passes

Nearest = Callable[[Floats, float], Floats]
"""The nearest allowed point to a point, for a step of this length."""

ROUNDING = 1e-10
"""Curvatures are compared up to this much."""


FIRST_WEIGHT = 10.0
"""Of the squared distance from the ranges."""

GROWTH = 4.0

HOLDS = 1e-11
"""Sums that are outside their ranges by this, relative to their size, are inside."""

FIRST_GOAL, LAST_GOAL = 1e-2, 1e-11
"""How flat the way is when the first round ends, and when the last one does."""

SHARPER = 0.2
"""How much flatter each round ends than the one before."""


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

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, -1]]))
    >>> projected_gradient(rows, np.array([6.0, 2.0]), low=0.0, high=3.0).values.round(3).tolist()
    [3.0, 2.0]
    """
    allowed = Allowed.of(equations.width, low, high)
    begin = np.zeros(equations.width) if start is None else start
    work = ConstrainedLeastSquares(
        equations, right, nearest=lambda point, _: allowed.nearest(point), start=begin
    )
    return iterate(work, tolerance, most, progress)


class Accelerated:
    """A point on its way down the sum of some losses, among allowed points."""

    def __init__(self, losses: Sequence[ConvexLoss], nearest: Nearest, start: Floats) -> None:
        self._losses, self._nearest = losses, nearest
        self.point = nearest(start.astype(np.float64), 0.0)
        self.images = self._seen(self.point)
        self._before, self._images_before = self.point, self.images
        self._pace, self._curvature = 1.0, 0.0
        self.flatness = np.inf  # the step over its length: 0 at a minimum
        self.met_a_constraint = bool((self.point != start).any())

    def _seen(self, point: Floats) -> list[Floats]:
        return [loss.image(point) for loss in self._losses]

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
        parts = [loss.gradient(seen) for loss, seen in zip(self._losses, images, strict=True)]
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
        return sum(loss.curvature(seen) for loss, seen in zip(self._losses, images, strict=True))

    def _first_curvature(self, slope: Floats) -> float:
        squared = float(slope @ slope)
        return (self._bend(self._seen(slope)) / squared if squared > 0 else 0.0) or 1.0


class AugmentedLagrangian:
    """A point on its way down a loss, to sums in their ranges if there are any."""

    def __init__(
        self, loss: ConvexLoss, penalty: RangePenalty | None, nearest: Nearest, start: Floats
    ) -> None:
        self._loss, self._penalty, self._nearest = loss, penalty, nearest
        self._goal, self._last = FIRST_GOAL, np.inf
        self.flatness = np.inf  # with the multipliers that a round ending now would set
        self._begin(start)

    def _begin(self, start: Floats) -> None:
        losses = [self._loss] if self._penalty is None else [self._loss, self._penalty]
        self._work = Accelerated(losses, self._nearest, start)

    @property
    def point(self) -> Floats:
        """Where it is."""
        return self._work.point

    @property
    def images(self) -> list[Floats]:
        """What the loss sees of the point, and what the sums come to."""
        return self._work.images

    @property
    def met_a_constraint(self) -> bool:
        """Whether the way of this round was ever bent by what is allowed."""
        return self._work.met_a_constraint

    @property
    def violation(self) -> float:
        """How far sums lie outside their ranges, relative to their size."""
        if self._penalty is None:
            return 0.0
        sums, (low, high) = self.images[1], (self._penalty.low, self._penalty.high)
        size = max(1.0, *(norm(np.where(np.isfinite(end), end, 0.0)) for end in (low, high)))
        return float(np.linalg.norm(sums - np.clip(sums, low, high))) / size

    def step(self, scale: float) -> None:
        """One step down; a new round where the way has become flat enough for its scale."""
        self._work.step()
        self.flatness = self._work.flatness
        if self._penalty is not None and self.flatness <= self._goal * scale:
            self._next_round(self._penalty)

    def _next_round(self, penalty: RangePenalty) -> None:
        violation = self.violation
        shift, weight = penalty.beyond(self.images[1]), penalty.weight
        if violation > max(HOLDS, self._last / GROWTH):
            shift, weight = shift / GROWTH, weight * GROWTH
        self._last = min(violation, self._last)
        self._goal = max(LAST_GOAL, SHARPER * self._goal)
        self._penalty = RangePenalty(penalty.rows, penalty.low, penalty.high, shift, weight)
        self._begin(self.point)


class ConstrainedLeastSquares:
    """Least squares among allowed points with sums in ranges; with a pull no fit is enough."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        *,
        nearest: Nearest,
        start: Floats,
        penalty: RangePenalty | None = None,
        pull: bool = False,
    ) -> None:
        self._target = right / equations.lengths
        self._size, self._pull, self._first = norm(self._target), pull, 0.0
        loss = RangePenalty(equations, self._target, self._target)
        self._work = AugmentedLagrangian(loss, penalty, nearest, start)
        self.steps = 0

    @property
    def point(self) -> Floats:
        """Where it is."""
        return self._work.point

    @property
    def met_a_constraint(self) -> bool:
        """Whether a constraint was ever met."""
        return self._work.met_a_constraint

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._work.images[0] - self._target)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether sums lie in their ranges, and the equations hold or no way leads nearer."""
        residual, flatness = self.residual, self._work.flatness
        holds = residual <= tolerance and not self._pull
        flat = flatness <= max(FLAT * self._first, tolerance * self._size * residual)
        return (holds or flat) and self._work.violation <= tolerance

    def step(self) -> None:
        """Go on."""
        self._work.step(self._size)
        self.steps += 1
        self._first = self._first or self._work.flatness
