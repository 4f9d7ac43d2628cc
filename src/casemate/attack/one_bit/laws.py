"""The laws of noise: by name, by text, and made of each other.

>>> parse_law("laplace:2.5")
Laplace(scale=2.5)
>>> parse_law("student:3:0.5")
StudentT(df=3.0, scale=0.5)
>>> parse_law("gaussian:1[-2:2]").edges
(-2.0, 2.0)

A named law is a standard law with median 0, times a scale. SciPy's special functions give the
chances; what takes `scipy.stats` to import is a line here instead.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

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


def cdf_inverse(
    cdf: Callable[[Floats], Floats], p: ArrayLike, edges: tuple[float, float], scale: float
) -> Floats:
    """The smallest x with cdf(x) >= p, within rounding, for each p: by doubling, then halving."""
    chances = np.asarray(p, float)
    inside = (chances > 0) & (chances < 1)
    low, high = (np.full(chances.shape, end) for end in np.clip(edges, -scale, scale))
    while np.any(short := inside & (low > edges[0]) & (cdf(low) >= chances)):
        low = np.where(short, np.maximum(2 * low, edges[0]), low)
    while np.any(short := inside & (high < edges[1]) & (cdf(high) < chances)):
        high = np.where(short, np.minimum(2 * high, edges[1]), high)
    while np.any((low < (middle := 0.5 * low + 0.5 * high)) & (middle < high)):
        enough = cdf(middle) >= chances
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(chances <= 0, edges[0], np.where(chances >= 1, edges[1], high))


# Standard laws times a scale --------------------------------------------------------------------


class ScaledLaw:
    """A law given by its standard form, whose scale is 1 and whose median is 0."""

    name: str
    scale: float
    _edges = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        for each, value in vars(self).items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"need a positive and finite {each} of the noise, got {value}")

    def _cdf(self, z: Floats) -> Any:
        """The chance at or below z, accurate in the lower tail."""
        raise NotImplementedError

    def _density(self, z: Floats) -> Any:
        """The density at z."""
        raise NotImplementedError

    def _quantile(self, p: Floats) -> Any:
        """Where the chance is p; by search where nothing better is known."""
        return cdf_inverse(self._cdf, p, self._edges, 1.0)

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        """Draws."""
        raise NotImplementedError

    @property
    def edges(self) -> tuple[float, float]:
        """Where the noise ends."""
        low, high = self._edges
        return self.scale * low, self.scale * high

    @property
    def density_at_median(self) -> float:
        """The density at 0."""
        return float(self.density(0.0))

    def cdf(self, x: ArrayLike) -> Floats:
        """The chance of noise at or below each number."""
        return np.asarray(self._cdf(np.asarray(x, float) / self.scale))

    def density(self, x: ArrayLike) -> Floats:
        """The density of the noise at each number."""
        return np.asarray(self._density(np.asarray(x, float) / self.scale) / self.scale)

    def quantile(self, p: ArrayLike) -> Floats:
        """The smallest number that noise is at or below with each chance."""
        with np.errstate(divide="ignore"):
            return np.asarray(self.scale * self._quantile(np.asarray(p, float)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """That many independent draws."""
        return np.asarray(self.scale * self._draws(rng, size))


@dataclass(frozen=True)
class Gaussian(ScaledLaw):
    """Gaussian noise; the scale is its standard deviation."""

    scale: float
    name = "gaussian"

    def _cdf(self, z: Floats) -> Any:
        from scipy.special import ndtr

        return ndtr(z)

    def _density(self, z: Floats) -> Any:
        return np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)

    def _quantile(self, p: Floats) -> Any:
        from scipy.special import ndtri

        return ndtri(p)

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.standard_normal(size)


@dataclass(frozen=True)
class Laplace(ScaledLaw):
    """Laplace noise; the scale is its mean absolute deviation."""

    scale: float
    name = "laplace"

    def _cdf(self, z: Floats) -> Any:
        return mirrored(0.5 * np.exp(-np.abs(z)), z < 0)

    def _density(self, z: Floats) -> Any:
        return 0.5 * np.exp(-np.abs(z))

    def _quantile(self, p: Floats) -> Any:
        return np.sign(p - 0.5) * -np.log(2 * np.minimum(p, 1 - p))

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.laplace(size=size)


@dataclass(frozen=True)
class Logistic(ScaledLaw):
    """Logistic noise; the scale is that of the log-odds."""

    scale: float
    name = "logistic"

    def _cdf(self, z: Floats) -> Any:
        from scipy.special import expit

        return expit(z)

    def _density(self, z: Floats) -> Any:
        return self._cdf(z) * self._cdf(-z)

    def _quantile(self, p: Floats) -> Any:
        from scipy.special import logit

        return logit(p)

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.logistic(size=size)


@dataclass(frozen=True)
class StudentT(ScaledLaw):
    """Student's noise with df degrees of freedom, times a scale."""

    df: float
    scale: float = 1.0
    name = "student"

    def _cdf(self, z: Floats) -> Any:
        from scipy.special import stdtr

        return stdtr(self.df, z)

    def _density(self, z: Floats) -> Any:
        half = 0.5 * (self.df + 1)
        front = math.exp(math.lgamma(half) - math.lgamma(0.5 * self.df))
        return front / math.sqrt(self.df * math.pi) * (1 + z * z / self.df) ** -half

    def _quantile(self, p: Floats) -> Any:
        from scipy.special import stdtrit

        return np.where(p == 0, -math.inf, stdtrit(self.df, p))

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.standard_t(self.df, size)


