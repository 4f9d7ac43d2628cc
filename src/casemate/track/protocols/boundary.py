"""The probability that a sampled round leaves its two boundaries: exact, and in closed forms.

In a round every item is reported with a fresh probability p. After n items and X reports, X / p is
published for n, and that is right while |X - u| <= slack + slope u, where u = p n. The boundary is
two-sided and the round ends with its m-th report, after which the count is exact. Written by the
reports: the j-th may not come before its earliest item, and not be missing after its latest.

Guarantee  `failure_probability` is the probability itself, not a bound, for every p; p = 0 means
           the limit p -> 0, a Poisson process. What floats lose is counted as failure
           (docs/derivations/sampled_rounds.md). `chernoff_failure` is an upper bound for every p,
           at 10 to 20 % more slack than is needed; `brownian_failure` is the limit of long rounds
           and is too small for short ones.
Cost       O(reports * width of the boundary); 3 ms for 2,300 reports.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled

Floats = NDArray[np.float64]

MAX_STEP_MEAN = 4.0  # reports expected in one step, at most
MAX_STEP_TERMS = 64  # terms of a step's law, at most
STEP_TAIL_PROBABILITY = 1e-20  # a step's law is cut at the first term below this
_NEGLIGIBLE_PROBABILITY = 1e-18  # a state with less than this is given up as failed
PAD = MAX_STEP_TERMS + 4  # zeros on both sides of the states, so that sums need no ends


@compiled
def step_law(amount: float, probability: float, law: Floats) -> int:
    """Write the law of the reports of one step into `law` and return how many terms it has.

    The step is `amount` items that are reported with the probability, or, where that is 0, an
    amount of time in which reports come at rate 1. The rest is below `STEP_TAIL_PROBABILITY`.
    """
    if probability > 0.0:
        mean, odds = amount * probability, probability / (1.0 - probability)
        term = np.exp(amount * np.log1p(-probability))
    else:
        mean, odds, term = amount, 0.0, np.exp(-amount)
    law[:] = 0.0
    length = 0
    while length < MAX_STEP_TERMS - 4 and (term >= STEP_TAIL_PROBABILITY or length <= 2.0 * mean):
        law[length] = term
        length += 1
        rate = max(amount - length + 1, 0.0) * odds if probability > 0.0 else amount
        term *= rate / length
    return length


@compiled(fastmath={"contract"})
def advance(  # noqa: PLR0917 - compiled code takes no keyword arguments
    now: Floats, then: Floats, low: int, high: int, law: Floats, length: int, last: int
) -> int:
    """Convolve the states low..high of `now` with the law into `then`; the new highest state.

    States above `last` are left out. Four terms at a time, since memory is what it waits for;
    `now` is left empty.
    """
    top = min(high + length - 1, last)
    size, start = top - low + 1, low + PAD
    target = then[start : start + size]
    for r in range(0, length, 4):
        a, b = now[start - r : start - r + size], now[start - r - 1 : start - r - 1 + size]
        c, d = now[start - r - 2 : start - r - 2 + size], now[start - r - 3 : start - r - 3 + size]
        wa, wb, wc, wd = law[r], law[r + 1], law[r + 2], law[r + 3]
        for i in range(size):
            target[i] += wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
    now[start : high + PAD + 1] = 0.0
    return top


@compiled
def absorb(now: Floats, lost: Floats, state: int, as_state: int) -> None:
    """Count a state as failed with the reports of another."""
    lost[as_state] += now[state + PAD]
    now[state + PAD] = 0.0


@compiled
def trim_tails(now: Floats, lost: Floats, low: int, high: int) -> tuple[int, int]:
    """Count outer states with next to nothing as failed; the lowest and highest that are left."""
    while low <= high and now[low + PAD] < _NEGLIGIBLE_PROBABILITY:
        absorb(now, lost, low, low)
        low += 1
    while high >= low and now[high + PAD] < _NEGLIGIBLE_PROBABILITY:
        absorb(now, lost, high, high)
        high -= 1
    return low, high


@compiled
def max_step(reports: float, probability: float) -> float:
    """How many items, or how much time, a step of about so many reports takes."""
    return reports if probability == 0.0 else np.floor(max(reports / probability, 1.0))


@compiled
def first_failure_law(
    early: Floats, late: Floats, check: int, probability: float, stop: float
) -> Floats:
    """How likely the first failure is with 0, 1, 2, ... reports.

    With j reports it fails at the time `early[j]` if there are already j, and at the time `late[j]`
    if there are still j. Both increase; `check` is the first j that is early after time 0. Once the
    failures add up to more than `stop`, the rest are infinite. What is cut off counts as failed,
    with the fewest reports it could fail with.
    """
    lost, law = np.zeros(len(early)), np.zeros(MAX_STEP_TERMS)
    now, then = np.zeros(len(early) + 2 * PAD), np.zeros(len(early) + 2 * PAD)
    now[PAD] = 1.0
    low = high = int(np.int64(0))  # for a plain 0 all that follows would be compiled once more
    clock, total = 0.0, 0.0
    while low <= high and total <= stop:
        before = low
        too_early = check < len(early) and early[check] <= late[low]
        moment = early[check] if too_early else late[low]
        while clock < moment:
            step = min(moment - clock, max_step(MAX_STEP_MEAN, probability))
            length = step_law(step, probability, law)
            last = len(early) - 1 + (MAX_STEP_TERMS if check < len(early) else 0)
            high = advance(now, then, low, high, law, length, last)
            now, then, clock = then, now, clock + step
            lost[low] += STEP_TAIL_PROBABILITY
            if check < len(early):
                for state in range(check, high + 1):
                    absorb(now, lost, state, check)
                high = min(high, check - 1)
        if too_early:
            check += 1
        else:
            absorb(now, lost, low, low)
        low, high = trim_tails(now, lost, low, high)
        for reports in range(before, low):
            total += lost[reports]
    if total > stop:
        lost[min(low, check) :] = np.inf
    return lost


# The exact probability ---------------------------------------------------------------------------


_ROUNDING_MARGIN = 1e-9  # relative; a sum of 1e5 positive products loses about 1e-11
# boundaries are drawn this much too narrow, so that floats never widen them
_BOUNDARY_MARGIN = 1e-12


def failures(
    limit: int, slack: float, slope: float, probability: float = 0.0, stop: float = math.inf
) -> Floats:
    """The failure probabilities of rounds of 0, 1, ..., `limit` reports; infinite once past `stop`.

    >>> [round(float(chance), 4) for chance in failures(3, 2.0, 0.0)]
    [0.0, 0.1353, 0.2349, 0.3082]
    """
    early, late = _boundaries(limit, slack, slope, probability)
    check = int(np.searchsorted(early, 0.0, side="right"))
    lost = first_failure_law(early, late, check, probability, stop)
    chances: Floats = np.concatenate([[0.0], np.cumsum(lost) * (1.0 + _ROUNDING_MARGIN)])
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
    earliest += _BOUNDARY_MARGIN * (j + slack)
    latest -= _BOUNDARY_MARGIN * (j + slack)
    if probability == 0.0:
        return earliest, latest
    return np.ceil(earliest / probability) - 1.0, np.floor(latest / probability) + 1.0


# Closed forms -----------------------------------------------------------------------------------


def chernoff_failure(reports: int, slack: float, slope: float) -> float:
    """An upper bound on the failure probability of a round, whatever p is (Ville's inequality).

    >>> round(chernoff_failure(2318, 170.2, 0.01), 6)
    0.000641
    """
    if reports == 0:
        return 0.0
    over, under = _upper_exponent(reports, slack, slope), _lower_exponent(reports, slack, slope)
    return min(1.0, math.exp(over) + math.exp(under))


def chernoff_slack(reports: int, slope: float, failure: float) -> float:
    """The least slack with which the bound is at most `failure`, to one in 10^8.

    >>> round(chernoff_slack(2318, 0.01, 0.000641), 1)
    170.2
    """
    high = math.sqrt(2 * reports * math.log(2 / failure))
    while chernoff_failure(reports, high, slope) > failure:
        high *= 2
    return bisect(lambda slack: chernoff_failure(reports, slack, slope) <= failure, high, 1e-8)


def bisect(is_enough: Callable[[float], bool], high: float, tolerance: float) -> float:
    """The least number that is enough, from above and to a relative tolerance; `high` is enough.

    >>> round(bisect(lambda x: x * x >= 2, 8.0, 1e-9), 6)
    1.414214
    """
    low = 0.0
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
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


def _upper_exponent(reports: int, slack: float, slope: float) -> float:
    """The exponent of the bound on too many reports."""
    until = (reports - 1 - slack) / (1 + slope)
    if until <= 0.0:
        return -math.inf  # so few reports are never too many
    tilt = max(math.log(1 + slope + slack / until), _critical_tilt(slope))
    excess = math.expm1(tilt) - tilt * (1 + slope)
    return -tilt * slack + until * max(excess, 0.0)


def _lower_exponent(reports: int, slack: float, slope: float) -> float:
    """The exponent of the bound on too few reports."""
    until = (reports - 1 + slack) / (1 - slope)
    if reports == 1:
        return -until
    tilt = max(-math.log1p(-slope - slack / until), _critical_tilt(-slope))
    excess = tilt * (1 - slope) + math.expm1(-tilt)
    return -tilt * slack + until * max(excess, 0.0)


@lru_cache(maxsize=256)
def _critical_tilt(slope: float) -> float:
    """The tilt t > 0 with e^t - 1 = t (1 + slope), or e^-t - 1 = -t (1 + slope), for ever safe.

    The bound is true at every tilt, so rounding costs nothing but a little slack.
    """
    if abs(slope) < 1e-6:
        return abs(2 * slope)
    t = 2 * slope if slope > 0 else -1 / (1 + slope)  # from outside Newton's method is monotone
    for _ in range(50):
        t -= (math.expm1(t) - t * (1 + slope)) / (math.exp(t) - (1 + slope))
    return abs(t)
