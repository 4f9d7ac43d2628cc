"""Plans for sites of unequal loads: who is sampled, and who has which window, by what it will cost.

`LightSites` decides which sites to sample, how, and how much of alpha that may take;
`plan_windows` samples nobody.

Guarantee  The failure probabilities of all rounds add up to at most delta, however many there will
           be. Everything else here decides about words only.
Cost       A plan tries some thousand combinations: 4 ms for a thousand sites.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from casemate.track.engine import Flags, Floats, SiteTally
from casemate.track.protocols.boundary import bisect, brownian_failure, failures
from casemate.track.protocols.sampled import MAX_EXACT_REPORTS, slack_for
from casemate.track.protocols.windows import PLANNED_WIDTH_SHARE, LeastReports, worthwhile_widths
from casemate.track.reporting_rule import FIXED_POINT_ONE, Growth, Rule, Sample

REVIEW_GROWTH_FACTOR = 1.25
"""The growth of the count after which loads are looked at again."""

MIN_PLAN_LOG_GROWTH = float(np.log(2.0))
"""A plan is made as if it lasted until the count has doubled, or has grown as it did since the last
order, whichever is more: what has lasted will probably last."""


_SIGNIFICANCE_DEVIATIONS = 3.0  # deviations that the variance of even loads is seldom beyond


@dataclass(frozen=True)
class Sampling:
    """A sampled round: |X / p - n| <= slack / p + alpha n until X is `draws`, but for `failure`."""

    probability: float  # p
    draws: int  # m
    slack: float  # E
    failure: float
    overdue: float = np.inf  # a count by which it should have ended, or loads have shifted


@dataclass(frozen=True)
class MixedPlan:
    """Who is sampled, and the widths of the others' windows."""

    light: Flags
    sampling: Sampling | None  # None where nobody is
    widths: Floats
    review: float  # plan again when this is published


@dataclass(frozen=True)
class LoadView:
    """What a plan is made from."""

    tally: SiteTally
    sampling: Sampling | None  # the round that is on
    counts: Floats  # the likeliest count of each site
    loads: Floats  # the fraction of the next items that each site will probably get
    failure: float  # the failure probabilities of all sampled rounds so far
    lasted: float = 0.0  # how much the count's logarithm grew since the last order

    @property
    def span(self) -> float:
        """What the count's logarithm grows by until a plan has paid."""
        return max(MIN_PLAN_LOG_GROWTH, self.lasted)


Planner = Callable[[LoadView], MixedPlan]


class Loads:
    """Which part of the items goes to each site, the past counting half for every doubling."""

    def __init__(self, sites: int) -> None:
        self._counts, self._loads = np.zeros(sites), np.zeros(sites)

    def update(self, counts: Floats) -> Floats:
        """The loads after these counts; they add up to 1."""
        total = max(float(counts.sum()), 1.0)
        fade = float(self._counts.sum()) / total
        self._loads = np.maximum(self._loads * fade + counts - self._counts, 0.0)
        self._counts = counts
        return _shrink_to_even(self._loads) / max(float(self._loads.sum()), 1.0)


def _shrink_to_even(loads: Floats) -> Floats:
    """Loads that differ no more than even ones do by chance (as the roots of counts) are even."""
    mean, variance = float(loads.mean()), float(loads.var())
    by_chance = mean + _SIGNIFICANCE_DEVIATIONS * np.sqrt((2.0 * mean + 1.0) * mean / len(loads))
    share_kept = 1.0 - mean / variance if variance > by_chance else 0.0
    return mean + share_kept * (loads - mean)


def plan_windows(view: LoadView) -> MixedPlan:
    """Nobody is sampled: every site keeps a window, as wide as pays."""
    light = np.zeros(len(view.counts), dtype=np.bool_)
    return MixedPlan(
        light, None, widths_beside(view, light, 0.0), REVIEW_GROWTH_FACTOR * view.tally.value()
    )


def continue_sampling(view: LoadView) -> MixedPlan:
    """Sampling goes on as it is, beside windows that fit into what it leaves now."""
    t = view.tally
    limit = ((t.up - t.down) * t.low + t.marks.room) / t.down
    widths = _widths(view, t.sampled, max(limit, 0.0))
    return MixedPlan(t.sampled.copy(), view.sampling, widths, REVIEW_GROWTH_FACTOR * t.value())


