"""What a bit is about when the ends of the noise are unknown: one end or none, and the query."""

import numpy as np

from casemate.solve.one_bit.protocol import Floats

ENDS = 2
"""Columns before those of the query: the upper end and, negative, the lower."""

ENDS_RHO = 0.85
"""The part of the shrinking at an end that is believed: less than where the end is known."""

MEDIAN_SHARE = 0.15
"""The part of the thresholds that stand at the median."""


def is_median(draw: float) -> bool:
    """Whether a draw from [0, 1) asks at the median: either end of the interval does."""
    return min(draw, 1 - draw) < MEDIAN_SHARE / 2


def columns_of(x: Floats, draw: float) -> Floats:
    """What a bit is about: one end, or none, and the query."""
    upper = draw < 0.5
    ends = (0.0, 0.0) if is_median(draw) else (float(upper), float(upper) - 1)
    return np.concatenate((ends, x))
