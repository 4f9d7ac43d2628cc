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
"""

import numpy as np

from casemate.solve.one_bit.automatic_edges import TwoEdges, bound_of
from casemate.solve.one_bit.edge import WIDER, prior
from casemate.solve.one_bit.edge_reading import SEARCH_RHO
from casemate.solve.one_bit.kalman_bank import ScaleBank
from casemate.solve.one_bit.protocol import Floats, Trail

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
        self.basis = np.eye(dimension) if basis is None else np.ascontiguousarray(basis, float)
        if self.basis.ndim != 2 or self.basis.shape[1] != dimension:
            raise ValueError(
                f"need a basis of vectors of length {dimension}, got shape {self.basis.shape}"
            )
        source = np.random.default_rng() if random is None else random
        self._random, self._aside, later = (
            np.random.default_rng(source.integers(2**63)) for _ in range(3)
        )
        self.bank = self._bank(*prior(self.basis), 2.0 * dimension, later)
        self.edges: TwoEdges | None = None
        self._alarm = alarm
        self._seen, self._next_look, self._probes, self._hits = 0, LOOK_EVERY, 0, 0
        self._recent: Floats = np.zeros((0, len(self.basis)))
        self._draw, self._given_up = 0.5, False

    @staticmethod
    def _bank(mean: Floats, root: Floats, widest: float, random: np.random.Generator) -> ScaleBank:
        return ScaleBank(mean, root, widest, SEARCH_RHO, first=0, random=random)

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
        self.bank = self._bank(*self.edges.before(), widest, self._aside)
        self.edges, self._given_up = None, True

    def follow(self, coordinates: Floats, noisy: Floats) -> Trail:
        """Answer a whole stream, compiled: queries in the basis, and their noisy answers.

        Each noisy answer is compared with its threshold and used for nothing else.
        """
        held, count = np.ascontiguousarray(coordinates, float), len(coordinates)
        trail = Trail(np.empty(count), np.empty(count), np.empty(count, np.bool_))
        done = 0
        while done < count:
            rest = Trail(trail.answers[done:], trail.thresholds[done:], trail.above[done:])
            done += self._advance(held[done:], noisy[done:], rest)
        return trail

    def _advance(self, coordinates: Floats, noisy: Floats, trail: Trail) -> int:
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
        trail.answers[:count], trail.thresholds[:count] = said.answers, said.thresholds
        trail.above[:count] = said.above
        self._seen += count
        self._note(coordinates[:count])
        self._look()
        return count

    def _until_look(self) -> int:
        return 2**62 if self._given_up else LOOK_EVERY - self._seen % LOOK_EVERY

    def _probe(self, x: Floats, noisy: float, trail: Trail) -> None:
        """One probe of a stream."""
        self._draw, self._seen = self._random.random(), self._seen + 1
        trail.answers[0] = self.bank.mean @ x
        trail.thresholds[0] = trail.answers[0] + self._probe_offset(self._draw)
        trail.above[0] = noisy > trail.thresholds[0]
        self._probed(bool(trail.above[0]) == (self._draw < 0.5))
