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


@njit(cache=True)
def project(equation: Any, answer: Any, share: Any, point: Any, box: Any) -> None:
    """Move a point to where one equation holds, then back into the box.

    `equation` is (columns, values); `share` is 1 over its squared length.
    """
    columns, values = equation
    low, high = box
    plain = values.shape[0] == 0
    rest = answer
    for k in range(columns.shape[0]):
        rest -= point[columns[k]] if plain else values[k] * point[columns[k]]
    rest *= share
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = point[j] + (rest if plain else values[k] * rest)
        point[j] = min(max(moved, low[j]), high[j])


@njit(cache=True)
def sweep(rows: Any, right: Any, order: Any, point: Any, box: Any) -> None:
    """Project on one equation after another; `rows` is (starts, columns, values, shares)."""
    starts, columns, values, shares = rows
    for place in range(order.shape[0]):
        i = order[place]
        first, last = starts[i], starts[i + 1]
        own = values if values.shape[0] == 0 else values[first:last]
        project((columns[first:last], own), right[i], shares[i], point, box)
