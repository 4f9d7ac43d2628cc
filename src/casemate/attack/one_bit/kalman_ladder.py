"""The filter for symmetric noise whose median may be a poor place to ask: two humps, or an edge.

Method     First `kalman_bank` finds the scale. Then some thresholds go to the rungs of a ladder, on
           either side by a coin: how often noise lies outside each rung gives its density between
           them, and so what a bit there tells, f^2 / (F (1 - F)). When a rung is sure to tell much
           more than the median, thresholds go there. Errors of the measured chances are opposite on
           the two sides and cancel, which is what symmetry is needed for.
Guarantee  None that is proved, and none at all for noise that is not symmetric.
Cost       As the bank; then O(n^2) a query.

Compiled steps of a filter that looks for the best threshold of symmetric noise.

A ladder is (offsets, counts, hits): rungs at growing distances from the prediction, how often each
was asked on either side, and how often the noise lay outside it. A pace is (queries so far, the
rung in use, or 0 for the median, whether any has been). A fit is (rise, run, scale): the slope of
the noise's cdf at 0 as in `kalman_bank_kernel`. A finder is (ladder, pace, fit); beliefs and rooms
are as in `kalman_kernel`.
"""

import math
from typing import Any

import numpy as np

from casemate.attack.one_bit.kalman_bank import ScaleBank
from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.potter import (
    MEDIAN_SHRINK,
    bit_moments,
    empty_room,
    hidden,
    potter_update,
    predict,
    widened,
)
from casemate.compiled import compiled

RUNGS = 12
FIRST_RUNG = 0.1  # in deviations
NEXT_RUNG = 1.35  # times as far


