"""The walk of phase lengths between its boundaries, compiled."""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def strays(threshold: Any, ratio: Any, low: Any, high: Any) -> Any:
    """The probability that any sum of 1, 2, ... phase lengths does not lie in [low, high].

    It is summed up from what leaves at each of them, so that it is right where it is very small.
    """
    law, base, strayed = np.ones(1), low[0], 0.0
    longest = np.int64(1)
    for j in range(1, len(low)):
        longest = max(longest, high[j] - low[j - 1] + 1)
    at_least, below = _tails(longest, threshold, ratio)
    for j in range(1, len(low)):
        if high[j] < low[j]:
            return strayed + law.sum()
        for i in range(len(law)):
            at = base + i
            strayed += law[i] * at_least[max(high[j] - at + 1, 0)]
            strayed += law[i] * below[max(low[j] - at, 0)]
        law = _longer(law, base, low[j], high[j], threshold, ratio)
        base = low[j]
    return strayed


@njit(cache=True)
def _tails(longest: Any, threshold: Any, ratio: Any) -> Any:
    """The probabilities of phases of at least, and of below, each length up to the longest."""
    at_least, below = np.ones(longest + 1), np.zeros(longest + 1)
    for length in range(longest + 1):
        at_least[length] = _at_least(length, threshold, ratio)
        below[length] = _below(length, threshold, ratio)
    return at_least, below


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
    after, n, faded = np.zeros(high - low + 1), len(law), ratio**threshold
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
            shorter -= faded * law[leaves]
        if total <= high:
            after[total - low] += shorter
    return after * ((1.0 - ratio) / (1.0 + ratio - faded))
