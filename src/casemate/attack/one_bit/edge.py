"""Learning w . q from one bit a query when the noise has an edge: thresholds at the edge.

Source     Source document 000, section 2 (the protocol). Its 1/sqrt(T) is a worst case over noise.
Method     Noise that stops suddenly tells much more at its edge than at its median: a bit there is
           nearly always the same, and the rare other one says that w . q is on one side for
           certain. The belief is normal, in square-root form; each bit is read by Bayes' rule under
           the known law, in closed form for uniform noise and from a table for any other.
           docs/derivations/one_bit_edge.md derives the rate: error of the order (log T) / T.
Guarantee  None that is proved for a right law. Against a wrong one there is a guard: hits at the
           edge are held against their predicted number by a test that cries wolf with probability
           at most `alarm` over the whole stream. After the alarm the belief goes back to what it
           was before the law began to fail, and thresholds go to the median.
Cost       O(d²) a query, O(d² log T) memory for the beliefs to go back to.

Whether bits at the edge come as often as the law says: a bet that can be left running.

Method     Against the claim that hits come at no more than 1.15 times (and at no less than 0.85
           times) the predicted chance, money is bet on more (1.8 and 4 times as many) and on fewer
           (0.4 and 0.05 times). While the claim holds, the money is a supermartingale, so that by
           Ville's inequality it ever reaches 1 / alarm with probability at most `alarm`: over the
           whole stream, however long.
           A wrong law may begin to matter late, so new bets are opened whenever the number of
           counted bits has doubled, out of a purse that is never empty: shares 1 / (k (k + 1)).
Cost       Four numbers for each doubling.
Departure  The chances are those of a normal belief. Under uniform noise they are close (hits come
           at 0.96 to 1.03 times the prediction), which is what the margins are for. The bound is a
           theorem for exact chances only: noise with one edge had 1 alarm in 60 runs at 0.001.

Compiled steps of the edge filter: a whole stream, up to the guard's alarm.

`rule` is what `Rule.compiled` gives; `guard` is (money, counts, alarm) with counts (bets, counted);
`marks` is (means, roots): the belief before each bet was opened, after the prior. The plain version
is `EdgeKalman.learn`; both agree to 1e-9 of the answers, as sums are taken in another order.
"""

import math
from typing import Any

import numpy as np

from casemate.attack.one_bit.edge_table import (
    CHANCE,
    COUNTED,
    EDGE_RHO,
    FEWEST_HITS,
    INWARD,
    LEAN,
    LOST_ABOVE,
    LOST_BELOW,
    NARROWEST,
    OFFSET,
    RAREST,
    ROWS,
    SEARCH_RHO,
    SHARP,
    STEP_ABOVE,
    STEP_BELOW,
    WIDE,
    WIDEST,
    rule_for,
)
from casemate.attack.one_bit.kalman_bank import ScaleBank
from casemate.attack.one_bit.laws import Law, effective_scale
from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.potter import potter_update, predict
from casemate.compiled import compiled

MOST_BETS = 50
RAREST_HIT = 1e-12
TOO_MANY, TOO_FEW = 1.15, 0.85
"""The claim to be refuted: hits come at parts of their predicted chance between these."""

MORE, FAR_MORE, FEWER, FAR_FEWER = 1.8, 4.0, 0.4, 0.05
"""What is bet on instead."""


class Guard:
    """Watches hits against their predicted chances."""

    def __init__(self, alarm: float) -> None:
        if not 0 < alarm < 1:
            raise ValueError(f"need a rate of false alarms between 0 and 1, got {alarm}")
        self.alarm = alarm
        self.money: Floats = np.zeros((MOST_BETS, 4))
        self.bets = 0
        self.counted = 0

    def opens(self) -> bool:
        """Whether new bets are opened before the next counted bit."""
        return self.counted + 1 == 1 << self.bets and self.bets < MOST_BETS

    def count(self, chance: float, hit: bool) -> bool:
        """Take note of a bit that was a hit with some chance; whether the alarm goes off."""
        if self.opens():
            self.money[self.bets] = 0.25 / ((self.bets + 1) * (self.bets + 2))
            self.bets += 1
        self.counted += 1
        self.money[: self.bets] *= odds(chance, hit)
        return bool(self.money[: self.bets].sum() >= 1 / self.alarm)

    def begun(self) -> int:
        """Which bet has gained most: from where on the law has been wrong."""
        return int(np.argmax(self.money[: self.bets].max(axis=1)))


def odds(chance: float, hit: bool) -> tuple[float, float, float, float]:
    """By what the money of each bet is multiplied."""
    chance = max(chance, RAREST_HIT)
    most, least = min(TOO_MANY * chance, 0.5 + 0.5 * chance), TOO_FEW * chance
    more = min(MORE * chance, 0.7 + 0.3 * chance)
    far_more = min(FAR_MORE * chance, 0.85 + 0.15 * chance)
    fewer, far_fewer = FEWER * chance, FAR_FEWER * chance
    if hit:
        return more / most, far_more / most, fewer / least, far_fewer / least
    no, yes = 1 - most, 1 - least
    return (1 - more) / no, (1 - far_more) / no, (1 - fewer) / yes, (1 - far_fewer) / yes