def widths_beside(view: LoadView, light: Flags, taken: float) -> Floats:
    """Widths for the sites that are not light, where the light ones take so much of the error."""
    t = view.tally
    total = float(np.where(light | t.sampled, view.counts, t.reported).sum())
    limit = ((t.up - t.down) * total - (t.up + t.down) * taken) / t.down
    return _widths(view, light, max(limit, 0.0))


def _widths(view: LoadView, light: Flags, limit: float) -> Floats:
    t, heavy = view.tally, ~light
    free = t.sampled  # these get an order and answer in any case
    now = np.where(free, 0.0, t.top - t.reported)
    prices = np.where(free, 0.0, np.where(now > 0, 2.0, 1.0))
    widths = np.zeros(len(now))
    widths[heavy] = worthwhile_widths(
        view.loads[heavy], now[heavy], prices[heavy], limit, view.span * t.value()
    )
    return _round_widths(widths, view.counts, PLANNED_WIDTH_SHARE * limit)


def _round_widths(widths: Floats, counts: Floats, total: float) -> Floats:
    """Whole widths with at most this sum, none beyond its count."""
    capped = np.minimum(widths, counts)
    nearest = np.rint(capped)
    return nearest if float(nearest.sum()) <= total else np.floor(capped)


def rules_of(plan: MixedPlan, tally: SiteTally) -> dict[int, Rule]:
    """The rules that make a plan come true, for the sites that need a new one."""
    orders: dict[int, Rule] = {}
    if plan.sampling is not None:
        rule = Sample(plan.sampling.probability)
        orders = dict.fromkeys(np.flatnonzero(plan.light).tolist(), rule)
    return orders | windows_of(plan, tally)


def windows_of(plan: MixedPlan, tally: SiteTally) -> dict[int, Rule]:
    """The windows among them."""
    orders: dict[int, Rule] = {}
    counts = tally.counts()
    changed = tally.sampled | ((tally.top - tally.reported != plan.widths) & (tally.reported > 0))
    for site in np.flatnonzero(changed & ~plan.light).tolist():
        count = round(float(counts[site])) if tally.sampled[site] else int(tally.reported[site])
        orders[site] = window(max(count, 1), int(plan.widths[site]))
    return orders


