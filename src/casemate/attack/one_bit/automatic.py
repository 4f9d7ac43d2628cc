"""One learner for noise of any law: it looks for an edge, and uses it while there is one.

Source     Source document 000, section 2 (the protocol); nothing is known of the noise but that its
           median is 0.
Method     It begins as a bank of filters with thresholds at the median, which finds the scale of
           the noise. When the belief is narrow beside that, and again each time the stream has
           doubled, it probes beyond where noise of that height would end if it were even. Smooth
           noise shows itself there within a few dozen bits. If nothing comes, the ends of the noise
           are taken into the belief and thresholds go there (`automatic_edges`). The guard against
           ends that are none leads back to the median, for good.
Guarantee  None that is proved; docs/derivations/one_bit_edge.md has the figures.
Cost       O(d²) a query and O(d² log T) memory after the bank has settled.
Departure  Ends of laws whose density is much lower there than at the median (a Gaussian law cut at
           two deviations), a single end (exponential noise) and better thresholds of laws with two
           humps are not found: for these it is the filter with thresholds at the median.

What a bit is about when the ends of the noise are unknown: one end or none, and the query.

A filter for noise that ends suddenly on both sides, where is not known: it learns that too.

Method     The belief is about w and about both ends: how far each lies beyond an assumed bound. A
           bit near the upper end tells of w . q plus the one, near the lower end of w . q minus
           the other. Some thresholds stand at the median, which nothing but w . q decides: noise
           need not be symmetric, and queries may not tell a constant from the ends.
Guarantee  Hits are watched by the guard of `edge_guard`: an alarm while all is right has at most
           the stated probability, up to the normal belief.
Cost       O(d²) a query, O(d² log T) memory for the beliefs to go back to.
"""

import math
from typing import Any

import numpy as np

from casemate.attack.one_bit.edge import NO_ALARM, WIDER, Guard, take_bit
from casemate.attack.one_bit.edge_table import bit_reading, uniform_moments, uniform_offset
from casemate.attack.one_bit.kalman_bank import ScaleBank
from casemate.attack.one_bit.limit import box_prior
from casemate.attack.one_bit.oracle import AnswerTrail, Floats, checked_basis
from casemate.attack.one_bit.potter import empty_room, predict
from casemate.compiled import compiled

ENDS = 2
"""Columns before those of the query: the upper end and, negative, the lower."""

ENDS_RHO = 0.85
"""The part of the shrinking at an end that is believed: less than where the end is known."""

MEDIAN_SHARE = 0.15
"""The part of the thresholds that stand at the median."""

UNSURE = 0.3
"""The deviation of each end from the assumed bound, as a part of it."""

WIDENED = 1.3
"""By how much the deviations of the belief are stretched when the ends come in."""


