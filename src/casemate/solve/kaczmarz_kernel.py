"""Compiled projections on equations: one at a time, some at a time, and all of them forth and back.

`rows` is (starts, columns, values, shares): values are None where all of them are 1, and a share is
1 over a row's squared length. A path is (point, sums): a move is added to the sums times the number
of points `before` it, out of which the average of the whole path follows; empty sums are left
alone. `relaxed` is the part of the way that is gone.
"""

from typing import Any

import numpy as np
from numba import njit

from casemate.solve.rows_kernel import ANY_ORDER


@njit(cache=True)
def coefficient(values: Any, k: Any) -> Any:
    """One coefficient of an equation."""
    if values is None:
        return 1.0
    return values[k]


@njit(cache=True)
def own(starts: Any, values: Any, i: Any) -> Any:
    """The coefficients of one equation."""
    if values is None:
        return None
    return values[starts[i] : starts[i + 1]]


@njit(cache=True, fastmath=ANY_ORDER)
def at(columns: Any, values: Any, point: Any) -> Any:
    """What one equation comes to at a point."""
    total = 0.0
    for k in range(columns.shape[0]):
        total += coefficient(values, k) * point[columns[k]]
    return total


@njit(cache=True)
def project(equation: Any, answer: Any, share: Any, path: Any, box: Any) -> None:
    """Move a point to where one equation holds, then back into the box.

    `equation` is (columns, values), and `path` (point, sums, before).
    """
    columns, values = equation
    low, high = box
    point, sums, before = path
    trailed = sums.shape[0] > 0
    rest = (answer - at(columns, values, point)) * share
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = min(max(point[j] + coefficient(values, k) * rest, low[j]), high[j])
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved


@njit(cache=True)
def sweep(rows: Any, right: Any, turns: Any, path: Any, box: Any) -> None:
    """Project on one equation after another; `turns` is (order, relaxed)."""
    starts, columns, values, shares = rows
    order, relaxed = turns
    point, sums = path
    for place in range(order.shape[0]):
        i = order[place]
        equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
        project(equation, right[i], relaxed * shares[i], (point, sums, place + 1.0), box)


@njit(cache=True, fastmath=ANY_ORDER)
def forth_and_back(rows: Any, right: Any, relaxed: Any, point: Any) -> None:
    """Go the part `relaxed` of the way to each equation, from the first to the last and back."""
    starts, columns, values, shares = rows
    height = starts.shape[0] - 1
    for place in range(2 * height):
        i = place if place < height else 2 * height - 1 - place
        taken, factors = columns[starts[i] : starts[i + 1]], own(starts, values, i)
        total = 0.0
        for k in range(taken.shape[0]):
            total += coefficient(factors, k) * point[taken[k]]
        rest = (right[i] - total) * shares[i] * relaxed
        for k in range(taken.shape[0]):
            point[taken[k]] += coefficient(factors, k) * rest


# Blocks ---------------------------------------------------------------------------------------


@njit(cache=True)
def sweep_blocks(rows: Any, right: Any, turns: Any, path: Any, box: Any) -> None:
    """Move towards some equations at once, block after block; `turns` is (order, size, relaxed).

    The direction is the sum of the projections on each equation; the step is the one that ends
    nearest to all points that keep them. `path` is (point, sums, zeros for the direction).
    """
    order, size, relaxed = turns
    starts, columns, values, _ = rows
    point, sums, direction = path
    rests = np.empty(size)
    for first in range(0, order.shape[0], size):
        block = order[first : first + size]
        gained, squared = _rests(rows, right, block, point, rests), 0.0
        for place in range(block.shape[0]):
            i = block[place]
            equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
            squared += _laid(equation, rests[place], direction)
        step = relaxed * gained / squared if squared > 0 else 0.0
        for place in range(block.shape[0]):
            taken = columns[starts[block[place]] : starts[block[place] + 1]]
            _go(taken, step, direction, (point, sums, first // size + 1.0), box)


@njit(cache=True)
def _rests(rows: Any, right: Any, block: Any, point: Any, rests: Any) -> Any:
    """How far each projection goes, in lengths of its row; the sum of the squared distances."""
    starts, columns, values, shares = rows
    gained = 0.0
    for place in range(block.shape[0]):
        i = block[place]
        rest = right[i] - at(columns[starts[i] : starts[i + 1]], own(starts, values, i), point)
        gained += rest * rest * shares[i]
        rests[place] = rest * shares[i]
    return gained


@njit(cache=True)
def _laid(equation: Any, factor: Any, direction: Any) -> Any:
    """Add an equation to a direction; by how much its squared length has grown."""
    columns, values = equation
    grown = 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        more = factor * coefficient(values, k)
        grown += more * (2 * direction[j] + more)
        direction[j] += more
    return grown


@njit(cache=True)
def _go(columns: Any, step: Any, direction: Any, path: Any, box: Any) -> None:
    """Take the step at these columns, each once: what is done of the direction becomes 0."""
    low, high = box
    point, sums, before = path
    trailed = sums.shape[0] > 0
    for k in range(columns.shape[0]):
        j = columns[k]
        moved = min(max(point[j] + step * direction[j], low[j]), high[j])
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved
        direction[j] = 0.0
