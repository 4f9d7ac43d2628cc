"""What a law of noise is: a distribution on the line that can be read and drawn from."""

import math
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
