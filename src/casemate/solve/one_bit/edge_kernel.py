"""Compiled steps of the edge filter: a whole stream, up to the guard's alarm.

`rule` is what `Rule.compiled` gives; `guard` is (money, counts, alarm) with counts (bets, counted);
`marks` is (means, roots): the belief before each bet was opened, after the prior. The plain version
is `EdgeKalman.learn`; both agree to 1e-9 of the answers, as sums are taken in another order.
"""

import math
from typing import Any

from numba import njit

from casemate.solve.one_bit.edge_guard import (
    FAR_FEWER,
    FAR_MORE,
    FEWER,
    MORE,
    MOST_BETS,
    RAREST_HIT,
    TOO_FEW,
    TOO_MANY,
)
from casemate.solve.one_bit.edge_reading import EDGE_RHO, RAREST, SEARCH_RHO, SHARP
from casemate.solve.one_bit.edge_rule import INWARD, WIDE
from casemate.solve.one_bit.edge_table import (
    CHANCE,
    COUNTED,
    FEWEST_HITS,
    LEAN,
    LOST_ABOVE,
    LOST_BELOW,
    NARROWEST,
    OFFSET,
    ROWS,
    STEP_ABOVE,
    STEP_BELOW,
    WIDEST,
)
from casemate.solve.one_bit.kalman_kernel import correct, predict

NO_ALARM = -1
_INSIDE, _SLOPE, _BEND = INWARD
_ROW_STEP = math.log(WIDEST / NARROWEST) / (ROWS - 1)


@njit(cache=True)
def normal_cdf(x: Any) -> Any:
    """The chance of a standard normal below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@njit(cache=True)
def normal_density(x: Any) -> Any:
    """The height of the bell."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@njit(cache=True)
def uniform_moments(bound: Any, offset: Any, deviation: Any) -> Any:
    """E[H], E[vH] and E[v²H] of `edge_reading`, for even noise."""
    if bound < SHARP * deviation:
        k = offset / deviation
        tail, height = normal_cdf(-k), normal_density(k)
        return tail, height, tail + k * height
    start, end = (bound - offset) / deviation, (-bound - offset) / deviation
    slope = deviation / (2.0 * bound)
    below, height = normal_cdf(start), normal_density(start)
    under, rise = normal_cdf(end), normal_density(end)
    chance = slope * ((height + start * below) - (rise + end * under))
    second = slope * ((2.0 * height + start * below) - (2.0 * rise + end * under))
    return chance, slope * (below - under), second


@njit(cache=True)
def uniform_offset(bound: Any, deviation: Any, draw: Any) -> Any:
    """Where to ask under even noise."""
    ratio = deviation / bound
    if ratio > WIDE:
        return 0.0
    inside = deviation * (_INSIDE + ratio * (_SLOPE + ratio * _BEND))
    return bound - inside if draw < 0.5 else inside - bound


@njit(cache=True)
def after(moments: Any, above: Any) -> Any:
    """The step and the shrinking that one bit brings."""
    chance, first, second = moments
    if not above:
        chance, first, second = 1.0 - chance, -first, 1.0 - second
    if chance < RAREST:
        return 0.0, 0.0
    step = first / chance
    return step, 1.0 - (second / chance - step * step)


@njit(cache=True)
def row_of(scale: Any, deviation: Any) -> Any:
    """The nearest row of a table."""
    width = max(deviation / scale, NARROWEST)
    return min(max(round(math.log(width / NARROWEST) / _ROW_STEP), 0), ROWS - 1)


@njit(cache=True)
def odds(chance: Any, hit: Any) -> Any:
    """By what the money of each bet is multiplied."""
    chance = max(chance, RAREST_HIT)
    most, least = min(TOO_MANY * chance, 0.5 + 0.5 * chance), TOO_FEW * chance
    more = min(MORE * chance, 0.7 + 0.3 * chance)
    far_more = min(FAR_MORE * chance, 0.85 + 0.15 * chance)
    fewer, far_fewer = FEWER * chance, FAR_FEWER * chance
    if hit:
        return more / most, far_more / most, fewer / least, far_fewer / least
    no, yes = 1.0 - most, 1.0 - least
    return (1.0 - more) / no, (1.0 - far_more) / no, (1.0 - fewer) / yes, (1.0 - far_fewer) / yes


