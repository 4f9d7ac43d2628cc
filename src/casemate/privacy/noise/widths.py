"""How far a weighted sum of measured noise can be off: widths that are proven.

Guarantee  `half_width` is a w with P(|a_1 X_1 + ... + a_m X_m| <= w) >= confidence, for independent
           X_i of the discrete law that was drawn from. It is close to the least one; for one draw
           it is the least, or for Gaussian noise at most one more.
           docs/derivations/answer_intervals.md has the proofs.
Cost       Microseconds; sums of Laplace noise take a transform, once for each set of weights.
Rounding   Chances are kept below what was asked for by a margin far above what floats lose.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.privacy.noise.law import GaussianLaw, Law, noise_bound

ROUNDING_MARGIN = 1e-9
"""Relative; far above what a dozen floating-point operations lose."""

NORMAL = NormalDist()

Floats = NDArray[np.float64]

Magnitudes = tuple[tuple[int, int], ...]
"""How often each weight occurs, without its sign; the largest first and none of zero."""


def gaussian_width(scale: float, sizes: Magnitudes, confidence: float) -> int:
    """The least w that one of three bounds proves, which hold at every scale.

    `sizes` have the largest weight first.

    Notation   P(X = x) is proportional to exp(-x^2 / 2 s^2); |a| is the Euclidean norm of the
               weights, which have no common divisor; G is the tail of a standard normal variable.
    One        P(X > m) <= G((m + 1/2)/s) where m + 1/2 >= s, and G(m/s) always.
    Many       For any k weights of sum A and of squares B, with K = s^2 B/|a|^2 and
               c = 1 + 2/(exp(2 pi^2 K) - 1), e the same with s^2 for K, less 1:
               P(sum >= v) <= c^(m-k) G((v - A)/(s |a|)) + k e.
    Tail       P(sum >= v) <= exp(-v^2 / 2 s^2 |a|^2).
    """
    side = (1 - confidence) / 2 * (1 - ROUNDING_MARGIN)  # one tail; both are alike
    norm = math.sqrt(sum(times * size**2 for size, times in sizes))
    found = [_floor_below(scale * norm * math.sqrt(-2 * math.log(side)))]
    if sizes == ((1, 1),):
        found += _one(scale, side)
    else:
        found += _many(scale, norm, sizes, side)
    return max(0, min(found))


def _floor_below(value: float) -> int:
    """The least w with w + 1 >= value: the first sum that is wrong is one more."""
    return math.ceil(value * (1 + ROUNDING_MARGIN)) - 1


def normal_quantile(tail: float) -> float:
    """The z with G(z) = tail, or a little more."""
    z = -NORMAL.inv_cdf(tail)
    return z + ROUNDING_MARGIN * (1 + abs(z))


def _one(scale: float, side: float) -> Iterator[int]:
    z = scale * normal_quantile(side)
    yield math.ceil(z)
    half = math.ceil(z - 0.5)
    if half + 0.5 >= scale:
        yield half


def _many(scale: float, norm: float, sizes: Magnitudes, side: float) -> Iterator[int]:
    """The second bound for the 1, 2, 4, ... largest weights, until more cannot help."""
    draws, lattice = sum(times for _, times in sizes), excess_of_integers(scale**2)
    for chosen in _doubling(draws):
        total, squares = _largest(sizes, chosen)
        factor = (draws - chosen) * math.log1p(excess_of_integers(scale**2 * squares / norm**2))
        tail = (side - chosen * lattice) * math.exp(-factor)
        if tail > 0:
            yield _floor_below(scale * norm * normal_quantile(tail) + total)
        if factor < ROUNDING_MARGIN:
            break


def excess_of_integers(square: float) -> float:
    """By how much the sum of a Gaussian over the integers can pass its integral, relatively."""
    power = 2 * math.pi**2 * square
    return 2 / math.expm1(power) if power < 700 else 0.0


def _doubling(draws: int) -> Iterator[int]:
    chosen = 1
    while chosen < draws:
        yield chosen
        chosen *= 2
    yield draws


def _largest(sizes: Magnitudes, chosen: int) -> tuple[float, float]:
    """The sum of the largest weights, and of their squares."""
    total = squares = 0
    for size, times in sizes:
        taken = min(times, chosen)
        total, squares, chosen = total + taken * size, squares + taken * size**2, chosen - taken
    return float(total), float(squares)


# Sums of discrete Laplace noise -----------------------------------------------------------------


WRAP_CHANCE, ROUNDING_CHANCE = 1e-9, 1e-9
"""Chances integers to sums beyond half of the transform's length, and to what its floats lose."""

