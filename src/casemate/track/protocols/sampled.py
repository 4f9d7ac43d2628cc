"""Sampled rounds: every item is reported with a fresh probability, exact counts come in between.

Source     Ours; it takes the place of source document 001's Algorithms 1 to 3 (Section 3).
Guarantee  With probability 1 - delta the published count is within alpha of the truth at all times,
           for ever, against anybody, even somebody who sees every message
           (docs/derivations/sampled_rounds.md). That rests on `RoundDesign.round` alone: a round
           ends where its own exact failure probability reaches its allowance, and allowances add up
           to at most delta. How p is chosen decides about words only.
Cost       (m + 2k) / ln(1 + alpha m / E) words for each factor e of the count: about 11 sqrt(k) /
           alpha for k <= 1 / alpha^2. Each round costs one walk: 3 ms for k = 1024.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss

from casemate.track.engine import EndRound, Marks, PublishedCount, SiteTally, Wish
from casemate.track.protocols.boundary import (
    chernoff_failure,
    chernoff_slack,
    failure_probability,
    failures,
)
from casemate.track.reporting_rule import Draw, Every, Rule, Sample
from casemate.track.setting import Setting

MAX_EXACT_REPORTS = 1 << 16
"""Rounds of more reports than this are designed with the closed bound: 0.3 s here and growing."""

_SLACK_TOLERANCE = 1e-7  # relative, in the slack or in the failure


@lru_cache(maxsize=1024)
def slack_for(reports: int, slope: float, failure: float) -> float:
    """The least slack with which a round of so many reports fails at most that often, as p -> 0.

    >>> round(slack_for(2318, 0.01, 0.000137), 1)
    170.2
    """
    enough = chernoff_slack(reports, slope, failure) * (1 + 1e-8)
    if reports > MAX_EXACT_REPORTS:
        return enough
    return _least_slack(reports, slope, failure, enough)


def _least_slack(reports: int, slope: float, failure: float, enough: float) -> float:
    """Secants on the logarithm of the failure, inside of a bracket that only shrinks."""

    def excess(slack: float) -> float:
        return math.log(max(failure_probability(reports, slack, slope), 1e-300) / failure)

    low, high = 0.0, enough
    slack, previous = 0.9 * enough, enough
    log_ratio, previous_log_ratio = excess(slack), excess(previous)
    while True:
        low, high = (low, min(high, slack)) if log_ratio <= 0 else (max(low, slack), high)
        if high - low <= _SLACK_TOLERANCE * high or -_SLACK_TOLERANCE < log_ratio <= 0:
            return high
        gain = previous_log_ratio - log_ratio
        fall = gain / (previous - slack) if gain else 0.0
        aim = slack - (log_ratio + _SLACK_TOLERANCE / 2) / fall if fall < 0 else math.inf
        inside = low < aim < high
        slack, previous, previous_log_ratio = aim if inside else (low + high) / 2, slack, log_ratio
        log_ratio = excess(slack)


# Allowance --------------------------------------------------------------------------------------


BEYOND_HORIZON_SHARE = 0.01
"""The share of delta that is kept for counts beyond the horizon."""

_DEBT_SHARE = 1 / 16  # of a round's usual share of what is left, where nothing was earned


@dataclass(frozen=True)
class Allowance:
    """Even over the logarithm of the count up to the horizon, and a little that lasts for ever.

    A round may fail with what is allowed at the count it begins with, less what earlier rounds
    took: in the long run, with what the growth of the count since the round before has earned. So
    all rounds together take at most delta, surely, however many there are and however long it runs.
    """

    delta: float
    advance: float  # what the first round may take
    first: float  # logarithm of the count at which sampling begins
    horizon: float  # logarithm of the count up to which delta is spread

    def until(self, count: float) -> float:
        """What may be used by rounds that begin up to this count; it increases, below delta.

        >>> allowance = Allowance(0.1, advance=0.009, first=1.0, horizon=4.0)
        >>> [round(allowance.until(math.exp(x)), 4) for x in (0.5, 1.0, 2.0, 4.0, 8.0, 600.0)]
        [0.009, 0.009, 0.039, 0.099, 0.0995, 0.1]
        """
        log = math.log(count)
        passed = (min(max(log, self.first), self.horizon) - self.first) / (
            self.horizon - self.first
        )
        beyond = 1 - self.horizon / max(log, self.horizon)
        usual = self.delta * (1 - BEYOND_HORIZON_SHARE) - self.advance
        return self.advance + usual * passed + self.delta * BEYOND_HORIZON_SHARE * beyond

    def for_round(self, count: float, spent: float) -> float:
        """What a round that begins at this count may fail with, after others have spent so much.

        Rounds that are called out of turn run into debt until the count has grown; then they take
        a small part of what is left of delta, which never uses it up.
        """
        remaining_delta = max(self.delta - spent, 0.0)
        in_debt = _DEBT_SHARE * self.advance / self.delta * remaining_delta
        return min(max(self.until(count) - spent, in_debt), remaining_delta)


# The search for cheap rounds ---------------------------------------------------------------------


_MAX_ROUND_REPORTS = 1e9  # reports of a round


@dataclass(frozen=True)
class Trial:
    """A round of small p, and what rounds like it cost up to the horizon."""

    reports: int
    slack: float
    failure: float
    opening: int
    allowance: Allowance
    words: float


def best_reports(sites: int, alpha: float, slack: float) -> int:
    """The reports at which (m + 2k) / ln(1 + alpha m / E) is least, were all lengths safe."""
    scale = slack / alpha
    low, high = 1.0, _MAX_ROUND_REPORTS
    while high > low * 1.001:
        m = math.sqrt(low * high)
        if math.log1p(m / scale) * (scale + m) > m + 2 * sites:
            high = m
        else:
            low = m
    return math.ceil(high)


def trial(
    sites: int, alpha: float, delta: float, horizon: float, *, reports: int, share: float
) -> Trial:
    """A round of so many reports, with this share of the slack that the closed bound takes."""
    slack = share * chernoff_slack(reports, alpha, delta / 100)
    for _ in range(5):
        opening = _opening(sites, alpha, reports, slack)
        first, growth = math.log(opening), math.log1p(alpha * reports / slack)
        last = max(math.log(horizon), first + 1.0)
        failure = delta * (1 - BEYOND_HORIZON_SHARE) * growth / (last - first + growth)
        slack = share * chernoff_slack(reports, alpha, failure)
    words = opening + (last - first) * (reports + 2 * sites) / growth
    return Trial(reports, slack, failure, opening, Allowance(delta, failure, first, last), words)


def _opening(sites: int, alpha: float, reports: int, slack: float) -> int:
    """The count from which a round costs fewer words than it has items: p <= m / (m + 2k)."""
    p = min(reports / (reports + 2 * sites), 0.8)
    return math.ceil(slack * math.sqrt(1 - p) / (alpha * p))


def cheapest(sites: int, alpha: float, delta: float, horizon: float) -> Trial:
    """The round of the fewest words: coarse with the closed bound, then with the exact slack."""
    share = 0.9

    def best(lengths: list[int]) -> Trial:
        trials = (trial(sites, alpha, delta, horizon, reports=m, share=share) for m in lengths)
        return min(trials, key=lambda each: each.words)

    chosen = best(_lengths(2 + sites / 2, 200 + 40 * sites, 25))
    exact = slack_for(chosen.reports, alpha, chosen.failure)
    share = exact / chernoff_slack(chosen.reports, alpha, chosen.failure)
    return best(_lengths(chosen.reports / 1.3, chosen.reports * 1.3, 25))


def _lengths(low: float, high: float, number: int) -> list[int]:
    return sorted({round(m) for m in np.geomspace(low, high, number)})


# The design of rounds ----------------------------------------------------------------------------


MAX_ALPHA = 0.95
"""The largest alpha that rounds are made for: they are right within more as well, and who allows
nearly everything would wait for ever for a design."""

_FLOAT_MARGIN = 1.001  # more than floats lose
_NEGLIGIBLE_FAILURE_SHARE = 1e-3  # of what is allowed is not worth an exact calculation
_MAX_SAMPLING_PROBABILITY = 0.8  # nothing is sampled that would be reported more often than this
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
        return _FLOAT_MARGIN * (1.0 - self.alpha) * math.log(1.0 / allowed) / self.alpha

    def exact_until(self, spent: float) -> int:
        """The count up to which every item is reported."""
        needed = self._one_report(self.opening, spent) / _MAX_SAMPLING_PROBABILITY
        return max(self.opening, math.ceil(needed))

    def least(self, base: int, probability: float, heard: int, reports: int) -> float:
        """The least that the count can be after so many reports of a round that has not failed."""
        return (base + min(heard, reports - 1) / probability) / (1.0 + self.alpha)

    def _slack_at(self, value: float, spent: float) -> float:
        """More where less failure is allowed, by what the closed bound says."""
        allowed = min(max(self.allowance.for_round(value, spent), 1e-200), 0.5)
        needed = chernoff_slack(self.reports, self.alpha, allowed)
        return self.slack * needed / chernoff_slack(self.reports, self.alpha, self.failure)

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
        if plenty <= _NEGLIGIBLE_FAILURE_SHARE * allowed:
            return Round(longest, plenty)  # after a jump of the count a walk would be long
        limit = min(longest, MAX_EXACT_REPORTS)
        chances = failures(limit, slack, self.alpha, probability, stop=allowed)
        m = max(int(np.searchsorted(chances, allowed, side="right")) - 1, 1)
        if m == MAX_EXACT_REPORTS:
            return _extend(Round(m, float(chances[m])), longest, slack, self.alpha, allowed)
        failure = float(chances[m])
        return Round(m, failure if failure < 1.0 else 1.0)


def _extend(exact: Round, longest: int, slack: float, alpha: float, allowed: float) -> Round:
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
    alpha = min(alpha, MAX_ALPHA)
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
def predicted_words(s: Setting) -> float:
    """The words of a run up to the horizon: the opening, then the mean rate over ln of the count.

    >>> round(predicted_words(Setting(1024, 0.01)), -3)
    297000.0
    """
    plan = design(s.sites, s.alpha, s.delta, float(s.items))
    if s.items <= plan.opening:
        return float(s.items)
    span = math.log(s.items / plan.opening)
    places = span * _PLACES**2  # close together where p is not yet small
    rates = [_rate(plan, round(plan.opening * math.exp(place))) for place in places]
    return plan.opening + 2 * s.sites + span * float(2.0 * _PLACES * _WEIGHTS @ rates)


def _rate(plan: RoundDesign, base: int) -> float:
    """Words for each factor e of the count, in a round that begins there."""
    spent = plan.allowance.until(base) - plan.failure
    probability = plan.probability(base, base, spent)
    reports = plan.round(base, probability, spent).reports
    return (reports + 2 * plan.sites) / math.log1p(reports / (probability * base))


# The tracker -------------------------------------------------------------------------------------


class Sampled:
    """The engine of sampled rounds."""

    def __init__(self, design: RoundDesign) -> None:
        self.design, self.tally = design, SiteTally(design.sites)
        self._called: Every | Sample = Every()  # the rule that went out with the last call
        self.spent = 0.0  # of delta, by the rounds so far
        self.begin([0] * design.sites)

    def opening(self) -> Rule:
        """Every item, until sampling is worth it."""
        return Every()

    def summons(self) -> Rule:
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
        value, reported = self.tally.value(), float(self._known)
        confidence = 1.0 - min(max(self.design.delta, self.spent), 1.0) if self.spent else 1.0
        if self._round is None:
            return PublishedCount(value, value, value, confidence)
        lo = max(value / (1.0 + self.design.alpha), min(reported, value))
        hi = max(value / (1.0 - self.design.alpha), reported)
        return PublishedCount(value, lo, hi, confidence)


def make(s: Setting, _: Draw) -> Sampled:
    """An engine for this setting; its server draws nothing."""
    return Sampled(design(s.sites, s.alpha, s.delta, float(s.items)))