@dataclass(frozen=True)
class Cauchy(ScaledLaw):
    """Cauchy noise; the scale is its upper quartile."""

    scale: float
    name = "cauchy"

    def _cdf(self, z: Floats) -> Any:
        return np.arctan2(1.0, -z) / math.pi  # an angle, so that the lower tail keeps its digits

    def _density(self, z: Floats) -> Any:
        return 1 / (math.pi * (1 + z * z))

    def _quantile(self, p: Floats) -> Any:
        nearer = np.minimum(p, 1 - p)
        return np.sign(p - 0.5) * np.where(nearer > 0, 1 / np.tan(math.pi * nearer), math.inf)

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.standard_cauchy(size)


@dataclass(frozen=True)
class Uniform(ScaledLaw):
    """Even noise; the scale is its half width."""

    scale: float
    name = "uniform"
    _edges = (-1.0, 1.0)

    def _cdf(self, z: Floats) -> Any:
        return np.clip(0.5 + 0.5 * z, 0.0, 1.0)

    def _density(self, z: Floats) -> Any:
        return np.where(np.abs(z) <= 1, 0.5, 0.0)

    def _quantile(self, p: Floats) -> Any:
        return 2 * p - 1

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.uniform(-1.0, 1.0, size)


@dataclass(frozen=True)
class Triangular(ScaledLaw):
    """Noise whose density falls in a straight line to both ends; the scale is the half width."""

    scale: float
    name = "triangular"
    _edges = (-1.0, 1.0)

    def _cdf(self, z: Floats) -> Any:
        return mirrored(0.5 * np.maximum(1 - np.abs(z), 0.0) ** 2, z < 0)

    def _density(self, z: Floats) -> Any:
        return np.maximum(1 - np.abs(z), 0.0)

    def _quantile(self, p: Floats) -> Any:
        return np.sign(p - 0.5) * (1 - np.sqrt(2 * np.minimum(p, 1 - p)))

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.triangular(-1.0, 0.0, 1.0, size)


@dataclass(frozen=True)
class RaisedCosine(ScaledLaw):
    """Noise whose density is a wave that comes in flat at both ends; the scale is the half width.

    Of the bounded laws here it is the one that gives an attacker nothing at its edges.
    """

    scale: float
    name = "cosine"
    _edges = (-1.0, 1.0)

    def _cdf(self, z: Floats) -> Any:
        """A line and a sine; near the ends its series, where the two cancel."""
        depth = math.pi * np.maximum(1 - np.abs(z), 0.0)
        series = depth**3 / 6 * (1 - depth**2 / 20 * (1 - depth**2 / 42))
        tail = np.where(depth < 0.01, series, depth - np.sin(depth)) / (2 * math.pi)
        return mirrored(tail, z < 0)

    def _density(self, z: Floats) -> Any:
        return np.sin(math.pi / 2 * np.maximum(1 - np.abs(z), 0.0)) ** 2

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return self._quantile(rng.random(size))


@dataclass(frozen=True)
class Exponential(ScaledLaw):
    """Exponential noise, moved left so that its median is 0; the scale is its deviation."""

    scale: float
    name = "exponential"
    _edges = (-math.log(2), math.inf)

    def _cdf(self, z: Floats) -> Any:
        return -np.expm1(-np.maximum(z + math.log(2), 0.0))

    def _density(self, z: Floats) -> Any:
        depth = z + math.log(2)
        return np.where(depth >= 0, np.exp(-np.maximum(depth, 0.0)), 0.0)

    def _quantile(self, p: Floats) -> Any:
        return -math.log(2) - np.log1p(-p)

    def _draws(self, rng: np.random.Generator, size: int) -> Any:
        return rng.standard_exponential(size) - math.log(2)


def mirrored(tail: Floats, below: NDArray[np.bool_]) -> Floats:
    """The chances of a symmetric law, from those of its lower tail."""
    return np.where(below, tail, 1 - tail)


# Laws made of other laws ------------------------------------------------------------------------


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
        return self.quantile(rng.random(size))


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


# Laws by text ----------------------------------------------------------------------------------


NAMED: dict[str, Callable[..., Law]] = {
    law.name: law
    for law in (
        *(Uniform, Gaussian, Laplace, Logistic, Cauchy),
        *(StudentT, Triangular, RaisedCosine, Exponential),
    )
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