@njit(cache=True)
def settle(money: Any, bets: Any, chance: Any, hit: Any) -> Any:
    """Pay the bets; how much money there is."""
    factors = odds(chance, hit)
    total = 0.0
    for k in range(bets):
        for kind in range(4):
            money[k, kind] *= factors[kind]
            total += money[k, kind]
    return total


@njit(cache=True)
def open_bet(belief: Any, guard: Any, marks: Any) -> None:
    """Open new bets and keep the belief as it is, when the count has doubled."""
    money, counts, _ = guard
    bets = counts[0]
    if bets < MOST_BETS and counts[1] + 1 == 1 << bets:
        money[bets] = 0.25 / ((bets + 1.0) * (bets + 2.0))
        marks[0][bets + 1] = belief[0]
        marks[1][bets + 1] = belief[1]
        counts[0] += 1


@njit(cache=True)
def count(belief: Any, guard: Any, marks: Any, chance: Any, above: Any) -> Any:
    """Take note of a bit; whether the alarm goes off."""
    money, counts, alarm = guard
    open_bet(belief, guard, marks)
    counts[1] += 1
    rare_above = chance < 0.5
    rarer = chance if rare_above else 1.0 - chance
    return settle(money, counts[0], rarer, above == rare_above) >= 1.0 / alarm


@njit(cache=True)
def ask_uniform(rule: Any, centre: Any, deviation: Any, draw: Any, noisy: Any) -> Any:
    """Ask at an edge of even noise: threshold, bit, its chance, step, shrinking, counted."""
    bound, squared = rule[0], rule[1]
    threshold = centre + uniform_offset(bound, deviation, draw)
    above = noisy > threshold
    moments = uniform_moments(bound, threshold - centre, deviation)
    step, shrink = after(moments, above)
    counted = min(moments[0], 1.0 - moments[0]) < FEWEST_HITS
    share = deviation * deviation / (deviation * deviation + squared)
    part = EDGE_RHO if counted else 1.0 - (1.0 - SEARCH_RHO) * share
    return threshold, above, moments[0], step, part * shrink, counted


@njit(cache=True)
def ask_table(rule: Any, centre: Any, deviation: Any, draw: Any, noisy: Any) -> Any:
    """The same from a table."""
    rows = rule[3]
    place = row_of(rule[2], deviation)
    row = rows[place, 0 if draw < rows[place, 0, LEAN] else 1]
    threshold = centre + row[OFFSET]
    above = noisy > threshold
    chance = row[CHANCE]
    if (chance if above else 1.0 - chance) < RAREST:
        return threshold, above, chance, 0.0, 0.0, row[COUNTED] > 0.0
    step = row[STEP_ABOVE] if above else row[STEP_BELOW]
    lost = row[LOST_ABOVE] if above else row[LOST_BELOW]
    return threshold, above, chance, step, lost, row[COUNTED] > 0.0


@njit(cache=True)
def run(state: Any, rule: Any, watch: Any, stream: Any, trail: Any) -> Any:
    """Answer a stream until the alarm; the number of queries that were answered.

    `state` is (belief, room) of `kalman_kernel`, `watch` is (guard, marks), and `stream` is
    (coordinates, noisy, draws): a draw chooses the side to ask at.
    """
    belief, room = state
    guard, marks = watch
    coordinates, noisy, draws = stream
    answers, thresholds, bits = trail
    for place in range(coordinates.shape[0]):
        centre, variance = predict(belief, coordinates[place], room)
        answers[place] = centre
        if not variance > 0.0:
            thresholds[place] = centre
            bits[place] = noisy[place] > centre
            continue
        deviation = math.sqrt(variance)
        if rule[0] > 0.0:
            asked = ask_uniform(rule, centre, deviation, draws[place], noisy[place])
        else:
            asked = ask_table(rule, centre, deviation, draws[place], noisy[place])
        thresholds[place], bits[place], chance, step, lost, counted = asked
        if counted and count(belief, guard, marks, chance, bits[place]):
            return place + 1
        correct(belief, room, (variance, 0.0, 1.0), (step, lost))
    return NO_ALARM
