"""Widths for sums of discrete Gaussian noise, from three bounds that hold at every scale.

Notation   P(X = x) is proportional to exp(-x^2 / 2 s^2); |a| is the Euclidean norm of the weights,
           which have no common divisor; G is the tail of a standard normal variable.
One        P(X > m) <= G((m + 1/2)/s) where m + 1/2 >= s, and G(m/s) always.
Many       For any k weights of sum A and of squares B, with K = s^2 B/|a|^2 and
           c = 1 + 2/(exp(2 pi^2 K) - 1), e the same with s^2 for K, less 1:
           P(sum >= v) <= c^(m-k) G((v - A)/(s |a|)) + k e.
Tail       P(sum >= v) <= exp(-v^2 / 2 s^2 |a|^2).
Each w that one of them proves is true, so the least of them is.
"""

import math
from collections.abc import Iterator
from statistics import NormalDist

ROUNDING = 1e-9
"""Relative; far above what a dozen floating-point operations lose."""

NORMAL = NormalDist()

Magnitudes = tuple[tuple[int, int], ...]


def gaussian_width(scale: float, sizes: Magnitudes, confidence: float) -> int:
    """The least w that one of the bounds proves; `sizes` have the largest weight first."""
    side = (1 - confidence) / 2 * (1 - ROUNDING)  # one tail; both are alike
    norm = math.sqrt(sum(times * size**2 for size, times in sizes))
    found = [_floor_below(scale * norm * math.sqrt(-2 * math.log(side)))]
    if sizes == ((1, 1),):
        found += _one(scale, side)
    else:
        found += _many(scale, norm, sizes, side)
    return max(0, min(found))


def _floor_below(value: float) -> int:
    """The least w with w + 1 >= value: the first sum that is wrong is one more."""
    return math.ceil(value * (1 + ROUNDING)) - 1


def _quantile(tail: float) -> float:
    """The z with G(z) = tail, or a little more."""
    z = -NORMAL.inv_cdf(tail)
    return z + ROUNDING * (1 + abs(z))


def _one(scale: float, side: float) -> Iterator[int]:
    z = scale * _quantile(side)
    yield math.ceil(z)
    half = math.ceil(z - 0.5)
    if half + 0.5 >= scale:
        yield half


def _many(scale: float, norm: float, sizes: Magnitudes, side: float) -> Iterator[int]:
    """The second bound for the 1, 2, 4, ... largest weights, until more cannot help."""
    draws, lattice = sum(times for _, times in sizes), _excess(scale**2)
    for chosen in _doubling(draws):
        total, squares = _largest(sizes, chosen)
        factor = (draws - chosen) * math.log1p(_excess(scale**2 * squares / norm**2))
        left = (side - chosen * lattice) * math.exp(-factor)
        if left > 0:
            yield _floor_below(scale * norm * _quantile(left) + total)
        if factor < ROUNDING:
            break


def _excess(square: float) -> float:
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
