"""Laws of noise without an edge, all with median 0."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from casemate.solve.one_bit.laws_kernel import gaussian_cdf, student_cdf
from casemate.solve.one_bit.laws_protocol import Floats, numbers, positive
from casemate.solve.one_bit.laws_search import cdf_inverse

EVERYWHERE = (-math.inf, math.inf)
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise of standard deviation sigma."""

    sigma: float
    name = "gaussian"
    edges = EVERYWHERE

    def __post_init__(self) -> None:
        positive("deviation", self.sigma)

    @property
    def scale(self) -> float:
        """The standard deviation."""
        return self.sigma

    @property
    def density_at_median(self) -> float:
        """The top of the bell."""
        return 1 / (self.sigma * math.sqrt(2 * math.pi))

    def cdf(self, x: ArrayLike) -> Floats:
        """The error function."""
        z = np.asarray(numbers(x) / self.sigma)
        return gaussian_cdf(z.ravel()).reshape(z.shape)  # type: ignore[no-any-return]  # numba

    def density(self, x: ArrayLike) -> Floats:
        """The bell."""
        return np.asarray(self.density_at_median * np.exp(-0.5 * (numbers(x) / self.sigma) ** 2))

    def quantile(self, p: ArrayLike) -> Floats:
        """By Wichura's rational approximations."""
        chances = numbers(p)
        values = [_gaussian_quantile(chance) for chance in chances.ravel().tolist()]
        return self.sigma * np.asarray(values, float).reshape(chances.shape)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.normal(0.0, self.sigma, size)


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of mean absolute deviation b."""

    b: float
    name = "laplace"
    edges = EVERYWHERE

    def __post_init__(self) -> None:
        positive("scale", self.b)

    @property
    def scale(self) -> float:
        """The mean absolute deviation."""
        return self.b

    @property
    def density_at_median(self) -> float:
        """The top of the peak."""
        return 0.5 / self.b

    def cdf(self, x: ArrayLike) -> Floats:
        """Exponential on both sides."""
        z = numbers(x) / self.b
        tail = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    def density(self, x: ArrayLike) -> Floats:
        """The peak."""
        return np.asarray(0.5 / self.b * np.exp(-np.abs(numbers(x)) / self.b))

    def quantile(self, p: ArrayLike) -> Floats:
        """Logarithms on both sides."""
        chances = numbers(p)
        with np.errstate(divide="ignore"):
            depth = np.log(2 * np.minimum(chances, 1 - chances))
        return np.asarray(np.where(chances < 0.5, self.b * depth, -self.b * depth))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.laplace(0.0, self.b, size)


@dataclass(frozen=True)
class Logistic:
    """Logistic noise of scale s."""

    s: float
    name = "logistic"
    edges = EVERYWHERE

    def __post_init__(self) -> None:
        positive("scale", self.s)

    @property
    def scale(self) -> float:
        """The scale of the log-odds."""
        return self.s

    @property
    def density_at_median(self) -> float:
        """A quarter over the scale."""
        return 0.25 / self.s

    def cdf(self, x: ArrayLike) -> Floats:
        """The logistic curve."""
        z = numbers(x) / self.s
        tail = np.exp(-np.abs(z))
        return np.asarray(np.where(z < 0, tail, 1.0) / (1 + tail))

    def density(self, x: ArrayLike) -> Floats:
        """The slope of the curve."""
        tail = np.exp(-np.abs(numbers(x)) / self.s)
        return np.asarray(tail / (self.s * (1 + tail) ** 2))

    def quantile(self, p: ArrayLike) -> Floats:
        """The log-odds."""
        chances = numbers(p)
        with np.errstate(divide="ignore"):
            return np.asarray(self.s * (np.log(chances) - np.log1p(-chances)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return rng.logistic(0.0, self.s, size)


@dataclass(frozen=True)
class Cauchy:
    """Cauchy noise whose quartiles are -g and g."""

    g: float
    name = "cauchy"
    edges = EVERYWHERE

    def __post_init__(self) -> None:
        positive("scale", self.g)

    @property
    def scale(self) -> float:
        """The upper quartile."""
        return self.g

    @property
    def density_at_median(self) -> float:
        """The top of the curve."""
        return 1 / (math.pi * self.g)

    def cdf(self, x: ArrayLike) -> Floats:
        """An angle, taken so that the lower tail keeps its digits."""
        return np.asarray(np.arctan2(self.g, -numbers(x)) / math.pi)

    def density(self, x: ArrayLike) -> Floats:
        """The curve."""
        z = numbers(x) / self.g
        return np.asarray(self.density_at_median / (1 + z * z))

    def quantile(self, p: ArrayLike) -> Floats:
        """The tangent."""
        chances = numbers(p)
        nearer = np.minimum(chances, 1 - chances)
        with np.errstate(divide="ignore"):
            size = np.where(nearer > 0, self.g / np.tan(math.pi * nearer), math.inf)
        return np.where(chances < 0.5, -size, np.where(chances > 0.5, size, 0.0))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return self.g * rng.standard_cauchy(size)


@dataclass(frozen=True)
class StudentT:
    """Student's noise with df degrees of freedom, times s."""

    df: float
    s: float = 1.0
    name = "student"
    edges = EVERYWHERE

    def __post_init__(self) -> None:
        positive("degrees of freedom", self.df)
        positive("scale", self.s)

    @property
    def scale(self) -> float:
        """The factor."""
        return self.s

    @property
    def density_at_median(self) -> float:
        """The top of the curve."""
        front = math.lgamma(0.5 * (self.df + 1)) - math.lgamma(0.5 * self.df)
        return math.exp(front) / (self.s * math.sqrt(self.df * math.pi))

    def cdf(self, x: ArrayLike) -> Floats:
        """The incomplete beta function."""
        z = np.asarray(numbers(x) / self.s)
        return student_cdf(z.ravel(), self.df).reshape(z.shape)  # type: ignore[no-any-return]  # numba

    def density(self, x: ArrayLike) -> Floats:
        """The curve."""
        z = numbers(x) / self.s
        return np.asarray(self.density_at_median * (1 + z * z / self.df) ** (-0.5 * (self.df + 1)))

    def quantile(self, p: ArrayLike) -> Floats:
        """By search in the lower half, and symmetry."""
        chances = numbers(p)
        lower = cdf_inverse(self.cdf, np.minimum(chances, 1 - chances), (-math.inf, 0.0), self.s)
        return np.where(chances <= 0.5, lower, -lower)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        return self.s * rng.standard_t(self.df, size)


def _gaussian_quantile(chance: float) -> float:
    if 0 < chance < 1:
        return _NORMAL.inv_cdf(chance)
    return math.inf if chance == 1 else -math.inf if chance == 0 else math.nan
