"""The walk of a sampled round between its two boundaries, from one check to the next."""

import numpy as np
from numba import njit

from casemate.track.sampled.boundary_leap import leap, longest
from casemate.track.sampled.boundary_step import (
    LONGEST,
    PAD,
    REACH,
    TAIL,
    Floats,
    advance,
    give_up,
    lose,
    step_law,
)


@njit(cache=True)
def losses(early: Floats, late: Floats, check: int, probability: float, stop: float) -> Floats:
    """How likely the first failure is with 0, 1, 2, ... reports.

    With j reports it fails at the time `early[j]` if there are already j, and at the time `late[j]`
    if there are still j. Both increase; `check` is the first j that is early after time 0. Once the
    failures add up to more than `stop`, the rest are infinite. What is cut off counts as failed,
    with the fewest reports it could fail with.
    """
    lost, law = np.zeros(len(early)), np.zeros(LONGEST)
    now, then = np.zeros(len(early) + 2 * PAD), np.zeros(len(early) + 2 * PAD)
    now[PAD] = 1.0
    low = high = int(np.int64(0))  # for a plain 0 all that follows would be compiled once more
    clock, total = 0.0, 0.0
    while low <= high and total <= stop:
        before, since = low, clock
        low, high, check, clock = leap(
            now, then, lost, early, late, low, high, check, clock, probability
        )
        if clock > since:
            now, then = then, now
        else:
            too_early = check < len(early) and early[check] <= late[low]
            moment = early[check] if too_early else late[low]
            while clock < moment:
                step = min(moment - clock, longest(REACH, probability))
                length = step_law(step, probability, law)
                last = len(early) - 1 + (LONGEST if check < len(early) else 0)
                high = advance(now, then, low, high, law, length, last)
                now, then, clock = then, now, clock + step
                lost[low] += TAIL
                if check < len(early):
                    for state in range(check, high + 1):
                        lose(now, lost, state, check)
                    high = min(high, check - 1)
            if too_early:
                check += 1
            else:
                lose(now, lost, low, low)
        low, high = give_up(now, lost, low, high)
        for reports in range(before, low):
            total += lost[reports]
    if total > stop:
        lost[min(low, check) :] = np.inf
    return lost
