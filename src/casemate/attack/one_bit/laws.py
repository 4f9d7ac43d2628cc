"""The laws of noise: by name, by text, and made of each other.

A named law is a standard law of SciPy with median 0, times a scale.

>>> parse_law("laplace:2.5")
Laplace(scale=2.5)
>>> parse_law("student:3:0.5")
StudentT(df=3.0, scale=0.5)
>>> parse_law("gaussian:1[-2:2]").edges
(-2.0, 2.0)
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from casemate.errors import Misconfigured

Floats = NDArray[np.float64]


class LawByQuantiles(ABC):
    """What follows from the density and the quantiles of a law."""

    @abstractmethod
    def density(self, x: ArrayLike) -> Floats:
        """The density of the noise at each number; at an edge, the limit from inside."""

    @abstractmethod
    def quantile(self, p: ArrayLike) -> Floats:
        """The smallest number that noise is at or below with each chance."""

    @cached_property
    def density_at_median(self) -> float:
        """The density in the middle, which may be a hollow: f0."""
        return float(self.density(self.quantile(0.5)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """That many independent draws."""
        return self.quantile(rng.random(size))


# Standard laws times a scale --------------------------------------------------------------------


class StandardLaw(LawByQuantiles):
    """A law of SciPy, whose scale is 1 and whose median is 0, times a scale."""

    name: str
    scale: float
    _standard: tuple[str, tuple[float, ...]]  # its name there, and its shape and place

    def __post_init__(self) -> None:
        for each, value in vars(self).items():
            if not (value > 0 and math.isfinite(value)):
                raise ValueError(f"need a positive and finite {each} of the noise, got {value}")

    @cached_property
    def _law(self) -> Any:
        from scipy import stats

        name, shape = self._standard
        return getattr(stats, name)(*shape)

    @property
    def edges(self) -> tuple[float, float]:
        """Where the noise ends."""
        low, high = self._law.support()
        return float(self.scale * low), float(self.scale * high)

    def cdf(self, x: ArrayLike) -> Floats:
        """The chance of noise at or below each number."""
        return np.asarray(self._law.cdf(np.asarray(x, float) / self.scale))

    def density(self, x: ArrayLike) -> Floats:
        """The density of the noise at each number."""
        return np.asarray(self._law.pdf(np.asarray(x, float) / self.scale) / self.scale)

    def quantile(self, p: ArrayLike) -> Floats:
        """The smallest number that noise is at or below with each chance."""
        return np.asarray(self.scale * self._law.ppf(np.asarray(p, float)))

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """That many independent draws."""
        return np.asarray(self.scale * self._law.rvs(size, rng))


@dataclass(frozen=True)
class ScaledLaw(StandardLaw):
    """One that is given by its scale."""

    scale: float


class Gaussian(ScaledLaw):
    """Gaussian noise; the scale is its standard deviation."""

    name, _standard = "gaussian", ("norm", ())


class Laplace(ScaledLaw):
    """Laplace noise; the scale is its mean absolute deviation."""

    name, _standard = "laplace", ("laplace", ())


class Logistic(ScaledLaw):
    """Logistic noise; the scale is that of the log-odds."""

    name, _standard = "logistic", ("logistic", ())


class Cauchy(ScaledLaw):
    """Cauchy noise; the scale is its upper quartile."""

    name, _standard = "cauchy", ("cauchy", ())


class Uniform(ScaledLaw):
    """Even noise; the scale is its half width."""

    name, _standard = "uniform", ("uniform", (-1.0, 2.0))


class Triangular(ScaledLaw):
    """Noise whose density falls in a straight line to both ends; the scale is the half width."""

    name, _standard = "triangular", ("triang", (0.5, -1.0, 2.0))


class RaisedCosine(ScaledLaw):
    """Noise whose density is a wave that comes in flat at both ends; the scale is the half width.

    Of the bounded laws here it is the one that gives an attacker nothing at its edges.
    """

    name, _standard = "cosine", ("cosine", (0.0, 1 / math.pi))


class Exponential(ScaledLaw):
    """Exponential noise, moved left so that its median is 0; the scale is its deviation."""

    name, _standard = "exponential", ("expon", (-math.log(2),))


@dataclass(frozen=True)
class StudentT(StandardLaw):
    """Student's noise with df degrees of freedom, times a scale."""

    df: float
    scale: float = 1.0
    name = "student"

    @cached_property
    def _law(self) -> Any:
        from scipy import stats

        return stats.t(self.df)


# Laws made of other laws ------------------------------------------------------------------------