class TwoEdges:
    """A belief about w and both ends of the noise."""

    def __init__(self, mean: Floats, root: Floats, bound: float, alarm: float) -> None:
        size = len(mean) + ENDS
        self.bound, self.alarmed = bound, False
        self.mean, self.root = np.zeros(size), np.zeros((size, size))
        self.mean[ENDS:], self.root[ENDS:, ENDS:] = mean, WIDENED * root
        self.root[0, 0] = self.root[1, 1] = UNSURE * bound
        self.guard = Guard(alarm, self.mean, self.root)
        self._state = (self.mean, self.root), empty_room(self.mean)

    @property
    def ends(self) -> tuple[float, float]:
        """Where the noise is thought to end, below and above."""
        return -self.bound - float(self.mean[1]), self.bound + float(self.mean[0])

    def answer(self, x: Floats) -> float:
        """The mean of the belief about w . q."""
        return float(self.mean[ENDS:] @ x)

    def threshold(self, x: Floats, draw: float) -> float:
        """Near an end that the draw chooses, or at the median."""
        centre, variance, median = look(self._state, np.empty_like(self.mean), x, draw)
        return float(centre + end_offset(self.bound, math.sqrt(variance), draw, median))

    def learn(self, x: Floats, draw: float, threshold: float, above: bool) -> None:
        """Read a bit at a threshold for which this draw was used."""
        centre, variance, median = look(self._state, np.empty_like(self.mean), x, draw)
        if variance > 0:
            reading = end_reading(self.bound, threshold - centre, math.sqrt(variance), median)
            self.alarmed = take_bit(self._state, self.guard.state, variance, reading, above)

    def before(self) -> tuple[Floats, Floats]:
        """The belief about w alone, from before the ends began to fail: mean and root."""
        mean, root = self.guard.before()
        triangle = np.linalg.qr(root[ENDS:].T).R
        return mean[ENDS:].copy(), np.ascontiguousarray(triangle.T, np.float64)

    def follow(self, coordinates: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """A whole stream, compiled; how many queries were answered before the alarm."""
        stream = coordinates, noisy, draws
        reached = run_edges(self._state, self.bound, self.guard.state, stream, tuple(trail))
        self.alarmed = reached != NO_ALARM
        return int(reached) if self.alarmed else len(coordinates)


def bound_of(scale: float) -> float:
    """The half width of uniform noise that has this effective scale."""
    return scale * math.sqrt(math.pi / 2)


# Automatic --------------------------------------------------------------------------------------


LOOK_EVERY = 500
"""Queries between two looks at whether to probe."""

RECENT = 50
"""Queries whose deviations are looked at."""

NARROW = 0.12
"""The deviation of the belief, as a part of the bound, below which probing makes sense."""

PROBES, MOST_HITS = 300, 2
"""Probes in a row, and how many hits among them still speak for an end."""

BEYOND = 1.35
"""Where to probe, in units of the bound."""


class AutomaticKalman:
    """A one-bit filter for secrets in [0, 1]^dimension that looks for an edge of the noise."""

    def __init__(
        self,
        dimension: int,
        basis: Floats | None = None,
        *,
        alarm: float = 1e-3,
        random: np.random.Generator | None = None,
    ) -> None:
        self.basis = checked_basis(basis, dimension)
        source = np.random.default_rng() if random is None else random
        self._random, self._aside, later = (
            np.random.default_rng(source.integers(2**63)) for _ in range(3)
        )
        self.bank = ScaleBank(*box_prior(self.basis), 2.0 * dimension, random=later)
        self.edges: TwoEdges | None = None
        self._alarm = alarm
        self._seen, self._next_look, self._probes, self._hits = 0, LOOK_EVERY, 0, 0
        self._recent: Floats = np.zeros((0, len(self.basis)))
        self._draw, self._given_up = 0.5, False

    @property
    def at_edge(self) -> bool:
        """Whether thresholds stand at the ends of the noise."""
        return self.edges is not None and not self.edges.alarmed

    def answer(self, q: Floats) -> float:
        """The mean of the belief about w . q."""
        x = self.basis @ q
        if self.edges is not None:
            return self.edges.answer(x)
        return float(self.bank.mean @ x) if self._probes else self.bank.answer(x)

    def threshold(self, q: Floats) -> float:
        """At the median, beyond a supposed end to probe, or at an end."""
        x = self.basis @ q
        if self.edges is None and not self._probes:
            return self.bank.threshold(x)
        self._draw = self._random.random()
        if self.edges is not None:
            return self.edges.threshold(x, self._draw)
        return float(self.bank.mean @ x) + self._probe_offset(self._draw)

    def _probe_offset(self, draw: float) -> float:
        return (BEYOND if draw < 0.5 else -BEYOND) * bound_of(self.bank.scale)

    def learn(self, q: Floats, threshold: float, above: bool) -> None:
        """Take note of a bit about the last threshold."""
        x = self.basis @ q
        self._seen += 1
        if self.edges is not None:
            self.edges.learn(x, self._draw, threshold, above)
            self._after_edges()
        elif self._probes:
            self._probed(above == (self._draw < 0.5))
        else:
            self.bank.learn(x, threshold, above)
            self._note(x[None, :])
            self._look()

    def _note(self, coordinates: Floats) -> None:
        """Remember the last queries: how narrow the belief is depends on what is asked."""
        if not self._given_up:
            self._recent = np.concatenate([self._recent, coordinates[-RECENT:]])[-RECENT:]

    def _look(self) -> None:
        """Begin to probe when it is time and the belief is narrow."""
        if self._seen % LOOK_EVERY or self._seen < self._next_look or self._given_up:
            return
        widest = np.linalg.norm(self._recent @ self.bank.root, axis=1).max()
        if self.bank.settled and 0.0 < widest < NARROW * bound_of(self.bank.scale):
            self._probes, self._hits = PROBES, 0

    def _probed(self, hit: bool) -> None:
        """Count a probe; decide when there were enough."""
        self._probes -= 1
        self._hits += hit
        if self._hits > MOST_HITS:
            self._probes, self._next_look = 0, 2 * self._seen
        elif self._probes == 0:
            bank = self.bank
            self.edges = TwoEdges(bank.mean, bank.root, bound_of(bank.scale), self._alarm)

    def _after_edges(self) -> None:
        """After an alarm go back to the median, with what was known before."""
        if self.edges is None or not self.edges.alarmed:
            return
        widest = WIDER * self.bank.scale
        self.bank = ScaleBank(*self.edges.before(), widest, random=self._aside)
        self.edges, self._given_up = None, True

    def follow(self, coordinates: Floats, noisy: Floats) -> AnswerTrail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        held, done = np.ascontiguousarray(coordinates, float), 0
        trail = AnswerTrail.empty(len(held))
        while done < len(held):
            done += self._advance(held[done:], noisy[done:], trail.after(done))
        return trail

    def _advance(self, coordinates: Floats, noisy: Floats, trail: AnswerTrail) -> int:
        """Go on for as long as nothing has to be decided; how many queries were answered."""
        if self.edges is not None:
            draws = self._random.random(len(coordinates))
            reached = self.edges.follow(coordinates, noisy, draws, trail)
            self._seen += reached
            self._after_edges()
            return reached
        if self._probes:
            self._probe(coordinates[0], float(noisy[0]), trail)
            return 1
        count = min(len(coordinates), self._until_look())
        said = self.bank.follow(coordinates[:count], noisy[:count])
        for room, each in zip(trail, said, strict=True):
            room[:count] = each
        self._seen += count
        self._note(coordinates[:count])
        self._look()
        return count

    def _until_look(self) -> int:
        return 2**62 if self._given_up else LOOK_EVERY - self._seen % LOOK_EVERY

    def _probe(self, x: Floats, noisy: float, trail: AnswerTrail) -> None:
        """One probe of a stream."""
        self._draw, self._seen = self._random.random(), self._seen + 1
        trail.answers[0] = self.bank.mean @ x
        trail.thresholds[0] = trail.answers[0] + self._probe_offset(self._draw)
        trail.above[0] = noisy > trail.thresholds[0]
        self._probed(bool(trail.above[0]) == (self._draw < 0.5))


# Automatic kernel -------------------------------------------------------------------------------


@compiled
def look(state: Any, columns: Any, x: Any, draw: Any) -> Any:
    """Mean and variance of what a bit is about, and whether it is asked at the median.

    The draw takes one end, or none: then w . q alone, by either end of the interval [0, 1).
    """
    median, upper = min(draw, 1.0 - draw) < MEDIAN_SHARE / 2.0, draw < 0.5
    columns[0] = 1.0 if upper and not median else 0.0
    columns[1] = 0.0 if upper or median else -1.0
    columns[ENDS:] = x
    centre, variance = predict(state[0], columns, state[1])
    return centre, variance, median


@compiled
def end_offset(bound: Any, deviation: Any, draw: Any, median: Any) -> Any:
    """How far from the mean to ask."""
    return 0.0 if median else uniform_offset(bound, deviation, draw < 0.5)


@compiled
def end_reading(bound: Any, offset: Any, deviation: Any, median: Any) -> Any:
    """What a bit says; those at the median are no hits."""
    part = 1.0 if median else ENDS_RHO
    return bit_reading(uniform_moments(bound, offset, deviation), part, not median)


@compiled
def run_edges(state: Any, bound: Any, watch: Any, stream: Any, trail: Any) -> Any:
    """Answer a stream until the alarm; arguments as in `edge.run`, with a bound as rule."""
    mean = state[0][0]
    coordinates, noisy, draws = stream
    answers, thresholds, bits = trail
    columns = np.empty(mean.shape[0])
    for place in range(coordinates.shape[0]):
        centre, variance, median = look(state, columns, coordinates[place], draws[place])
        answers[place] = centre - mean[0] * columns[0] - mean[1] * columns[1]
        deviation = math.sqrt(variance)
        thresholds[place] = centre + end_offset(bound, deviation, draws[place], median)
        bits[place] = noisy[place] > thresholds[place]
        if not deviation > 0.0:
            continue
        reading = end_reading(bound, thresholds[place] - centre, deviation, median)
        if take_bit(state, watch, variance, reading, bits[place]):
            return place + 1
    return NO_ALARM
