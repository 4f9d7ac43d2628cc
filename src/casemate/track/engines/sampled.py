"""Sampled rounds: every item is reported with a fresh probability, exact counts come in between.

Source     Ours, for the problem of source document 001.
Guarantee  With probability 1 - delta the published count is within alpha of the truth at all times,
           for ever, against anybody, even somebody who sees every message: which items are reported
           is decided item by item, apart from everything before
           (docs/derivations/sampled_rounds.md).
Cost       About 11 sqrt(k) / alpha words for each factor e of the count, whatever the loads are.
"""

from collections.abc import Sequence

from casemate.track.engine import EndRound, Estimate, Rules, Wish
from casemate.track.instruction import Every, Rule, Sample
from casemate.track.sampled.design import Round, design
from casemate.track.setting import Setting


class Sampled:
    """The engine of sampled rounds.

    With `monotone` the published count never falls: the largest so far is as right as the newest,
    since the truth does not fall either.
    """

    def __init__(self, setting: Setting, monotone: bool = False) -> None:
        self.design = design(setting.sites, setting.alpha, setting.delta, float(setting.items))
        self._monotone, self._largest = monotone, 0.0
        self._called = 1.0  # the probability that went out with the last call
        self.spent = 0.0  # of delta, by the rounds so far
        self._start([0] * setting.sites, 1.0)

    def opening(self) -> Rules:
        """Every item, until sampling is worth it."""
        return Every()

    def summons(self) -> Rules:
        """A probability that suits the count as it is published; any would be right."""
        self._called = self.design.probability(self._value(), self._least(), self.spent)
        return Every() if self._called == 1.0 else Sample(self._called)

    def begin(self, counts: Sequence[int]) -> None:
        """Begin at the exact counts, which decide how long the round may be."""
        self._start(list(counts), self._called)

    def _start(self, counts: list[int], probability: float) -> None:
        self._begun, self._counts, self._reports = counts, list(counts), [0] * len(counts)
        self._base = self._known = sum(counts)
        self._heard, self._probability = 0, probability
        self._round: Round | None = None
        if probability < 1.0:
            self._round = self.design.round(self._base, probability, self.spent)
            self.spent += self._round.failure

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:  # noqa: ARG002 - all sites follow one rule
        """Take what the site says in the place of what it said before."""
        self._base += begun - self._begun[site]
        self._heard += reports - self._reports[site]
        self._known += count - self._counts[site]
        self._begun[site], self._reports[site], self._counts[site] = begun, reports, count
        return EndRound() if self._is_over() else None

    def _is_over(self) -> bool:
        if self._round is None:
            return self._known >= self.design.exact_until(self.spent)
        return self._heard >= self._round.reports

    def _value(self) -> float:
        """The count at the beginning of the round and 1 / p for each report since."""
        if self._round is None:
            return float(self._known)
        return self._base + self._heard / self._probability

    def _least(self) -> float:
        if self._round is None:
            return float(max(self._known, 1))
        return self.design.least(self._base, self._probability, self._heard, self._round.reports)

    def estimate(self) -> Estimate:
        """The count, and every truth from which it is at most alpha away."""
        value, known = self._value(), float(self._known)
        if self._monotone:
            value = self._largest = max(value, self._largest)
        confidence = 1.0 - min(max(self.design.delta, self.spent), 1.0) if self.spent else 1.0
        if self._round is None:
            return Estimate(value, value, value, confidence)
        lo = max(value / (1.0 + self.design.alpha), min(known, value))
        return Estimate(value, lo, max(value / (1.0 - self.design.alpha), known), confidence)