# Edge -------------------------------------------------------------------------------------------


WIDER = 64.0
"""The widest scale to begin with after an alarm, as a multiple of that of the law."""


class EdgeKalman:
    """A one-bit filter for noise of a known law, with a guard against a wrong one."""

    def __init__(
        self,
        dimension: int,
        law: Law,
        basis: Floats | None = None,
        *,
        alarm: float = 1e-3,
        random: np.random.Generator | None = None,
    ) -> None:
        self.basis = np.eye(dimension) if basis is None else np.ascontiguousarray(basis, float)
        if self.basis.ndim != 2 or self.basis.shape[1] != dimension:
            raise ValueError(
                f"need a basis of vectors of length {dimension}, got shape {self.basis.shape}"
            )
        self.law, self.rule = law, rule_for(law)
        self.mean, self.root = prior(self.basis)
        self.fallback: ScaleBank | None = None
        self.guard = Guard(alarm)
        self._random = np.random.default_rng() if random is None else random
        self._later = np.random.default_rng(self._random.integers(2**63))
        self._middle = float(law.quantile(0.5))
        self._marks = _marks(self.mean, self.root)

    @property
    def alarmed(self) -> bool:
        """Whether the guard has found the law to be wrong."""
        return self.fallback is not None

    @property
    def at_edge(self) -> bool:
        """Whether the law is still believed."""
        return self.fallback is None

    def answer(self, q: Floats) -> float:
        """The mean of the belief about w . q."""
        x = self.basis @ q
        return float(self.mean @ x) if self.fallback is None else self.fallback.answer(x)

    def threshold(self, q: Floats) -> float:
        """At an edge of the noise, on a side chosen by chance; after an alarm at its median."""
        x = self.basis @ q
        if self.fallback is not None:
            return self.fallback.threshold(x) + self._middle
        deviation = float(np.linalg.norm(self.root.T @ x))
        if deviation == 0:
            return float(self.mean @ x)
        upper = self._random.random() < self.rule.lean(deviation)
        return float(self.mean @ x) + self.rule.offset(deviation, upper)

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Read the bit by the law, after the guard has looked at it."""
        x = self.basis @ q
        if self.fallback is not None:
            self.fallback.learn(x, threshold - self._middle, above)
            return
        pulled = self.root.T @ x
        variance = float(pulled @ pulled)
        if not variance > 0:
            return
        deviation = math.sqrt(variance)
        reading, part, counted = self.rule.read(deviation, threshold - float(self.mean @ x))
        if counted and self._count(reading.chance, above):
            self._fall_back()
            return
        step, shrink = reading.after(above)
        potter_step((self.mean, self.root), pulled, step, part * shrink)

    def _count(self, chance: float, above: bool) -> bool:
        """Tell the guard; whether it raises the alarm."""
        guard, means, roots = self.guard, *self._marks
        if guard.opens():
            means[guard.bets + 1], roots[guard.bets + 1] = self.mean, self.root
        rare_above = chance < 0.5
        return guard.count(chance if rare_above else 1 - chance, above == rare_above)

    def _fall_back(self) -> None:
        """Go back to the last belief from before the law began to fail, and ask at the median.

        A law with a wrong bound may be wrong in all else, so its scale is not believed either.
        """
        means, roots = self._marks
        place = self.guard.begun()  # one mark earlier than where that bet was opened
        self.fallback = ScaleBank(
            means[place],
            roots[place],
            WIDER * effective_scale(self.law),
            SEARCH_RHO,
            first=0,
            random=self._later,
        )

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        count = len(coordinates)
        trail = AnswerTrail(np.empty(count), np.empty(count), np.empty(count, np.bool_))
        held = np.ascontiguousarray(coordinates, float)
        done = 0 if self.fallback is not None else self._advance(held, noisy, trail)
        if self.fallback is not None:
            rest = self.fallback.follow(held[done:], noisy[done:] - self._middle)
            trail.answers[done:], trail.above[done:] = rest.answers, rest.above
            trail.thresholds[done:] = rest.thresholds + self._middle
        return trail

    def _advance(self, coordinates: Floats, noisy: Floats, trail: AnswerTrail) -> int:
        """Go on until the alarm; how many queries were answered."""

        guard = self.guard
        counts = np.array([guard.bets, guard.counted])
        room = np.empty_like(self.mean), np.empty_like(self.mean)
        stream = coordinates, noisy, self._random.random(len(coordinates))
        reached = run(
            ((self.mean, self.root), room),
            self.rule.compiled,
            ((guard.money, counts, guard.alarm), self._marks),
            stream,
            (trail.answers, trail.thresholds, trail.above),
        )
        guard.bets, guard.counted = counts.tolist()
        if reached == NO_ALARM:
            return len(coordinates)
        self._fall_back()
        return int(reached)


def potter_step(belief: tuple[Floats, Floats], pulled: Floats, step: float, lost: float) -> None:
    """Move the mean and shrink the root along a query, `pulled` being root' x: Potter's form."""
    mean, root = belief
    variance, gain = float(pulled @ pulled), root @ pulled
    mean += step / math.sqrt(variance) * gain
    root -= lost / ((1 + math.sqrt(1 - lost)) * variance) * np.outer(gain, pulled)


def prior(basis: Floats) -> tuple[Floats, Floats]:
    """Before any bit: each coordinate of w even on [0, 1], and a common level of all of them."""
    level = basis.sum(axis=1)
    spread = np.abs(basis).sum(axis=1)
    covariance = (np.diag(spread**2) + np.outer(level, level)) / 12
    return 0.5 * level, np.asarray(np.linalg.cholesky(covariance), np.float64)


def _marks(mean: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Room for the prior and for the belief at each opening of bets."""
    means, roots = np.empty((MOST_BETS + 1, *mean.shape)), np.empty((MOST_BETS + 1, *root.shape))
    means[0], roots[0] = mean, root
    return means, roots


