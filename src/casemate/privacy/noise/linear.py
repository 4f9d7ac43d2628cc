"""How far a fixed linear combination of noise can be off, by the squares of its weights alone.

Guarantee  `linear_width` is a w with P(|a_1 X_1 + ... + a_m X_m| > w) <= chance for independent X_i
           of discrete laws, one or several, and weights that need not be whole numbers.
           docs/derivations/measured_proofs.md has the proofs.
Cost       Microseconds: Gaussian noise has one multiple of the deviation for each chance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from casemate.privacy.noise.law import GaussianLaw, Law
from casemate.privacy.noise.widths import (
    CHERNOFF_EXPONENTS,
    ROUNDING_MARGIN,
    excess_of_integers,
    log_laplace_moments,
    normal_quantile,
)

ADDED_NOISE = tuple(np.geomspace(1e-5, 0.3, 40).tolist())
"""Shares of the variance that are added to make the sum normal: the best of them is taken."""

STEPS_PER_HALVING = 32
"""Chances are rounded down to so many for each halving: a thousandth of a width."""

ADDED_DEVIATIONS = tuple(np.linspace(0.5, 3.0, 11).tolist())
"""So many deviations of what was added are given away; the best of them is taken."""


@dataclass(frozen=True)
class NoiseWeights:
    """The weights of independent draws of one law: the sum of their squares, and the largest."""

    law: Law
    squares: float
    largest: float  # or more


def linear_width(noise: Sequence[NoiseWeights], draws: Mapping[Law, int], chance: float) -> float:
    """How far a combination is off, either way, but for `chance`; `draws` are all there are.

    >>> law = GaussianLaw(Fraction(40))
    >>> round(linear_width([NoiseWeights(law, 4.0, 1.0)], {law: 1000}, 0.05) / 80, 1)
    2.0
    """
    if not 0 < chance < 1:
        raise ValueError(f"need 0 < chance < 1, got {chance}")
    normal = [each for each in noise if each.squares and isinstance(each.law, GaussianLaw)]
    others = [each for each in noise if each.squares and not isinstance(each.law, GaussianLaw)]
    side = _rounded_down(chance / 2 / ((1 if normal else 0) + (1 if others else 0) or 1))
    found = 0.0
    if normal:
        deviation = math.sqrt(sum(each.squares * float(each.law.scale) ** 2 for each in normal))
        counts = tuple(sorted((each.law.scale, draws[each.law]) for each in normal))
        found += deviation * _gaussian_multiple(counts, side)
    if others:
        found += _chernoff(others, side)
    return found * (1 + ROUNDING_MARGIN)


def _rounded_down(side: float) -> float:
    """A chance that is no larger, one of few, so that multiples need not be sought again."""
    return float(2.0 ** (math.floor(math.log2(side) * STEPS_PER_HALVING) / STEPS_PER_HALVING))


@lru_cache(maxsize=4096)
def _gaussian_multiple(draws: tuple[tuple[Fraction, int], ...], side: float) -> float:
    """The least z that one of two bounds proves, with P(sum > z deviations) <= side.

    Tail       exp(-z^2/2).
    Normal     With noise of k times the variance added, the sum is normal but for a factor c, and
               what was added is above -t of its deviations with chance Phi(t):
               P(sum > z) <= c/Phi(t) G((z - t sqrt k)/sqrt(1 + k)).
    """
    found = [math.sqrt(-2 * math.log(side))]
    for added in ADDED_NOISE:
        factor = sum(
            count * math.log1p(excess_of_integers(float(scale) ** 2 * added / (1 + added)))
            for scale, count in draws
        )
        if factor > 3:
            continue
        for given in ADDED_DEVIATIONS:
            tail = side * _below(given) * math.exp(-factor)
            z = normal_quantile(tail) * math.sqrt(1 + added) + given * math.sqrt(added)
            found.append(z)
    return min(found)


def _below(deviations: float) -> float:
    """The chance of a normal variable to be below so many deviations, or a little less."""
    return 0.5 * math.erfc(-deviations / math.sqrt(2)) * (1 - ROUNDING_MARGIN)


def _chernoff(noise: Sequence[NoiseWeights], side: float) -> float:
    """Chernoff's bound from the exact moments of the largest weight.

    ln M(t)/t^2 of the discrete Laplace law grows with t, so that of a weight a is at most
    a^2/largest^2 times that of the largest one.
    """
    most = min(1 / (float(each.law.scale) * each.largest) for each in noise)
    exponents = np.geomspace(1e-3, 0.999, CHERNOFF_EXPONENTS) * most
    logs = np.zeros(CHERNOFF_EXPONENTS)
    for each in noise:
        moments = log_laplace_moments(float(each.law.scale), each.largest * exponents)
        logs += each.squares / each.largest**2 * moments
    return float(((logs - math.log(side)) / exponents).min())
