"""Which sites to sample, how, and how much of alpha that may take, by what it will cost.

Guarantee  The failure probabilities of all rounds add up to at most delta, however many there will
           be. Everything else here decides about words only.
Cost       A plan tries some thousand combinations: 4 ms for a thousand sites.

Sampled rounds of some sites: what one may fail with, and how long it may last.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from casemate.track.protocols.mixed.plan import (
    REVIEW,
    SHORTEST,
    LoadView,
    MixedPlan,
    Sampling,
    go_on,
    plan_windows,
    widths_beside,
)
from casemate.track.protocols.sampled.boundary import brownian_failure, failures
from casemate.track.protocols.sampled.design import LONGEST_EXACT, slack_for
from casemate.track.protocols.windows import FILL, LeastReports
from casemate.track.tally import Floats

_KEPT = 0.25  # factors e of the count for which delta is kept beyond the horizon
_LONGEST = LONGEST_EXACT * 3 // 4  # draws of a round
_LONG = 1000  # draws of a round that is nearly a Brownian motion


def share_of(left: float, growth: float, value: float, horizon: float) -> float:
    """What a round may fail with of what is left, if the count's logarithm grows by this in it.

    Shares are even up to the horizon, then up to its square, and so on: each is a part of what is
    left, so that they never add up to more than delta.

    >>> share_of(0.01, 0.25, 100.0, 1e8) < 0.01 * 0.25 / math.log(1e6)
    True
    """
    end = max(math.log(horizon), 1.0)
    while end <= math.log(value):
        end *= 2.0
    part = growth / (end - math.log(value) + growth + _KEPT)
    return rounded(left * min(part, 0.5), 16)


def rounded(failure: float, steps: int) -> float:
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
    draws = np.unique(np.minimum(tried, _LONGEST)).astype(np.float64)
    return draws, np.array([_about(int(m), alpha, failure) for m in draws])


@lru_cache(maxsize=4096)
def _about(draws: int, alpha: float, failure: float) -> float:
    """The slack; that of a long round by bisection of its limit."""
    if draws < _LONG:
        return slack_for(draws, alpha, failure)
    low, high = 0.0, 12.0 * math.sqrt(draws) + 12.0
    for _ in range(30):
        middle = (low + high) / 2.0
        if brownian_failure(draws, middle, alpha) > failure:
            low = middle
        else:
            high = middle
    return high


# Light ------------------------------------------------------------------------------------------


_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.95)  # of alpha, for the sampled sites
_SELDOM = 1.25  # sampling begins where a report stands for so many items
_ADVANTAGE = 0.97  # of the words for sampling everybody is what a mixture may take
_GAIN = 0.95  # of the words for windows is what sampling everybody may take to be begun
_GAIN_BESIDE = 0.85  # the same for sampling beside windows, where loads may be misjudged
_LEFT = 2.0**-10  # of delta, below which nothing is sampled any more
_FEWEST = 64  # sites that are sampled beside windows
_OVERDUE = 1.5  # of a round's foreseen items, where loads have shifted and it is planned again
_LASTING = 2.0  # what a round beside windows is counted to last at most, in factors e of the count
_MARGIN = 1.03  # by which rounds are shorter than foreseen
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
            return go_on(view)
        windows = plan_windows(view)
        worth = t.value() >= 1.0 and self.delta - view.failure > _LEFT * self.delta
        choice = self.best(view) if worth else None
        sampled = self._sampled(view, choice) if choice else None
        if choice is None or sampled is None:
            return windows
        words = view.span * choice.words + _orders(view, sampled)
        gain = 1.0 if on is not None else _GAIN_BESIDE if choice.heavy else _GAIN
        return sampled if words < gain * _words(view, windows) else windows

    def _sampled(self, view: LoadView, choice: Choice) -> MixedPlan | None:
        value = view.tally.value()
        light = np.ones(len(view.loads), dtype=np.bool_)
        light[np.argsort(-view.loads, kind="stable")[: choice.heavy]] = False
        taken = choice.share * self.alpha * value  # slack / p
        failure = share_of(self.delta - view.failure, choice.growth, value, self.horizon)
        sampling = sampled_round(choice.draws, self.alpha, taken, failure)
        if sampling is None:
            return None
        load = max(float(view.loads[light].sum()), 1e-9)
        items = max(_OVERDUE * sampling.draws / (sampling.probability * load), value / 4.0)
        sampling = replace(sampling, overdue=value + items)
        return MixedPlan(light, sampling, widths_beside(view, light, taken), REVIEW * value)

    def best(self, view: LoadView) -> Choice | None:
        """The cheapest choice; one that is hardly cheaper than sampling everybody is not taken."""
        reports, sites = LeastReports(view.loads), len(view.loads)
        everybody = self._cheapest(view, reports, 0, (1.0,), _USUAL_GROWTH)
        growth = everybody.growth if everybody else _USUAL_GROWTH
        everybody = self._cheapest(view, reports, 0, (1.0,), growth)
        mixed = [self._cheapest(view, reports, h, _SHARES, growth) for h in _heavies(sites)]
        best = min((c for c in mixed if c), key=lambda choice: choice.words, default=None)
        if best is None or (everybody and everybody.words * _ADVANTAGE < best.words):
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
        draws, slacks = possible_rounds(light, self.alpha, rounded(failure, 2))
        load = max(1.0 - float(reports.loads[heavy]), 1e-9)
        highest = 1.0 + self.alpha  # the count that is shown may be so many times the truth
        shares = np.array(of)[:, None] / highest
        growths = np.log1p(draws * shares * self.alpha / (slacks * load))
        lasting = np.minimum(growths, _LASTING) if heavy else growths
        later = value * np.exp(lasting / 2.0)  # in the middle of the round
        widths = FILL * 2.0 * self.alpha * (1.0 - shares) * later / (1.0 - self.alpha)
        words = draws / growths + 2.0 * light / lasting + later * reports(heavy, widths)
        words[np.broadcast_to(slacks * _SELDOM > shares * self.alpha * value, words.shape)] = np.inf
        calls = 0.0 if heavy else 2.0 * light * (self._rounds(value, growths) - 1.0 / growths)
        row, at = np.unravel_index(int(np.argmin(words + calls)), words.shape)
        if words[row, at] == np.inf:
            return None
        share, growth = float(shares[row, 0]), float(growths[row, at])
        return Choice(heavy, share, int(draws[at]), growth, float(words.min()))

    def _rounds(self, value: float, growths: Floats) -> Floats:
        """Rounds for each factor e of the count; up to the horizon they are whole ones."""
        rest = math.log(self.horizon / value)
        if rest < SHORTEST:
            return 1.0 / growths
        whole: Floats = np.ceil(_MARGIN * rest / growths)
        return whole / rest


def _heavies(sites: int) -> list[int]:
    """Numbers of heavy sites to try: each about a third more than the one before.

    A few light sites are not worth sampling: the share of alpha that they take costs more.
    """
    most = min(sites // 2, sites - _FEWEST)
    return sorted({round(1.33**i) for i in range(60) if round(1.33**i) <= most})


def _words(view: LoadView, plan: MixedPlan) -> float:
    """What windows for all cost, at the rate at which they will until the count has doubled."""
    widths = np.maximum(plan.widths, 1e-9)  # they grow with the count N: w N / (1 + d N) over ln N
    items = view.tally.value() * view.loads
    rates = items * np.log1p(widths / (1.0 + widths)) / (widths * SHORTEST)
    return view.span * float(rates.sum()) + _orders(view, plan)


def _orders(view: LoadView, plan: MixedPlan) -> float:
    """What it costs to change the windows to those of a plan, the light sites aside."""
    t = view.tally
    changed = t.sampled | (t.top - t.known != plan.widths)
    return 2.0 * float(np.count_nonzero(changed & ~plan.light))
