"""The boundary of a linear classifier, and the box of points it is asked about.

All arithmetic of an extraction is done in the cube from -1 to 1, where directions and errors are of
one size; a box with ends of its own is stretched onto it and back.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Boundary:
    """Points are above it where weights . point + intercept > 0."""

    weights: Floats
    intercept: float

    @classmethod
    def of(cls, vector: Floats) -> "Boundary":
        """From weights and intercept in one vector."""
        return cls(np.array(vector[:-1]), float(vector[-1]))

    def heights(self, points: Floats) -> Floats:
        """How far each point is above it, in units of the weights."""
        return np.asarray(points @ self.weights + self.intercept, np.float64)

    def above(self, points: Floats) -> Bits:
        """Whether each point is above it."""
        return self.heights(points) > 0

    def turned(self) -> "Boundary":
        """The same boundary with its sides exchanged."""
        return Boundary(-self.weights, -self.intercept)

    def unit(self) -> "Boundary":
        """The same boundary with weights of length 1."""
        length = float(np.linalg.norm(self.weights))
        return self if length == 0 else Boundary(self.weights / length, self.intercept / length)

    def angle(self, other: "Boundary") -> float:
        """The angle between two boundaries, from 0 to a right angle; which side is which is open.

        >>> Boundary(np.array([1.0, 0.0]), 0.0).angle(Boundary(np.array([-3.0, 0.0]), 1.0))
        0.0
        """
        one, two = self.unit().weights, other.unit().weights
        # The arc tangent is exact for small angles, where the arc cosine knows eight digits.
        ends = float(np.linalg.norm(one - two)), float(np.linalg.norm(one + two))
        return 2 * math.atan2(min(ends), max(ends))

    def offset(self, other: "Boundary") -> float:
        """How far apart two boundaries are along their normals, seen from the origin."""
        one, two = self.unit(), other.unit()
        same = 1.0 if one.weights @ two.weights >= 0 else -1.0
        return abs(one.intercept - same * two.intercept)


@dataclass(frozen=True)
class Box:
    """The points that may be asked about: every coordinate from `low` to `high`."""

    dimension: int
    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ValueError(f"a point has at least 1 coordinate, got {self.dimension}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a box needs finite ends, low < high, got {self.low}, {self.high}")

    @property
    def centre(self) -> float:
        """The middle of every coordinate."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half the width of the box."""
        return self.high / 2 - self.low / 2

    def real(self, points: Floats) -> Floats:
        """Points of the cube as points of the box; never outside it."""
        return np.clip(self.centre + self.half * points, self.low, self.high)

    def outside(self, found: Boundary) -> Boundary:
        """A boundary of the cube as one of the box, with weights of length 1."""
        unit = found.unit()
        return Boundary(
            unit.weights, float(unit.intercept * self.half - self.centre * unit.weights.sum())
        )

    def inside(self, real: Boundary) -> Boundary:
        """A boundary of the box as one of the cube."""
        level = real.intercept + self.centre * float(real.weights.sum())
        return Boundary(self.half * real.weights, level)


def slid(points: Floats, boundary: Boundary, height: float | Floats = 0.0) -> Floats:
    """Points of the cube moved to a height above a boundary, or as near to it as the cube goes.

    Each slides towards the corner where the height changes fastest, so it stays in the cube, and
    reaches every height that the cube has.
    """
    off = boundary.heights(points) - height
    corner = -np.sign(off)[:, None] * np.sign(boundary.weights)
    beyond = boundary.heights(corner) - height
    share = np.divide(off, off - beyond, out=np.zeros(len(points)), where=off != beyond)
    return np.asarray(points + np.clip(share, 0.0, 1.0)[:, None] * (corner - points), np.float64)


def corners(random: np.random.Generator, count: int, dimension: int) -> Floats:
    """Random corners of the cube: of all points they say most about a boundary."""
    return random.choice(np.array([-1.0, 1.0]), size=(count, dimension))
