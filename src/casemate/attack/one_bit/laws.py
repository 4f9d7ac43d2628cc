"""The laws of noise: by name, by text, and made of each other.

>>> parse_law("laplace:2.5")
Laplace(b=2.5)
>>> parse_law("student:3:0.5")
StudentT(df=3.0, s=0.5)
>>> parse_law("gaussian:1[-2:2]").edges
(-2.0, 2.0)

What a law of noise is: a distribution on the line that can be read and drawn from.

The inverse of a distribution function that has no formula: by doubling, then by halving.

Compiled special functions: the Gaussian and the Student distribution functions.

Source   The incomplete beta function by its continued fraction (Lentz's method), which converges
         fast left of the mean of the beta law; right of it, by symmetry.

Laws of noise without an edge, all with median 0.

Laws made of other laws: cut to an interval, moved, mixed.

Laws of noise with an edge beyond which there is none, all with median 0.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from casemate.compiled import compiled
from casemate.errors import Misconfigured

Floats = NDArray[np.float64]


class Law(Protocol):
    """The law of the noise on an answer w . q (in the source document, of D times E)."""

    @property
    def name(self) -> str:
        """Its name, as `parse_law` reads it where it has one."""
        ...

    @property
    def scale(self) -> float:
        """Its size: all else about it is read in multiples of this."""
        ...

    @property
    def edges(self) -> tuple[float, float]:
        """The smallest interval outside which there is no noise; infinite ends where none is."""
        ...

    @property
    def density_at_median(self) -> float:
        """The density at the median: f0."""
        ...

    def cdf(self, x: ArrayLike) -> Floats:
        """The chance of noise at or below each number."""
        ...

    def density(self, x: ArrayLike) -> Floats:
        """The density of the noise at each number; at an edge, the limit from inside."""
        ...

    def quantile(self, p: ArrayLike) -> Floats:
        """The smallest number that noise is at or below with each chance."""
        ...

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """That many independent draws."""
        ...

    def __hash__(self) -> int:
        """Laws are values: what was worked out about one is kept."""
        ...


def effective_scale(law: Law) -> float:
    """The deviation of the Gaussian law with the same density at its median: sigma_eff."""
    return 1 / (law.density_at_median * math.sqrt(2 * math.pi))


def positive(name: str, value: float) -> None:
    """Refuse a parameter that is not a positive number."""
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"need a positive and finite {name} of the noise, got {value}")


def numbers(x: ArrayLike) -> Floats:
    """One number or many, as an array of their shape."""
    return np.asarray(x, float)


# Laws search ------------------------------------------------------------------------------------


HALVINGS = 200
"""Enough to reach neighbouring numbers from anywhere; the search ends earlier."""


def cdf_inverse(
    cdf: Callable[[Floats], Floats], p: Floats, edges: tuple[float, float], scale: float
) -> Floats:
    """The smallest x with cdf(x) >= p, within rounding, for each p."""
    chances = np.atleast_1d(np.asarray(p, float))
    low = _bracket(lambda x: cdf(x) >= chances, chances, edges[0], -scale)
    high = _bracket(lambda x: cdf(x) < chances, chances, edges[1], scale)
    for _ in range(HALVINGS):
        middle = 0.5 * low + 0.5 * high
        if np.all((middle == low) | (middle == high)):
            break
        enough = cdf(middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    found = np.where(chances <= 0, edges[0], np.where(chances >= 1, edges[1], high))
    return found.reshape(np.shape(p))


def _bracket(
    short: Callable[[Floats], np.ndarray], chances: Floats, edge: float, step: float
) -> Floats:
    """A number beyond each quantile: the edge, or as many doublings of the step as it takes."""
    if np.isfinite(edge):
        return np.full(chances.shape, edge)
    inside = (chances > 0) & (chances < 1)
    reach = np.full(chances.shape, float(step))
    while np.any(wanting := inside & short(reach) & (np.abs(reach) < 1e300)):
        reach = np.where(wanting, 2 * reach, reach)
    return reach


# Laws kernel ------------------------------------------------------------------------------------


TINY = 1e-300  # stands for a zero denominator in Lentz's method
STEPS = 10_000


@compiled
def gaussian_cdf(x: Any) -> Any:
    """The standard Gaussian distribution function, accurate in its lower tail."""
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = 0.5 * math.erfc(-x[i] / math.sqrt(2.0))
    return result


@compiled
def away(value: Any) -> Any:
    """The value, kept away from zero."""
    return TINY if abs(value) < TINY else value


@compiled
def beta_fraction(a: Any, b: Any, x: Any) -> Any:
    """The continued fraction of the incomplete beta function."""
    c, d = 1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0))
    total = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d, c = 1.0 / away(1.0 + even * d), away(1.0 + even / c)
        total *= d * c
        d, c = 1.0 / away(1.0 + odd * d), away(1.0 + odd / c)
        total *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return total


@compiled
def beta_share(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """The regularised incomplete beta function at x, where `rest` is 1 - x."""
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(x) + b * math.log(rest))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * beta_fraction(a, b, x) / a
    return 1.0 - front * beta_fraction(b, a, rest) / b


@compiled
def student_cdf(x: Any, df: Any) -> Any:
    """The standard Student distribution function, accurate in its lower tail."""
    result = np.empty_like(x)
    for i in range(x.size):
        square = x[i] * x[i]
        tail = 0.5 * beta_share(0.5 * df, 0.5, df / (df + square), square / (df + square))
        result[i] = tail if x[i] < 0 else 1.0 - tail
    return result


# Laws plain -------------------------------------------------------------------------------------


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


# Laws combined ----------------------------------------------------------------------------------


ENOUGH = 0.25
"""Draws are thrown away while at least this share of them is kept; below it, cdf inverted."""


@dataclass(frozen=True)
class Truncated:
    """A law, given that the noise lies between two numbers."""

    law: Law
    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.low < self.high and self._mass > 0):
            raise ValueError(
                f"need an interval in which there is noise, got [{self.low}, {self.high}]"
            )

    @property
    def name(self) -> str:
        """The name of the law, with what happened to it."""
        return f"truncated {self.law.name}"

    @property
    def scale(self) -> float:
        """The scale of the law before it was cut."""
        return self.law.scale

    @property
    def edges(self) -> tuple[float, float]:
        """The interval, or where the law itself ended."""
        low, high = self.law.edges
        return max(low, self.low), min(high, self.high)

    @property
    def density_at_median(self) -> float:
        """The density in the middle of what is left."""
        return float(self.density(self.quantile(0.5)))

    @cached_property
    def _below(self) -> float:
        return float(self.law.cdf(self.low))

    @cached_property
    def _mass(self) -> float:
        return float(self.law.cdf(self.high)) - self._below

    def cdf(self, x: ArrayLike) -> Floats:
        """The share of what is left."""
        inside = np.clip(np.asarray(x, float), self.low, self.high)
        return np.clip((self.law.cdf(inside) - self._below) / self._mass, 0.0, 1.0)

    def density(self, x: ArrayLike) -> Floats:
        """The law's, over the mass that is left."""
        places = np.asarray(x, float)
        inside = (places >= self.low) & (places <= self.high)
        return np.where(inside, self.law.density(places) / self._mass, 0.0)

    def quantile(self, p: ArrayLike) -> Floats:
        """The law's, further in."""
        chances, (low, high) = np.asarray(p, float), self.edges
        inner = np.clip(self.law.quantile(self._below + self._mass * chances), low, high)
        return np.where(chances <= 0, low, np.where(chances >= 1, high, inner))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        if self._mass < ENOUGH:
            return self.quantile(rng.random(size))
        drawn = self.law.sample(rng, size)
        while (out := np.flatnonzero((drawn < self.low) | (drawn > self.high))).size:
            drawn[out] = self.law.sample(rng, out.size)
        return drawn


