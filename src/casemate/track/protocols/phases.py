"""How long the phases of the tuned tracker are, and how far their sum strays.

The length of a phase is a whole number c >= 1 with probability proportional to ratio^|c - T|: a
threshold T with discrete Laplace noise, drawn again while it is below 1. Neighbouring lengths, and
neighbouring tails, have probabilities within a factor of 1/ratio: that is all the privacy there is
in the tracker (docs/derivations/robust_tuned.md, section 3). The walk of their sums between its
boundaries is compiled.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@compiled
def straying_probability(threshold: int, ratio: float, low: Whole, high: Whole) -> float:
    """The probability that any sum of 1, 2, ... phase lengths does not lie in [low, high].

    It is summed up from what leaves at each of them, so that it is right where it is very small.
    """
    law, base = np.ones(1), low[0]
    strayed: float = 0.0
    longest = int(np.int64(1))  # for a plain 1 all that follows would be compiled once more
    for j in range(1, len(low)):
        longest = max(longest, high[j] - low[j - 1] + 1)
    at_least, below = _tails(longest, threshold, ratio)
    for j in range(1, len(low)):
        if high[j] < low[j]:
            return strayed + float(law.sum())
        for i in range(len(law)):
            at = base + i
            strayed += law[i] * at_least[max(high[j] - at + 1, 0)]
            strayed += law[i] * below[max(low[j] - at, 0)]
        law = _add_phase(law, base, low[j], high[j], threshold, ratio)
        base = low[j]
    return strayed


@compiled
def _tails(longest: int, threshold: int, ratio: float) -> tuple[Floats, Floats]:
    """The probabilities of phases of at least, and of below, each length up to the longest."""
    at_least, below = np.ones(longest + 1), np.zeros(longest + 1)
    for length in range(longest + 1):
        at_least[length] = _survival(length, threshold, ratio)
        below[length] = _cumulative(length, threshold, ratio)
    return at_least, below


@compiled
def _lower_tail(length: int, threshold: int, ratio: float) -> float:
    """The probability of a phase below this length, which is at most the threshold."""
    if length <= 1:
        return 0.0
    shorter = ratio ** (threshold - length + 1) * (1.0 - ratio ** (length - 1))
    return shorter / (1.0 + ratio - ratio**threshold)


@compiled
def _upper_tail(length: int, threshold: int, ratio: float) -> float:
    """The probability of a phase of at least this length, which is at least the threshold."""
    return ratio ** (length - threshold) / (1.0 + ratio - ratio**threshold)


@compiled
def _survival(length: int, threshold: int, ratio: float) -> float:
    """The probability of a phase of at least this length."""
    if length < threshold:
        return 1.0 - _lower_tail(length, threshold, ratio)
    return _upper_tail(length, threshold, ratio)


@compiled
def _cumulative(length: int, threshold: int, ratio: float) -> float:
    """The probability of a phase below this length."""
    if length > threshold:
        return 1.0 - _upper_tail(length, threshold, ratio)
    return _lower_tail(length, threshold, ratio)


@compiled
def _add_phase(  # noqa: PLR0917 - compiled code takes no keyword arguments
    law: Floats, base: int, low: int, high: int, threshold: int, ratio: float
) -> Floats:
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


# The law of a length -----------------------------------------------------------------------------


_ROUNDING_MARGIN = 1e-9  # relative; covers what floating point may lose in a sum of probabilities
# for each phase; covers what it loses where nearly equal numbers are subtracted
_CANCELLATION_MARGIN = 1e-17


@dataclass(frozen=True)
class Lengths:
    """The law of a phase's length."""

    threshold: int  # T
    ratio: float  # e^(-1/b); 0 is no noise

    @property
    def mean(self) -> float:
        """The mean length: T, and what drawing again adds."""
        t, q = self.threshold, self.ratio
        return t + q**t * (t * (1 - q) + q) / ((1 - q) * (1 + q - q**t))

    def probability(self, length: int) -> float:
        """Of this very length."""
        if length < 1:
            return 0.0
        t, q = self.threshold, self.ratio
        weight: float = q ** abs(length - t)
        return weight * (1 - q) / (1 + q - q**t)

    def draw_length(self, uniform: float) -> int:
        """The length that a uniform number of [0, 1) stands for.

        >>> [Lengths(10, 0.5).draw_length(u) for u in (0.0, 0.3, 0.5, 0.9)]
        [9, 6, 10, 12]
        """
        t, q = self.threshold, self.ratio
        if q == 0.0:
            return t
        below = (q - q**t) / (1 + q - q**t)
        if uniform >= below:
            return t + int(math.log1p(-(uniform - below) / (1 - below)) / math.log(q))
        shorter = 1 + int(math.log1p(-uniform / below * (1 - q ** (t - 1))) / math.log(q))
        return t - min(shorter, t - 1)


def crossing_probability(lengths: Lengths, phases: int, room: float, slope: float) -> float:
    """The probability that the sum of the lengths ever strays too far from its mean.

    After j < `phases` phases it may be `room` + `slope` * j too small, and a phase that begins then
    may end as much too large. Exact, by going through the laws of the sums.
    """
    if room < 0:
        return 1.0
    if lengths.ratio == 0.0:
        return 0.0
    rooms = room + slope * np.arange(phases)
    mean = lengths.mean
    low = np.ceil(np.arange(phases) * mean - rooms).astype(np.int64)
    high = np.floor(np.arange(1, phases + 1) * mean + rooms).astype(np.int64)
    low, high = np.append(np.maximum(low, 0), 0), np.insert(high, 0, 0)
    low[-1] = low[-2] + 1  # the last sum may be too small: all sites are called at once
    strayed = float(straying_probability(lengths.threshold, lengths.ratio, low, high))
    return min(1.0, strayed * (1.0 + _ROUNDING_MARGIN) + phases * _CANCELLATION_MARGIN)
