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
