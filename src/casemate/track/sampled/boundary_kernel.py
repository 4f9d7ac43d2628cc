"""The walk of a sampled round between its two boundaries, from one check to the next."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_REACH = 4.0  # reports expected in one step, at most
_LONGEST = 64  # terms of a step's law, at most
_TAIL = 1e-20  # a step's law is cut at the first term below this
_SPECK = 1e-18  # a state with less than this is given up as failed
_PAD = _LONGEST + 4  # zeros on both sides of the states, so that sums need no ends


@njit(cache=True)
def step_law(amount: float, probability: float, law: Floats) -> int:
    """Write the law of the reports of one step into `law` and return how many terms it has.

    The step is `amount` items that are reported with the probability, or, where that is 0, an
    amount of time in which reports come at rate 1. Terms beyond add up to less than `_TAIL`.
    """
    if probability > 0.0:
        mean, odds = amount * probability, probability / (1.0 - probability)
        term = np.exp(amount * np.log1p(-probability))
    else:
        mean, odds, term = amount, 0.0, np.exp(-amount)
    law[:] = 0.0
    length = 0
    while length < _LONGEST - 4 and (term >= _TAIL or length <= 2.0 * mean):
        law[length] = term
        length += 1
        rate = max(amount - length + 1, 0.0) * odds if probability > 0.0 else amount
        term *= rate / length
    return length


@njit(cache=True, fastmath={"contract"})
def _advance(  # noqa: PLR0917 - compiled code takes no keyword arguments
    now: Floats, then: Floats, low: int, high: int, law: Floats, length: int, last: int
) -> int:
    """Convolve the states low..high of `now` with the law into `then`; the new highest state.

    States above `last` are left out. Four terms at a time, since memory is what it waits for;
    `now` is left empty.
    """
    top = min(high + length - 1, last)
    size, start = top - low + 1, low + _PAD
    target = then[start : start + size]
    for r in range(0, length, 4):
        a, b = now[start - r : start - r + size], now[start - r - 1 : start - r - 1 + size]
        c, d = now[start - r - 2 : start - r - 2 + size], now[start - r - 3 : start - r - 3 + size]
        wa, wb, wc, wd = law[r], law[r + 1], law[r + 2], law[r + 3]
        for i in range(size):
            target[i] += wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
    now[start : high + _PAD + 1] = 0.0
    return top


@njit(cache=True)
def _lose(now: Floats, lost: Floats, state: int, as_state: int) -> None:
    """Count a state as failed with the reports of another."""
    lost[as_state] += now[state + _PAD]
    now[state + _PAD] = 0.0


@njit(cache=True)
def _give_up(now: Floats, lost: Floats, low: int, high: int) -> tuple[int, int]:
    """Count outer states with next to nothing as failed; the lowest and highest that are left."""
    while low <= high and now[low + _PAD] < _SPECK:
        _lose(now, lost, low, low)
        low += 1
    while high >= low and now[high + _PAD] < _SPECK:
        _lose(now, lost, high, high)
        high -= 1
    return low, high


@njit(cache=True)
def losses(early: Floats, late: Floats, probability: float, stop: float) -> Floats:
    """How likely the first failure is with 0, 1, 2, ... reports.

    With j reports it fails at the time `early[j]` if there are already j, and at the time `late[j]`
    if there are still j. Both increase. Once the failures add up to more than `stop`, the rest are
    infinite. What is cut off counts as failed, with the fewest reports it could fail with.
    """
    lost, law = np.zeros(len(early)), np.zeros(_LONGEST)
    now, then = np.zeros(len(early) + 2 * _PAD), np.zeros(len(early) + 2 * _PAD)
    now[_PAD] = 1.0
    low = high = 0
    clock, total = 0.0, 0.0
    longest_step = _REACH if probability == 0.0 else np.floor(max(_REACH / probability, 1.0))
    check = int(np.searchsorted(early, 0.0, side="right"))
    while low <= high and total <= stop:
        too_early = check < len(early) and early[check] <= late[low]
        moment = early[check] if too_early else late[low]
        while clock < moment:
            step = min(moment - clock, longest_step)
            length = step_law(step, probability, law)
            last = len(early) - 1 + (_LONGEST if check < len(early) else 0)
            high = _advance(now, then, low, high, law, length, last)
            now, then, clock = then, now, clock + step
            lost[low] += _TAIL
            if check < len(early):
                for state in range(check, high + 1):
                    _lose(now, lost, state, check)
                high = min(high, check - 1)
        before = low
        if too_early:
            check += 1
        else:
            _lose(now, lost, low, low)
        low, high = _give_up(now, lost, low, high)
        total += lost[before:low].sum()
    if total > stop:
        lost[min(low, check) :] = np.inf
    return lost