LONGEST_TRANSFORM, LARGEST_DRAWS = 2**20, 10**6
"""A longer transform is not worth its time, and more draws would lose more than was allowed."""

CHERNOFF_EXPONENTS = 200
"""So many are tried in Chernoff's bound; each of them proves what it says."""


def laplace_width(scale: Fraction, sizes: Magnitudes, confidence: float) -> int:
    """The least w for one weight, which is exact; by a transform one close to it for many.

    Notation   P(X = x) is proportional to p^|x| with p = exp(-1/scale). Its characteristic
               function is (1-p)^2 / (1 - 2p cos t + p^2), its moments' one
               (1-p)^2 / ((1 - p e^t)(1 - p e^-t)).
    Transform  The law of the sum modulo N is a mean of N values of the characteristic function. A
               sum beyond w is beyond w modulo N or beyond N/2, and Chernoff's bound makes the
               latter rare.
    Fallback   Chernoff's bound alone, where N would be too large or the confidence too high for
               floats.
    """
    beta = (1 - confidence) * (1 - ROUNDING_MARGIN)
    if sizes == ((1, 1),):
        return noise_bound(scale, 1, beta)
    length = 2 * _power_of_two_above(_chernoff(float(scale), sizes, WRAP_CHANCE))
    draws = sum(times for _, times in sizes)
    if (
        length > LONGEST_TRANSFORM
        or draws > LARGEST_DRAWS
        or beta < 1e3 * (WRAP_CHANCE + ROUNDING_CHANCE)
    ):
        return _chernoff(float(scale), sizes, beta)
    law = _modulo(float(scale), sizes, length)
    both = law[: length // 2].copy()
    both[1:] += law[: length // 2 : -1]
    beyond = np.cumsum(both[::-1])[::-1]  # of |sum| >= w, modulo the length
    allowed = beta - WRAP_CHANCE - ROUNDING_CHANCE - float(law[length // 2])
    return int(np.count_nonzero(beyond[1:] > allowed))


def _chernoff(scale: float, sizes: Magnitudes, beta: float) -> int:
    """The w that the best of many exponents proves."""
    draws, largest = sum(times for _, times in sizes), max(size for size, _ in sizes)
    shares = np.geomspace(0.1 / math.sqrt(draws), 0.999, CHERNOFF_EXPONENTS)
    exponents = shares / (scale * largest)
    logs: Floats = np.zeros(CHERNOFF_EXPONENTS)
    for size, times in sizes:
        logs += times * log_laplace_moments(scale, size * exponents)
    least = float(((math.log(2 / beta) + logs) / exponents).min())
    return max(0, math.ceil(least * (1 + ROUNDING_MARGIN)) - 1)


def log_laplace_moments(scale: float, at: Floats) -> Floats:
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


# Either law -------------------------------------------------------------------------------------


def half_width(law: Law, weights: Sequence[int] | NDArray[Any], confidence: float) -> int:
    """How far a sum of independent noise, each times its weight, is off at this confidence.

    >>> from fractions import Fraction
    >>> half_width(GaussianLaw(Fraction(10)), [1], 0.95)
    20
    """
    if not 0 < confidence < 1:
        raise ValueError(f"need 0 < confidence < 1, got {confidence}")
    return _width(law, magnitudes(weights), float(confidence))


def magnitudes(weights: Sequence[int] | NDArray[Any]) -> Magnitudes:
    """The weights as far as their order and signs do not matter.

    >>> magnitudes([2, -1, 0, 1])
    ((2, 1), (1, 2))
    """
    integers = np.asarray(weights).ravel()
    if integers.dtype.kind in "bf":
        integers = _whole(integers)
    sizes = np.abs(integers)
    if sizes.size and (sizes == sizes[0]).all():
        return ((int(sizes[0]), sizes.size),) if sizes[0] else ()
    found, times = np.unique(sizes, return_counts=True)
    pairs = zip(found.tolist()[::-1], times.tolist()[::-1], strict=True)
    return tuple((int(size), int(count)) for size, count in pairs if size)


def _whole(integers: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers that came as floats or as a mask."""
    with np.errstate(invalid="ignore"):
        whole = integers.astype(np.int64)
    if not np.array_equal(whole, integers):
        raise ValueError("weights are whole numbers, and some of these are not")
    return whole


@lru_cache(maxsize=4096)
def _width(law: Law, sizes: Magnitudes, confidence: float) -> int:
    if not sizes:
        return 0
    unit = math.gcd(*(size for size, _ in sizes))
    primitive = tuple((size // unit, times) for size, times in sizes)
    if isinstance(law, GaussianLaw):
        return unit * gaussian_width(float(law.scale), primitive, confidence)
    return unit * laplace_width(law.scale, primitive, confidence)
