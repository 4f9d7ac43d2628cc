"""The normal distribution function, compiled; NumPy has none."""

import math
from typing import Any

from numba import njit


@njit(cache=True)
def normal_cdf(flat: Any, found: Any) -> None:
    """How likely a standard normal number is to be at most each of these; exact in both tails."""
    for i in range(flat.shape[0]):
        found[i] = 0.5 * math.erfc(-flat[i] / math.sqrt(2.0))
