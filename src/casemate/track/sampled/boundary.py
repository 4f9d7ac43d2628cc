"""The exact probability that a sampled round leaves its two boundaries.

In a round every item is reported with a fresh probability p. After n items and X reports, X / p is
published for n, and that is right while |X - u| <= slack + slope u, where u = p n. The boundary is
two-sided and the round ends with its m-th report, after which the count is exact. Written by the
reports: the j-th may not come before its earliest item, and not be missing after its latest.

Guarantee  `failure_probability` is the probability itself, not a bound, for every p; p = 0 means
           the limit p -> 0, a Poisson process. What floats lose is counted as failure
           (docs/derivations/sampled_rounds.md).
Cost       O(reports * width of the boundary); 2 ms for 2,300 reports.
"""

import math

import numpy as np

from casemate.track.sampled.boundary_kernel import losses
from casemate.track.sampled.boundary_step import Floats

_ROUNDING = 1e-9  # relative; a sum of 1e5 positive products loses about 1e-11
_HAIR = 1e-12  # boundaries are drawn this much too narrow, so that floats never widen them


def failures(
    limit: int, slack: float, slope: float, probability: float = 0.0, stop: float = math.inf
) -> Floats:
    """The failure probabilities of rounds of 0, 1, ..., `limit` reports; infinite once past `stop`.

    >>> [round(float(chance), 4) for chance in failures(3, 2.0, 0.0)]
    [0.0, 0.1353, 0.2349, 0.3082]
    """
    _check(limit, slack, slope, probability)
    early, late = _boundaries(limit, slack, slope, probability)
    check = int(np.searchsorted(early, 0.0, side="right"))
    lost = losses(early, late, check, probability, stop)
    chances: Floats = np.concatenate([[0.0], np.cumsum(lost) * (1.0 + _ROUNDING)])
    return np.where(chances < 1.0, chances, np.where(np.isinf(chances), np.inf, 1.0))


def failure_probability(
    reports: int, slack: float, slope: float, probability: float = 0.0
) -> float:
    """How likely a round of so many reports is wrong at any time before its last one.

    >>> round(failure_probability(2318, 170.2, 0.01), 6)
    0.000137
    """
    return float(failures(reports, slack, slope, probability)[reports])


def _boundaries(
    limit: int, slack: float, slope: float, probability: float
) -> tuple[Floats, Floats]:
    """When a check fails that finds j reports already, and when one that finds j still."""
    j = np.arange(limit, dtype=np.float64)
    earliest = (j - slack) / (1.0 + slope)
    latest = (j + slack) / (1.0 - slope)
    earliest += _HAIR * (j + slack)
    latest -= _HAIR * (j + slack)
    if probability == 0.0:
        return earliest, latest
    return np.ceil(earliest / probability) - 1.0, np.floor(latest / probability) + 1.0


def _check(limit: int, slack: float, slope: float, probability: float) -> None:
    if limit < 0 or slack < 0:
        raise ValueError(f"need reports >= 0 and slack >= 0, got {limit} and {slack}")
    if not 0 <= slope < 1 or not 0 <= probability < 1:
        raise ValueError(f"need slope and probability in [0, 1), got {slope} and {probability}")