class OffsetLadder:
    """A bank until the scale is found, then one belief and a ladder of thresholds."""

    def __init__(self, bank: ScaleBank, rho: float, first: int) -> None:
        self._bank, self._rho, self._first = bank, rho, first
        self._belief: tuple[Floats, Floats] | None = None
        self._ladder = np.zeros(RUNGS), np.zeros(RUNGS), np.zeros(RUNGS)
        self._pace, self._fit = np.array([0, 0, 0]), np.zeros(3)

    @property
    def _finder(self) -> tuple[object, object, object]:
        return self._ladder, self._pace, self._fit

    @property
    def settled(self) -> bool:
        """Whether the scale has been found."""
        return self._belief is not None

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._fit[2]) if self.settled else self._bank.scale

    @property
    def offset(self) -> float:
        """How far from the prediction it asks: 0 at the median."""
        return float(self._ladder[0][self._pace[1]]) if self._pace[1] > 0 else 0.0

    @property
    def mean(self) -> Floats:
        """The mean of the belief."""
        return self._bank.mean if self._belief is None else self._belief[0]

    @property
    def root(self) -> Floats:
        """A root of its covariance."""
        return self._bank.root if self._belief is None else self._belief[1]

    def answer(self, x: Floats) -> float:
        """The mean of w . q, without the noise's own shift."""
        if self._belief is None:
            return self._bank.answer(x)
        return float(self.mean[self._first :] @ x[self._first :])

    def threshold(self, x: Floats) -> float:
        """At a rung, on a side chosen by chance, or at the median."""
        if self._belief is None:
            return self._bank.threshold(x)
        chance = float(self._bank.chances(1)[0])
        return float(self.mean @ x) + float(offset(self._finder, chance))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Learn from a bit, and about the noise."""
        if self._belief is None:
            self._bank.learn(x, threshold, above)
            self._take_over()
            return
        room = empty_room(self.mean)
        centre, variance = predict(self._belief, x, room)
        asked = variance, threshold - centre, self._rho
        take(self._finder, self._belief, room, asked, above)

    def _take_over(self) -> None:
        """Go on from the member that the bank has kept."""
        if not self._bank.settled:
            return
        self._belief = self._bank.mean.copy(), self._bank.root.copy()
        self._fit[:2], self._fit[2] = self._bank.slope, self._bank.scale
        self._ladder[0][:] = self._fit[2] * FIRST_RUNG * NEXT_RUNG ** np.arange(RUNGS)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        if self._belief is None:
            self._bank.widen(mean, root)
        else:
            self._belief = widened(*self._belief, mean, root)

    def follow(self, columns: Floats, noisy: Floats) -> AnswerTrail:
        """A whole stream, compiled."""
        trail, chances = AnswerTrail.empty(len(columns)), self._bank.chances(len(columns))
        stream, done = (columns, noisy, chances), 0
        if self._belief is None:
            done = self._bank.run(stream, trail, halt=True)
            self._take_over()
        if self._belief is not None:
            rest = columns[done:], noisy[done:], chances[done:]
            model = empty_room(self.mean), self._rho, self._first
            run_ladder(self._finder, self._belief, model, rest, tuple(trail.after(done)))
        return trail


# Kalman ladder kernel ---------------------------------------------------------------------------


MOST_EXPLORED = 0.25  # part of the queries, as long as few have come
EXPLORED = 8.0  # then this over the root of their number
ASIDE = 0.1  # part of the rest asked one rung further in, and as much further out
DOUBT = 3.5  # deviations by which a slope is taken to be less steep than it looks
ENDED = 0.5  # a density that falls to less than this part on the way out is at an end
BETTER = 1.5  # a rung is used when it is sure to tell this many times as much as the median
MOVED = 1.3  # and left for another that is sure to tell this many times as much
CHOICES = 500  # queries between two choices
NEAR = 0.35  # deviations within which a rung tells the slope at 0
SAME = 1e-6  # a threshold is at a rung when it is this near to it, as a part of its offset
NO_RUNG = -1


@compiled
def outside_of(ladder: Any, rung: Any) -> Any:
    """How often noise lies outside a rung, drawn a little towards one half."""
    return (ladder[2][rung] + 0.5) / (ladder[1][rung] + 1.0)


@compiled
def rise_between(ladder: Any, inner: Any, outer: Any) -> Any:
    """The mean density of the noise between two rungs, and the deviation of that."""
    offsets, counts, _ = ladder
    wide = offsets[outer] - offsets[inner]
    p, q = outside_of(ladder, inner), outside_of(ladder, outer)
    spread = p * (1.0 - p) / (counts[inner] + 1.0) + q * (1.0 - q) / (counts[outer] + 1.0)
    return (p - q) / wide, math.sqrt(spread) / wide


@compiled
def told(ladder: Any, rung: Any, doubt: Any) -> Any:
    """What a bit at a rung tells at least; nothing where the density seems to end."""
    density, deviation = rise_between(ladder, rung - 1, rung + 1)
    beyond, _ = rise_between(ladder, rung, rung + 1)
    if beyond < ENDED * density:
        return 0.0
    outside = outside_of(ladder, rung)
    return max(density - doubt * deviation, 0.0) ** 2 / (outside * (1.0 - outside))


@compiled
def choose(finder: Any, belief: Any) -> None:
    """Take the rung that surely tells the most, if that is much more than the median tells."""
    ladder, pace, fit = finder
    median = MEDIAN_SHRINK / fit[2] ** 2
    before, best, most = pace[1], 0, BETTER * median
    if before > 0 and told(ladder, before, 0.0) > median:
        best, most = before, MOVED * told(ladder, before, 0.0)
    for rung in range(1, ladder[0].shape[0] - 1):
        value = told(ladder, rung, DOUBT)
        if value > most and ladder[0][rung] > NEAR * fit[2]:  # nearer ones are as the median
            best, most = rung, value
    pace[1] = best
    if pace[2] == 0 and best > 0:
        pace[2] = 1
        belief[1][:] *= 2.0  # the median's scale was of little worth, and so was its certainty


@compiled
def offset(finder: Any, chance: Any) -> Any:
    """How far from the prediction to ask, 0 being the median."""
    (offsets, _, _), pace, _ = finder
    side = 1.0 if chance < 0.5 else -1.0
    chance = 2.0 * chance if chance < 0.5 else 2.0 * chance - 1.0
    part = min(MOST_EXPLORED, EXPLORED / math.sqrt(pace[0] + 1.0))
    if chance < part:
        return side * offsets[int(chance / part * offsets.shape[0])]
    if pace[1] == 0:
        return 0.0
    rest = (chance - part) / (1.0 - part)
    return side * offsets[pace[1] + (rest > 1.0 - ASIDE) - (rest < ASIDE)]


@compiled
def rung_at(ladder: Any, moved: Any) -> Any:
    """The rung at this distance."""
    for rung in range(ladder[0].shape[0]):
        if abs(abs(moved) - ladder[0][rung]) <= SAME * ladder[0][rung]:
            return rung
    return NO_RUNG


@compiled
def take(finder: Any, belief: Any, room: Any, asked: Any, above: Any) -> None:
    """Learn from a bit; `asked` is (variance, how far from the prediction, rho)."""
    ladder, pace, fit = finder
    variance, moved, rho = asked
    pace[0] += 1
    rung = NO_RUNG if moved == 0.0 else rung_at(ladder, moved)
    if rung == NO_RUNG or (pace[1] == 0 and abs(moved) <= NEAR * fit[2]):
        noise = fit[2] ** 2
        step, shrink, _ = bit_moments(moved / math.sqrt(noise + variance), above)
        potter_update(belief, room, (variance, noise, rho), (step, shrink))
    elif pace[1] > 0 and abs(rung - pace[1]) <= 1:
        learn_at(ladder, belief, room, (rung, moved, variance, rho), above)
    if rung != NO_RUNG:
        ladder[1][rung] += 1.0
        ladder[2][rung] += above == (moved > 0.0)
        refit(fit, pace, belief, moved, above)
    if pace[0] % CHOICES == 0:
        choose(finder, belief)


@compiled
def learn_at(ladder: Any, belief: Any, room: Any, asked: Any, above: Any) -> None:
    """One step of Newton's recursion for a bit at a rung whose chance and density are measured."""
    rung, moved, variance, rho = asked
    inside = 0 < rung < ladder[0].shape[0] - 1
    if not inside or told(ladder, rung, 0.0) == 0.0:
        return
    density, _ = rise_between(ladder, rung - 1, rung + 1)
    chance = outside_of(ladder, rung)
    if moved < 0.0:
        chance = 1.0 - chance
    noise = chance * (1.0 - chance) / density**2  # what the bit tells is one over this
    step = ((1.0 if above else 0.0) - chance) / density / math.sqrt(noise + variance)
    potter_update(belief, room, (variance, noise, rho), (step, 1.0))


@compiled
def refit(fit: Any, pace: Any, belief: Any, moved: Any, above: Any) -> None:
    """Go on fitting the slope of the cdf at 0, and scale the belief along while it is used."""
    if abs(moved) > NEAR * fit[2]:
        return
    fit[0] += moved * (0.5 - above)
    fit[1] += moved * moved
    if fit[0] <= 0.0:
        return
    scale = fit[1] / (fit[0] * math.sqrt(2.0 * math.pi))
    if pace[1] == 0:
        belief[1][:] *= scale / fit[2]
    fit[2] = scale


@compiled
def run_ladder(finder: Any, belief: Any, model: Any, stream: Any, trail: Any) -> None:
    """Answer a stream; `model` is (room, rho, first), `stream` (coordinates, noisy, chances)."""
    room, rho, first = model
    coordinates, noisy, chances = stream
    answers, thresholds, above = trail
    for place in range(coordinates.shape[0]):
        x = coordinates[place]
        centre, variance = predict(belief, x, room)
        moved = offset(finder, chances[place])
        answers[place] = centre - hidden(belief[0], x, first)
        thresholds[place] = centre + moved
        above[place] = noisy[place] > thresholds[place]
        take(finder, belief, room, (variance, moved, rho), above[place])
