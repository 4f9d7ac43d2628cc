"""Compiled special functions: the Gaussian and the Student distribution functions.

Source   The incomplete beta function by its continued fraction (Lentz's method), which converges
         fast left of the mean of the beta law; right of it, by symmetry.
"""

import math
from typing import Any

import numpy as np
from numba import njit

TINY = 1e-300  # stands for a zero denominator in Lentz's method
STEPS = 10_000


@njit(cache=True)
def gaussian_cdf(x: Any) -> Any:
    """The standard Gaussian distribution function, accurate in its lower tail."""
    result = np.empty_like(x)
    for i in range(x.size):
        result[i] = 0.5 * math.erfc(-x[i] / math.sqrt(2.0))
    return result


@njit(cache=True)
def away(value: Any) -> Any:
    """The value, kept away from zero."""
    return TINY if abs(value) < TINY else value


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def student_cdf(x: Any, df: Any) -> Any:
    """The standard Student distribution function, accurate in its lower tail."""
    result = np.empty_like(x)
    for i in range(x.size):
        square = x[i] * x[i]
        tail = 0.5 * beta_share(0.5 * df, 0.5, df / (df + square), square / (df + square))
        result[i] = tail if x[i] < 0 else 1.0 - tail
    return result
