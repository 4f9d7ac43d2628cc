"""Laws made of other laws: cut to an interval, moved, mixed."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from casemate.solve.one_bit.laws_protocol import Floats, Law
from casemate.solve.one_bit.laws_search import cdf_inverse

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
class Mixture:
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
