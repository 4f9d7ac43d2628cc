"""Compiled steps of a bank of one-bit filters, one for each scale that the noise may have.

A state is (bank, fit, clock). The bank is (means, roots, scales, logs): for each member its belief,
the deviation it assumes, and the logarithm of its weight. The fit is (rises, runs, counts): sums of
offset * (1/2 - above), of offset squared, and the number, over the dithered queries for which this
member chose the offset. The clock is (queries so far, the member that is kept, or -1 while all are
in use). A desk is (rooms, views): rooms as `kalman_kernel.predict` needs them, one for each member,
and (centres, variances, hidden) of the query at hand.
"""

import math
from typing import Any

from numba import njit

from casemate.solve.one_bit.kalman_kernel import bit_moments, correct, hidden, predict

DROPPED = 0.02  # members with less than this part of the best one's weight have no say
SHARED = 0.1  # of all weight over the number of queries, spread evenly again at each
DITHER = 0.3  # deviations between the prediction and a dithered threshold
MOST_DITHERED = 0.25  # part of the queries, as long as few have come
DITHERED = 5.0  # then this over the root of their number
FIRST_FIT = 200  # dithered queries before a scale is fitted
SURE = 2.0  # a fitted slope is this many times the root of the sum of squared offsets: 4 deviations
CLOSE = 2.0  # the fitted scale is within this factor of the member that measured it
ALL = -1


@njit(cache=True)
def look(state: Any, desk: Any, x: Any, first: Any) -> None:
    """Let every member in use predict; the first columns are hidden from answers."""
    (means, roots, _, _), _, clock = state
    rooms, views = desk
    for m in range(means.shape[0]):
        if clock[1] == ALL or clock[1] == m:
            room = (rooms[0][m], rooms[1][m])
            views[0][m], views[1][m] = predict((means[m], roots[m]), x, room)
            views[2][m] = hidden(means[m], x, first)


@njit(cache=True)
def leader(logs: Any, clock: Any) -> Any:
    """The member with the most weight, or the one that is kept."""
    if clock[1] != ALL:
        return clock[1]
    best = 0
    for m in range(logs.shape[0]):
        if logs[m] > logs[best]:
            best = m
    return best


@njit(cache=True)
def blend(state: Any, desk: Any) -> Any:
    """What the members with a say predict on average, and how much of that is hidden."""
    (_, _, _, logs), _, clock = state
    centres, _, hiddens = desk[1]
    best = leader(logs, clock)
    if clock[1] != ALL:
        return centres[best], hiddens[best]
    centre, aside, mass = 0.0, 0.0, 0.0
    for m in range(logs.shape[0]):
        weight = math.exp(logs[m] - logs[best])
        if weight >= DROPPED:
            centre += weight * centres[m]
            aside += weight * hiddens[m]
            mass += weight
    return centre / mass, aside / mass


@njit(cache=True)
def offset(state: Any, desk: Any, chance: Any) -> Any:
    """How far to move the threshold: rarely, and only once noise is what is left to overcome."""
    (_, _, scales, logs), _, clock = state
    best = leader(logs, clock)
    noise, variance = scales[best] ** 2, desk[1][1][best]
    part = min(MOST_DITHERED, DITHERED / math.sqrt(clock[0] + 1.0))
    if variance > noise or chance >= part:
        return 0.0
    wide = DITHER * math.sqrt(noise + variance)
    return wide if chance < part / 2 else -wide


@njit(cache=True)
def take(state: Any, desk: Any, rho: Any, asked: Any, above: Any) -> None:
    """Let every member in use learn; `asked` is (threshold, how far it is from the blend)."""
    bank, fit, clock = state
    means, roots, scales, logs = bank
    rooms, (centres, variances, _) = desk
    threshold, moved = asked
    clock[0] += 1
    best = leader(logs, clock)
    for m in range(means.shape[0]):
        if clock[1] == ALL or clock[1] == m:
            noise = scales[m] ** 2
            k = (threshold - centres[m]) / math.sqrt(noise + variances[m])
            step, shrink, chance = bit_moments(k, above)
            logs[m] += chance
            room = (rooms[0][m], rooms[1][m])
            correct((means[m], roots[m]), room, (variances[m], noise, rho), (step, shrink))
    if clock[1] == ALL:
        share(logs, SHARED / clock[0])
        slide(bank, fit, variances)
    if moved != 0.0:
        fit[0][best] += moved * (0.5 - above)
        fit[1][best] += moved * moved
        fit[2][best] += 1.0
        refit(bank, fit, clock, best)


@njit(cache=True)
def share(logs: Any, part: Any) -> None:
    """Make weights add up to 1, a part of it spread evenly: nobody is ever lost for good."""
    top, total = logs.max(), 0.0
    for m in range(logs.shape[0]):
        logs[m] = math.exp(logs[m] - top)
        total += logs[m]
    for m in range(logs.shape[0]):
        logs[m] = math.log((1.0 - part) * logs[m] / total + part / logs.shape[0])


@njit(cache=True)
def slide(bank: Any, fit: Any, variances: Any) -> None:
    """When the last scale on one side has most of the weight, the other end moves beyond it."""
    means, roots, scales, logs = bank
    low, high = scales.argmin(), scales.argmax()
    for best, spare, factor in ((low, high, 0.5), (high, low, 2.0)):
        if logs[best] > math.log(0.5) and variances[best] < scales[best] ** 2:
            means[spare] = means[best]
            roots[spare] = roots[best]
            scales[spare] = factor * scales[best]
            logs[best] -= math.log(2.0)
            logs[spare] = logs[best]
            fit[0][spare], fit[1][spare], fit[2][spare] = 0.0, 0.0, 0.0


@njit(cache=True)
def refit(bank: Any, fit: Any, clock: Any, best: Any) -> None:
    """Read the scale off the slope of the noise's cdf near 0; the first time, keep one member.

    Where noise dominates, a root is proportional to the assumed deviation, so it is scaled along.
    """
    rise, run, count = fit[0][best], fit[1][best], fit[2][best]
    if count < FIRST_FIT or rise < SURE * math.sqrt(run):
        return
    factor = run / (rise * math.sqrt(2.0 * math.pi)) / bank[2][best]
    if clock[1] == ALL:
        if not 1.0 / CLOSE < factor < CLOSE:
            fit[0][best], fit[1][best], fit[2][best] = 0.0, 0.0, 0.0
            return
        clock[1] = best
    bank[2][best] *= factor
    bank[1][best] *= factor


@njit(cache=True)
def run_bank(state: Any, desk: Any, model: Any, stream: Any, trail: Any) -> Any:
    """Answer a stream; `model` is (rho, first, halt), `stream` (coordinates, noisy, chances).

    With `halt` it stops once a member is kept. How many queries were answered.
    """
    rho, first, halt = model
    coordinates, noisy, chances = stream
    answers, thresholds, above = trail
    for place in range(coordinates.shape[0]):
        look(state, desk, coordinates[place], first)
        centre, aside = blend(state, desk)
        moved = offset(state, desk, chances[place])
        answers[place] = centre - aside
        thresholds[place] = centre + moved
        above[place] = noisy[place] > thresholds[place]
        take(state, desk, rho, (thresholds[place], moved), above[place])
        if halt and state[2][1] != ALL:
            return place + 1
    return coordinates.shape[0]