# Edge kernel ------------------------------------------------------------------------------------


NO_ALARM = -1
_INSIDE, _SLOPE, _BEND = INWARD
_ROW_STEP = math.log(WIDEST / NARROWEST) / (ROWS - 1)


@compiled
def normal_cdf(x: Any) -> Any:
    """The chance of a standard normal below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@compiled
def normal_density(x: Any) -> Any:
    """The height of the bell."""
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


@compiled
def uniform_moments_kernel(bound: Any, offset: Any, deviation: Any) -> Any:
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


@compiled
def uniform_offset(bound: Any, deviation: Any, draw: Any) -> Any:
    """Where to ask under even noise."""
    ratio = deviation / bound
    if ratio > WIDE:
        return 0.0
    inside = deviation * (_INSIDE + ratio * (_SLOPE + ratio * _BEND))
    return bound - inside if draw < 0.5 else inside - bound


@compiled
def after(moments: Any, above: Any) -> Any:
    """The step and the shrinking that one bit brings."""
    chance, first, second = moments
    if not above:
        chance, first, second = 1.0 - chance, -first, 1.0 - second
    if chance < RAREST:
        return 0.0, 0.0
    step = first / chance
    return step, 1.0 - (second / chance - step * step)


@compiled
def row_of(scale: Any, deviation: Any) -> Any:
    """The nearest row of a table."""
    width = max(deviation / scale, NARROWEST)
    return min(max(round(math.log(width / NARROWEST) / _ROW_STEP), 0), ROWS - 1)


@compiled
def odds_kernel(chance: Any, hit: Any) -> Any:
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


@compiled
def settle(money: Any, bets: Any, chance: Any, hit: Any) -> Any:
    """Pay the bets; how much money there is."""
    factors = odds_kernel(chance, hit)
    total = 0.0
    for k in range(bets):
        for kind in range(4):
            money[k, kind] *= factors[kind]
            total += money[k, kind]
    return total


@compiled
def open_bet(belief: Any, guard: Any, marks: Any) -> None:
    """Open new bets and keep the belief as it is, when the count has doubled."""
    money, counts, _ = guard
    bets = counts[0]
    if bets < MOST_BETS and counts[1] + 1 == 1 << bets:
        money[bets] = 0.25 / ((bets + 1.0) * (bets + 2.0))
        marks[0][bets + 1] = belief[0]
        marks[1][bets + 1] = belief[1]
        counts[0] += 1


@compiled
def count(belief: Any, guard: Any, marks: Any, chance: Any, above: Any) -> Any:
    """Take note of a bit; whether the alarm goes off."""
    money, counts, alarm = guard
    open_bet(belief, guard, marks)
    counts[1] += 1
    rare_above = chance < 0.5
    rarer = chance if rare_above else 1.0 - chance
    return settle(money, counts[0], rarer, above == rare_above) >= 1.0 / alarm


@compiled
def ask_uniform(rule: Any, centre: Any, deviation: Any, draw: Any, noisy: Any) -> Any:
    """Ask at an edge of even noise: threshold, bit, its chance, step, shrinking, counted."""
    bound, squared = rule[0], rule[1]
    threshold = centre + uniform_offset(bound, deviation, draw)
    above = noisy > threshold
    moments = uniform_moments_kernel(bound, threshold - centre, deviation)
    step, shrink = after(moments, above)
    counted = min(moments[0], 1.0 - moments[0]) < FEWEST_HITS
    share = deviation * deviation / (deviation * deviation + squared)
    part = EDGE_RHO if counted else 1.0 - (1.0 - SEARCH_RHO) * share
    return threshold, above, moments[0], step, part * shrink, counted


@compiled
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


@compiled
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
        potter_update(belief, room, (variance, 0.0, 1.0), (step, lost))
    return NO_ALARM
