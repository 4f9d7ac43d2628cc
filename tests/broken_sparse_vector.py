"""Sparse vectors that were published as 1-differentially private and are not.

After Lyu, Su and Li, "Understanding the Sparse Vector Technique for Differential Privacy", PVLDB
10(6), 2017, at epsilon = 1 and sensitivity 1. Kept here so that the tests of the shipped ones are
known to notice such mistakes; nothing in the product uses them.
"""

import math
from fractions import Fraction

from exact_exponential import Bounds, laplace_bounds

from casemate.privacy.mechanisms import Calibration


def lee_clifton(positives: int) -> Calibration:
    """A quarter for the threshold, and query noise that does not grow with the positives."""
    return Calibration(Fraction(4), Fraction(4, 3), positives=positives)


def chen(positives: int) -> Calibration:
    """Never halts: `positives` is how many the stream at hand happened to have."""
    return Calibration(Fraction(2), Fraction(2), positives=positives)


def stoddard(below: list[int], above: list[int], scale: Fraction = Fraction(2)) -> Bounds:
    """Noise on the threshold only: the probability of these answers to values less threshold."""
    window = range(max(below) + 1, min(above) + 1)  # noises that put each value on its side
    bounds = [laplace_bounds(noise, scale) for noise in window]
    return sum((low for low, _ in bounds), Fraction(0)), sum(
        (high for _, high in bounds), Fraction(0)
    )


def roth(below: list[int], value: int, number: int, scale: Fraction = Fraction(2)) -> float:
    """Answers a positive by the very number that was compared, so it shows the threshold.

    The probability of the answers, the last of which is `number`.
    """
    p = math.exp(-1 / scale)

    def mass(x: int) -> float:
        return (1 - p) / (1 + p) * p ** abs(x)

    def less(x: int) -> float:
        return 1 - p**x / (1 + p) if x >= 1 else p ** (1 - x) / (1 + p)

    reach = math.ceil(60 * scale)
    return mass(number - value) * math.fsum(
        mass(noise) * math.prod(less(noise - x) for x in below)
        for noise in range(number - reach, number + 1)
    )
