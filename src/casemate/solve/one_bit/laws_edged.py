"""Laws of noise with an edge beyond which there is none, all with median 0."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from casemate.solve.one_bit.laws_protocol import Floats, numbers, positive
from casemate.solve.one_bit.laws_search import cdf_inverse


@dataclass(frozen=True)
class Uniform:
    """Even noise on [-u, u]."""

    u: float
    name = "uniform"

    def __post_init__(self) -> None:
        positive("half width", self.u)

    @property
    def scale(self) -> float:
        """The half width."""
        return self.u

    @property
    def edges(self) -> tuple[float, float]:
        """Both ends."""
        return -self.u, self.u

    @property
    def density_at_median(self) -> float:
        """The density, everywhere the same."""
        return 0.5 / self.u

    def cdf(self, x: ArrayLike) -> Floats:
        """A straight line."""
        return np.clip(0.5 + 0.5 * numbers(x) / self.u, 0.0, 1.0)

    def density(self, x: ArrayLike) -> Floats:
        """Even inside, nothing outside."""
        return np.where(np.abs(numbers(x)) <= self.u, 0.5 / self.u, 0.0)

    def quantile(self, p: ArrayLike) -> Floats:
        """The inverse of the line."""
        return self.u * (2 * numbers(p) - 1)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.uniform(-self.u, self.u, size)


@dataclass(frozen=True)
class Triangular:
    """Noise on [-u, u] whose density falls in a straight line from the middle to both ends."""

    u: float
    name = "triangular"

    def __post_init__(self) -> None:
        positive("half width", self.u)

    @property
    def scale(self) -> float:
        """The half width."""
        return self.u

    @property
    def edges(self) -> tuple[float, float]:
        """Both ends."""
        return -self.u, self.u

    @property
    def density_at_median(self) -> float:
        """The top."""
        return 1 / self.u

    def cdf(self, x: ArrayLike) -> Floats:
        """Two parabolas."""
        z = np.clip(numbers(x) / self.u, -1.0, 1.0)
        tail = 0.5 * (1 - np.abs(z)) ** 2
        return np.where(z < 0, tail, 1 - tail)

    def density(self, x: ArrayLike) -> Floats:
        """Two lines."""
        return np.maximum(1 - np.abs(numbers(x)) / self.u, 0.0) / self.u

    def quantile(self, p: ArrayLike) -> Floats:
        """Square roots on both sides."""
        chances = numbers(p)
        size = self.u * (1 - np.sqrt(2 * np.minimum(chances, 1 - chances)))
        return np.asarray(np.where(chances < 0.5, -size, size))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.triangular(-self.u, 0.0, self.u, size)


@dataclass(frozen=True)
class RaisedCosine:
    """Noise on [-u, u] whose density is a wave that comes in flat at both ends.

    Of the bounded laws here it is the one that gives an attacker nothing at its edges.
    """

    u: float
    name = "cosine"

    def __post_init__(self) -> None:
        positive("half width", self.u)

    @property
    def scale(self) -> float:
        """The half width."""
        return self.u

    @property
    def edges(self) -> tuple[float, float]:
        """Both ends."""
        return -self.u, self.u

    @property
    def density_at_median(self) -> float:
        """The top of the wave."""
        return 1 / self.u

    def cdf(self, x: ArrayLike) -> Floats:
        """A line and a sine; near the left end its series, where the two cancel."""
        depth = np.pi * (1 - np.abs(np.clip(numbers(x) / self.u, -1.0, 1.0)))  # from the edge
        series = depth**3 / 6 * (1 - depth**2 / 20 * (1 - depth**2 / 42))
        tail = np.where(depth < 0.01, series, depth - np.sin(depth)) / (2 * np.pi)
        return np.where(numbers(x) < 0, tail, 1 - tail)

    def density(self, x: ArrayLike) -> Floats:
        """The wave."""
        depth = np.pi * (1 - np.minimum(np.abs(numbers(x)) / self.u, 1.0))
        return np.asarray(np.sin(depth / 2) ** 2 / self.u)

    def quantile(self, p: ArrayLike) -> Floats:
        """By search in the lower half, and symmetry."""
        chances = numbers(p)
        lower = cdf_inverse(self.cdf, np.minimum(chances, 1 - chances), (-self.u, 0.0), self.u)
        return np.where(chances <= 0.5, lower, -lower)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws: even ones, kept as often as the wave is high."""
        drawn, missing = np.empty(size), np.arange(size)
        while missing.size:
            drawn[missing] = rng.uniform(-self.u, self.u, missing.size)
            height = self.u * self.density(drawn[missing])
            missing = missing[rng.random(missing.size) >= height]
        return drawn


@dataclass(frozen=True)
class Exponential:
    """Exponential noise of mean s, moved left so that its median is 0."""

    s: float
    name = "exponential"

    def __post_init__(self) -> None:
        positive("scale", self.s)

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return self.s

    @property
    def edges(self) -> tuple[float, float]:
        """An end on the left."""
        return -self.s * math.log(2), math.inf

    @property
    def density_at_median(self) -> float:
        """Half of what it is at the left end."""
        return 0.5 / self.s

    def cdf(self, x: ArrayLike) -> Floats:
        """One minus a tail."""
        return -np.expm1(-np.maximum(numbers(x) - self.edges[0], 0.0) / self.s)

    def density(self, x: ArrayLike) -> Floats:
        """The tail over the scale."""
        depth = (numbers(x) - self.edges[0]) / self.s
        return np.where(depth >= 0, np.exp(-np.maximum(depth, 0.0)) / self.s, 0.0)

    def quantile(self, p: ArrayLike) -> Floats:
        """A logarithm."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.edges[0] - self.s * np.log1p(-numbers(p)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.exponential(self.s, size) + self.edges[0]
