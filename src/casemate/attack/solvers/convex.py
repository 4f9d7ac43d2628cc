"""Least squares with convex knowledge: ranges, known values, totals, other sums, sparsity.

Source     Source document 002, "Incorporating background knowledge as constraints": a convex solver
           over the unknowns, and "Handling many queries", gradient methods with box constraints.
           Sparsity is R. Tibshirani's lasso (J. Royal Statistical Society B 58, 1996), here towards
           any centre. The method is A. Beck and M. Teboulle, "A fast iterative shrinkage-
           thresholding algorithm", SIAM J. Imaging Sciences 2, 2009 (FISTA); restarted as in
           B. O'Donoghue and E. Candès, "Adaptive restart for accelerated gradient schemes",
           Foundations of Computational Mathematics 15, 2015.
Method     A step down the gradient from a point ahead, then to the nearest allowed point, then
           ahead along the way just made; that is forgotten whenever it points uphill. The length
           of steps adapts to the curvature that was met, from above. A range for each unknown, one
           total and sparsity are met exactly at every step. Other sums are met by the augmented
           Lagrangian (D. Bertsekas, Constrained Optimization and Lagrange Multiplier Methods,
           1982): each round goes down the loss and the squared distance of shifted sums from their
           ranges, then shifts each sum by what it lies outside (the multiplier over the weight);
           the weight grows fourfold when a round has not brought the sums four times nearer. Rounds
           are short at first and become exact.
Which      Many points may fit equally well. Without sparsity the one nearest to `centre` is found:
           the sums at which all of them agree become constraints of a second descent, which is not
           needed where no constraint was met on the way from the centre. With sparsity few values
           depart from the centre, and which of several minimisers is found is not promised.
Converged  The equations hold, or the step that a gradient and a projection make together, over its
           length, is `tolerance` of the residual: at a minimum it is 0. Constraints besides ranges
           and the total hold to `tolerance`, relative to their size.
Cost       Two passes over the equations a step. The steps grow with the root of the condition
           number: `box_squares` needs fewer where most values are away from their bounds.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from casemate.attack.solvers.iteration import Progress, Solved, after, iterate, norm
from casemate.attack.solvers.least_squares import ROUNDING_SLOPE
from casemate.attack.solvers.watched_program import Program, as_sparse, run
from casemate.exact import Floats, Passes, Rows, Status, box_ends

MOST_MULTIPLIER_STEPS = 200
"""No interval of doubles can be halved more often than this on the way to a multiplier."""

TOTAL_TOLERANCE = 1e-14
"""A total that is off by this, relative to its terms, is the total."""


@dataclass(frozen=True, eq=False)
class Allowed:
    """The values that are possible, a box and a total if one is known; and the nearest such point.

    A pull of strength s towards a centre moves each value by at most s, and no further than the
    centre; being separable, it is followed by the box. A total is one multiplier: the point moves
    by it, is pulled and brought into the box, and its total falls as the multiplier grows, in
    straight pieces. Newton's method on them, kept between ends that close in, finds the multiplier.
    """

    low: Floats
    high: Floats
    total: float | None = None

    @classmethod
    def of(
        cls, width: int, low: Floats | float, high: Floats | float, total: float | None = None
    ) -> "Allowed":
        """A box for so many values, some of which have the total."""
        found = cls(*box_ends(low, high, width), total)
        slack = 1e-12 * (1 + 2 * abs(total or 0.0))
        least, most = found.low.sum() - slack, found.high.sum() + slack
        if total is not None and not least <= total <= most:
            raise ValueError(
                "no values within their ranges have the known total; widen the ranges or "
                "correct the total"
            )
        return found

    def nearest(self, point: Floats) -> Floats:
        """The nearest allowed point.

        >>> Allowed.of(2, 0.0, 1.0, 1.5).nearest(np.array([0.9, 0.2])).tolist()
        [1.0, 0.5]
        """
        return self.proximal_point(point, point, 0.0)

    def proximal_point(self, point: Floats, centre: Floats, strength: float) -> Floats:
        """The allowed x that minimises |x - point|^2 / 2 + strength * |x - centre|_1.

        >>> line = Allowed.of(3, -9.0, 9.0)
        >>> line.proximal_point(np.array([3.0, 0.5, -2.0]), np.zeros(3), 1.0).tolist()
        [2.0, 0.0, -1.0]
        """

        def at(multiplier: float) -> Floats:
            moved = point - multiplier
            if strength > 0:
                apart = moved - centre
                moved = centre + np.sign(apart) * np.maximum(np.abs(apart) - strength, 0.0)
            return np.clip(moved, self.low, self.high)

        if self.total is None:
            return at(0.0)
        return self._with_total(at, self.total, centre if strength > 0 else None)

    def _with_total(
        self, at: Callable[[float], Floats], total: float, holding: Floats | None
    ) -> Floats:
        """The point that has the total, among those of all multipliers.

        Values follow the multiplier that are at no end, and not where a pull is `holding` them.
        """
        below, above, multiplier = -np.inf, np.inf, 0.0
        for _ in range(MOST_MULTIPLIER_STEPS):
            found = at(multiplier)
            excess = float(found.sum()) - total
            if abs(excess) <= TOTAL_TOLERANCE * (float(np.abs(found).sum()) + abs(total)):
                break
            below, above = (multiplier, above) if excess > 0 else (below, multiplier)
            moves = (self.low < found) & (found < self.high)
            steepness = int((moves if holding is None else moves & (found != holding)).sum())
            step = excess / steepness if steepness > 0 else math.copysign(np.inf, excess)
            multiplier = _between(below, above, multiplier + step)
        return found


def _between(below: float, above: float, wish: float) -> float:
    """The wish if it lies strictly between two ends, or else a value that halves what is left."""
    if below < wish < above and np.isfinite(wish):
        return wish
    if np.isfinite(below) and np.isfinite(above):
        return below + (above - below) / 2
    if np.isfinite(below):
        return 2 * below if below > 0 else 1.0
    return 2 * above if above < 0 else -1.0


# Sums in ranges, and the penalty for those outside ----------------------------------------------


@dataclass(frozen=True, eq=False)
class RangeConstraints:
    """Weighted sums known to lie between two ends each, either infinite: low <= C x <= high."""

    rows: Rows
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class RangePenalty:
    """Half the squared distance of shifted, scaled rows from their ranges, times a weight.

    With equal ends, no shift and a weight of 1 it is the loss of least squares; without rows, of
    the point itself. Its image of a point is linear, so that images of combined points need no
    pass; its gradient is a pass back.
    """

    rows: Passes | None
    low: Floats
    high: Floats
    shift: Floats | float = 0.0
    weight: float = 1.0

    def image(self, point: Floats) -> Floats:
        """What the rows come to."""
        return point if self.rows is None else self.rows.times(point)

    def beyond(self, image: Floats) -> Floats:
        """How far shifted rows lie outside their ranges."""
        moved = image + self.shift
        return moved - np.clip(moved, self.low, self.high)

    def gradient(self, image: Floats) -> Floats:
        """The gradient where the image is this."""
        outside = self.weight * self.beyond(image)
        return outside if self.rows is None else self.rows.transpose_times(outside)

    def curvature(self, image: Floats) -> float:
        """At least the second derivative along a step of this image."""
        return self.weight * float(image @ image)


# The descent, to sums in their ranges -----------------------------------------------------------


Nearest = Callable[[Floats, float], Floats]
"""The nearest allowed point to a point, for a step of this length."""

CURVATURE_SLACK = 1e-10
"""Curvatures are compared up to this much."""

FIRST_WEIGHT = 10.0
"""Of the squared distance from the ranges."""

PENALTY_GROWTH = 4.0

CONSTRAINT_TOLERANCE = 1e-11
"""Sums that are outside their ranges by this, relative to their size, are inside."""

FIRST_GOAL, LAST_GOAL = 1e-2, 1e-11
"""How flat the way is when the first round ends, and when the last one does."""

GOAL_DECAY = 0.2
"""How much flatter each round ends than the one before."""


class AcceleratedDescent:
    """A point on its way down a loss, among allowed points, to sums in their ranges."""

    def __init__(
        self,
        loss: RangePenalty,
        constraints: Sequence[RangePenalty],
        nearest: Nearest,
        start: Floats,
    ) -> None:
        self._losses, self._nearest = [loss, *constraints], nearest
        self._goal, self._last = FIRST_GOAL, np.inf
        self.flatness = np.inf  # the step over its length: 0 at a minimum
        self._begin(start)

    def _begin(self, start: Floats) -> None:
        self.point = self._nearest(start.astype(np.float64), 0.0)
        self.images = self._images_of(self.point)
        self._before, self._images_before = self.point, self.images
        self._pace, self._curvature = 1.0, 0.0
        self.met_a_constraint = bool((self.point != start).any())  # in this round

    def _images_of(self, point: Floats) -> list[Floats]:
        return [loss.image(point) for loss in self._losses]

    @property
    def violation(self) -> float:
        """How far sums lie outside their ranges, relative to their size."""
        if len(self._losses) == 1:
            return 0.0
        low = np.concatenate([each.low for each in self._losses[1:]])
        high = np.concatenate([each.high for each in self._losses[1:]])
        size = max(1.0, *(norm(np.where(np.isfinite(end), end, 0.0)) for end in (low, high)))
        sums = np.concatenate(self.images[1:])
        return float(np.linalg.norm(sums - np.clip(sums, low, high))) / size

    def step(self, scale: float) -> None:
        """One step down; a new round where the way has become flat enough for its scale."""
        pace = (1 + np.sqrt(1 + 4 * self._pace**2)) / 2
        ahead = (self._pace - 1) / pace
        origin = self.point + ahead * (self.point - self._before)
        pairs = list(zip(self.images, self._images_before, strict=True))
        found, images = self._down(origin, [now + ahead * (now - old) for now, old in pairs])
        uphill = (origin - found) @ (found - self.point) > 0
        self._before, self._images_before = self.point, self.images
        self.point, self.images, self._pace = found, images, pace
        if uphill:
            self._before, self._images_before, self._pace = found, images, 1.0
        if len(self._losses) > 1 and self.flatness <= self._goal * scale:
            self._next_round()

    def _down(self, origin: Floats, images: list[Floats]) -> tuple[Floats, list[Floats]]:
        """The step, as long as the curvature that it meets allows."""
        parts = [loss.gradient(seen) for loss, seen in zip(self._losses, images, strict=True)]
        slope: Floats = np.sum(parts, axis=0)
        self._curvature = self._curvature or self._first_curvature(slope)
        while True:
            wish = origin - slope / self._curvature
            found = self._nearest(wish, 1 / self._curvature)
            seen = self._images_of(found)
            step = found - origin
            bend = self._bend([a - b for a, b in zip(seen, images, strict=True)])
            squared = float(step @ step)
            if bend <= self._curvature * squared * (1 + CURVATURE_SLACK) or squared == 0:
                break
            self._curvature = max(2 * self._curvature, bend / squared)
        self.met_a_constraint |= bool((wish != found).any())
        self.flatness = self._curvature * np.sqrt(squared)
        return found, seen

    def _bend(self, images: list[Floats]) -> float:
        return sum(loss.curvature(seen) for loss, seen in zip(self._losses, images, strict=True))

    def _first_curvature(self, slope: Floats) -> float:
        squared = float(slope @ slope)
        return (self._bend(self._images_of(slope)) / squared if squared > 0 else 0.0) or 1.0

    def _next_round(self) -> None:
        """Shift the sums by what they lie outside, and begin again."""
        violation = self.violation
        growth = (
            PENALTY_GROWTH
            if violation > max(CONSTRAINT_TOLERANCE, self._last / PENALTY_GROWTH)
            else 1.0
        )
        for place, (each, sums) in enumerate(zip(self._losses, self.images, strict=True)):
            if place > 0:
                shift, weight = each.beyond(sums) / growth, each.weight * growth
                self._losses[place] = replace(each, shift=shift, weight=weight)
        self._last = min(violation, self._last)
        self._goal = max(LAST_GOAL, GOAL_DECAY * self._goal)
        self._begin(self.point)


class ConstrainedFit:
    """A descent among allowed points with sums in ranges, and how well the equations hold there.

    The fit is what it goes down, or a sum that it keeps on the way down something else. That the
    equations hold is the end where nothing counts `beside` the fit.
    """

    def __init__(
        self,
        work: AcceleratedDescent,
        target: Floats,
        scale: float,
        *,
        keeps_fit: bool = False,
        beside: bool = False,
    ) -> None:
        self.work, self._target, self._scale = work, target, scale
        self._keeps_fit, self._beside = keeps_fit, beside
        self._first = 0.0
        self.steps = 0

    @property
    def point(self) -> Floats:
        """Where it is."""
        return self.work.point

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        sums = self.work.images[1 if self._keeps_fit else 0]
        return float(np.linalg.norm(sums - self._target)) / norm(self._target)

    def is_done(self, tolerance: float) -> bool:
        """Whether sums lie in their ranges, and the equations hold or no way leads nearer."""
        residual = self.residual
        holds = residual <= tolerance and not self._beside
        level = tolerance * self._scale * (1.0 if self._keeps_fit else residual)
        flat = self.work.flatness <= max(ROUNDING_SLOPE * self._first, level)
        return (holds or flat) and self.work.violation <= tolerance

    def step(self) -> None:
        """Go on."""
        self.work.step(self._scale)
        self.steps += 1
        self._first = self._first or self.work.flatness


# Solvers ----------------------------------------------------------------------------------------


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
    work = _least_squares(
        equations, right, nearest=lambda point, _: allowed.nearest(point), start=begin
    )
    return iterate(work, tolerance, most, progress)


def _least_squares(
    equations: Passes,
    right: Floats,
    *,
    nearest: Nearest,
    start: Floats,
    constraints: Sequence[RangePenalty] = (),
    pull: bool = False,
) -> ConstrainedFit:
    """The descent to the best fit; with a pull no fit is enough."""
    target = right / equations.lengths
    loss = RangePenalty(equations, target, target)
    work = AcceleratedDescent(loss, constraints, nearest, start)
    return ConstrainedFit(work, target, norm(target), beside=pull)


def convex(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    total: float | None = None,
    also: RangeConstraints | None = None,
    sparsity: float = 0.0,
    centre: Floats | float = 0.0,
    tolerance: float = 1e-6,
    most: int = 20_000,
    progress: Progress | None = None,
) -> Solved:
    """The allowed point at which the equations come closest to holding, nearest to the centre.

    A value is known where its low and high end are equal. With `sparsity`, what is minimised is
    half the squared residual of the scaled equations and `sparsity` times the sum of all
    departures from the centre.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0]]))
    >>> convex(rows, np.array([6.0]), low=0.0, total=9.0, centre=1.0).values.round(3).tolist()
    [3.0, 3.0, 3.0]
    """
    allowed = Allowed.of(equations.width, low, high, total)
    middle = np.broadcast_to(centre, equations.width).astype(np.float64)
    constraints = [] if also is None else [_penalty(allowed, also)]

    def nearest(point: Floats, length: float) -> Floats:
        return allowed.proximal_point(point, middle, sparsity * length)

    pull = sparsity > 0
    first = _least_squares(
        equations, right, nearest=nearest, start=middle, constraints=constraints, pull=pull
    )
    found = iterate(first, tolerance, most, progress)
    if pull or (also is None and not first.work.met_a_constraint):
        return found
    sums, distance = equations.times(found.values), RangePenalty(None, middle, middle)
    fit = RangePenalty(equations, sums, sums, weight=FIRST_WEIGHT)
    work = AcceleratedDescent(distance, [fit, *constraints], nearest, found.values)
    scale = max(1.0, norm(found.values - middle))
    again = ConstrainedFit(work, right / equations.lengths, scale, keeps_fit=True, beside=True)
    closer = iterate(again, tolerance, most, after(progress, found.iterations))
    steps, done = found.iterations + closer.iterations, found.converged and closer.converged
    return replace(closer, iterations=steps, converged=done)


def _penalty(allowed: Allowed, also: RangeConstraints) -> RangePenalty:
    """Sums as a penalty; refused where no values keep them, which a linear program decides."""
    if not len(also.low) == len(also.high) == also.rows.height:
        raise ValueError(
            f"{also.rows.height} constraints need as many low and high ends, "
            f"got {len(also.low)} and {len(also.high)}"
        )
    if not (also.low <= also.high).all():
        raise ValueError("the lower end of a constraint must not be above the upper one")
    from scipy.sparse import csr_array, vstack

    matrix, low, high = as_sparse(also.rows), also.low, also.high
    if allowed.total is not None:
        matrix = vstack([matrix, csr_array(np.ones((1, len(allowed.low))))])
        low, high = np.append(low, allowed.total), np.append(high, allowed.total)
    program = Program(np.zeros(len(allowed.low)), allowed.low, allowed.high, low, high, matrix)
    if run(program).status is Status.INFEASIBLE:
        raise ValueError("no values keep all constraints at once; drop or widen one of them")
    lengths = also.rows.lengths
    return RangePenalty(also.rows, also.low / lengths, also.high / lengths, weight=FIRST_WEIGHT)
