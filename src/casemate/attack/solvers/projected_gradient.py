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

The nearest point of simple sets: a box, a box with a known total, and either with a pull.

Method     A pull of strength s towards a centre moves each value by at most s, and no further than
           the centre; being separable, it is followed by the box. A total is one multiplier: the
           point moves along the weights, is pulled and brought into the box, and its total falls
           as the multiplier grows, in straight pieces. Newton's method on them, kept between ends
           that close in, finds the multiplier.
Cost       A few passes over the values with a total, one without.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.convex_losses import Bowl, Squares
from casemate.attack.solvers.least_squares import FLAT, Progress, Solved, descend
from casemate.exact import Floats, Passes, ends

MOST_PASSES = 200
"""No interval of doubles can be halved more often than this on the way to a multiplier."""

EXACT = 1e-14
"""A total that is off by this, relative to its terms, is the total."""


@dataclass(frozen=True, eq=False)
class TotalRange:
    """What a weighted sum of all values is known to be: at least `low` and at most `high`."""

    weights: Floats
    low: float
    high: float

    @classmethod
    def of(cls, width: int, low: float, high: float | None = None) -> "TotalRange":
        """The plain sum: equal to `low`, or between two ends."""
        return cls(np.ones(width), low, low if high is None else high)


@dataclass(frozen=True, eq=False)
class Allowed:
    """The values that are possible: a box, and a total if one is known."""

    low: Floats
    high: Floats
    total: TotalRange | None = None

    @classmethod
    def of(
        cls, width: int, low: Floats | float, high: Floats | float, total: TotalRange | None = None
    ) -> "Allowed":
        """A box for so many values, some of which have the total."""
        found = cls(*ends(low, high, width), total)
        if total is not None:
            _check(found, total)
        return found

    def nearest(self, point: Floats) -> Floats:
        """The nearest allowed point.

        >>> Allowed.of(2, 0.0, 1.0, Total.of(2, 1.5)).nearest(np.array([0.9, 0.2])).tolist()
        [1.0, 0.5]
        """
        return self.pulled(point, point, 0.0)

    def pulled(self, point: Floats, centre: Floats, strength: float) -> Floats:
        """The allowed x that minimises |x - point|^2 / 2 + strength * |x - centre|_1.

        >>> line = Allowed.of(3, -9.0, 9.0)
        >>> line.pulled(np.array([3.0, 0.5, -2.0]), np.zeros(3), 1.0).tolist()
        [2.0, 0.0, -1.0]
        """
        found = _Line(self, point, centre, strength)
        if self.total is None:
            return found.at(0.0)
        reached = float(self.total.weights @ found.at(0.0))
        if self.total.low <= reached <= self.total.high:
            return found.at(0.0)
        end = self.total.high if reached > self.total.high else self.total.low
        return found.with_sum(self.total.weights, end)


@dataclass(frozen=True, eq=False)
class _Line:
    """The nearest allowed points, for every multiplier of the total."""

    allowed: Allowed
    point: Floats
    centre: Floats
    strength: float

    def at(self, multiplier: float) -> Floats:
        """The point, moved against the weights, pulled, and brought into the box."""
        total = self.allowed.total
        moved = self.point if total is None else self.point - multiplier * total.weights
        if self.strength > 0:
            apart = moved - self.centre
            moved = self.centre + np.sign(apart) * np.maximum(np.abs(apart) - self.strength, 0.0)
        return np.clip(moved, self.allowed.low, self.allowed.high)

    def with_sum(self, weights: Floats, target: float) -> Floats:
        """The point whose weighted sum is this."""
        below, above, multiplier = -np.inf, np.inf, 0.0
        for _ in range(MOST_PASSES):
            found = self.at(multiplier)
            excess = float(weights @ found) - target
            if abs(excess) <= EXACT * (float(np.abs(weights * found).sum()) + abs(target)):
                break
            below, above = (multiplier, above) if excess > 0 else (below, multiplier)
            steepness = float(np.sum(weights[self._moves(found)] ** 2))
            step = excess / steepness if steepness > 0 else math.copysign(np.inf, excess)
            multiplier = _between(below, above, multiplier + step)
        return found

    def _moves(self, found: Floats) -> NDArray[np.bool_]:
        """Which values follow the multiplier: those at no end, and not held by the pull."""
        inside = (self.allowed.low < found) & (found < self.allowed.high)
        return inside & (found != self.centre) if self.strength > 0 else inside


def _between(below: float, above: float, wish: float) -> float:
    """The wish if it lies strictly between two ends, or else a value that halves what is left."""
    if below < wish < above and np.isfinite(wish):
        return wish
    if np.isfinite(below) and np.isfinite(above):
        return below + (above - below) / 2
    if np.isfinite(below):
        return 2 * below if below > 0 else 1.0
    return 2 * above if above < 0 else -1.0


def _check(allowed: Allowed, total: TotalRange) -> None:
    if total.low > total.high:
        raise ValueError("the lower end of a total must not be above the upper one")
    weights, used = total.weights, total.weights != 0
    at_ends = [weights * np.where(used, end, 0.0) for end in (allowed.low, allowed.high)]
    least, most = float(np.minimum(*at_ends).sum()), float(np.maximum(*at_ends).sum())
    slack = 1e-12 * (1 + abs(total.low) + abs(total.high))
    if least > total.high + slack or most < total.low - slack:
        raise ValueError(
            "no values within their ranges have the known total; widen the ranges or "
            "correct the total"
        )


# Projected gradient -----------------------------------------------------------------------------


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

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
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
