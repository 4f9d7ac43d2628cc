"""Sampled rounds of some sites: what one may fail with, and how long it may last."""

import math
from functools import lru_cache

import numpy as np

from casemate.track.engines.plan import Sampling
from casemate.track.engines.tally import Floats
from casemate.track.sampled.boundary import failures
from casemate.track.sampled.closed_forms import brownian_failure
from casemate.track.sampled.slack import LONGEST_EXACT, slack_for

_KEPT = 0.25  # factors e of the count for which delta is kept beyond the horizon
_LONGEST = LONGEST_EXACT * 3 // 4  # draws of a round
_LONG = 1000  # draws of a round that is nearly a Brownian motion


def share_of(left: float, growth: float, value: float, horizon: float) -> float:
    """What a round may fail with of what is left, if the count's logarithm grows by this in it.

    Shares are even up to the horizon, then up to its square, and so on: each is a part of what is
    left, so that they never add up to more than delta.

    >>> share_of(0.01, 0.25, 100.0, 1e8) < 0.01 * 0.25 / math.log(1e6)
    True
    """
    end = max(math.log(horizon), 1.0)
    while end <= math.log(value):
        end *= 2.0
    part = growth / (end - math.log(value) + growth + _KEPT)
    return rounded(left * min(part, 0.5), 16)


def rounded(failure: float, steps: int) -> float:
    """A number of a coarse list, so many of them in each octave, never above the one given."""
    return float(2.0 ** (math.floor(math.log2(failure) * steps) / steps))


def sampled_round(draws: int, alpha: float, taken: float, failure: float) -> Sampling | None:
    """A round of about so many draws that takes slack / p = `taken` and fails no more than this.

    None where not even a round of one draw does.
    """
    c = slack_for(draws, alpha, failure) / taken
    p = (math.sqrt(c * c + 4.0) - c) * c / 2.0  # p^2 = c^2 (1 - p): frequent draws vary less
    chances = failures(draws + draws // 4 + 1, p * taken, alpha, p, failure)
    longest = int(np.flatnonzero(chances <= failure)[-1])
    if not longest:
        return None
    return Sampling(p, longest, p * taken, float(chances[longest]))


@lru_cache(maxsize=4096)
def possible_rounds(light: int, alpha: float, failure: float) -> tuple[Floats, Floats]:
    """Numbers of draws after which a round may end, and about what slack each of them takes."""
    least = math.floor(math.log2(max(light, 8)) * 3.0) - 3
    tried = [round(2.0 ** (i / 3.0)) for i in range(least, least + 18)]
    draws = np.unique(np.minimum(tried, _LONGEST)).astype(np.float64)
    return draws, np.array([_about(int(m), alpha, failure) for m in draws])


@lru_cache(maxsize=4096)
def _about(draws: int, alpha: float, failure: float) -> float:
    """The slack; that of a long round by bisection of its limit."""
    if draws < _LONG:
        return slack_for(draws, alpha, failure)
    low, high = 0.0, 12.0 * math.sqrt(draws) + 12.0
    for _ in range(30):
        middle = (low + high) / 2.0
        if brownian_failure(draws, middle, alpha) > failure:
            low = middle
        else:
            high = middle
    return high
