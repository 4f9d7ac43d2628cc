"""Compiled changes of whole values, one or two at a time, that lower a loss."""

from typing import Any

import numpy as np
from numba import njit

from casemate.solve.law_kernel import GAUSSIAN, change, parabola, saved, total_loss

WORTH = 1e-9
"""A change must save this part of the loss; less is rounding."""


@njit(cache=True)
def best_step(system: Any, left: Any, unknown: Any, room: Any) -> Any:
    """A step within the room (down, up) and what it saves; for squares the best of all steps."""
    down, up = room
    if system[-1] == GAUSSIAN:
        slope, curve = parabola(system, left, unknown)
        step = np.floor(slope / curve + 0.5) if curve > 0 else 0.0
        step = min(max(step, down), up)
        return step, slope * step - 0.5 * curve * step * step
    found, most = 0.0, 0.0
    for step in (-1.0, 1.0):
        if down <= step <= up:
            worth = saved(system, left, unknown, step)
            if worth > most:
                found, most = step, worth
    return found, most


@njit(cache=True)
def change_alone(system: Any, left: Any, point: Any, box: Any) -> Any:
    """Go over the unknowns, and over again, while changes help; how many did."""
    low, high = box
    least = WORTH * (1 + total_loss(system[-1], left))
    count, before = 0, -1
    while before < count:
        before = count
        for j in range(point.shape[0]):
            room = low[j] - point[j], high[j] - point[j]
            step, worth = best_step(system, left, j, room)
            if worth > least:
                change(system, left, j, step)
                point[j] += step
                count += 1
    return count


@njit(cache=True)
def savings(system: Any, left: Any, point: Any, box: Any, found: Any) -> None:
    """What each step down and up by one saves; minus infinity outside the range."""
    low, high = box
    for j in range(point.shape[0]):
        down, up = point[j] > low[j], point[j] < high[j]
        found[j, 0] = saved(system, left, j, -1.0) if down else -np.inf
        found[j, 1] = saved(system, left, j, 1.0) if up else -np.inf


@njit(cache=True)
def change_a_pair(system: Any, left: Any, point: Any, moves: Any) -> Any:
    """Make the first two of these moves that help together; whether there are such."""
    unknowns, steps = moves
    least = WORTH * (1 + total_loss(system[-1], left))
    for a in range(unknowns.shape[0]):
        i, step = unknowns[a], steps[a]
        alone = saved(system, left, i, step)
        change(system, left, i, step)
        for b in range(unknowns.shape[0]):
            j = unknowns[b]
            if j != i and alone + saved(system, left, j, steps[b]) > least:
                change(system, left, j, steps[b])
                point[i] += step
                point[j] += steps[b]
                return True
        change(system, left, i, -step)
    return False
