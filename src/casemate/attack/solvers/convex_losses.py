"""Convex functions that are quadratic or nearly so, as seen through a linear image of the point.

The `image` of a loss is linear, so that images of combined points need no pass; its `gradient` is a
pass back, and its `curvature` bounds the second derivative along a step.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casemate.exact import Floats, Passes, Rows


class ConvexLoss(Protocol):
    """A smooth convex function of a point."""

    def image(self, point: Floats) -> Floats:
        """What the function sees of a point; linear."""

    def gradient(self, image: Floats) -> Floats:
        """The gradient where the image is this."""

    def curvature(self, image: Floats) -> float:
        """At least the second derivative along a step of this image."""


@dataclass(frozen=True, eq=False)
class SquaredDistance:
    """Half the squared distance from a centre."""

    centre: Floats

    def image(self, point: Floats) -> Floats:
        """The point itself."""
        return point

    def gradient(self, image: Floats) -> Floats:
        """The gradient at a point."""
        return image - self.centre

    def curvature(self, image: Floats) -> float:
        """The second derivative along a step."""
        return float(image @ image)


@dataclass(frozen=True, eq=False)
class RangePenalty:
    """Half the squared distance of shifted, scaled rows from their ranges, times a weight.

    With equal ends, no shift and a weight of 1 it is the loss of least squares.
    """

    rows: Passes
    low: Floats
    high: Floats
    shift: Floats | float = 0.0
    weight: float = 1.0

    def image(self, point: Floats) -> Floats:
        """What the rows come to."""
        return self.rows.times(point)

    def beyond(self, image: Floats) -> Floats:
        """How far shifted rows lie outside their ranges."""
        moved = image + self.shift
        return moved - np.clip(moved, self.low, self.high)

    def gradient(self, image: Floats) -> Floats:
        """The gradient where the image is this."""
        return self.rows.transposed(self.weight * self.beyond(image))

    def curvature(self, image: Floats) -> float:
        """At least the second derivative along a step of this image."""
        return self.weight * float(image @ image)


@dataclass(frozen=True, eq=False)
class RangeConstraints:
    """Weighted sums known to lie between two ends each, either infinite: low <= C x <= high."""

    rows: Rows
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False)
class Stacked:
    """Equations above others."""

    upper: Passes
    lower: Passes

    @property
    def height(self) -> int:
        """How many equations there are."""
        return self.upper.height + self.lower.height

    @property
    def width(self) -> int:
        """How many unknowns."""
        return self.upper.width

    @property
    def lengths(self) -> Floats:
        """The length of each equation before it was scaled."""
        return np.concatenate([self.upper.lengths, self.lower.lengths])

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        return np.concatenate([self.upper.times(point), self.lower.times(point)])

    def transposed(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        above, below = np.split(weights, [self.upper.height])
        return self.upper.transposed(above) + self.lower.transposed(below)
