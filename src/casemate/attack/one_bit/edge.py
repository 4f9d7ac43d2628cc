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

`watch` is what `Guard.state` gives: (money, counts, alarm), with counts (bets, counted), and the
marks (means, roots): the belief before each bet was opened, after the prior.
"""

import math
from typing import Any

import numpy as np

from casemate.attack.one_bit.edge_table import Reading, edge_rule, place_threshold, reading_at
from casemate.attack.one_bit.kalman_bank import ScaleBank
from casemate.attack.one_bit.laws import Law, effective_scale
from casemate.attack.one_bit.limit import box_prior
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, checked_basis
from casemate.attack.one_bit.potter import empty_room, potter_update, predict
from casemate.compiled import compiled

MOST_BETS = 50
RAREST_HIT = 1e-12
TOO_MANY, TOO_FEW = 1.15, 0.85
"""The claim to be refuted: hits come at parts of their predicted chance between these."""

MORE, FAR_MORE, FEWER, FAR_FEWER = 1.8, 4.0, 0.4, 0.05
"""What is bet on instead."""


class Guard:
    """Watches hits against their predicted chances, and keeps the beliefs to go back to."""

    def __init__(self, alarm: float, mean: Floats, root: Floats) -> None:
        if not 0 < alarm < 1:
            raise ValueError(f"need a rate of false alarms between 0 and 1, got {alarm}")
        self.alarm = alarm
        self.money: Floats = np.zeros((MOST_BETS, 4))
        self.counts = np.zeros(2, np.int64)  # bets that were opened, bits that were counted
        self.means = np.empty((MOST_BETS + 1, *mean.shape))
        self.roots = np.empty((MOST_BETS + 1, *root.shape))
        self.means[0], self.roots[0] = mean, root

    @property
    def state(self) -> tuple[object, object]:
        """What compiled steps read and change."""
        return (self.money, self.counts, self.alarm), (self.means, self.roots)

    def before(self) -> tuple[Floats, Floats]:
        """The belief from before the bet was opened that has gained most: mean and root."""
        place = int(np.argmax(self.money[: self.counts[0]].max(axis=1)))
        return self.means[place], self.roots[place]


@compiled
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


@compiled
def count_hit(belief: Any, watch: Any, chance: Any, hit: Any) -> Any:
    """Take note of a bit that was a hit with some chance; whether the alarm goes off.

    When the count has doubled, new bets are opened, and the belief is kept as it is.
    """
    (money, counts, alarm), marks = watch
    bets = counts[0]
    if bets < MOST_BETS and counts[1] + 1 == 1 << bets:
        money[bets] = 0.25 / ((bets + 1.0) * (bets + 2.0))
        marks[0][bets + 1] = belief[0]
        marks[1][bets + 1] = belief[1]
        counts[0] += 1
    counts[1] += 1
    factors, total = odds(chance, hit), 0.0
    for k in range(counts[0]):
        for kind in range(4):
            money[k, kind] *= factors[kind]
            total += money[k, kind]
    return total >= 1.0 / alarm


@compiled
def take_bit(state: Any, watch: Any, variance: Any, reading: Any, above: Any) -> Any:
    """Move the belief as a bit was read, after the guard has looked at it; whether it cries wolf.

    `state` is (belief, room) of `potter`, the room as `predict` left it.
    """
    belief, room = state
    chance, step_above, lost_above, step_below, lost_below, counted = reading
    if counted:
        rare_above = chance < 0.5
        rarer = chance if rare_above else 1.0 - chance
        if count_hit(belief, watch, rarer, above == rare_above):
            return True
    moments = (step_above, lost_above) if above else (step_below, lost_below)
    potter_update(belief, room, (variance, 0.0, 1.0), moments)
    return False


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
        self.basis = checked_basis(basis, dimension)
        self.law = law
        self.mean, self.root = box_prior(self.basis)
        self.fallback: ScaleBank | None = None
        self.guard = Guard(alarm, self.mean, self.root)
        self._random = np.random.default_rng() if random is None else random
        self._later = np.random.default_rng(self._random.integers(2**63))
        self._middle = float(law.quantile(0.5))
        self._room = empty_room(self.mean)

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
        centre, variance = predict((self.mean, self.root), x, self._room)
        if variance > 0:
            draw = self._random.random()
            centre += place_threshold(tuple(edge_rule(self.law)), math.sqrt(variance), draw)[0]
        return float(centre)

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Read the bit by the law, after the guard has looked at it."""
        x = self.basis @ q
        if self.fallback is not None:
            self.fallback.learn(x, threshold - self._middle, above)
            return
        belief = self.mean, self.root
        centre, variance = predict(belief, x, self._room)
        if variance > 0:
            reading: Reading = reading_at(self.law, math.sqrt(variance), threshold - float(centre))
            if take_bit((belief, self._room), self.guard.state, variance, reading, above):
                self._fall_back()

    def _fall_back(self) -> None:
        """Go back to the last belief from before the law began to fail, and ask at the median.

        A law with a wrong bound may be wrong in all else, so its scale is not believed either.
        """
        widest = WIDER * effective_scale(self.law)
        self.fallback = ScaleBank(*self.guard.before(), widest, random=self._later)

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        trail, done = AnswerTrail.empty(len(coordinates)), 0
        held = np.ascontiguousarray(coordinates, float)
        if self.fallback is None:
            done = self._advance(held, noisy, trail)
        if self.fallback is not None:
            rest = self.fallback.follow(held[done:], noisy[done:] - self._middle)
            trail.answers[done:], trail.above[done:] = rest.answers, rest.above
            trail.thresholds[done:] = rest.thresholds + self._middle
        return trail

    def _advance(self, coordinates: Floats, noisy: Floats, trail: AnswerTrail) -> int:
        """Go on until the alarm; how many queries were answered."""
        state = (self.mean, self.root), self._room
        stream = coordinates, noisy, self._random.random(len(coordinates))
        reached = run(state, tuple(edge_rule(self.law)), self.guard.state, stream, tuple(trail))
        if reached == NO_ALARM:
            return len(coordinates)
        self._fall_back()
        return int(reached)


NO_ALARM = -1


@compiled
def run(state: Any, rule: Any, watch: Any, stream: Any, trail: Any) -> Any:
    """Answer a stream until the alarm; the number of queries that were answered.

    `stream` is (coordinates, noisy, draws): a draw chooses the side to ask at.
    """
    belief, room = state
    coordinates, noisy, draws = stream
    answers, thresholds, bits = trail
    for place in range(coordinates.shape[0]):
        centre, variance = predict(belief, coordinates[place], room)
        answers[place] = thresholds[place] = centre
        if not variance > 0.0:
            bits[place] = noisy[place] > centre
            continue
        offset, reading = place_threshold(rule, math.sqrt(variance), draws[place])
        thresholds[place] += offset
        bits[place] = noisy[place] > thresholds[place]
        if take_bit(state, watch, variance, reading, bits[place]):
            return place + 1
    return NO_ALARM