def window(count: int, width: int) -> Growth:
    """The window of this width at this count, which grows with it.

    >>> window(1000, 7).top(1000)
    1007
    """
    return Growth(FIXED_POINT_ONE - -FIXED_POINT_ONE * width // count, FIXED_POINT_ONE)


# Sampled rounds of some sites: what one may fail with, and how long it may last ------------------


_RESERVED_LOG_GROWTH = 0.25  # factors e of the count for which delta is kept beyond the horizon
_MAX_ROUND_DRAWS = MAX_EXACT_REPORTS * 3 // 4  # draws of a round
_BROWNIAN_MIN_DRAWS = 1000  # draws of a round that is nearly a Brownian motion


def share_of(remaining_delta: float, growth: float, value: float, horizon: float) -> float:
    """What a round may fail with of what is left, if the count's logarithm grows by this in it.

    Shares are even up to the horizon, then up to its square, and so on: each is a part of what is
    left, so that they never add up to more than delta.

    >>> share_of(0.01, 0.25, 100.0, 1e8) < 0.01 * 0.25 / math.log(1e6)
    True
    """
    end = max(math.log(horizon), 1.0)
    while end <= math.log(value):
        end *= 2.0
    part = growth / (end - math.log(value) + growth + _RESERVED_LOG_GROWTH)
    return round_down_to_grid(remaining_delta * min(part, 0.5), 16)


def round_down_to_grid(failure: float, steps: int) -> float:
    """A number of a coarse list, so many of them in each octave, never above the one given."""
    return float(2.0 ** (math.floor(math.log2(failure) * steps) / steps))


def sampled_round(draws: int, alpha: float, taken: float, failure: float) -> Sampling | None:
    """A round of about so many draws that takes slack / p = `taken` and fails no more than this.

    None where not even a round of one draw does.
    """
    c = slack_for(draws, alpha, failure) / taken
    p = (math.sqrt(c * c + 4.0) - c) * c / 2.0  # p^2 = c^2 (1 - p): frequent draws vary less
    chances = failures(draws + draws // 4 + 1, p * taken, alpha, p, failure)
    longest = int(np.flatnonzero(chances <= failure)[-1])
    if not longest:
        return None
    return Sampling(p, longest, p * taken, float(chances[longest]))


@lru_cache(maxsize=4096)
def possible_rounds(light: int, alpha: float, failure: float) -> tuple[Floats, Floats]:
    """Numbers of draws after which a round may end, and about what slack each of them takes."""
    least = math.floor(math.log2(max(light, 8)) * 3.0) - 3
    tried = [round(2.0 ** (i / 3.0)) for i in range(least, least + 18)]
    draws = np.unique(np.minimum(tried, _MAX_ROUND_DRAWS)).astype(np.float64)
    return draws, np.array([_approximate_slack(int(m), alpha, failure) for m in draws])


@lru_cache(maxsize=4096)
def _approximate_slack(draws: int, alpha: float, failure: float) -> float:
    """The slack; that of a long round from its Brownian limit."""
    if draws < _BROWNIAN_MIN_DRAWS:
        return slack_for(draws, alpha, failure)
    widest = 12.0 * math.sqrt(draws) + 12.0
    return bisect(lambda slack: brownian_failure(draws, slack, alpha) <= failure, widest, 1e-9)


# Which sites are sampled -------------------------------------------------------------------------


_SAMPLED_ALPHA_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.95)
_MIN_ITEMS_PER_DRAW = 1.25  # sampling begins where a report stands for so many items
_MIXTURE_WORDS_RATIO = 0.97  # of the words for sampling everybody is what a mixture may take
# of the words for windows is what sampling everybody may take to be begun
_SAMPLING_WORDS_RATIO = 0.95
# the same for sampling beside windows, where loads may be misjudged
_MIXED_SAMPLING_WORDS_RATIO = 0.85
_MIN_DELTA_SHARE = 2.0**-10  # of delta, below which nothing is sampled any more
_MIN_SAMPLED_SITES = 64  # sites that are sampled beside windows
# of a round's foreseen items, where loads have shifted and it is planned again
_OVERDUE_FACTOR = 1.5
# what a round beside windows is counted to last at most, in factors e of the count
_MAX_MIXED_LOG_GROWTH = 2.0
_ROUND_SHORTFALL_FACTOR = 1.03  # by which rounds are shorter than foreseen
_USUAL_GROWTH = 0.25  # of the count's logarithm in a round


@dataclass(frozen=True)
class Choice:
    """So many of the busiest sites keep windows, the others are sampled; and what that costs."""

    heavy: int
    share: float
    draws: int
    growth: float  # of the logarithm of the count in a round
    words: float  # for each factor e of the count


@dataclass(frozen=True)
class LightSites:
    """The planner of mixed trackers."""

    alpha: float
    delta: float
    horizon: float

    def __call__(self, view: LoadView) -> MixedPlan:
        """Go on with the round that is on, or take the cheaper of windows and sampling."""
        t, on = view.tally, view.sampling
        if on is not None and t.draws < on.draws and t.value() < on.overdue:
            return continue_sampling(view)
        windows = plan_windows(view)
        worth = t.value() >= 1.0 and self.delta - view.failure > _MIN_DELTA_SHARE * self.delta
        choice = self.best_choice(view) if worth else None
        sampled = self._plan_sampling(view, choice) if choice else None
        if choice is None or sampled is None:
            return windows
        words = view.span * choice.words + _order_words(view, sampled)
        ratio = _MIXED_SAMPLING_WORDS_RATIO if choice.heavy else _SAMPLING_WORDS_RATIO
        if on is not None:
            ratio = 1.0
        return sampled if words < ratio * _window_words(view, windows) else windows

    def _plan_sampling(self, view: LoadView, choice: Choice) -> MixedPlan | None:
        value = view.tally.value()
        light = np.ones(len(view.loads), dtype=np.bool_)
        light[np.argsort(-view.loads, kind="stable")[: choice.heavy]] = False
        taken = choice.share * self.alpha * value  # slack / p
        failure = share_of(self.delta - view.failure, choice.growth, value, self.horizon)
        sampling = sampled_round(choice.draws, self.alpha, taken, failure)
        if sampling is None:
            return None
        load = max(float(view.loads[light].sum()), 1e-9)
        items = max(_OVERDUE_FACTOR * sampling.draws / (sampling.probability * load), value / 4.0)
        sampling = replace(sampling, overdue=value + items)
        return MixedPlan(
            light, sampling, widths_beside(view, light, taken), REVIEW_GROWTH_FACTOR * value
        )

    def best_choice(self, view: LoadView) -> Choice | None:
        """The cheapest choice; one that is hardly cheaper than sampling everybody is not taken."""
        reports, sites = LeastReports(view.loads), len(view.loads)
        everybody = self._cheapest(view, reports, 0, (1.0,), _USUAL_GROWTH)
        growth = everybody.growth if everybody else _USUAL_GROWTH
        everybody = self._cheapest(view, reports, 0, (1.0,), growth)
        mixed = [
            self._cheapest(view, reports, h, _SAMPLED_ALPHA_SHARES, growth)
            for h in _heavy_site_counts(sites)
        ]
        best = min((c for c in mixed if c), key=lambda choice: choice.words, default=None)
        if best is None or (everybody and everybody.words * _MIXTURE_WORDS_RATIO < best.words):
            return everybody
        return best

    def _cheapest(
        self,
        view: LoadView,
        reports: LeastReports,
        heavy: int,
        of: tuple[float, ...],
        growth: float,
    ) -> Choice | None:
        """The cheapest share of alpha and length of a round for so many heavy sites."""
        value, light = view.tally.value(), len(view.loads) - heavy
        failure = share_of(self.delta - view.failure, growth, value, self.horizon)
        draws, slacks = possible_rounds(light, self.alpha, round_down_to_grid(failure, 2))
        load = max(1.0 - float(reports.loads[heavy]), 1e-9)
        highest = 1.0 + self.alpha  # the count that is shown may be so many times the truth
        shares = np.array(of)[:, None] / highest
        growths = np.log1p(draws * shares * self.alpha / (slacks * load))
        lasting = np.minimum(growths, _MAX_MIXED_LOG_GROWTH) if heavy else growths
        later = value * np.exp(lasting / 2.0)  # in the middle of the round
        allowed = PLANNED_WIDTH_SHARE * 2.0 * self.alpha * (1.0 - shares)
        widths = allowed * later / (1.0 - self.alpha)
        words = draws / growths + 2.0 * light / lasting + later * reports(heavy, widths)
        words[
            np.broadcast_to(slacks * _MIN_ITEMS_PER_DRAW > shares * self.alpha * value, words.shape)
        ] = np.inf
        calls = 0.0 if heavy else 2.0 * light * (self._rounds(value, growths) - 1.0 / growths)
        row, at = np.unravel_index(int(np.argmin(words + calls)), words.shape)
        if words[row, at] == np.inf:
            return None
        share, growth = float(shares[row, 0]), float(growths[row, at])
        return Choice(heavy, share, int(draws[at]), growth, float(words.min()))

    def _rounds(self, value: float, growths: Floats) -> Floats:
        """Rounds for each factor e of the count; up to the horizon they are whole ones."""
        rest = math.log(self.horizon / value)
        if rest < MIN_PLAN_LOG_GROWTH:
            return 1.0 / growths
        whole: Floats = np.ceil(_ROUND_SHORTFALL_FACTOR * rest / growths)
        return whole / rest


def _heavy_site_counts(sites: int) -> list[int]:
    """Numbers of heavy sites to try: each about a third more than the one before.

    A few light sites are not worth sampling: the share of alpha that they take costs more.
    """
    most = min(sites // 2, sites - _MIN_SAMPLED_SITES)
    return sorted({round(1.33**i) for i in range(60) if round(1.33**i) <= most})


def _window_words(view: LoadView, plan: MixedPlan) -> float:
    """What windows for all cost, at the rate at which they will until the count has doubled."""
    widths = np.maximum(plan.widths, 1e-9)  # they grow with the count N: w N / (1 + d N) over ln N
    items = view.tally.value() * view.loads
    rates = items * np.log1p(widths / (1.0 + widths)) / (widths * MIN_PLAN_LOG_GROWTH)
    return view.span * float(rates.sum()) + _order_words(view, plan)


def _order_words(view: LoadView, plan: MixedPlan) -> float:
    """What it costs to change the windows to those of a plan, the light sites aside."""
    t = view.tally
    changed = t.sampled | (t.top - t.reported != plan.widths)
    return 2.0 * float(np.count_nonzero(changed & ~plan.light))
