"""Sampled rounds: every item is reported with a fresh probability, exact counts come in between.

Source     Ours, for the problem of source document 001.
Guarantee  With probability 1 - delta the published count is within alpha of the truth at all times,
           for ever, against anybody, even somebody who sees every message: which items are reported
           is decided item by item, apart from everything before
           (docs/derivations/sampled_rounds.md).
Cost       About 11 sqrt(k) / alpha words for each factor e of the count, whatever the loads are.
"""

from collections.abc import Sequence

from casemate.track.engine import EndRound, PublishedCount, Rules, Wish
from casemate.track.instruction import Every, Rule, Sample
from casemate.track.protocols.sampled.design import Round, RoundDesign
from casemate.track.tally import Marks, SiteTally


class Sampled:
    """The engine of sampled rounds."""

    def __init__(self, design: RoundDesign) -> None:
        self.design, self.tally = design, SiteTally(design.sites)
        self._called: Every | Sample = Every()  # the rule that went out with the last call
        self.spent = 0.0  # of delta, by the rounds so far
        self.begin([0] * design.sites)

    def opening(self) -> Rules:
        """Every item, until sampling is worth it."""
        return Every()

    def summons(self) -> Rules:
        """A probability that suits the count as it is published; any would be right."""
        probability = self.design.probability(self.tally.value(), self._least(), self.spent)
        self._called = Every() if probability == 1.0 else Sample(probability)
        return self._called

    def begin(self, counts: Sequence[int]) -> None:
        """Begin at the exact counts, which decide how long the round may be."""
        self._counts, self._known = list(counts), sum(counts)
        self.tally.begin_all(counts, self._called)
        self._round: Round | None = None
        if isinstance(self._called, Every):
            self.tally.marks = Marks(value=self.design.exact_until(self.spent))
            return
        self._round = self.design.round(self._known, self._called.probability, self.spent)
        self.tally.marks = Marks(draws=self._round.reports)
        self.spent += self._round.failure

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Take what the site says in the place of what it said before."""
        self._known += count - self._counts[site]
        self._counts[site] = count
        due = self.tally.note(site, rule, begun, reports, count)
        return self.decide(site) if due else None

    def decide(self, site: int) -> Wish:  # noqa: ARG002 - it is over, whoever ended it
        """The round has its reports."""
        return EndRound()

    def _least(self) -> float:
        t = self.tally
        if self._round is None:
            return max(t.value(), 1.0)
        return self.design.least(t.base, t.probability, t.draws, self._round.reports)

    def estimate(self) -> PublishedCount:
        """The count, and every truth from which it is at most alpha away."""
        value, known = self.tally.value(), float(self._known)
        confidence = 1.0 - min(max(self.design.delta, self.spent), 1.0) if self.spent else 1.0
        if self._round is None:
            return PublishedCount(value, value, value, confidence)
        lo = max(value / (1.0 + self.design.alpha), min(known, value))
        return PublishedCount(value, lo, max(value / (1.0 - self.design.alpha), known), confidence)
