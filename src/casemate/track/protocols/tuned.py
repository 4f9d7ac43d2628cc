"""The tuned robust tracker: secret coins at the sites, phases of noisy length at the server.

`TunedDesign` proves the numbers of a round, `search` finds cheap ones by an approximation, and the
plan says when rounds begin and how large their blocks are; `RobustTuned` is the engine. Windows
come first, until blocks hold two items.

Source     Source document 001, Algorithms 1 and 2 and Theorem 1, with constants of our own.
Guarantee  In a round with `budget` = alpha N0 / (block size), the count is ever off by more than
           alpha with probability at most `failure`, and over all rounds at most delta, against
           everybody who sees only what is published (docs/derivations/robust_tuned.md). Whoever
           sees messages come and go sees the coins, and the guarantee is void.
Cost       Some milliseconds for a design; they are kept. Words: see `predicted_words`.
Departure  One source of noise (the length of a phase) instead of two; what is published is nominal
           and centred; the site that gives itself away by ending a phase begins its block again;
           a posterior is tilted by tanh(1/4b) and not e^(1/b) - 1; and failure is counted at the
           first bad time, where the spread of the sites' coins hardly costs anything.
           `test_the_odds_of_a_secret_report_stay_within_the_ratio` goes through all the coins.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.track.engine import EndRound, Marks, PublishedCount, RuleChange, SiteTally, Wish
from casemate.track.protocols.phases import Lengths, crossing_probability
from casemate.track.protocols.windows import centred_rule, centred_windows, even_load_words
from casemate.track.reporting_rule import Blocks, Draw, Rule
from casemate.track.setting import Setting

Floats = NDArray[np.float64]
_FLOAT_MARGIN = 1.0 + 1e-9  # more than floats lose


@compiled
def _normal_tail(deviations: float) -> float:
    return 0.5 * math.erfc(deviations / math.sqrt(2.0))


@compiled
def _lundberg_exponent(ratio: float, slope: float) -> float:
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
def _approximate_crossing(
    room: float, slope: float, variance: float, decay: float, phases: float
) -> float:
    """About how likely the walk leaves the cone of `room` + `slope` a phase.

    It is Brownian motion's formula with the decay of the walk itself.
    """
    deviation, opened = math.sqrt(variance * phases), slope * phases
    late = _normal_tail((room + opened) / deviation)
    early = math.exp(-decay * room) * _normal_tail((room - opened) / deviation)
    return 2.0 * (late + early)


@compiled
def rate(sites: int, alpha: float, budget: float, mean: float, phases: float) -> float:
    """Words for each factor e of the count, when loads are even."""
    words = phases * mean + 2.0 * (phases - 1) + 2.0 * sites
    return words / math.log1p(alpha * phases * (mean - 0.5) / budget)


class DesignGrids(NamedTuple):
    """The noise scales, thresholds and numbers of phases that a search tries."""

    scales: Floats
    thresholds: Floats
    phases: Floats


@compiled
def cheapest_design(  # noqa: PLR0917 - compiled code takes no keyword arguments
    sites: int,
    alpha: float,
    target: float,
    budget: float,
    spread: float,
    grids: DesignGrids,
    grows: bool,
) -> tuple[float, tuple[int, int, int]]:
    """The places in the three grids of the cheapest design that is about right, and its rate.

    What a design costs does not depend on its noise, so costs are computed once, and whether a
    design is right only where it would be cheaper than the best so far.
    """
    scales, thresholds, phases = grids
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
def _costs(sites: int, alpha: float, budget: float, thresholds: Floats, phases: Floats) -> Floats:
    """The rate of each threshold with each number of phases."""
    costs = np.empty((len(thresholds), len(phases)))
    for j, threshold in enumerate(thresholds):
        for m, count in enumerate(phases):
            costs[j, m] = rate(sites, alpha, budget, threshold, count)
    return costs


@compiled
def _best_phases(  # noqa: PLR0917 - compiled code takes no keyword arguments
    costs: Floats,
    best: float,
    phases: Floats,
    room: float,
    slope: float,
    ratio: float,
    target: float,
) -> int:
    """The place of the cheapest number of phases that costs less than the best; -1 if none.

    More phases stray more often, so the first that is wrong ends the search. None is right that
    Brownian motion would stray from: its decay is larger, and need not be searched for.
    """
    variance, decay, where = 2.0 * ratio / (1.0 - ratio) ** 2, -1.0, -1
    for m, count in enumerate(phases):
        if costs[m] >= best:
            continue
        if decay < 0.0:
            brownian_decay = 2.0 * slope / variance
            brownian = _approximate_crossing(room, slope, variance, brownian_decay, count)
            if brownian > target * _FLOAT_MARGIN:
                return -1
            decay = _lundberg_exponent(ratio, slope) if slope > 0.0 else 0.0
        if _approximate_crossing(room, slope, variance, decay, count) > target:
            return where
        best, where = costs[m], m
    return where


# The search for cheap rounds, by an approximation ------------------------------------------------


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
    thresholds = round_grid(np.geomspace(1, 2 * budget + 2, 40))
    phases = round_grid(np.geomspace(1, 32 + 16 * root, 40))
    found = None
    for _ in range(3):
        grids = DesignGrids(scales, thresholds, phases)
        cost, (i, j, m) = cheapest_design(sites, alpha, target, budget, spread * root, grids, grows)
        if math.isinf(cost):
            return None
        found = FoundDesign(int(thresholds[j]), int(phases[m]), float(scales[i]), float(cost))
        scales = refine_grid(scales, i)
        thresholds = round_grid(refine_grid(thresholds, j))
        phases = round_grid(refine_grid(phases, m))
    return found


def refine_grid(grid: Floats, place: int) -> Floats:
    """A finer grid of ratios between the neighbours of a place."""
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    first, last = np.log10(low), np.log10(high)
    finer: Floats = 10.0 ** (_PLACES * ((last - first) / 12.0) + first)
    finer[0], finer[-1] = low, high
    return finer


def round_grid(grid: Floats) -> Floats:
    """The whole numbers next to an ascending grid, each once."""
    rounded = np.rint(grid)
    return rounded[np.diff(rounded, prepend=-np.inf) > 0]


# What proves a design ----------------------------------------------------------------------------


_SHARE_STEP = math.sqrt(2.0)
_EARLY_ROUNDS = 32  # rounds that share most of delta; all later ones have the rest
COIN_SPREAD_ROOTS = 0.3
"""The spread of the coins of k sites, in square roots of k; between .25 and .4 matters little."""

SEEN_FAILURE_SHARE = -math.expm1(-2 * COIN_SPREAD_ROOTS**2)
"""1 - eta: what the coins leave of the failure to the walk."""

_MAX_BUDGET_FACTOR = 16.0  # largest budgets; arrays would become too long
_MIN_BUDGET = 1e-3  # a budget that no round is right with
_BUDGET_STEP = 1.005  # budgets are rounded down to powers of this, so that designs can be kept
_TARGET_FACTORS = tuple(3 * 0.7**i for i in range(40))  # until the exact calculation agrees


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
        strays = crossing_probability(self.lengths, self.phases, self.room, self.slope)
        return min(1.0, strays / (1 - unseen))


def failure_share(delta: float, round_number: int) -> float:
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
    budget = max(min(budget, _MAX_BUDGET_FACTOR * _largest_budget(sites)), _MIN_BUDGET)
    power = math.floor(math.log(budget) / math.log(_BUDGET_STEP))
    return _design(sites, alpha, failure, _BUDGET_STEP**power)


@lru_cache(maxsize=4096)
def _design(sites: int, alpha: float, failure: float, budget: float) -> TunedDesign:
    careful = _noisy_designs(sites, alpha, failure, budget)
    noisy = next((design for design in careful if design.failure <= failure), None)
    options = [d for d in (noisy, _noiseless_design(sites, alpha, budget)) if d is not None]
    if not options:
        return TunedDesign(sites, alpha, budget, 1, 1, 0.0, 0.0, failure=1.0)
    return min(options, key=lambda d: d.rate)


def _noisy_designs(
    sites: int, alpha: float, failure: float, budget: float
) -> Iterator[TunedDesign]:
    """Designs with noise, ever more careful ones."""
    for strict in _TARGET_FACTORS:
        found = search(
            sites, alpha, strict * failure * SEEN_FAILURE_SHARE, budget, spread=COIN_SPREAD_ROOTS
        )
        if found is None:
            return  # and more careful ones there are none either
        numbers = (found.threshold, found.phases, found.noise_scale)
        plan = TunedDesign(sites, alpha, budget, *numbers, COIN_SPREAD_ROOTS * math.sqrt(sites))
        yield replace(plan, failure=plan.proved_failure())


def _noiseless_design(sites: int, alpha: float, budget: float) -> TunedDesign | None:
    """Without noise every open block may be off by one: right for few sites, and sure."""
    longest = math.floor(2 * (budget - sites) / (1 - alpha)) + 1
    if budget <= sites:
        return None
    thresholds = np.maximum(1.0, np.rint(longest * np.array([0.25, 0.5, 0.75, 1.0])))
    phases = round_grid(np.geomspace(1, 64 + 16 * sites, 24))
    costs = _costs(sites, alpha, budget, thresholds, phases)
    j, m = np.unravel_index(np.argmin(costs), costs.shape)
    return TunedDesign(sites, alpha, budget, int(thresholds[j]), int(phases[m]), 0.0, 0.0)


def _largest_budget(sites: int) -> float:
    """More reports than the cheapest rounds are allowed to be off by."""
    return 4.0 + sites + 40.0 * math.sqrt(sites)


@lru_cache(maxsize=256)
def best_budget(sites: int, alpha: float, failure: float) -> float:
    """The budget whose rounds cost least, by the approximation; some round is right with it."""
    cost = partial(_approximate_rate, sites, alpha, failure)
    budgets = np.geomspace(1 + math.sqrt(sites), _largest_budget(sites), 40)
    for _ in range(2):
        best = min(budgets.tolist(), key=cost)
        budgets = refine_grid(budgets, int(np.searchsorted(budgets, best)))
    best = float(min(budgets.tolist(), key=cost))
    while design(sites, alpha, failure, best).failure > failure:  # it lies at an edge
        best *= _BUDGET_STEP**2
    return best


def _approximate_rate(sites: int, alpha: float, failure: float, budget: float) -> float:
    silent = _noiseless_design(sites, alpha, budget)
    noisy = search(sites, alpha, failure * SEEN_FAILURE_SHARE, budget, spread=COIN_SPREAD_ROOTS)
    return min((found.rate for found in (silent, noisy) if found is not None), default=math.inf)


# When rounds begin, how large their blocks are, and what they cost -------------------------------


_BLOCK_SHRINK_FACTOR = 0.95  # blocks that are tried next where no round is right with these
_MIN_BLOCK_ITEMS = 2  # with blocks of one item every item is reported


def block_size(sites: int, alpha: float, failure: float, count: float, least: float) -> int:
    """How many items a block has in a round that begins at about `count`.

    It is the best for that count, unless no round is right with it where the count is `least`.
    """
    size = max(1, math.floor(alpha * count / best_budget(sites, alpha, failure)))
    while size > 1 and design(sites, alpha, failure, alpha * least / size).failure > failure:
        size = min(size - 1, math.floor(_BLOCK_SHRINK_FACTOR * size))
    return size


def round_at(sites: int, alpha: float, failure: float, count: int, size: int) -> TunedDesign:
    """The design of a round that begins at this very count with blocks of this size."""
    return design(sites, alpha, failure, alpha * count / size)


@lru_cache(maxsize=256)
def first_round_count(sites: int, alpha: float, delta: float) -> float:
    """The count at which rounds follow the windows: blocks are whole and windows cost as much."""
    failure = failure_share(delta, 0)
    budget = best_budget(sites, alpha, failure)
    windows = sites / (2 * alpha)  # words for each factor e, and before it every item is one
    cost = design(sites, alpha, failure, budget).rate
    return max(_MIN_BLOCK_ITEMS * budget / alpha, min(cost, windows))


def predicted_words(s: Setting) -> float:
    """Words until all items have come, when loads are even."""
    sites, alpha, delta, horizon = s.sites, s.alpha, s.delta, float(s.items)
    begin = first_round_count(sites, alpha, delta)
    words = even_load_words(centred_rule(alpha), sites, int(min(begin, horizon)))
    count, number = begin, 0
    if count < horizon:
        words += 2 * sites
    while count < horizon:
        failure = failure_share(delta, number)
        size = block_size(sites, alpha, failure, count, count)
        plan = round_at(sites, alpha, failure, math.floor(count), size)
        growth = math.log1p(size * plan.phases * (plan.lengths.mean - 0.5) / count)
        rounds = min(max(1, number // 2), math.log(horizon / count) / growth)  # all like this one
        words += rounds * plan.words
        count, number = count * math.exp(rounds * growth) * (1 + 1e-12), number + math.ceil(rounds)
    return words


# The tracker -------------------------------------------------------------------------------------


class TunedRound:
    """The phases of one round, and what is published in each."""

    def __init__(self, design: TunedDesign, counts: Sequence[int], size: int, draw: Draw) -> None:
        self.design, self.size = design, size
        self._lengths, self._mean, self._draw = design.lengths, design.lengths.mean, draw
        self.base = sum(counts)  # N0
        self.exact = self.base  # and what exact counts have corrected since
        self.passed = 0  # phases
        self.tally = SiteTally(len(counts))
        self.tally.begin_all(counts, Blocks(float(size)))
        self._begin_phase()

    def _begin_phase(self) -> None:
        self._ends_at = self.tally.draws + self._lengths.draw_length(self._draw())  # reports
        self._publish()

    def _publish(self) -> None:
        self.tally.hidden = self.published
        self.tally.marks = Marks(draws=self._ends_at)

    def hear(self, site: int, begun: int, reports: int) -> Wish:
        """Take a report; one that ends a phase makes its site begin its block again."""
        t = self.tally
        if begun != t.reported[site]:  # an exact count takes the place of what reports stood for
            heard = int(t.drawn[site])
            self.exact += begun - int(t.reported[site]) - self.size * heard
            self._ends_at -= heard
            self._publish()
        due = t.note(site, Blocks(float(self.size)), begun, reports, begun)
        return self.decide(site) if due else None

    def decide(self, site: int) -> Wish:
        """A phase is over."""
        t = self.tally
        beyond = t.draws - self._ends_at  # draws after the one that ended the phase, if any
        t.sample(site, int(t.reported[site]), int(t.drawn[site]) - beyond)
        self.passed += 1
        if self.passed == self.design.phases:
            return EndRound()
        self._begin_phase()
        return RuleChange(narrower={site: Blocks(float(self.size))})

    @property
    def published(self) -> float:
        """The centre of what is possible, so that it is within alpha of both ends."""
        return (1 - self.design.alpha**2) * self.middle()

    def nominal(self, passed: float) -> float:
        """The count to be expected after so many phases."""
        return self.exact + self.size * (passed * self._mean)

    def middle(self) -> float:
        """The count to be expected in the middle of this phase, or of the last one."""
        passed = min(self.passed, self.design.phases - 1)
        return self.nominal(passed) + self.size * ((self._mean - 1) / 2)


class RobustTuned:
    """The engine: windows while the count is small, then rounds of phases."""

    def __init__(self, sites: int, alpha: float, delta: float, draw: Draw) -> None:
        self._sites, self._alpha, self._delta, self._draw = sites, alpha, delta, draw
        self.start = first_round_count(sites, alpha, delta)
        self._window, self.windows = centred_rule(alpha), centred_windows(sites, alpha)
        self.windows.tally.marks = Marks(value=self.start)
        self.round: TunedRound | None = None  # none while there are windows
        self._size = 0  # of the blocks that were ordered last; 0 is windows
        self._rounds = 0
        self._spent = 0.0  # the proved failure of all rounds so far

    @property
    def tally(self) -> SiteTally:
        """That of the round, or of the windows before."""
        return self.windows.tally if self.round is None else self.round.tally

    def opening(self) -> Rule:
        """Windows."""
        return self._window

    def summons(self) -> Rule:
        """Blocks as large as the count allows; windows while they would be too small."""
        count, least = self._expected_count()
        if count < self.start:
            self._size = 0
            return self._window
        self._size = block_size(self._sites, self._alpha, self._share(), count, least)
        return Blocks(float(self._size))

    def begin(self, counts: Sequence[int]) -> None:
        """Begin a round of the kind that was ordered."""
        if not self._size:
            self.round = None
            self.windows.begin(counts)
            return
        total = sum(counts)
        plan = round_at(self._sites, self._alpha, self._share(), total, self._size)
        self.round = TunedRound(plan, counts, self._size, self._draw)
        self._rounds += 1
        self._spent += plan.failure

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Take a report."""
        if self.round is not None:
            return self.round.hear(site, begun, reports)
        due = self.tally.note(site, rule, begun, reports, count)
        return EndRound() if due else None

    def decide(self, site: int) -> Wish:
        """A phase is over, or windows have led far enough."""
        return EndRound() if self.round is None else self.round.decide(site)

    def estimate(self) -> PublishedCount:
        """What the round publishes, and what is possible; or what the windows say."""
        if self.round is None:
            return self.windows.estimate()
        a, middle = self._alpha, self.round.middle()
        sure = max(0.0, 1.0 - self._spent)
        return PublishedCount(self.tally.value(), (1 - a) * middle, (1 + a) * middle, sure)

    def _expected_count(self) -> tuple[float, float]:
        """The count to be expected now, and one that it has at least."""
        if self.round is None:
            published = self.windows.estimate()
            return published.value, published.lo
        least = max(float(self.round.base), (1 - self._alpha) * self.round.middle())
        return self.round.nominal(self.round.passed), least

    def _share(self) -> float:
        return failure_share(self._delta, self._rounds)
