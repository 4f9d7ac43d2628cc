"""How much slack a round needs so that it fails with at most a given probability."""

import math
from functools import lru_cache

from casemate.track.sampled.boundary import failure_probability
from casemate.track.sampled.closed_forms import chernoff_slack

LONGEST_EXACT = 1 << 16
"""Rounds of more reports than this are designed with the closed bound: 0.1 s here and growing."""

_CLOSE = 1e-7  # relative, in the slack or in the failure


@lru_cache(maxsize=1024)
def slack_for(reports: int, slope: float, failure: float) -> float:
    """The least slack with which a round of so many reports fails at most that often, as p -> 0.

    >>> round(slack_for(2318, 0.01, 0.000137), 1)
    170.2
    """
    if reports < 1 or not 0 <= slope < 1 or not 0 < failure < 1:
        raise ValueError(
            f"need reports >= 1, slope in [0, 1) and failure in (0, 1), "
            f"got {reports}, {slope} and {failure}"
        )
    enough = chernoff_slack(reports, slope, failure) * (1 + 1e-8)
    if reports > LONGEST_EXACT:
        return enough
    return _least(reports, slope, failure, enough)


def _least(reports: int, slope: float, failure: float, enough: float) -> float:
    """Secants on the logarithm of the failure, inside of a bracket that only shrinks."""

    def excess(slack: float) -> float:
        return math.log(max(failure_probability(reports, slack, slope), 1e-300) / failure)

    low, high = 0.0, enough
    here, there = 0.9 * enough, enough
    at_here, at_there = excess(here), excess(there)
    while True:
        low, high = (low, min(high, here)) if at_here <= 0 else (max(low, here), high)
        if high - low <= _CLOSE * high or -_CLOSE < at_here <= 0:
            return high
        fall = (at_there - at_here) / (there - here) if at_there != at_here else 0.0
        aim = here - (at_here + _CLOSE / 2) / fall if fall < 0 else math.inf
        inside = low < aim < high
        here, there, at_there = aim if inside else (low + high) / 2, here, at_here
        at_here = excess(here)
