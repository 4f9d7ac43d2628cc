"""The design of sampled rounds: with what probability to sample, and when to end a round.

Source     Ours; it takes the place of source document 001's Algorithms 1 to 3 (Section 3).
Guarantee  With probability 1 - delta the published count is within alpha of the truth at all times,
           for ever, against anybody, even somebody who sees every message
           (docs/derivations/sampled_rounds.md). That rests on `RoundDesign.round` alone: a round
           ends where its own exact failure probability reaches its allowance, and allowances add up
           to at most delta. How p is chosen decides about words only.
Cost       (m + 2k) / ln(1 + alpha m / E) words for each factor e of the count: about 11 sqrt(k) /
           alpha for k <= 1 / alpha^2. Each round costs one walk: 2 ms for k = 1024.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss

from casemate.errors import Misconfigured
from casemate.track.sampled.allowance import Allowance
from casemate.track.sampled.boundary import failures
from casemate.track.sampled.closed_forms import chernoff_failure, chernoff_slack
from casemate.track.sampled.search import best_reports, cheapest
from casemate.track.sampled.slack import LONGEST_EXACT, slack_for

WIDEST = 0.95
"""The largest alpha that rounds are made for: they are right within more as well, and who allows
nearly everything would wait for ever for a design."""

_HAIR = 1.001  # more than floats lose
_PLENTY = 1e-3  # of what is allowed is not worth an exact calculation
_OFTEN = 0.8  # nothing is sampled that would be reported more often than this
_PLACES, _WEIGHTS = (leggauss(6) + np.array([[1.0], [0.0]])) / 2.0  # of Gauss, on [0, 1]


@dataclass(frozen=True)
class Round:
    """How many reports end a round, and what that takes of delta."""

    reports: int
    failure: float  # the probability that the count is off at any time before that


@dataclass(frozen=True)
class RoundDesign:
    """Rounds for so many sites; `reports`, `slack`, `failure`, `growth` are those of small p."""

    sites: int
    alpha: float
    delta: float
    reports: int  # m
    slack: float  # E = p alpha N0
    failure: float  # of one round
    growth: float  # of the count in one round, relative
    opening: int  # every item is reported at least until the count is this
    allowance: Allowance

    def probability(self, value: float, least: float, spent: float) -> float:
        """With what probability to sample in a round that begins at about `value`, 1 for exactly.

        The walk's variance is 1 - p of a Poisson process's, and so p^2 = c^2 (1 - p) keeps rounds
        about as long as those of small p, where p = c. If the count may be as low as `least`, even
        there a round of one report is safe.
        """
        if value < self.opening:
            return 1.0
        c = self._slack_at(value, spent) / (self.alpha * value)
        p = (math.sqrt(c * c + 4.0) - c) * c / 2.0
        least = max(least, 1.0)
        return min(max(p, self._one_report(least, spent) / least), 1.0)

    def _one_report(self, least: float, spent: float) -> float:
        """How often an item must be reported, times the count, for one report to come in time."""
        allowed = max(self.allowance.for_round(least, spent), 1e-200)
        return _HAIR * (1.0 - self.alpha) * math.log(1.0 / allowed) / self.alpha

    def exact_until(self, spent: float) -> int:
        """The count up to which every item is reported."""
        needed = self._one_report(self.opening, spent) / _OFTEN
        return max(self.opening, math.ceil(needed))

    def least(self, base: int, probability: float, heard: int, reports: int) -> float:
        """The least that the count can be after so many reports of a round that has not failed."""
        if probability == 1.0:
            return float(base + heard)
        return (base + min(heard, reports - 1) / probability) / (1.0 + self.alpha)

    def _slack_at(self, value: float, spent: float) -> float:
        """More where less failure is allowed, by what the closed bound says."""
        allowed = min(max(self.allowance.for_round(value, spent), 1e-200), 0.5)
        more = chernoff_slack(self.reports, self.alpha, allowed)
        return self.slack * more / chernoff_slack(self.reports, self.alpha, self.failure)

    def round(self, base: int, probability: float, spent: float) -> Round:
        """The longest useful round from this exact count that fails seldom enough.

        Where not even one report is safe, which takes a round before that has failed, it is a round
        of one report, and what it fails with tells.
        """
        base = max(base, 1)
        slack = probability * self.alpha * base
        allowed = self.allowance.for_round(base, spent)
        longest = best_reports(self.sites, self.alpha, slack)
        plenty = chernoff_failure(longest, slack, self.alpha)
        if plenty <= _PLENTY * allowed:  # as after a jump of the count, where a walk would be long
            return Round(longest, plenty)
        limit = min(longest, LONGEST_EXACT)
        chances = failures(limit, slack, self.alpha, probability, stop=allowed)
        m = max(int(np.searchsorted(chances, allowed, side="right")) - 1, 1)
        if m == LONGEST_EXACT:
            return _longer(Round(m, float(chances[m])), longest, slack, self.alpha, allowed)
        failure = float(chances[m])
        return Round(m, failure if failure < 1.0 else 1.0)


def _longer(exact: Round, longest: int, slack: float, alpha: float, allowed: float) -> Round:
    """A round too long to compute exactly, if the closed bound proves one."""
    low, high = exact.reports, longest + 1
    while high - low > 1:
        m = (low + high) // 2
        low, high = (m, high) if chernoff_failure(m, slack, alpha) <= allowed else (low, m)
    if low == exact.reports:
        return exact
    return Round(low, chernoff_failure(low, slack, alpha))


@lru_cache(maxsize=256)
def design(sites: int, alpha: float, delta: float, horizon: float) -> RoundDesign:
    """The rounds that need the fewest words up to the horizon; the guarantee lasts for ever.

    >>> plan = design(1024, 0.01, 0.01, 1e8)
    >>> plan.reports, round(plan.slack), round(plan.growth, 2)
    (2490, 174, 0.14)
    """
    _check(sites, alpha, delta, horizon)
    alpha = min(alpha, WIDEST)
    best = cheapest(sites, alpha, delta, horizon)
    slack = slack_for(best.reports, alpha, best.failure)
    return RoundDesign(
        sites,
        alpha,
        delta,
        best.reports,
        slack,
        best.failure,
        alpha * best.reports / slack,
        best.opening,
        best.allowance,
    )


@lru_cache(maxsize=256)
def predicted_words(sites: int, alpha: float, delta: float, horizon: float) -> float:
    """The words of a run up to the horizon: the opening, then the mean rate over ln of the count.

    >>> round(predicted_words(1024, 0.01, 0.01, 1e8), -3)
    297000.0
    """
    plan = design(sites, alpha, delta, horizon)
    if horizon <= plan.opening:
        return float(horizon)
    span = math.log(horizon / plan.opening)
    places = span * _PLACES**2  # close together where p is not yet small
    rates = [_rate(plan, round(plan.opening * math.exp(place))) for place in places]
    return plan.opening + 2 * sites + span * float(2.0 * _PLACES * _WEIGHTS @ rates)


def _rate(plan: RoundDesign, base: int) -> float:
    """Words for each factor e of the count, in a round that begins there."""
    spent = plan.allowance.until(base) - plan.failure
    probability = plan.probability(base, base, spent)
    reports = plan.round(base, probability, spent).reports
    return (reports + 2 * plan.sites) / math.log1p(reports / (probability * base))


def _check(sites: int, alpha: float, delta: float, horizon: float) -> None:
    if sites < 1 or not horizon >= 1:
        raise Misconfigured(f"need sites >= 1 and horizon >= 1, got {sites} and {horizon}")
    if not 0 < alpha < 1 or not 0 < delta < 1:
        raise Misconfigured(
            f"alpha and delta must lie between 0 and 1, exclusive, got {alpha} and {delta}"
        )
