"""Which sites to sample, how, and how much of alpha that may take, by what it will cost.

Guarantee  The failure probabilities of all rounds add up to at most delta, however many there will
           be. Everything else here decides about words only.
Cost       A plan tries some thousand combinations: 3 ms for a thousand sites.
"""

from dataclasses import dataclass, replace

import numpy as np

from casemate.track.engines.allocation import FILL, least_reports
from casemate.track.engines.light_rounds import possible_rounds, rounded, sampled_round, share_of
from casemate.track.engines.plan import (
    HORIZON,
    REVIEW,
    Plan,
    View,
    go_on,
    plan_windows,
    widths_beside,
)
from casemate.track.engines.tally import Floats

_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.95)  # of alpha, for the sampled sites
_SELDOM = 1.25  # sampling begins where a report stands for so many items
_ADVANTAGE = 0.97  # of the words for sampling everybody is what a mixture may take
_GAIN = 0.9  # of the words for windows is what sampling may take to be begun
_LEFT = 2.0**-10  # of delta, below which nothing is sampled any more
_FEWEST = 64  # sites that are sampled beside windows
_OVERDUE = 1.5  # of a round's foreseen items, where loads have shifted and it is planned again
_LASTING = 2.0  # what a round is counted to last at most, in factors e of the count
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

    def __call__(self, view: View) -> Plan:
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
        words = HORIZON * choice.words + _orders(view, sampled)
        gain = _GAIN if on is None else 1.0
        return sampled if words < gain * _words(view, windows) else windows

    def _sampled(self, view: View, choice: Choice) -> Plan | None:
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
        return Plan(light, sampling, widths_beside(view, light, taken), REVIEW * value)

    def best(self, view: View) -> Choice | None:
        """The cheapest choice; one that is hardly cheaper than sampling everybody is not taken."""
        roots = np.sqrt(np.sort(view.loads))[::-1]
        all_alpha = (1.0 / (1.0 + self.alpha),)  # what is published may be alpha above the truth
        everybody = self._cheapest(view, roots, 0, all_alpha, _USUAL_GROWTH)
        growth = everybody.growth if everybody else _USUAL_GROWTH
        everybody = self._cheapest(view, roots, 0, all_alpha, growth)
        mixed = [self._cheapest(view, roots, h, _SHARES, growth) for h in _heavies(len(roots))]
        best = min((c for c in mixed if c), key=lambda choice: choice.words, default=None)
        if best is None or (everybody and everybody.words * _ADVANTAGE < best.words):
            return everybody
        return best

    def _cheapest(
        self, view: View, roots: Floats, heavy: int, shares: tuple[float, ...], growth: float
    ) -> Choice | None:
        """The cheapest share of alpha and length of a round for so many heavy sites."""
        value, light = view.tally.value(), len(roots) - heavy
        failure = share_of(self.delta - view.failure, growth, value, self.horizon)
        draws, slacks = possible_rounds(light, self.alpha, rounded(failure, 2))
        load = max(float((roots[heavy:] ** 2).sum()), 1e-9)
        found = None
        for share in shares:
            width = FILL * 2.0 * self.alpha * (1.0 - share) * value / (1.0 - self.alpha)
            growths = np.log1p(draws * share * self.alpha / (slacks * load))
            words = draws / growths + 2.0 * light / np.minimum(growths, _LASTING)
            words += value * least_reports(roots[:heavy], width)
            words[slacks * _SELDOM > share * self.alpha * value] = np.inf
            at = int(np.argmin(words))
            if words[at] < (found.words if found else np.inf):
                found = Choice(heavy, share, int(draws[at]), float(growths[at]), float(words[at]))
        return found


def _heavies(sites: int) -> list[int]:
    """Numbers of heavy sites to try: each about a third more than the one before.

    A few light sites are not worth sampling: the share of alpha that they take costs more.
    """
    most = min(sites // 2, sites - _FEWEST)
    return sorted({round(1.33**i) for i in range(60) if round(1.33**i) <= most})


def _words(view: View, plan: Plan) -> float:
    """What windows for all cost until the count has doubled."""
    reports = float((view.loads / (1.0 + plan.widths)).sum())
    return HORIZON * view.tally.value() * reports + _orders(view, plan)


def _orders(view: View, plan: Plan) -> float:
    """What it costs to change the windows to those of a plan, the light sites aside."""
    t = view.tally
    changed = t.sampled | (t.top - t.known != plan.widths)
    return 2.0 * float(np.count_nonzero(changed & ~plan.light))
