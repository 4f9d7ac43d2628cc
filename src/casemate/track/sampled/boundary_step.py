"""One step of the walk of a sampled round: the law of its reports, and what it does to a state."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REACH = 4.0  # reports expected in one step, at most
LONGEST = 64  # terms of a step's law, at most
TAIL = 1e-20  # a step's law is cut at the first term below this
_SPECK = 1e-18  # a state with less than this is given up as failed
PAD = LONGEST + 4  # zeros on both sides of the states, so that sums need no ends


@njit(cache=True)
def step_law(amount: float, probability: float, law: Floats) -> int:
    """Write the law of the reports of one step into `law` and return how many terms it has.

    The step is `amount` items that are reported with the probability, or, where that is 0, an
    amount of time in which reports come at rate 1. Terms beyond add up to less than `TAIL`.
    """
    if probability > 0.0:
        mean, odds = amount * probability, probability / (1.0 - probability)
        term = np.exp(amount * np.log1p(-probability))
    else:
        mean, odds, term = amount, 0.0, np.exp(-amount)
    law[:] = 0.0
    length = 0
    while length < LONGEST - 4 and (term >= TAIL or length <= 2.0 * mean):
        law[length] = term
        length += 1
        rate = max(amount - length + 1, 0.0) * odds if probability > 0.0 else amount
        term *= rate / length
    return length


@njit(cache=True, fastmath={"contract"})
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


@njit(cache=True)
def lose(now: Floats, lost: Floats, state: int, as_state: int) -> None:
    """Count a state as failed with the reports of another."""
    lost[as_state] += now[state + PAD]
    now[state + PAD] = 0.0


@njit(cache=True)
def give_up(now: Floats, lost: Floats, low: int, high: int) -> tuple[int, int]:
    """Count outer states with next to nothing as failed; the lowest and highest that are left."""
    while low <= high and now[low + PAD] < _SPECK:
        lose(now, lost, low, low)
        low += 1
    while high >= low and now[high + PAD] < _SPECK:
        lose(now, lost, high, high)
        high -= 1
    return low, high
