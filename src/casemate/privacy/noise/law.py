"""The noise of a measurement as a value: its law, its scale, what it costs, and a draw of it.

Source     Canonne, Kamath and Steinke, arXiv:2004.00010: the discrete Gaussian on integer vectors
           that move by at most Delta in Euclidean norm is Delta^2/(2 sigma^2)-concentrated
           (Theorem 14 there); the discrete Laplace on vectors that move by at most Delta in L1 is
           Delta/scale-differentially private.
Guarantee  The cost is computed from the scale in use, never from the one that was asked for.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import ClassVar, Self

import numpy as np

from casemate.privacy.cost import Concentrated, Pure
from casemate.privacy.noise.noise import Noise, discrete_gaussian, discrete_laplace

SCALE_BITS = 24  # a scale that needs longer integers is rounded up to one that does not

ROOT_BITS = 30
"""Binary digits behind the point of a root that becomes a scale."""


@dataclass(frozen=True)
class GaussianLaw:
    """Discrete Gaussian noise on cells that move by at most sqrt(`squared_sensitivity`) in L2.

    >>> GaussianLaw(Fraction(10)).cost
    Concentrated(rho=Fraction(1, 200))
    """

    scale: Fraction
    squared_sensitivity: Fraction = Fraction(1)
    name: ClassVar[str] = "gaussian"
    unit_variance: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _require_positive(self.scale, self.squared_sensitivity)

    @classmethod
    def within(cls, rho: Fraction, squared_sensitivity: Fraction = Fraction(1)) -> Self:
        """The least noise that costs at most `rho`, its scale rounded up."""
        _require_positive(rho, squared_sensitivity)
        square = Fraction(squared_sensitivity) / (2 * rho)
        root = math.isqrt(math.ceil(square * 4**ROOT_BITS) - 1) + 1
        return cls(round_up(Fraction(root, 2**ROOT_BITS)), squared_sensitivity)

    @property
    def cost(self) -> Concentrated:
        """What one measurement costs, whatever the number of its cells."""
        return Concentrated(Fraction(self.squared_sensitivity) / (2 * self.scale**2))


@dataclass(frozen=True)
class LaplaceLaw:
    """Discrete Laplace noise on cells that move by at most `sensitivity` in L1.

    >>> LaplaceLaw(Fraction(10)).cost
    Pure(epsilon=Fraction(1, 10))
    """

    scale: Fraction
    sensitivity: Fraction = Fraction(1)
    name: ClassVar[str] = "laplace"
    unit_variance: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _require_positive(self.scale, self.sensitivity)

    @classmethod
    def within(cls, epsilon: Fraction, sensitivity: Fraction = Fraction(1)) -> Self:
        """The least noise that costs at most `epsilon`, its scale rounded up."""
        _require_positive(epsilon, sensitivity)
        return cls(round_up(Fraction(sensitivity) / epsilon), sensitivity)

    @property
    def cost(self) -> Pure:
        """What one measurement costs, whatever the number of its cells."""
        return Pure(Fraction(self.sensitivity) / self.scale)


Law = GaussianLaw | LaplaceLaw

EXACT = "exact"
"""The law of what the relation makes public: no noise, and no price."""

LAWS: dict[str, type[Law]] = {law.name: law for law in (GaussianLaw, LaplaceLaw)}


def law_of(name: str, scale: Fraction) -> Law | None:
    """The law that an entry names; None for exact numbers."""
    return None if name == EXACT else LAWS[name](scale)


def variance(law: Law | None) -> float:
    """The variance of one draw, as the continuous law of its scale has it."""
    return 0.0 if law is None else float(law.scale) ** 2 * law.unit_variance


def noise_bound(scale: Fraction, draws: int, beta: float) -> int:
    """Return m such that all of `draws` discrete Laplace draws are within m, but for `beta`.

    P(|X| > m) = 2 p^(m+1) / (1 + p) with p = exp(-1/scale), summed over the draws.
    """
    if draws < 1 or not 0 < beta < 1:
        raise ValueError(f"need draws >= 1 and 0 < beta < 1, got {draws} and {beta}")
    odds = math.log(2 * draws / beta) - math.log1p(math.exp(-1 / scale))
    return max(0, math.ceil(float(scale) * odds * (1 + 1e-12)) - 1)


def geometric_bound(scale: Fraction, draws: int, beta: float) -> int:
    """Return m such that none of `draws` geometric draws passes m, but for `beta`.

    P(X > m) = p^(m+1) with p = exp(-1/scale), summed over the draws.
    """
    if draws < 1 or not 0 < beta < 1:
        raise ValueError(f"need draws >= 1 and 0 < beta < 1, got {draws} and {beta}")
    return max(0, math.ceil(float(scale) * math.log(draws / beta) * (1 + 1e-12)) - 1)


def round_up(scale: Fraction) -> Fraction:
    """Return the scale, or if its integers are long a slightly larger one with short integers."""
    longest = max(scale.numerator.bit_length(), scale.denominator.bit_length())
    if longest <= SCALE_BITS:
        return scale
    magnitude = scale.numerator.bit_length() - scale.denominator.bit_length()
    unit = 2 ** max(0, SCALE_BITS - 2 - magnitude)
    return Fraction(math.ceil(scale * unit), unit)


@dataclass(frozen=True)
class Sources:
    """Where noise comes from; a test binds its own bits, nothing means the operating system."""

    gaussian: Noise = discrete_gaussian
    laplace: Noise = discrete_laplace

    def draw(self, law: Law, size: int) -> tuple[int, ...]:
        """As many integers of this law as there are cells."""
        noise = self.gaussian if isinstance(law, GaussianLaw) else self.laplace
        return tuple(np.asarray(noise(law.scale, size)).tolist())


def _require_positive(*values: object) -> None:
    for value in values:
        if not isinstance(value, Rational) or value <= 0:
            raise ValueError(f"a law takes positive integers and Fractions, got {value!r}")
