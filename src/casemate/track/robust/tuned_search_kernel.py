"""The search for a cheap design of the tuned tracker, by an approximation: compiled."""

import math
from typing import Any

import numpy as np
from numba import njit

_HAIR = 1.0 + 1e-9  # more than floats lose


@njit(cache=True)
def _above(deviations: Any) -> Any:
    return 0.5 * math.erfc(deviations / math.sqrt(2.0))


@njit(cache=True)
def _decay(ratio: Any, slope: Any) -> Any:
    """How fast the chance of ever passing x + `slope` a phase falls with x (Lundberg's exponent).

    It is where E exp(t (length - mean - slope)) = 1, between 0 and -ln(ratio), by bisection.
    """
    low, high = 0.0, -math.log(ratio)
    for _ in range(40):
        t = 0.5 * (low + high)
        spread = (1.0 - ratio * math.exp(t)) * (1.0 - ratio * math.exp(-t))
        if 2.0 * math.log1p(-ratio) - math.log(spread) < t * slope:
            low = t
        else:
            high = t
    return low


@njit(cache=True)
def _crossing(room: Any, slope: Any, variance: Any, decay: Any, phases: Any) -> Any:
    """About how likely the walk leaves the cone of `room` + `slope` a phase.

    It is Brownian motion's formula with the decay of the walk itself.
    """
    deviation, opened = math.sqrt(variance * phases), slope * phases
    late = _above((room + opened) / deviation)
    early = math.exp(-decay * room) * _above((room - opened) / deviation)
    return 2.0 * (late + early)


@njit(cache=True)
def rate(sites: Any, alpha: Any, budget: Any, mean: Any, phases: Any) -> Any:
    """Words for each factor e of the count, when loads are even."""
    words = phases * mean + 2.0 * (phases - 1) + 2.0 * sites
    return words / math.log1p(alpha * phases * (mean - 0.5) / budget)


@njit(cache=True)
def cheapest(  # noqa: PLR0917 - compiled code takes no keyword arguments
    sites: Any,
    alpha: Any,
    target: Any,
    budget: Any,
    spread: Any,
    scales: Any,
    thresholds: Any,
    phases: Any,
    grows: Any,
) -> Any:
    """The places in the three grids of the cheapest design that is about right, and its rate.

    What a design costs does not depend on its noise, so costs are computed once, and whether a
    design is right only where it would be cheaper than the best so far.
    """
    costs = _costs(sites, alpha, budget, thresholds, phases)
    least = np.array([row.min() for row in costs])
    best, where = np.inf, (-1, -1, -1)
    for i, scale in enumerate(scales):
        ratio = math.exp(-1.0 / scale)
        slack = sites * math.tanh(0.25 / scale) + spread
        for j, threshold in enumerate(thresholds):
            room = budget - slack - 0.5 * (1.0 - alpha) * (threshold - 1.0)
            slope = alpha * (threshold - 1.0) if grows else 0.0
            if room <= slope:
                break
            if least[j] >= best:
                continue
            m = _best_phases(costs[j], best, phases, room - slope, slope, ratio, target)
            if m >= 0:
                best, where = costs[j, m], (i, j, m)
    return best, where


@njit(cache=True)
def _costs(sites: Any, alpha: Any, budget: Any, thresholds: Any, phases: Any) -> Any:
    """The rate of each threshold with each number of phases."""
    costs = np.empty((len(thresholds), len(phases)))
    for j, threshold in enumerate(thresholds):
        for m, count in enumerate(phases):
            costs[j, m] = rate(sites, alpha, budget, threshold, count)
    return costs


@njit(cache=True)
def _best_phases(  # noqa: PLR0917 - compiled code takes no keyword arguments
    costs: Any, best: Any, phases: Any, room: Any, slope: Any, ratio: Any, target: Any
) -> Any:
    """The place of the cheapest number of phases that costs less than the best; -1 if none.

    More phases stray more often, so the first that is wrong ends the search. None is right that
    Brownian motion would stray from: its decay is larger, and need not be searched for.
    """
    variance, decay, where = 2.0 * ratio / (1.0 - ratio) ** 2, -1.0, -1
    for m, count in enumerate(phases):
        if costs[m] >= best:
            continue
        if decay < 0.0:
            if _crossing(room, slope, variance, 2.0 * slope / variance, count) > target * _HAIR:
                return -1
            decay = _decay(ratio, slope) if slope > 0.0 else 0.0
        if _crossing(room, slope, variance, decay, count) > target:
            return where
        best, where = costs[m], m
    return where


@njit(cache=True)
def cheapest_silent(sites: Any, alpha: Any, budget: Any, thresholds: Any, phases: Any) -> Any:
    """The places in the two grids of the cheapest design without noise."""
    best, where = np.inf, (-1, -1)
    for j, threshold in enumerate(thresholds):
        for m, count in enumerate(phases):
            cost = rate(sites, alpha, budget, threshold, count)
            if cost < best:
                best, where = cost, (j, m)
    return where
