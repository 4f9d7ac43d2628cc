"""The filter for noise of an unknown scale: one for each scale it may have, then the fitted one.

Method     Eighteen filters, each assuming half the deviation of the one before, weigh themselves
           by how likely they found each bit. The answer is that of the members with a say. Once
           noise is all that is left to overcome, some thresholds move a little to either side: how
           the noise's cdf rises between them is its slope at 0, and that is all a filter needs to
           know of the noise. When the slope is measured well enough, the member that measured it
           takes the fitted scale and goes on alone, fitting again at each such query, ever more
           rarely. A scale beyond the last of the eighteen is reached by moving them along.
Guarantee  None that is proved; docs/derivations/one_bit_kalman.md has the reasons and the figures.
Cost       O(18 n^2) a query and as much memory until the scale is fitted, O(n^2) a query then.

Compiled steps of a bank of one-bit filters, one for each scale that the noise may have.

A state is (bank, fit, clock). The bank is (means, roots, scales, logs): for each member its belief,
the deviation it assumes, and the logarithm of its weight. The fit is (rises, runs, counts): sums of
offset * (1/2 - above), of offset squared, and the number, over the dithered queries for which this
member chose the offset. The clock is (queries so far, the member that is kept, or -1 while all are
in use). A desk is (rooms, views): rooms as `potter.predict` needs them, one for each member,
and (centres, variances, hidden) of the query at hand.
"""

import math
from typing import Any

import numpy as np

from casemate.attack.one_bit.oracle import AnswerTrail, Floats
from casemate.attack.one_bit.potter import (
    bit_moments,
    hidden,
    potter_update,
    predict,
    widened,
)
from casemate.compiled import compiled

MEMBERS = 18

SLOWED = 0.7
"""How fast variances shrink while there is little noise: faster ones get stuck now and then."""


class ScaleBank:
    """Beliefs under several scales, and their weights."""

    def __init__(
        self,
        mean: Floats,
        root: Floats,
        widest: float,
        rho: float = SLOWED,
        *,
        first: int = 0,
        random: np.random.Generator,
    ) -> None:
        self._means, self._roots = np.tile(mean, (MEMBERS, 1)), np.tile(root, (MEMBERS, 1, 1))
        self._scales: Floats = widest * np.exp2(-np.arange(MEMBERS, dtype=np.float64))
        self._logs: Floats = np.zeros(MEMBERS)
        self._fit = np.zeros(MEMBERS), np.zeros(MEMBERS), np.zeros(MEMBERS)
        self._clock = np.array([0, -1])
        self._rho, self._first, self._random = rho, first, random
        self._make_room()

    def _make_room(self) -> None:
        rooms = np.empty_like(self._means), np.empty_like(self._means)
        self._desk = rooms, (np.empty(MEMBERS), np.empty(MEMBERS), np.empty(MEMBERS))

    @property
    def _state(self) -> tuple[object, object, object]:
        return (self._means, self._roots, self._scales, self._logs), self._fit, self._clock

    @property
    def _best(self) -> int:
        return int(np.argmax(self._logs)) if self._clock[1] < 0 else int(self._clock[1])

    @property
    def settled(self) -> bool:
        """Whether the scale has been fitted."""
        return bool(self._clock[1] >= 0)

    @property
    def scale(self) -> float:
        """The deviation of the noise, as far as it is known."""
        return float(self._scales[self._best])

    @property
    def mean(self) -> Floats:
        """The best member's mean."""
        mean: Floats = self._means[self._best]
        return mean

    @property
    def root(self) -> Floats:
        """The best member's root of the covariance."""
        root: Floats = self._roots[self._best]
        return root

    def answer(self, x: Floats) -> float:
        """What the members with a say predict on average, without the noise's own shift."""
        centre, aside = self._blend(x)
        return centre - aside

    def threshold(self, x: Floats) -> float:
        """The prediction, moved a little once in a while."""
        centre, _ = self._blend(x)
        chance = self._random.random()
        return centre + float(offset(self._state, self._desk, chance))

    def learn(self, x: Floats, threshold: float, above: bool) -> None:
        """Let every member learn, and weigh them."""
        centre, _ = self._blend(x)
        take(self._state, self._desk, self._rho, (threshold, threshold - centre), above)

    def _blend(self, x: Floats) -> tuple[float, float]:
        look(self._state, self._desk, x, self._first)
        centre, aside = blend(self._state, self._desk)
        return float(centre), float(aside)

    def widen(self, mean: Floats, root: Floats) -> None:
        """Take in columns that have come since, as the prior has them."""
        self._means, self._roots = widened(self._means, self._roots, mean, root)
        self._make_room()

    def chances(self, count: int) -> Floats:
        """Even numbers, one for each query: they move thresholds."""
        return self._random.random(count)

    @property
    def slope(self) -> tuple[float, float]:
        """What the best member has measured of the noise's cdf at 0: rise and run."""
        return float(self._fit[0][self._best]), float(self._fit[1][self._best])

    def follow(self, columns: Floats, noisy: Floats) -> AnswerTrail:
        """A whole stream, compiled."""
        trail = AnswerTrail.empty(len(columns))
        self.run((columns, noisy, self.chances(len(columns))), trail, halt=False)
        return trail

    def run(self, stream: tuple[Floats, Floats, Floats], trail: AnswerTrail, *, halt: bool) -> int:
        """Answer a stream, or its head until the scale is fitted; how many were answered."""
        model = self._rho, self._first, halt
        return int(run_bank(self._state, self._desk, model, stream, tuple(trail)))


