"""Many checks of a walk at once: only states near a boundary need to go from check to check.

Reports never become fewer. So what a check of too many takes away would have ended at or above the
boundary, and what a check of too few takes away would hardly ever end far above it: all states in
between are found by one long step, as if there were no checks, and only those near the boundaries
step by step. A long step has fewer terms than the short ones that it takes the place of.
"""

from typing import Any

import numpy as np
from numba import njit

from casemate.track.sampled.boundary_step import (
    LONGEST,
    PAD,
    REACH,
    TAIL,
    Floats,
    advance,
    step_law,
)

_LEAP = 10.0  # reports expected in a leap
_WIDE = 3 * LONGEST  # fewer states than this are not worth one
_EDGE = 4 * LONGEST + 2 * PAD  # room for the states near a boundary


@njit(cache=True)
def longest(reports: float, probability: float) -> Any:
    """How many items, or how much time, a step of about so many reports takes."""
    return reports if probability == 0.0 else np.floor(max(reports / probability, 1.0))


@njit(cache=True)
def leap(  # noqa: PLR0917 - compiled code takes no keyword arguments
    now: Floats,
    then: Floats,
    lost: Floats,
    early: Floats,
    late: Floats,
    low: int,
    high: int,
    check: int,
    clock: float,
    probability: float,
) -> tuple[int, int, int, float]:
    """Take the states low..high of `now` over many checks into `then`, which is empty.

    Returns the lowest and the highest state, the next check and the time after it; the same time
    where the states are too few, or the last check of too many is too near.
    """
    until = clock + longest(_LEAP, probability)
    limit = len(early)
    if high - low < _WIDE or (check < limit and early[limit - 1] <= until):
        return low, high, check, clock
    law = np.zeros(LONGEST)
    length = step_law(until - clock, probability, law)
    first = low  # after the leap
    while late[first] <= until:
        first += 1
    if check < limit and first + length > check:
        return low, high, check, clock
    last = check - 1 if check < limit else limit - 1
    below, above, after = now[:0], now[:0], check
    if first > low:
        below = _from_below(now, lost, late, low, first, length, clock, until, probability)
    if check < limit and high + length > check:
        above, after = _from_above(now, lost, early, check, high, length, clock, until, probability)
    lost[low] += TAIL
    high = advance(now, then, low, high, law, length, last)
    then[low + PAD : first + PAD] = 0.0
    _write(below, then, first + PAD)
    _write(above, then, check + PAD)
    return first, high + len(above), after, until


@njit(cache=True)
def _write(states: Floats, to: Floats, place: int) -> None:
    for i in range(len(states)):
        to[place + i] = states[i]


@njit(cache=True)
def _from_below(  # noqa: PLR0917 - compiled code takes no keyword arguments
    now: Floats,
    lost: Floats,
    late: Floats,
    low: int,
    first: int,
    length: int,
    clock: float,
    until: float,
    probability: float,
) -> Floats:
    """The `length` states from `first` on, after all checks of too few reports on the way."""
    size = first - low + length
    states, spare, law = np.zeros(_EDGE), np.zeros(_EDGE), np.zeros(LONGEST)
    _write(now[low + PAD : low + PAD + size], states, PAD)
    for state in range(low, first + 1):
        moment = min(late[state], until)
        while clock < moment:
            step = min(moment - clock, longest(REACH, probability))
            terms = step_law(step, probability, law)
            advance(states, spare, state - low, size - 1, law, terms, size - 1)
            states, spare, clock = spare, states, clock + step
            lost[low] += TAIL
        if state < first:
            lost[state] += states[state - low + PAD]
            states[state - low + PAD] = 0.0
    return states[first - low + PAD : size + PAD]


@njit(cache=True)
def _from_above(  # noqa: PLR0917 - compiled code takes no keyword arguments
    now: Floats,
    lost: Floats,
    early: Floats,
    check: int,
    high: int,
    length: int,
    clock: float,
    until: float,
    probability: float,
) -> tuple[Floats, int]:
    """The states from `check` on, after all checks of too many reports on the way; the next one.

    States more than `length` below cannot come so far, but for what a law is cut off by.
    """
    base = check - length
    states, spare, law = np.zeros(_EDGE), np.zeros(_EDGE), np.zeros(LONGEST)
    bottom, top = int(np.int64(0)), high - base
    _write(now[base + PAD : high + PAD + 1], states, PAD)
    after = check
    lost[check] += TAIL
    while clock < until:
        moment = min(early[after], until)
        while clock < moment:
            step = min(moment - clock, longest(REACH, probability))
            terms = step_law(step, probability, law)
            top = advance(states, spare, bottom, top, law, terms, len(states) - 2 * PAD)
            states, spare, clock = spare, states, clock + step
            lost[check] += TAIL
            for state in range(after - base, top + 1):
                lost[after] += states[state + PAD]
                states[state + PAD] = 0.0
            top = min(top, after - base - 1)
        while early[after] <= clock:
            after += 1
    return states[length + PAD : top + 1 + PAD], after
