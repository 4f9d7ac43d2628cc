"""Sums of discrete Laplace noise, by their exact law."""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_FAR = 90.0  # how many scales the table reaches to either side


@njit(cache=True)
def _convolve(law: Any, decay: float) -> None:
    """Add one draw of weight decay^|x|: a geometric one up, then another down."""
    for i in range(1, len(law)):
        law[i] += decay * law[i - 1]
    for i in range(len(law) - 2, -1, -1):
        law[i] += decay * law[i + 1]
    law *= (1.0 - decay) ** 2


def laws_of_sums(scale: float, most: int) -> NDArray[np.float64]:
    """Row p - 1 is the law of the sum of p draws, on whole numbers around the middle column.

    Only positive numbers are added and multiplied, so each is right to many digits; what lies
    beyond the table is bounded by `beyond`.
    """
    reach = math.ceil(_FAR * scale)
    law = np.zeros(2 * reach + 1)
    law[reach] = 1.0
    rows = np.empty((most, len(law)))
    for row in rows:
        _convolve(law, math.exp(-1 / scale))
        row[:] = law
    return rows


def beyond(most: int) -> float:
    """A bound on the probability that a sum of so many draws lies beyond the table (Chernoff)."""
    tilt = 0.9
    return 2 * math.exp(-tilt * _FAR - most * math.log1p(-tilt * tilt))
