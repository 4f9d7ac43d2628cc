"""Compiled accumulation of information along a stream of queries."""

import math
from typing import Any

import numpy as np
from numba import njit

from casemate.solve.rows_kernel import ANY_ORDER


@njit(cache=True, fastmath=ANY_ORDER)
def spreads(coordinates: Any, root: Any, information: Any) -> Any:
    """The deviation of x' beta before each query x, where each earlier one carried `information`.

    `root` is a square root S of the covariance, P = S S', and is spent: it follows the stream in
    Potter's form, which stays a covariance where P itself would not within rounding.
    """
    count, size = coordinates.shape
    result = np.empty(count)
    seen, gain = np.empty(size), 0.0
    for t in range(count):
        seen[:] = 0.0
        for i in range(size):
            for j in range(size):
                seen[j] += coordinates[t, i] * root[i, j]
        square = 0.0
        for j in range(size):
            square += seen[j] * seen[j]
        result[t] = math.sqrt(square)
        rest = 1.0 / (1.0 + information * square)  # the part of the variance that stays
        factor = information * rest / (1.0 + math.sqrt(rest))  # (1 - sqrt(rest)) / square
        for i in range(size):
            gain = 0.0
            for j in range(size):
                gain += root[i, j] * seen[j]
            for j in range(size):
                root[i, j] -= factor * gain * seen[j]
    return result
