"""Compiled sweeps of the sampler: one unknown at a time, then one unit from place to place.

Arguments come in groups: `system` is that of `law_kernel`; `chain` is (point, left, fields);
`setting` is (low, high, log prior, curvature, its diagonal, sharpness). Fields are the slopes of
the Gaussian stand-in, and curvature is how they change; sharpness is how much the likelihood
counts. A prior or a curvature without rows is absent.
"""

from math import exp
from typing import Any

import numpy as np
from numba import njit

from casemate.solve.law_kernel import GAUSSIAN, change, parabola, saved

WINDOW = 64
"""So many values of an unknown are weighed at a time."""

FAR = -30.0
"""Log-weights this far below the largest count as none."""


@njit(cache=True)
def belief(prior: Any, unknown: Any, place: Any) -> Any:
    """The log prior of a value, up to a constant."""
    if prior.shape[0] == 0:
        return 0.0
    return prior[unknown if prior.shape[0] > 1 else 0, place]


@njit(cache=True)
def drawn(weights: Any, count: Any, draw: Any) -> Any:
    """Turn log-weights into weights, in place, and draw one of them; also their total."""
    best = -np.inf
    for i in range(count):
        best = max(best, weights[i])
    total = 0.0
    for i in range(count):
        rest = weights[i] - best
        weights[i] = exp(rest) if rest > FAR else 0.0
        total += weights[i]
    left, chosen = draw * total, -1
    for i in range(count):
        if weights[i] > 0:
            chosen = i
            left -= weights[i]
            if left < 0:
                break
    return chosen, total


@njit(cache=True)
def move(system: Any, chain: Any, curvature: Any, unknown: Any, step: Any) -> None:
    """Let one unknown change by `step`, and everything that follows from it."""
    point, left, fields = chain
    point[unknown] += step
    change(system, left, unknown, step)
    if curvature.shape[0] > 0:
        own = curvature[unknown]
        for i in range(fields.shape[0]):
            fields[i] -= step * own[i]


@njit(cache=True)
def weigh(system: Any, chain: Any, unknown: Any, window: Any, weights: Any) -> None:
    """The log-likelihood of each value of a window, relative to the present one."""
    point, left, _ = chain
    first, count = window
    if system[-1] == GAUSSIAN:
        slope, curve = parabola(system, left, unknown)
        for place in range(count):
            step = first + place - point[unknown]
            weights[place] = slope * step - 0.5 * curve * step * step
        return
    for place in range(count):
        step = first + place - point[unknown]
        weights[place] = 0.0 if step == 0 else saved(system, left, unknown, step)


@njit(cache=True)
def values_sweep(system: Any, chain: Any, setting: Any, draws: Any, tally: Any) -> None:
    """Draw each unknown anew given all the others; add its chances to a tally that has rows.

    A window of a wide range starts at a random distance below the present value, so that every
    window is as likely from each of its values.
    """
    low, high, prior, curvature, _, sharpness = setting
    order, chosen, placed = draws
    point = chain[0]
    weights = np.empty(WINDOW)
    for turn in range(order.shape[0]):
        j = order[turn]
        first, last = low[j], high[j]
        if last - first >= WINDOW:
            start = point[j] - np.floor(placed[turn] * WINDOW)
            first, last = max(first, start), min(last, start + WINDOW - 1)
        count = int(last - first) + 1
        weigh(system, chain, j, (first, count), weights)
        base = int(first - low[j])
        for place in range(count):
            weights[place] = sharpness * weights[place] + belief(prior, j, base + place)
        place, total = drawn(weights, count, chosen[turn])
        if tally.shape[0] > 0:
            tally[j, base : base + count] += weights[:count] / total
        if first + place != point[j]:
            move(system, chain, curvature, j, first + place - point[j])


