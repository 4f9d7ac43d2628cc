"""The nearest point of simple sets: a box, a box with a known total, and either with a pull.

Method     A pull of strength s towards a centre moves each value by at most s, and no further than
           the centre; being separable, it is followed by the box. A total is one multiplier: the
           point moves along the weights, is pulled and brought into the box, and its total falls
           as the multiplier grows, in straight pieces. Newton's method on them, kept between ends
           that close in, finds the multiplier.
Cost       A few passes over the values with a total, one without.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Floats, ends

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

        >>> Allowed.of(2, 0.0, 1.0, TotalRange.of(2, 1.5)).nearest(np.array([0.9, 0.2])).tolist()
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
