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

The search for a cheap design of the tuned tracker, by an approximation: compiled.

The search for cheap rounds, by an approximation; `tuned_design` proves what it finds.

When the rounds of the tuned tracker begin, how large their blocks are, and what they cost.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.protocols.tuned.walk import Lengths, crossing
from casemate.track.protocols.windows import centred_rule
from casemate.track.setting import Setting

_HAIR = 1.0 + 1e-9  # more than floats lose


@compiled
def _above(deviations: Any) -> Any:
    return 0.5 * math.erfc(deviations / math.sqrt(2.0))


@compiled
def _decay(ratio: Any, slope: Any) -> Any:
    """How fast the chance of ever passing x + `slope` a phase falls with x (Lundberg's exponent).

    It is where E exp(t (length - mean - slope)) = 1, between 0 and -ln(ratio), by bisection.
    """
    low, high = 0.0, -math.log(ratio)
    for _ in range(40):
        t = 0.5 * (low + high)
        spread = (1.0 - ratio * math.exp(t)) * (1.0 - ratio * math.exp(-t))
        if 2.0 * math.log1p(-ratio) - math.log(spread) < t * slope:
            low = t
        else:
            high = t
    return low


@compiled
def _crossing(room: Any, slope: Any, variance: Any, decay: Any, phases: Any) -> Any:
    """About how likely the walk leaves the cone of `room` + `slope` a phase.

    It is Brownian motion's formula with the decay of the walk itself.
    """
    deviation, opened = math.sqrt(variance * phases), slope * phases
    late = _above((room + opened) / deviation)
    early = math.exp(-decay * room) * _above((room - opened) / deviation)
    return 2.0 * (late + early)


@compiled
def rate(sites: Any, alpha: Any, budget: Any, mean: Any, phases: Any) -> Any:
    """Words for each factor e of the count, when loads are even."""
    words = phases * mean + 2.0 * (phases - 1) + 2.0 * sites
    return words / math.log1p(alpha * phases * (mean - 0.5) / budget)


@compiled
def cheapest(  # noqa: PLR0917 - compiled code takes no keyword arguments
    sites: Any,
    alpha: Any,
    target: Any,
    budget: Any,
    spread: Any,
    scales: Any,
    thresholds: Any,
    phases: Any,
    grows: Any,
) -> Any:
    """The places in the three grids of the cheapest design that is about right, and its rate.

    What a design costs does not depend on its noise, so costs are computed once, and whether a
    design is right only where it would be cheaper than the best so far.
    """
    costs = _costs(sites, alpha, budget, thresholds, phases)
    least = np.array([row.min() for row in costs])
    best, where = np.inf, (-1, -1, -1)
    for i, scale in enumerate(scales):
        ratio = math.exp(-1.0 / scale)
        slack = sites * math.tanh(0.25 / scale) + spread
        for j, threshold in enumerate(thresholds):
            room = budget - slack - 0.5 * (1.0 - alpha) * (threshold - 1.0)
            slope = alpha * (threshold - 1.0) if grows else 0.0
            if room <= slope:
                break
            if least[j] >= best:
                continue
            m = _best_phases(costs[j], best, phases, room - slope, slope, ratio, target)
            if m >= 0:
                best, where = costs[j, m], (i, j, m)
    return best, where


@compiled
def _costs(sites: Any, alpha: Any, budget: Any, thresholds: Any, phases: Any) -> Any:
    """The rate of each threshold with each number of phases."""
    costs = np.empty((len(thresholds), len(phases)))
    for j, threshold in enumerate(thresholds):
        for m, count in enumerate(phases):
            costs[j, m] = rate(sites, alpha, budget, threshold, count)
    return costs


@compiled
def _best_phases(  # noqa: PLR0917 - compiled code takes no keyword arguments
    costs: Any, best: Any, phases: Any, room: Any, slope: Any, ratio: Any, target: Any
) -> Any:
    """The place of the cheapest number of phases that costs less than the best; -1 if none.

    More phases stray more often, so the first that is wrong ends the search. None is right that
    Brownian motion would stray from: its decay is larger, and need not be searched for.
    """
    variance, decay, where = 2.0 * ratio / (1.0 - ratio) ** 2, -1.0, -1
    for m, count in enumerate(phases):
        if costs[m] >= best:
            continue
        if decay < 0.0:
            if _crossing(room, slope, variance, 2.0 * slope / variance, count) > target * _HAIR:
                return -1
            decay = _decay(ratio, slope) if slope > 0.0 else 0.0
        if _crossing(room, slope, variance, decay, count) > target:
            return where
        best, where = costs[m], m
    return where


@compiled
def cheapest_silent(sites: Any, alpha: Any, budget: Any, thresholds: Any, phases: Any) -> Any:
    """The places in the two grids of the cheapest design without noise."""
    best, where = np.inf, (-1, -1)
    for j, threshold in enumerate(thresholds):
        for m, count in enumerate(phases):
            cost = rate(sites, alpha, budget, threshold, count)
            if cost < best:
                best, where = cost, (j, m)
    return where