@njit(cache=True)
def partners(chain: Any, setting: Any, taken: Any, step: Any, weights: Any) -> None:
    """The stand-in's log-weight of every place for a unit that was taken from one unknown."""
    point, _, fields = chain
    low, high, prior, curvature, diagonal, sharpness = setting
    own, gentle = curvature[taken], min(1.0, sharpness)
    point[taken] -= step
    for i in range(point.shape[0]):
        inside = low[i] <= point[i] + step <= high[i]
        weight = gentle * (step * fields[i] + own[i] - 0.5 * diagonal[i])
        weights[i] = weight if inside else -np.inf
    if prior.shape[0] > 0:
        for i in range(point.shape[0]):
            if weights[i] > -np.inf:
                place = int(point[i] - low[i])
                weights[i] += belief(prior, i, place + int(step)) - belief(prior, i, place)
    point[taken] += step


@njit(cache=True)
def pair_saved(system: Any, left: Any, taken: Any, given: Any, step: Any) -> Any:
    """How much loss goes away when a unit goes from one unknown to another; `left` is kept."""
    total = saved(system, left, taken, -step)
    change(system, left, taken, -step)
    total += saved(system, left, given, step)
    change(system, left, taken, step)
    return total


@njit(cache=True)
def swaps_sweep(system: Any, chain: Any, setting: Any, draws: Any) -> None:
    """Take units from unknowns drawn at random, and put each where the stand-in and the law agree.

    The stand-in draws from its own exact conditional, so a move is accepted by the ratio of the
    law to the stand-in (Metropolis and Hastings).
    """
    order, coins, chosen, accepted, _ = draws
    point, left, fields = chain
    low, high, _, curvature, diagonal, sharpness = setting
    gentle = min(1.0, sharpness)
    weights = np.empty(point.shape[0])
    for turn in range(order.shape[0]):
        k = order[turn]
        step = 1.0 if coins[turn] < 0.5 else -1.0
        if not low[k] <= point[k] - step <= high[k]:
            continue
        partners(chain, setting, k, step, weights)
        i, _ = drawn(weights, weights.shape[0], chosen[turn])
        if i == k:
            continue
        stays = step * fields[k] + 0.5 * diagonal[k]
        goes = step * fields[i] + curvature[k, i] - 0.5 * diagonal[i]
        gain = sharpness * pair_saved(system, left, k, i, step) - gentle * (goes - stays)
        if gain >= 0 or accepted[turn] < exp(gain):
            move(system, chain, curvature, k, -step)
            move(system, chain, curvature, i, step)


@njit(cache=True)
def neighbour_swaps_sweep(system: Any, rows: Any, chain: Any, setting: Any, draws: Any) -> None:
    """Offer to take a unit from unknowns drawn at random to one that shares an equation.

    The pair is as likely to be offered from either side, and so is the way back.
    """
    order, coins, chosen, accepted, picked = draws
    point, left, _ = chain
    low, high, prior, _, _, sharpness = setting
    starts, equations = system[0], system[1]
    for turn in range(order.shape[0]):
        k = order[turn]
        degree = starts[k + 1] - starts[k]
        if degree == 0:
            continue
        row = equations[starts[k] + int(picked[turn] * degree)]
        length = rows[0][row + 1] - rows[0][row]
        i = rows[1][rows[0][row] + int(chosen[turn] * length)]
        step = 1.0 if coins[turn] < 0.5 else -1.0
        if i == k or not low[k] <= point[k] - step <= high[k]:
            continue
        if not low[i] <= point[i] + step <= high[i]:
            continue
        own, other = int(point[k] - low[k]), int(point[i] - low[i])
        gain = sharpness * pair_saved(system, left, k, i, step)
        gain += belief(prior, k, own - int(step)) - belief(prior, k, own)
        gain += belief(prior, i, other + int(step)) - belief(prior, i, other)
        if gain >= 0 or accepted[turn] < exp(gain):
            point[k] -= step
            point[i] += step
            change(system, left, k, -step)
            change(system, left, i, step)
