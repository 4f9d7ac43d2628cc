"""Compiled steps of stochastic gradient descent in the variable behind a sigmoid.

A value between two ends is low + span * sigmoid(z); one with an end that is not finite is z itself,
kept on its side. `place` is (low, high, span), the span being 0 where an end is not finite; a path
is (behind, point, sums): z, the values, and sums as in `kaczmarz_kernel`.
"""

import math
from typing import Any

from numba import njit

from casemate.solve.kaczmarz_kernel import at, coefficient, own

LONGEST = 1.0
"""No z moves further than this in one step."""

FARTHEST = 30.0
"""Nor further away from 0 than this, where a value is at its end up to 1e-13 of the span."""


@njit(cache=True)
def _slope(j: Any, point: Any, place: Any) -> Any:
    """By how much a value changes with the variable behind it."""
    low, high, span = place
    if span[j] == 0.0:
        return 1.0 if low[j] < high[j] else 0.0
    return (point[j] - low[j]) * (high[j] - point[j]) / span[j]


@njit(cache=True)
def _gain(columns: Any, values: Any, rest: Any, point: Any, place: Any) -> Any:
    """The factor of the gradient that makes an equation hold as far as slopes tell.

    It is cut where a value behind a sigmoid would move too far.
    """
    squared, largest = 0.0, 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        part = _slope(j, point, place) * coefficient(values, k)
        squared += part * part
        if place[2][j] > 0.0:
            largest = max(largest, abs(part))
    if squared == 0.0:
        return 0.0
    gain = rest / squared
    return gain if abs(gain) * largest <= LONGEST else math.copysign(LONGEST / largest, gain)


@njit(cache=True)
def step(equation: Any, answer: Any, steps: Any, path: Any, place: Any) -> None:
    """One step along the gradient of one equation's squared residual.

    `equation` is (columns, values), `steps` (rate, relaxed), and `path` (behind, point, sums,
    before). A positive rate is the factor of that gradient; else the step makes the equation hold.
    """
    columns, values = equation
    rate, relaxed = steps
    behind, point, sums, before = path
    trailed = sums.shape[0] > 0
    rest = answer - at(columns, values, point)
    gain = 2 * rate * rest if rate > 0 else _gain(columns, values, rest, point, place)
    for k in range(columns.shape[0]):
        j = columns[k]
        part = relaxed * gain * coefficient(values, k) * _slope(j, point, place)
        moved = _value(j, part, behind, place)
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved


@njit(cache=True)
def _value(j: Any, part: Any, behind: Any, place: Any) -> Any:
    """Move one variable, and give the value in front of it."""
    low, high, span = place
    if span[j] == 0.0:
        behind[j] = min(max(behind[j] + part, low[j]), high[j])
        return behind[j]
    behind[j] = min(max(behind[j] + part, -FARTHEST), FARTHEST)
    return low[j] + span[j] / (1.0 + math.exp(-behind[j]))


@njit(cache=True)
def sweep(rows: Any, right: Any, turns: Any, path: Any, place: Any) -> None:
    """One step for each row of an order; `turns` is (order, rate, relaxed)."""
    starts, columns, values, _ = rows
    order, rate, relaxed = turns
    behind, point, sums = path
    for turn in range(order.shape[0]):
        i = order[turn]
        equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
        step(equation, right[i], (rate, relaxed), (behind, point, sums, turn + 1.0), place)
