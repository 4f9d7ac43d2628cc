"""Compiled passes over equations in doubles; no stored values means that all of them are 1."""

from typing import Any

from numba import njit


@njit(cache=True)
def times(starts: Any, columns: Any, values: Any, point: Any, found: Any) -> None:
    """What each equation comes to at a point."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        total = 0.0
        if plain:
            for k in range(starts[i], starts[i + 1]):
                total += point[columns[k]]
        else:
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * point[columns[k]]
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
