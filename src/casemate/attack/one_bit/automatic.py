"""One learner for noise of any law: it looks for an edge, and uses it while there is one.

Source     Source document 000, section 2 (the protocol); nothing is known of the noise but that its
           median is 0.
Method     It begins as a bank of filters with thresholds at the median, which finds the scale of
           the noise. When the belief is narrow beside that, and again each time the stream has
           doubled, it probes beyond where noise of that height would end if it were uniform. Smooth
           noise shows itself there within a few dozen bits. If nothing comes, the edges of the
           noise are taken into the belief and thresholds go there (`EdgeFilter`). The guard against
           edges that are none leads back to the median, for good.
Guarantee  None that is proved; docs/derivations/one_bit_edge.md has the figures. Hits at the edges
           are watched by its guard: an alarm while all is right has at most the stated probability,
           up to the normal belief.
Cost       O(d²) a query and O(d² log T) memory, for the beliefs to go back to, after the bank has
           settled.
Departure  Edges of laws whose density is much lower there than at the median (a Gaussian law cut at
           two deviations), a single edge (exponential noise) and better thresholds of laws with two
           humps are not found: for these it is the filter with thresholds at the median.
"""

import math

import numpy as np

from casemate.attack.one_bit.edge import EdgeFilter, EdgeLearner
from casemate.attack.one_bit.limit import box_prior
from casemate.attack.one_bit.oracle import AnswerTrail, FilterStage, Floats, orthonormal_basis
from casemate.attack.one_bit.scale_bank import ScaleBank

QUERIES_BETWEEN_LOOKS = 500
"""After so many queries it is asked whether to probe."""

RECENT_QUERIES = 50
"""Queries whose deviations are looked at."""

NARROW_BELIEF_RATIO = 0.12
"""The deviation of the belief, as a part of the bound, below which probing makes sense."""

PROBES, MOST_PROBE_HITS = 300, 2
"""Probes in a row, and how many hits among them still speak for an edge."""

PROBE_BOUND_RATIO = 1.35
"""Where to probe, in units of the bound."""


class EdgeSearch:
    """A bank of scales with thresholds at the median, which probes for an edge now and then."""

    nuisances = 0

    def __init__(self, bank: ScaleBank, alarm: float) -> None:
        self.bank, self._alarm = bank, alarm
        self._queries, self._next_look = 0, QUERIES_BETWEEN_LOOKS
        self._probes_left, self._hits, self._edge_found = 0, 0, False
        self._recent: Floats = np.zeros((0, len(bank.mean)))

    @property
    def mean(self) -> Floats:
        """The best member's mean."""
        return self.bank.mean

    @property
    def root(self) -> Floats:
        """The best member's root of the covariance."""
        return self.bank.root

    @property
    def bound(self) -> float:
        """The half width of uniform noise that has the effective scale found so far."""
        return self.bank.scale * math.sqrt(math.pi / 2)

    def answer(self, x: Floats) -> float:
        """That of the bank."""
        return self.bank.answer(x)

    def threshold(self, x: Floats, draw: float) -> float:
        """At the median, or beyond a supposed edge to probe."""
        if not self._probes_left:
            return self.bank.threshold(x, draw)
        side = 1.0 if draw < 0.5 else -1.0
        return self.bank.answer(x) + side * PROBE_BOUND_RATIO * self.bound

    def learn(self, x: Floats, draw: float, threshold: float, above: bool) -> None:
        """Let the bank learn, or count a probe."""
        if self._probes_left:
            self._count_probes(1, int(above == (draw < 0.5)))
        else:
            self.bank.learn(x, draw, threshold, above)
            self._look(x[None, :])

    def follow(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """Go on until there may be something to decide."""
        if self._probes_left:
            return self._probe(columns, noisy, draws, trail)
        until_look = QUERIES_BETWEEN_LOOKS - self._queries % QUERIES_BETWEEN_LOOKS
        head = columns[:until_look]
        self.bank.follow(head, noisy, draws, trail)
        self._look(head)
        return len(head)

    def _look(self, columns: Floats) -> None:
        """Begin to probe when it is time and the belief about recent queries is narrow."""
        self._queries += len(columns)
        latest = columns[-RECENT_QUERIES:]
        self._recent = np.concatenate([self._recent, latest])[-RECENT_QUERIES:]
        if self._queries % QUERIES_BETWEEN_LOOKS or self._queries < self._next_look:
            return
        widest = np.linalg.norm(self._recent @ self.root, axis=1).max()
        if self.bank.settled and 0.0 < widest < NARROW_BELIEF_RATIO * self.bound:
            self._probes_left, self._hits = PROBES, 0

    def _probe(self, columns: Floats, noisy: Floats, draws: Floats, trail: AnswerTrail) -> int:
        """Probes of a stream, until there are enough of them or too many hits."""
        count = min(len(columns), self._probes_left)
        upper = draws[:count] < 0.5
        answers = columns[:count] @ self.mean
        thresholds = answers + np.where(upper, 1.0, -1.0) * PROBE_BOUND_RATIO * self.bound
        above = noisy[:count] > thresholds
        hits = self._hits + np.cumsum(above == upper)
        count = min(count, 1 + int(np.searchsorted(hits, MOST_PROBE_HITS, side="right")))
        for room, values in zip(trail, (answers, thresholds, above), strict=True):
            room[:count] = values[:count]
        self._count_probes(count, int(hits[count - 1]) - self._hits)
        return count

    def _count_probes(self, count: int, hits: int) -> None:
        """After too many hits look again when the stream has doubled; without, there is an edge."""
        self._queries += count
        self._probes_left -= count
        self._hits += hits
        if self._hits > MOST_PROBE_HITS:
            self._probes_left, self._next_look = 0, 2 * self._queries
        elif self._probes_left == 0:
            self._edge_found = True

    def successor(self) -> FilterStage:
        """Itself, until probes have found an edge: then both edges are learnt with the rest."""
        if not self._edge_found:
            return self
        return EdgeFilter.with_learned_edges(self.mean, self.root, self.bound, self._alarm)


class AutomaticKalman(EdgeLearner):
    """A one-bit filter for secrets in [0, 1]^dimension that looks for an edge of the noise."""

    def __init__(
        self,
        dimension: int,
        basis: Floats | None = None,
        *,
        alarm: float = 1e-3,
        random: np.random.Generator | None = None,
    ) -> None:
        rows = orthonormal_basis(basis, dimension)
        bank = ScaleBank(*box_prior(rows), 2.0 * dimension)
        super().__init__(rows, EdgeSearch(bank, alarm), random)