# Kalman bank kernel -----------------------------------------------------------------------------


DROPPED = 0.02  # members with less than this part of the best one's weight have no say
SHARED = 0.1  # of all weight over the number of queries, spread evenly again at each
DITHER = 0.3  # deviations between the prediction and a dithered threshold
MOST_DITHERED = 0.25  # part of the queries, as long as few have come
DITHERED = 5.0  # then this over the root of their number
FIRST_FIT = 200  # dithered queries before a scale is fitted
SURE = 2.0  # a fitted slope is this many times the root of the sum of squared offsets: 4 deviations
CLOSE = 2.0  # the fitted scale is within this factor of the member that measured it
ALL = -1


@compiled
def look(state: Any, desk: Any, x: Any, first: Any) -> None:
    """Let every member in use predict; the first columns are hidden from answers."""
    (means, roots, _, _), _, clock = state
    rooms, views = desk
    for m in range(means.shape[0]):
        if clock[1] == ALL or clock[1] == m:
            room = (rooms[0][m], rooms[1][m])
            views[0][m], views[1][m] = predict((means[m], roots[m]), x, room)
            views[2][m] = hidden(means[m], x, first)


@compiled
def leader(logs: Any, clock: Any) -> Any:
    """The member with the most weight, or the one that is kept."""
    if clock[1] != ALL:
        return clock[1]
    best = 0
    for m in range(logs.shape[0]):
        if logs[m] > logs[best]:
            best = m
    return best


@compiled
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


@compiled
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


@compiled
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
            potter_update((means[m], roots[m]), room, (variances[m], noise, rho), (step, shrink))
    if clock[1] == ALL:
        share(logs, SHARED / clock[0])
        slide(bank, fit, variances)
    if moved != 0.0:
        fit[0][best] += moved * (0.5 - above)
        fit[1][best] += moved * moved
        fit[2][best] += 1.0
        refit(bank, fit, clock, best)


@compiled
def share(logs: Any, part: Any) -> None:
    """Make weights add up to 1, a part of it spread evenly: nobody is ever lost for good."""
    top, total = logs.max(), 0.0
    for m in range(logs.shape[0]):
        logs[m] = math.exp(logs[m] - top)
        total += logs[m]
    for m in range(logs.shape[0]):
        logs[m] = math.log((1.0 - part) * logs[m] / total + part / logs.shape[0])


@compiled
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


@compiled
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


@compiled
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
