"""How long the phases of the tuned tracker are, and how far their sum strays.

The length of a phase is a whole number c >= 1 with probability proportional to ratio^|c - T|: a
threshold T with discrete Laplace noise, drawn again while it is below 1. Neighbouring lengths, and
neighbouring tails, have probabilities within a factor of 1/ratio: that is all the privacy there is
in the tracker (docs/derivations/robust_tuned.md, section 3).
"""

import math
from dataclasses import dataclass

import numpy as np

from casemate.track.robust.tuned_walk_kernel import strays

_UP = 1e-9  # relative; covers what floating point may lose in a sum of probabilities
_SPECK = 1e-17  # for each phase; covers what it loses where nearly equal numbers are subtracted


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

    def drawn(self, uniform: float) -> int:
        """The length that a uniform number of [0, 1) stands for.

        >>> [Lengths(10, 0.5).drawn(u) for u in (0.0, 0.3, 0.5, 0.9)]
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


def crossing(lengths: Lengths, phases: int, room: float, slope: float) -> float:
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
    strayed = float(strays(lengths.threshold, lengths.ratio, low, high))
    return min(1.0, strayed * (1.0 + _UP) + phases * _SPECK)
