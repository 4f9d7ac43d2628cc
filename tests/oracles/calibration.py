"""Shares and schedules that only tests hold the product's own against."""

import math
from collections.abc import Callable
from fractions import Fraction

from casemate.privacy.mechanisms import Calibration
from casemate.privacy.mechanisms.sparse_vector import _on_grid, _shifts


def threshold_schedule(
    calibration: Calibration,
    beta: float,
    runs: int = 1,
    sides: int = 2,
    multiple: Fraction = Fraction(2),
) -> Callable[[int], int]:
    """Return the public threshold of question i = 1, 2, 3, ..., which grows with log(i).

    With the source's `multiple` of 2, every positive answer is a deviation of at least
    error_bound_at(i) and every negative one of less than three times that.
    """
    return lambda question: math.ceil(
        multiple * calibration.error_bound_at(question, beta, runs, sides)
    )


def variance_share(*, positives: int = 1, monotone: bool = False) -> Fraction:
    """Return the threshold's share of epsilon that makes the variance of a gap least."""
    return _on_grid(1 / (1 + float(_shifts(positives, monotone)) ** (2 / 3)))


def excess_chance(calibration: Calibration, excess: int) -> float:
    """P(r - n >= excess) for the noise r on the threshold and n on a comparison.

    Both laws are discrete Laplace, of ratios p = exp(-1/threshold) and q = exp(-1/query). What is
    summed is positive, so nothing cancels, also where p and q are almost equal.
    """
    if excess <= 0:
        return 1 - excess_chance(calibration, 1 - excess)
    a, b = 1 / float(calibration.threshold), 1 / float(calibration.query)
    p, q = math.exp(-a), math.exp(-b)
    both = -math.expm1(-(a + b))  # 1 - p q
    peak = -math.expm1(-a) / (1 + p)  # P(r = 0)
    far = math.exp(-a * excess) * (1 / (1 + p) - peak * q / ((1 + q) * both))  # r >= excess
    near = peak / (1 + q) * _between(calibration, excess)  # 0 <= r < excess
    below = peak / (1 + q) * math.exp(-b * excess) * p * q / both  # r < 0
    return far + near + below


def _between(calibration: Calibration, excess: int) -> float:
    """The sum of p^r q^(excess - r) over 0 <= r < excess."""
    slope = float(1 / calibration.query - 1 / calibration.threshold)  # ln(p/q), rounded once
    ratio = -abs(slope)
    terms = math.expm1(ratio * excess) / math.expm1(ratio) if ratio else float(excess)
    widest = float(max(calibration.query, calibration.threshold))
    return math.exp(-excess / widest + min(0.0, -slope)) * terms
