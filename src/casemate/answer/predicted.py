"""How large errors will be when only the size of their noise is known: the mean and the largest.

Source     Our own; the law of the largest of many draws as extreme value theory has it.
Guarantee  None: these are predictions. Means are those of the continuous laws. The largest of
           correlated errors is smaller than the largest of independent ones, which is predicted.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from casemate.surrogate.product import Floats

NORMAL_MEAN = math.sqrt(2 / math.pi)
"""The mean of |X| for a normal X of deviation one."""

TYPICAL_MAXIMUM = math.exp(-np.euler_gamma)
"""So many draws are expected above the mean of the largest draw."""

DIGITS = 4
"""Sizes that agree so far are one size: a thousand questions have few different ones."""


@dataclass(frozen=True)
class Shape:
    """A law of scale one: the mean of its magnitude, its tail, and the tail's inverse."""

    mean: float
    tail: Callable[[float], float]  # P(|X| > x)
    quantile: Callable[[float], float]  # the x that |X| stays within with this probability


NORMAL = Shape(
    NORMAL_MEAN,
    lambda x: math.erfc(x / math.sqrt(2)),
    lambda confidence: NormalDist().inv_cdf((1 + confidence) / 2),
)
LAPLACE = Shape(1.0, lambda x: math.exp(-x), lambda confidence: -math.log1p(-confidence))


def largest(shape: Shape, scales: Floats, times: float = 1.0) -> float:
    """The expected largest magnitude, if for each of these scales there are so many draws.

    >>> round(largest(NORMAL, np.ones(1), times=10**5), 2)
    4.54
    """
    sizes, counts = np.unique(_rounded(scales), return_counts=True)
    present = [(float(s), times * int(c)) for s, c in zip(sizes, counts, strict=True) if s > 0]
    if not present:
        return 0.0
    low, high = 0.0, 750.0 * max(size for size, _ in present)  # no tail of ours reaches further
    while high > low * (1 + 1e-6) + 1e-12:
        middle = (low + high) / 2
        above = sum(count * shape.tail(middle / size) for size, count in present)
        low, high = (middle, high) if above > TYPICAL_MAXIMUM else (low, middle)
    return high


def _rounded(scales: Floats) -> Floats:
    """To some digits, whatever the magnitude."""
    sizes = np.abs(scales).astype(np.float64)
    safe = np.where(sizes > 0, sizes, 1.0)
    unit = 10.0 ** (np.floor(np.log10(safe)) - DIGITS + 1)
    return np.where(sizes > 0, np.round(safe / unit) * unit, 0.0)