@dataclass(frozen=True)
class Shifted:
    """A law, moved to the right."""

    law: Law
    by: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.by):
            raise ValueError(f"need a finite shift, got {self.by}")

    @property
    def name(self) -> str:
        """The name of the law, with what happened to it."""
        return f"shifted {self.law.name}"

    @property
    def scale(self) -> float:
        """The scale of the law."""
        return self.law.scale

    @property
    def edges(self) -> tuple[float, float]:
        """The law's, moved."""
        low, high = self.law.edges
        return low + self.by, high + self.by

    @property
    def density_at_median(self) -> float:
        """The law's."""
        return self.law.density_at_median

    def cdf(self, x: ArrayLike) -> Floats:
        """The law's, moved."""
        return self.law.cdf(np.asarray(x, float) - self.by)

    def density(self, x: ArrayLike) -> Floats:
        """The law's, moved."""
        return self.law.density(np.asarray(x, float) - self.by)

    def quantile(self, p: ArrayLike) -> Floats:
        """The law's, moved."""
        return self.law.quantile(p) + self.by

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """The law's, moved."""
        return self.law.sample(rng, size) + self.by


@dataclass(frozen=True)
class MixtureLaw:
    """One of several laws, each with its weight."""

    laws: tuple[Law, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.laws or len(self.laws) != len(self.weights) or min(self.weights) <= 0:
            raise ValueError("need one positive weight for each law of a mixture")
        if not math.isclose(sum(self.weights), 1, rel_tol=1e-9):
            raise ValueError(f"need weights that sum to 1, got {sum(self.weights)}")

    name = "mixture"

    @cached_property
    def scale(self) -> float:
        """Half the distance between the quartiles."""
        return float(self.quantile(0.75) - self.quantile(0.25)) / 2

    @property
    def edges(self) -> tuple[float, float]:
        """The outermost ends."""
        return min(law.edges[0] for law in self.laws), max(law.edges[1] for law in self.laws)

    @cached_property
    def density_at_median(self) -> float:
        """The density in the middle, which may be a hollow."""
        return float(self.density(self.quantile(0.5)))

    def cdf(self, x: ArrayLike) -> Floats:
        """The weighted mean."""
        return self._mean([law.cdf(x) for law in self.laws])

    def density(self, x: ArrayLike) -> Floats:
        """The weighted mean."""
        return self._mean([law.density(x) for law in self.laws])

    def quantile(self, p: ArrayLike) -> Floats:
        """By search."""
        largest = max(law.scale for law in self.laws)
        return cdf_inverse(self.cdf, np.asarray(p, float), self.edges, largest)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """Draws."""
        choice = rng.choice(len(self.laws), size, p=np.asarray(self.weights) / sum(self.weights))
        drawn = np.empty(size)
        for place, law in enumerate(self.laws):
            mine = np.flatnonzero(choice == place)
            drawn[mine] = law.sample(rng, mine.size)
        return drawn

    def _mean(self, parts: list[Floats]) -> Floats:
        return np.tensordot(np.asarray(self.weights), np.stack(parts), axes=1)


def centred(law: Law) -> Law:
    """The law, moved so that its median is 0."""
    median = float(law.quantile(0.5))
    return Shifted(law, -median) if median else law


# Laws edged -------------------------------------------------------------------------------------


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


# Laws -------------------------------------------------------------------------------------------


__all__ = [
    "NAMED",
    "Cauchy",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Law",
    "Logistic",
    "MixtureLaw",
    "RaisedCosine",
    "Shifted",
    "StudentT",
    "Triangular",
    "Truncated",
    "Uniform",
    "centred",
    "effective_scale",
    "parse_law",
]

NAMED: dict[str, Callable[..., Law]] = {
    "uniform": Uniform,
    "gaussian": Gaussian,
    "laplace": Laplace,
    "logistic": Logistic,
    "cauchy": Cauchy,
    "student": StudentT,
    "triangular": Triangular,
    "cosine": RaisedCosine,
    "exponential": Exponential,
}
"""How a text names each law; Student's takes its degrees of freedom before its scale."""

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
_TEXT = re.compile(
    rf"(?P<name>[a-z]+)(?P<numbers>(?::{_NUMBER})+)(?:\[(?P<low>{_NUMBER}):(?P<high>{_NUMBER})\])?"
)


def parse_law(text: str) -> Law:
    """Read LAW:SCALE or `student:DF:SCALE`, then [LOW:HIGH] where the law is cut."""
    found = _TEXT.fullmatch(text.strip().lower())
    if found is None or found["name"] not in NAMED:
        raise _unread(text)
    numbers = [float(number) for number in found["numbers"][1:].split(":")]
    if len(numbers) != (2 if found["name"] == "student" else 1):
        raise _unread(text)
    try:
        law = NAMED[found["name"]](*numbers)
        return Truncated(law, float(found["low"]), float(found["high"])) if found["low"] else law
    except ValueError as error:
        raise Misconfigured(f"the noise {text!r} does not exist: {error}") from error


def _unread(text: str) -> Misconfigured:
    return Misconfigured(
        f"cannot read the noise {text!r}; write LAW:SCALE with one of {', '.join(NAMED)}, such as "
        f"laplace:2.5, student:3:1 (degrees of freedom first), or gaussian:1[-2:2] for a law cut "
        f"to an interval"
    )