class DerivedLaw(LawByQuantiles):
    """A law made of one other, whose scale it keeps."""

    law: "Law"
    _change: str  # what happened to it

    @property
    def name(self) -> str:
        """The name of the law, with what happened to it."""
        return f"{self._change} {self.law.name}"

    @property
    def scale(self) -> float:
        """The scale of the law before it was changed."""
        return self.law.scale


@dataclass(frozen=True)
class Truncated(DerivedLaw):
    """A law, given that the noise lies between two numbers."""

    law: "Law"
    low: float
    high: float
    _change = "truncated"

    def __post_init__(self) -> None:
        if not (self.low < self.high and self._mass > 0):
            raise ValueError(
                f"need an interval in which there is noise, got [{self.low}, {self.high}]"
            )

    @property
    def edges(self) -> tuple[float, float]:
        """The interval, or where the law itself ended."""
        low, high = self.law.edges
        return max(low, self.low), min(high, self.high)

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


@dataclass(frozen=True)
class Shifted(DerivedLaw):
    """A law, moved to the right."""

    law: "Law"
    by: float
    _change = "shifted"

    def __post_init__(self) -> None:
        if not math.isfinite(self.by):
            raise ValueError(f"need a finite shift, got {self.by}")

    @property
    def edges(self) -> tuple[float, float]:
        """The law's, moved."""
        low, high = self.law.edges
        return low + self.by, high + self.by

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
class MixtureLaw(LawByQuantiles):
    """One of several laws, each with its weight."""

    laws: tuple["Law", ...]
    weights: tuple[float, ...]
    name = "mixture"

    def __post_init__(self) -> None:
        if not self.laws or len(self.laws) != len(self.weights) or min(self.weights) <= 0:
            raise ValueError("need one positive weight for each law of a mixture")
        if not math.isclose(sum(self.weights), 1, rel_tol=1e-9):
            raise ValueError(f"need weights that sum to 1, got {sum(self.weights)}")

    @cached_property
    def scale(self) -> float:
        """Half the distance between the quartiles."""
        return float(self.quantile(0.75) - self.quantile(0.25)) / 2

    @property
    def edges(self) -> tuple[float, float]:
        """The outermost ends."""
        return min(law.edges[0] for law in self.laws), max(law.edges[1] for law in self.laws)

    def cdf(self, x: ArrayLike) -> Floats:
        """The weighted mean."""
        return self._mean([law.cdf(x) for law in self.laws])

    def density(self, x: ArrayLike) -> Floats:
        """The weighted mean."""
        return self._mean([law.density(x) for law in self.laws])

    def quantile(self, p: ArrayLike) -> Floats:
        """By halving between the least and the largest quantile of the laws."""
        chances = np.asarray(p, float)
        ends = np.stack([law.quantile(chances) for law in self.laws])
        low, high = ends.min(axis=0), ends.max(axis=0)
        while np.any((low < (middle := 0.5 * low + 0.5 * high)) & (middle < high)):
            enough = self.cdf(middle) >= chances
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(chances <= 0, self.edges[0], high)

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


Law = StandardLaw | Truncated | Shifted | MixtureLaw
"""The law of the noise on an answer w . q (in the source document, of D times E): a value."""


def effective_scale(law: Law) -> float:
    """The deviation of the Gaussian law with the same density at its median: sigma_eff."""
    return 1 / (law.density_at_median * math.sqrt(2 * math.pi))


MEDIAN_ROUNDING_SCALES = 1e-9
"""A median below this many scales of the law is 0."""


def median(law: Law) -> float:
    """The median of the noise; 0 where it is rounding."""
    value = float(law.quantile(0.5))
    return value if abs(value) > MEDIAN_ROUNDING_SCALES * law.scale else 0.0


def centred(law: Law) -> Law:
    """The law, moved so that its median is 0."""
    by = -median(law)
    return Shifted(law, by) if by else law


# Laws by text -----------------------------------------------------------------------------------


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
        raise _unreadable(text)
    numbers = [float(number) for number in found["numbers"][1:].split(":")]
    if len(numbers) != (2 if found["name"] == "student" else 1):
        raise _unreadable(text)
    try:
        law = NAMED[found["name"]](*numbers)
        return Truncated(law, float(found["low"]), float(found["high"])) if found["low"] else law
    except ValueError as error:
        raise Misconfigured(f"the noise {text!r} does not exist: {error}") from error


def _unreadable(text: str) -> Misconfigured:
    return Misconfigured(
        f"cannot read the noise {text!r}; write LAW:SCALE with one of {', '.join(NAMED)}, such as "
        f"laplace:2.5, student:3:1 (degrees of freedom first), or gaussian:1[-2:2] for a law cut "
        f"to an interval"
    )
