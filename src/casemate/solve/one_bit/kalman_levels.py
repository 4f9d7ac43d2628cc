"""Thresholds of an oracle with K answers: where cells should end to tell the most.

Source     Lloyd (1957) and Max (1960): the quantiser of a standard normal number with the least
           squared error. What K cells say about a Gaussian location is 1 minus that error, so the
           same ends are best here. Source document 000, section 1.2, speaks of oracles with more
           than two answers.
Cost       O(K) a round, about as many rounds as it takes: once for each K.
"""

import math
from functools import lru_cache

import numpy as np

from casemate.solve.one_bit.protocol import Floats

ROUNDS = 100_000
SETTLED = 1e-13


@lru_cache(maxsize=32)
def level_offsets(levels: int) -> tuple[float, ...]:
    """The K - 1 thresholds, in deviations from the prediction.

    >>> [round(offset, 3) for offset in level_offsets(4)]
    [-0.982, 0.0, 0.982]
    """
    if levels < 2:
        raise ValueError(f"need an oracle with at least 2 answers, got {levels}")
    ends = np.linspace(-2, 2, levels + 1)[1:-1]
    for _ in range(ROUNDS):
        centres = cell_means(ends)
        moved = (centres[:-1] + centres[1:]) / 2
        moved = (moved - moved[::-1]) / 2  # rounding aside, it is symmetric
        if np.abs(moved - ends).max(initial=0.0) < SETTLED:
            break
        ends = moved
    return tuple(float(end) for end in moved)


def cell_means(ends: Floats) -> Floats:
    """The mean of a standard normal number in each cell."""
    return -np.diff(_density(ends)) / _chances(ends)


def normal_level_information(levels: int) -> float:
    """What one of K answers says about the location of unit Gaussian noise, of 1 for all of it.

    >>> round(normal_level_information(2), 4), round(normal_level_information(4), 4)
    (0.6366, 0.8825)
    """
    ends = np.array(level_offsets(levels))
    return float(_chances(ends) @ cell_means(ends) ** 2)


def _density(ends: Floats) -> Floats:
    inside = np.exp(-0.5 * ends**2) / math.sqrt(2 * math.pi)
    return np.concatenate(([0.0], inside, [0.0]))


def _chances(ends: Floats) -> Floats:
    below = [0.5 * math.erfc(-end / math.sqrt(2)) for end in ends]
    return np.diff(np.concatenate(([0.0], below, [1.0])))
