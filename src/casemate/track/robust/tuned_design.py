"""The numbers of the tuned robust tracker: chosen for few words, and proved.

Source     Source document 001, Algorithms 1 and 2 and Theorem 1, with constants of our own.
Guarantee  In a round with `budget` = alpha N0 / (block size), the count is ever off by more than
           alpha with probability at most `failure`, against everybody who sees only what is
           published. The proof is in docs/derivations/robust_tuned.md.
Cost       Some milliseconds for a design; they are kept.
Departure  One source of noise (the length of a phase) instead of two; what is published is nominal
           and centred; the site that gives itself away by ending a phase begins its block again;
           a posterior is tilted by tanh(1/4b) and not e^(1/b) - 1; and failure is counted at the
           first bad time, where the spread of the sites' coins hardly costs anything.
           `test_the_odds_of_a_secret_report_stay_within_the_ratio` goes through all the coins.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from casemate.track.robust.tuned_search import around, search, whole
from casemate.track.robust.tuned_search_kernel import cheapest_silent, rate
from casemate.track.robust.tuned_walk import Lengths, crossing

_SHARE_STEP = math.sqrt(2.0)
_EARLY_ROUNDS = 32  # rounds that share most of delta; all later ones have the rest
SPREAD = 0.3  # of the coins of k sites, in square roots of k; between .25 and .4 matters little
SEEN = -math.expm1(-2 * SPREAD**2)  # 1 - eta: what they leave of the failure to the walk
_PLENTY = 16.0  # largest budgets; arrays would become too long
_NEXT_TO_NOTHING = 1e-3  # a budget that no round is right with
_BUDGET_STEP = 1.005  # budgets are rounded down to powers of this, so that designs can be kept
_STRICTER = tuple(3 * 0.7**i for i in range(40))  # until the exact calculation agrees


@dataclass(frozen=True)
class TunedDesign:
    """One round: how its phases end, and what may go wrong."""

    sites: int
    alpha: float
    budget: float  # E: what alpha allows at the beginning of the round, in reports
    threshold: int  # T
    phases: int  # L
    noise_scale: float  # b; 0 is no noise
    spread: float  # s: what the sites' coins may differ from their means, in reports
    failure: float = 0.0  # of this round, proved

    @property
    def lengths(self) -> Lengths:
        """The law of the lengths of phases."""
        ratio = math.exp(-1 / self.noise_scale) if self.noise_scale else 0.0
        return Lengths(self.threshold, ratio)

    @property
    def epsilon(self) -> float:
        """How much a report weighs in the likelihood of what is published."""
        return 1 / self.noise_scale if self.noise_scale else math.inf

    @property
    def slack(self) -> float:
        """How far the reports of open blocks may be from their mean: tilt and spread."""
        return min(float(self.sites), self.sites * math.tanh(self.epsilon / 4) + self.spread)

    @property
    def room(self) -> float:
        """What is left for the sum of the lengths at the beginning."""
        return self.budget - self.slack - (1 - self.alpha) * (self.lengths.mean - 1) / 2

    @property
    def slope(self) -> float:
        """What is added to that by each phase, in which the count grows."""
        return self.alpha * (self.lengths.mean - 1)

    @property
    def growth(self) -> float:
        """By what factor the count grows in a round, on average."""
        return 1 + self.alpha * self.phases * (self.lengths.mean - 0.5) / self.budget

    @property
    def words(self) -> float:
        """Of a round, on average."""
        return self.phases * self.lengths.mean + 2 * (self.phases - 1) + 2 * self.sites

    @property
    def rate(self) -> float:
        """Words for each factor e of the count."""
        return float(rate(self.sites, self.alpha, self.budget, self.lengths.mean, self.phases))

    def proved_failure(self) -> float:
        """The probability of ever being off by more than alpha in this round, at most."""
        surely = self.slack >= self.sites
        unseen = 0.0 if surely else math.exp(-2 * self.spread**2 / self.sites)  # eta
        strays = crossing(self.lengths, self.phases, self.room, self.slope)
        return min(1.0, strays / (1 - unseen))


def share(delta: float, round_number: int) -> float:
    """What of delta the round of this number (from 0) may spend; all of them at most delta.

    It is rounded down to few different numbers, so that few designs have to be found.
    """
    c = _EARLY_ROUNDS
    exact = c / ((round_number + c) * (round_number + c + 1))
    return float(delta * _SHARE_STEP ** math.floor(math.log(exact) / math.log(_SHARE_STEP)))


def design(sites: int, alpha: float, failure: float, budget: float) -> TunedDesign:
    """The cheapest round found with this budget whose proved failure is allowed.

    Where the budget is too small for any, the first report ends the round and failure is 1. Where
    it is far larger than rounds need, as after a jump of the count, a part of it is enough.
    """
    budget = max(min(budget, _PLENTY * _largest_budget(sites)), _NEXT_TO_NOTHING)
    power = math.floor(math.log(budget) / math.log(_BUDGET_STEP))
    return _design(sites, alpha, failure, _BUDGET_STEP**power)


@lru_cache(maxsize=4096)
def _design(sites: int, alpha: float, failure: float, budget: float) -> TunedDesign:
    noisy = next((d for d in _noisy(sites, alpha, failure, budget) if d.failure <= failure), None)
    options = [d for d in (noisy, _silent(sites, alpha, budget)) if d is not None]
    if not options:
        return TunedDesign(sites, alpha, budget, 1, 1, 0.0, 0.0, failure=1.0)
    return min(options, key=lambda d: d.rate)


def _noisy(sites: int, alpha: float, failure: float, budget: float) -> Iterator[TunedDesign]:
    """Designs with noise, ever more careful ones."""
    for strict in _STRICTER:
        found = search(sites, alpha, strict * failure * SEEN, budget, spread=SPREAD)
        if found is None:
            return  # and more careful ones there are none either
        numbers = (found.threshold, found.phases, found.noise_scale)
        plan = TunedDesign(sites, alpha, budget, *numbers, SPREAD * math.sqrt(sites))
        yield replace(plan, failure=plan.proved_failure())


def _silent(sites: int, alpha: float, budget: float) -> TunedDesign | None:
    """Without noise every open block may be off by one: right for few sites, and sure."""
    longest = math.floor(2 * (budget - sites) / (1 - alpha)) + 1
    if budget <= sites:
        return None
    thresholds = np.array([max(1, round(longest * part)) for part in (0.25, 0.5, 0.75, 1.0)])
    phases = _silent_phases(sites)
    j, m = cheapest_silent(sites, alpha, budget, thresholds, phases)
    return TunedDesign(sites, alpha, budget, int(thresholds[j]), int(phases[m]), 0.0, 0.0)


@lru_cache(maxsize=256)
def _silent_phases(sites: int) -> NDArray[np.int64]:
    return whole(np.geomspace(1, 64 + 16 * sites, 24)).astype(np.int64)


def _largest_budget(sites: int) -> float:
    """More reports than the cheapest rounds are allowed to be off by."""
    return 4.0 + sites + 40.0 * math.sqrt(sites)


@lru_cache(maxsize=256)
def best_budget(sites: int, alpha: float, failure: float) -> float:
    """The budget whose rounds cost least, by the approximation; some round is right with it."""
    budgets = np.geomspace(1 + math.sqrt(sites), _largest_budget(sites), 40)
    for _ in range(2):
        best = min(budgets.tolist(), key=lambda budget: _cost(sites, alpha, failure, budget))
        budgets = around(budgets, int(np.searchsorted(budgets, best)))
    best = float(min(budgets, key=lambda budget: _cost(sites, alpha, failure, float(budget))))
    while design(sites, alpha, failure, best).failure > failure:  # it lies at an edge
        best *= _BUDGET_STEP**2
    return best


def _cost(sites: int, alpha: float, failure: float, budget: float) -> float:
    silent = _silent(sites, alpha, budget)
    noisy = search(sites, alpha, failure * SEEN, budget, spread=SPREAD)
    return min((found.rate for found in (silent, noisy) if found is not None), default=math.inf)