# Tuned search -----------------------------------------------------------------------------------


Floats = NDArray[np.float64]
_PLACES = np.arange(13.0)


@dataclass(frozen=True)
class FoundDesign:
    """What the search found, and the words it costs for each factor e of the count."""

    threshold: int
    phases: int
    noise_scale: float
    rate: float


def search(
    sites: int,
    alpha: float,
    target: float,  # the probability with which the walk of lengths may stray
    budget: float,
    *,
    spread: float,  # of the sites' coins, in square roots of their number
    grows: bool = True,  # with the count, so does what alpha allows
) -> FoundDesign | None:
    """The cheapest round on a coarse grid, then on finer ones around the best; None if none."""
    root = math.sqrt(sites)
    scales = np.geomspace(0.15, 1 + root / 2, 20)
    thresholds = whole(np.geomspace(1, 2 * budget + 2, 40))
    phases = whole(np.geomspace(1, 32 + 16 * root, 40))
    found = None
    for _ in range(3):
        grids = (scales, thresholds, phases)
        cost, (i, j, m) = cheapest(sites, alpha, target, budget, spread * root, *grids, grows)
        if math.isinf(cost):
            return None
        found = FoundDesign(int(thresholds[j]), int(phases[m]), float(scales[i]), float(cost))
        scales = around(scales, i)
        thresholds, phases = whole(around(thresholds, j)), whole(around(phases, m))
    return found


def around(grid: Floats, place: int) -> Floats:
    """A finer grid of ratios between the neighbours of a place."""
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    first, last = np.log10(low), np.log10(high)
    finer: Floats = 10.0 ** (_PLACES * ((last - first) / 12.0) + first)
    finer[0], finer[-1] = low, high
    return finer


def whole(grid: Floats) -> Floats:
    """The whole numbers next to an ascending grid, each once."""
    rounded = np.rint(grid)
    return rounded[np.diff(rounded, prepend=-np.inf) > 0]


# Tuned design -----------------------------------------------------------------------------------


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


# Tuned plan -------------------------------------------------------------------------------------


_SMALLER = 0.95  # blocks that are tried next where no round is right with these
_SMALLEST_BLOCK = 2  # with blocks of one item every item is reported


def block_size(sites: int, alpha: float, failure: float, count: float, least: float) -> int:
    """How many items a block has in a round that begins at about `count`.

    It is the best for that count, unless no round is right with it where the count is `least`.
    """
    size = max(1, math.floor(alpha * count / best_budget(sites, alpha, failure)))
    while size > 1 and design(sites, alpha, failure, alpha * least / size).failure > failure:
        size = min(size - 1, math.floor(_SMALLER * size))
    return size


def round_at(sites: int, alpha: float, failure: float, count: int, size: int) -> TunedDesign:
    """The design of a round that begins at this very count with blocks of this size."""
    return design(sites, alpha, failure, alpha * count / size)


@lru_cache(maxsize=256)
def start(sites: int, alpha: float, delta: float) -> float:
    """The count at which rounds follow the windows: blocks are whole and windows cost as much."""
    failure = share(delta, 0)
    budget = best_budget(sites, alpha, failure)
    windows = sites / (2 * alpha)  # words for each factor e, and before it every item is one
    cost = design(sites, alpha, failure, budget).rate
    return max(_SMALLEST_BLOCK * budget / alpha, min(cost, windows))


def usual_round(sites: int, alpha: float, delta: float, number: int) -> TunedDesign:
    """The round of this number with the budget that costs least."""
    failure = share(delta, number)
    return design(sites, alpha, failure, best_budget(sites, alpha, failure))


def predicted_words(s: Setting) -> float:
    """Words until all items have come, when loads are even."""
    sites, alpha, delta, horizon = s.sites, s.alpha, s.delta, float(s.items)
    begin = start(sites, alpha, delta)
    words = windows_words(sites, alpha, min(begin, horizon))
    count, number = begin, 0
    if count < horizon:
        words += 2 * sites
    while count < horizon:
        failure = share(delta, number)
        size = block_size(sites, alpha, failure, count, count)
        plan = round_at(sites, alpha, failure, math.floor(count), size)
        growth = math.log1p(size * plan.phases * (plan.lengths.mean - 0.5) / count)
        rounds = min(max(1, number // 2), math.log(horizon / count) / growth)  # all like this one
        words += rounds * plan.words
        count, number = count * math.exp(rounds * growth) * (1 + 1e-12), number + math.ceil(rounds)
    return words


def windows_words(sites: int, alpha: float, count: float) -> float:
    """Words of centred windows up to this count, when loads are even."""
    rule, each = centred_rule(alpha), count / sites
    words, trigger, after = 0, 0, 1
    while after <= each:
        words, trigger, after = words + 1, after, rule.top(after) + 1
    return sites * (words + (each - trigger) / (after - trigger))
