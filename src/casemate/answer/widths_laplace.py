"""Widths for sums of discrete Laplace noise: exact for one, by a transform for many.

Notation   P(X = x) is proportional to p^|x| with p = exp(-1/scale). Its characteristic function is
           (1-p)^2 / (1 - 2p cos t + p^2), its moments' one (1-p)^2 / ((1 - p e^t)(1 - p e^-t)).
Transform  The law of the sum modulo N is a mean of N values of the characteristic function. A sum
           beyond w is beyond w modulo N or beyond N/2, and Chernoff's bound makes the latter rare.
Fallback   Chernoff's bound alone, where N would be too large or the confidence too high for floats.
"""

import math
from fractions import Fraction

import numpy as np

from casemate.privacy.sparse_vector_calibration import noise_bound
from casemate.surrogate.product import Floats

ROUNDING = 1e-9
"""Relative; far above what a dozen floating-point operations lose."""

RARE, LOST = 1e-9, 1e-9
"""Chances given to sums beyond half of the transform's length, and to what its floats lose."""

LONGEST, MOST_DRAWS = 2**20, 10**6
"""A longer transform is not worth its time, and more draws would lose more than was allowed."""

EXPONENTS = 200
"""So many are tried in Chernoff's bound; each of them proves what it says."""

Magnitudes = tuple[tuple[int, int], ...]


def laplace_width(scale: Fraction, sizes: Magnitudes, confidence: float) -> int:
    """The least w, or for many weights one close to it."""
    beta = (1 - confidence) * (1 - ROUNDING)
    if sizes == ((1, 1),):
        return noise_bound(scale, 1, beta)
    length = 2 * _power_of_two_above(_chernoff(float(scale), sizes, RARE))
    draws = sum(times for _, times in sizes)
    if length > LONGEST or draws > MOST_DRAWS or beta < 1e3 * (RARE + LOST):
        return _chernoff(float(scale), sizes, beta)
    law = _modulo(float(scale), sizes, length)
    both = law[: length // 2].copy()
    both[1:] += law[: length // 2 : -1]
    beyond = np.cumsum(both[::-1])[::-1]  # of |sum| >= w, modulo the length
    allowed = beta - RARE - LOST - float(law[length // 2])
    return int(np.count_nonzero(beyond[1:] > allowed))


def laplace_deviation(scale: float) -> float:
    """The standard deviation of one draw: sqrt(2p)/(1 - p)."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


def _chernoff(scale: float, sizes: Magnitudes, beta: float) -> int:
    """The w that the best of many exponents proves."""
    draws, largest = sum(times for _, times in sizes), max(size for size, _ in sizes)
    shares = np.geomspace(0.1 / math.sqrt(draws), 0.999, EXPONENTS)
    exponents = shares / (scale * largest)
    logs: Floats = np.zeros(EXPONENTS)
    for size, times in sizes:
        logs += times * _log_moments(scale, size * exponents)
    least = float(((math.log(2 / beta) + logs) / exponents).min())
    return max(0, math.ceil(least * (1 + ROUNDING)) - 1)


def _log_moments(scale: float, at: Floats) -> Floats:
    """The logarithm of E exp(t X), for t below 1/scale."""
    rise, fall = -np.expm1(at - 1 / scale), -np.expm1(-at - 1 / scale)
    return np.asarray(2 * math.log(-math.expm1(-1 / scale)) - np.log(rise) - np.log(fall))


def _modulo(scale: float, sizes: Magnitudes, length: int) -> Floats:
    """The law of the sum modulo `length`; angles are reduced as integers, so none loses digits."""
    places = np.arange(length // 2 + 1, dtype=np.int64)
    keep, lose = math.exp(-1 / scale), -math.expm1(-1 / scale)
    logs: Floats = np.zeros(places.size)
    for size, times in sizes:
        half = np.sin(math.pi / length * (places * (size % length) % length))
        logs -= times * np.log1p(4 * keep / lose**2 * half**2)
    return np.asarray(np.fft.irfft(np.exp(logs), length))


def _power_of_two_above(value: int) -> int:
    return 1 << (value + 1).bit_length()
