"""The walk of phase lengths between its boundaries, and the search for a design: compiled."""

import math
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def strays(threshold: Any, ratio: Any, low: Any, high: Any) -> Any:
    """The probability that any sum of 1, 2, ... phase lengths does not lie in [low, high].

    It is summed up from what leaves at each of them, so that it is right where it is very small.
    """
    law, base, strayed = np.ones(1), 0, 0.0
    for j in range(1, len(low)):
        if high[j] < low[j]:
            return strayed + law.sum()
        for i in range(len(law)):
            at = base + i
            strayed += law[i] * _at_least(high[j] - at + 1, threshold, ratio)
            strayed += law[i] * _below(low[j] - at, threshold, ratio)
        law = _longer(law, base, low[j], high[j], threshold, ratio)
        base = low[j]
    return strayed


@njit(cache=True)
def _shorter(length: Any, threshold: Any, ratio: Any) -> Any:
    """The probability of a phase below this length, which is at most the threshold."""
    if length <= 1:
        return 0.0
    shorter = ratio ** (threshold - length + 1) * (1.0 - ratio ** (length - 1))
    return shorter / (1.0 + ratio - ratio**threshold)


@njit(cache=True)
def _longest(length: Any, threshold: Any, ratio: Any) -> Any:
    """The probability of a phase of at least this length, which is at least the threshold."""
    return ratio ** (length - threshold) / (1.0 + ratio - ratio**threshold)


@njit(cache=True)
def _at_least(length: Any, threshold: Any, ratio: Any) -> Any:
    """The probability of a phase of at least this length."""
    if length < threshold:
        return 1.0 - _shorter(length, threshold, ratio)
    return _longest(length, threshold, ratio)


@njit(cache=True)
def _below(length: Any, threshold: Any, ratio: Any) -> Any:
    """The probability of a phase below this length."""
    if length > threshold:
        return 1.0 - _longest(length, threshold, ratio)
    return _shorter(length, threshold, ratio)


@njit(cache=True)
def _longer(  # noqa: PLR0917 - compiled code takes no keyword arguments
    law: Any, base: Any, low: Any, high: Any, threshold: Any, ratio: Any
) -> Any:
    """The law of a sum after one more phase, where it stays in [low, high].

    A length c has a weight of ratio^|c - threshold|, so both halves of the convolution follow from
    their neighbour: two passes instead of a product of lengths.
    """
    after, n = np.zeros(high - low + 1), len(law)
    longer = 0.0  # from lengths of at least the threshold
    for total in range(base + threshold, high + 1):
        place = total - threshold - base
        longer = longer * ratio + (law[place] if place < n else 0.0)
        if total >= low:
            after[total - low] += longer
    shorter = 0.0  # from lengths below it
    for total in range(base + n + threshold - 2, low - 1, -1):
        enters, leaves = total - threshold + 1 - base, total - base
        shorter = ratio * (shorter + (law[enters] if 0 <= enters < n else 0.0))
        if 0 <= leaves < n:
            shorter -= ratio**threshold * law[leaves]
        if total <= high:
            after[total - low] += shorter
    return after * ((1.0 - ratio) / (1.0 + ratio - ratio**threshold))


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
    """The places in the three grids of the cheapest design that is about right, and its rate."""
    best, where = np.inf, (-1, -1, -1)
    for i, scale in enumerate(scales):
        ratio = math.exp(-1.0 / scale)
        variance = 2.0 * ratio / (1.0 - ratio) ** 2
        slack = sites * math.tanh(0.25 / scale) + spread
        for j, threshold in enumerate(thresholds):
            room = budget - slack - 0.5 * (1.0 - alpha) * (threshold - 1.0)
            slope = alpha * (threshold - 1.0) if grows else 0.0
            if room <= slope:
                break
            decay = _decay(ratio, slope) if slope > 0.0 else 0.0
            for m, count in enumerate(phases):
                cost = rate(sites, alpha, budget, threshold, count)
                if cost >= best:
                    continue
                if _crossing(room - slope, slope, variance, decay, count) <= target:
                    best, where = cost, (i, j, m)
    return best, where
