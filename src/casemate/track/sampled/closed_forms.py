"""Closed forms beside the exact failure probability: one that is proved, one that is close.

`chernoff_failure` is an upper bound for every p, at 10 to 20 % more slack than is needed;
`brownian_failure` is the limit of long rounds and is too small for short ones.
"""

import math
from functools import lru_cache


def chernoff_failure(reports: int, slack: float, slope: float) -> float:
    """An upper bound on the failure probability of a round, whatever p is (Ville's inequality).

    >>> round(chernoff_failure(2318, 170.2, 0.01), 6)
    0.000641
    """
    if reports == 0:
        return 0.0
    over, under = _over(reports, slack, slope), _under(reports, slack, slope)
    return min(1.0, math.exp(over) + math.exp(under))


def chernoff_slack(reports: int, slope: float, failure: float) -> float:
    """The least slack with which the bound is at most `failure`, to one in 10^8.

    >>> round(chernoff_slack(2318, 0.01, 0.000641), 1)
    170.2
    """
    high = math.sqrt(2 * reports * math.log(2 / failure))
    while chernoff_failure(reports, high, slope) > failure:
        high *= 2
    low = 0.0
    while high - low > 1e-8 * high:
        middle = (low + high) / 2
        if chernoff_failure(reports, middle, slope) > failure:
            low = middle
        else:
            high = middle
    return high


def brownian_failure(reports: int, slack: float, slope: float) -> float:
    """The limit of long rounds: a Brownian motion that leaves a wedge before time m.

    >>> round(brownian_failure(2318, 170.2, 0.01), 6)
    0.000134
    """
    root = math.sqrt(reports)
    first = _upper_tail((slack + slope * reports) / root)
    second = _upper_tail((slack - slope * reports) / root)
    return 2 * (first + math.exp(-2 * slope * slack) * second)


def _upper_tail(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def _over(reports: int, slack: float, slope: float) -> float:
    """The exponent of the bound on too many reports."""
    until = (reports - 1 - slack) / (1 + slope)
    if until <= 0.0:
        return -math.inf  # so few reports are never too many
    tilt = max(math.log(1 + slope + slack / until), _resting(slope))
    excess = math.expm1(tilt) - tilt * (1 + slope)
    return -tilt * slack + until * max(excess, 0.0)


def _under(reports: int, slack: float, slope: float) -> float:
    """The exponent of the bound on too few reports."""
    until = (reports - 1 + slack) / (1 - slope)
    if reports == 1:
        return -until
    tilt = max(-math.log1p(-slope - slack / until), _resting(-slope))
    excess = tilt * (1 - slope) + math.expm1(-tilt)
    return -tilt * slack + until * max(excess, 0.0)


@lru_cache(maxsize=256)
def _resting(slope: float) -> float:
    """The tilt t > 0 with e^t - 1 = t (1 + slope), or e^-t - 1 = -t (1 + slope), for ever safe.

    The bound is true at every tilt, so rounding costs nothing but a little slack.
    """
    if abs(slope) < 1e-6:
        return abs(2 * slope)
    t = 2 * slope if slope > 0 else -1 / (1 + slope)  # from outside Newton's method is monotone
    for _ in range(50):
        t -= (math.expm1(t) - t * (1 + slope)) / (math.exp(t) - (1 + slope))
    return abs(t)
