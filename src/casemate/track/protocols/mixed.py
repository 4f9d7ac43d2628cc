"""Trackers that divide alpha over sites by their loads: windows for some, sampling for others.

`Mixed` is their engine, and keeps to a plan until it plans again. `automatic_tracker` chooses by
itself between windows, sampling, or windows for the busy sites only; `allocated_tracker` keeps
windows only, each as wide as its site's load asks for.

Guarantee  Let the sites with windows have counts between L and U in sum, and let the sampled ones
           have had B when their round began. Their part is right within slack / p + alpha n, but
           for the round's failure probability; the windows' part is held within alpha N plus the
           alpha B - slack / p that the other leaves over, surely. So the published value is within
           alpha of the truth (docs/derivations/allocated_tracking.md): at all times, except with
           probability delta, and surely, against anybody, where nobody is sampled.
Cost       Whatever comes, at most twice the words of centred windows on the same items, and 7k + 1.
           Everybody begins with a centred window, which takes no words to set up. What is changed
           from that must be paid for by what centred windows would have sent by then, the way back
           included.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from casemate.track.engine import (
    EndRound,
    Flags,
    Marks,
    PublishedCount,
    RuleChange,
    SiteTally,
    Wish,
)
from casemate.track.protocols.load_plans import (
    REVIEW_GROWTH_FACTOR,
    LightSites,
    Loads,
    LoadView,
    MixedPlan,
    Planner,
    Sampling,
    plan_windows,
    rules_of,
    windows_of,
)
from casemate.track.protocols.sampled import MAX_ALPHA
from casemate.track.protocols.windows import (
    CentredReports,
    centred_rule,
    fixed_point_bounds,
    narrow_windows,
    weight_of_top,
)
from casemate.track.reporting_rule import FIXED_POINT_ONE, UNREACHABLE_COUNT, Growth, Rule, Sample

_FIRST_REVIEW_COUNT = 32.0
_CREDIT_WORDS_PER_SITE = 6  # words for each site, so that a first round of sampling need not wait


class Mixed:
    """The engine of the trackers that divide alpha over the sites by their loads."""

    def __init__(self, sites: int, alpha: float, planner: Planner) -> None:
        self.tally = SiteTally(sites, *fixed_point_bounds(alpha), weight_of_top(alpha))
        self._alpha, self._planner = alpha, planner
        self._rule = centred_rule(alpha)
        self._centred = CentredReports(self._rule)
        self._history = Loads(sites)
        self._loads = np.zeros(sites)
        self._light = np.zeros(sites, dtype=np.bool_)  # who was told to sample
        self._away = np.zeros(sites, dtype=np.bool_)  # whose rule is not the centred one
        self._ordered = 0  # words to sites so far
        self._arranged = math.inf  # the count when the last order was given
        self._pending: set[int] = set()  # sites that have not answered their last order
        self._called: Rule | None = None  # the rule of a round about to be called
        self._sampling: Sampling | None = None
        self._failure = 0.0  # the failure probabilities of all sampled rounds so far
        self._reserve_words = sites // 8 + 8  # words that are not planned with
        self.tally.follow(slice(None), self._rule)
        self._set_marks(_FIRST_REVIEW_COUNT)

    # What a server asks of an engine

    def opening(self) -> Rule:
        """Everybody begins with a centred window."""
        return self._rule

    def summons(self) -> Rule:
        """The rule of the round that was wished for, or another if somebody else calls."""
        if self._called is None:
            orders = self._called_by_others()
            self._ordered += len(self._light) - len(orders)
            (self._called,) = set(orders.values()) or {self._rule}  # one for all
        rule, self._called = self._called, None
        return rule

    def _called_by_others(self) -> Mapping[int, Rule]:
        """Sample everybody if that is best and can be paid, or else centred windows.

        Either is right at whatever counts come. A round that is on ends here, since to go on would
        be one more that may fail.
        """
        plan = self._plan(None)
        if plan.sampling is not None and plan.light.all():
            orders = rules_of(plan, self.tally)
            if self._affordable(orders):
                self._start(plan.sampling, orders, plan.review)
                return orders
        back = self._way_back()
        self._start(None, back, self.tally.value())  # the next report makes a plan
        return back

    def begin(self, counts: Sequence[int]) -> None:
        """Every count is known exactly."""
        self.tally.heard += len(counts)
        self.tally.begin(counts, self._light)
        self._pending.clear()
        self._set_marks(self.tally.marks.value)

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:
        """Note the report; where a mark is reached, decide."""
        due = self.tally.note(site, rule, begun, reports, count)
        if self._pending:
            self._pending.discard(site)
            if self._pending:
                return None
            self._set_marks(self.tally.marks.value)
            due = self.tally.due(site)
        return self.decide(site) if due else None

    def estimate(self) -> PublishedCount:
        """A value inside the windows and the draws scaled up, with what they may be off."""
        t, slack = self.tally, self._sampling.slack if self._sampling else 0.0
        fewest = max(0.0, t.draws - slack) / (t.probability * (1.0 + self._alpha))
        most = (t.draws + slack) / (t.probability * (1.0 - self._alpha)) if self._sampling else 0.0
        lo, hi = t.low + t.base + fewest, t.high + t.base + most
        return PublishedCount(t.value(), lo, hi, 1.0 - self._failure)

    # Decisions

    def decide(self, site: int) -> Wish:  # noqa: ARG002 - it looks at all of them
        """What to order where a mark is reached; nothing while answers are awaited."""
        t = self.tally
        if self._pending:
            return None
        if t.draws >= t.marks.draws or t.value() >= t.marks.value:
            wish = self._adopt(self._plan(self._sampling))
            if wish is not None:
                return wish
        if t.excess() > 0:
            return self._narrow()
        if self._remaining_words(self._away) < self._reserve_words:
            return self._fall_back()
        self._set_marks(t.marks.value)
        return None

    def _plan(self, on: Sampling | None) -> MixedPlan:
        counts = self.tally.counts()
        self._loads = self._history.update(counts)
        lasted = math.log(max(self.tally.value() / self._arranged, 1.0))
        return self._planner(LoadView(self.tally, on, counts, self._loads, self._failure, lasted))

    def _adopt(self, plan: MixedPlan) -> Wish:
        """Follow a plan, where there are words left for it and for the way back."""
        going_on = plan.sampling is self._sampling
        if going_on and self.tally.draws >= self.tally.marks.draws:
            return self._fall_back()  # no round outlasts its draws
        orders = (windows_of if going_on else rules_of)(plan, self.tally)
        if not self._affordable(orders):
            if not going_on:  # a round is over, so something must be ordered
                return self._fall_back()
            orders = {}
        if not going_on:
            return self._start(plan.sampling, orders, plan.review)
        return self._send(orders, self._exact(), plan.review)

    def _narrow(self) -> Wish:
        """Set width free at once, from few sites that have much and use it little."""
        orders = narrow_windows(self.tally, self._loads)
        if orders and self._affordable(orders):
            return self._send(orders, self._exact(), self.tally.marks.value)
        return self._fall_back()

    def _fall_back(self) -> Wish:
        """Centred windows for everybody."""
        return self._start(None, self._way_back(), REVIEW_GROWTH_FACTOR * self.tally.value())

    def _way_back(self) -> dict[int, Rule]:
        return {int(i): self._rule for i in np.flatnonzero(self._away)}

    # Words

    def _remaining_words(self, away: Flags) -> int:
        """What may still be spent if these sites must be led back to the centred window."""
        t = self.tally
        spent = t.heard + self._ordered + 2 * int(away.sum())
        centred = self._centred.words(t.reported + np.where(t.sampled, t.drawn, 0))
        return 2 * centred + _CREDIT_WORDS_PER_SITE * len(away) - spent

    def _affordable(self, orders: Mapping[int, Rule]) -> bool:
        away = self._away.copy()
        for site, rule in orders.items():
            away[site] = rule != self._rule
        return self._remaining_words(away) >= 2 * len(orders) + self._reserve_words

    # Orders

    def _exact(self) -> Flags:
        """Whose count is known exactly, so that a new window needs no answer."""
        exact: Flags = ~self.tally.sampled & (self.tally.reported == self.tally.top)
        return exact

    def _start(self, sampling: Sampling | None, orders: Mapping[int, Rule], review: float) -> Wish:
        """End the sampled round, if there is one, and begin what is ordered."""
        exact = self._exact()
        self.tally.end_sampling()
        self._sampling = sampling
        if sampling is not None:
            self.tally.probability = sampling.probability
            self._failure += sampling.failure
        return self._send(orders, exact, review)

    def _send(self, orders: Mapping[int, Rule], exact: Flags, review: float) -> Wish:
        """Note the orders, if any, and send them with or without a call for an answer."""
        self._ordered += len(orders)
        for site, rule in orders.items():
            self._light[site] = isinstance(rule, Sample)
            self._away[site] = rule != self._rule
            self.tally.widen(site, rule)
        if not orders:
            self._set_marks(review)
            return None
        self._arranged = max(self.tally.value(), 1.0)
        if self._light.all():
            (self._called,) = set(orders.values())  # one for all
            self._set_marks(review)
            return EndRound()
        silent = {i for i, rule in orders.items() if exact[i] and isinstance(rule, Growth)}
        self._set_marks(review)
        if len(silent) == len(orders) and self.tally.excess() > 0:
            silent = set()  # the answers tell when to narrow
        self._pending = set(orders) - silent
        return RuleChange(
            {i: rule for i, rule in orders.items() if i in silent},
            {i: rule for i, rule in orders.items() if i not in silent},
        )

    def _set_marks(self, review: float) -> None:
        draws = self._sampling.draws if self._sampling else UNREACHABLE_COUNT
        heard = UNREACHABLE_COUNT
        if self._away.any():
            words = self._remaining_words(self._away) - self._reserve_words
            heard = self.tally.heard + max(words, 1)
        self.tally.marks = Marks(self._room(), draws, heard, value=review)

    def _room(self) -> int:
        """Twice what sampling leaves of alpha N for the windows, in fixed point."""
        if self._sampling is None:
            return 0
        t = self.tally
        taken = 2.0 * FIXED_POINT_ONE * self._sampling.slack / self._sampling.probability
        return (t.up - t.down) * t.base - math.ceil(taken * (1.0 + 1e-12))


# The two trackers --------------------------------------------------------------------------------


def automatic_tracker(sites: int, alpha: float, delta: float, horizon: float) -> Mixed:
    """The tracker that chooses by itself: windows, sampling, or windows for the busy sites only.

    It begins with centred windows, and changes to what is cheapest for the loads it has seen
    whenever the count has grown a little.
    """
    return Mixed(sites, alpha, LightSites(min(alpha, MAX_ALPHA), delta, horizon))


def allocated_tracker(sites: int, alpha: float) -> Mixed:
    """The square-root-allocated deterministic tracker: windows only, as wide as loads ask for.

    It costs (sum of sqrt w)^2 / (2 alpha) words for each factor e of N, where w are the sites'
    shares of the load. For 1,024 sites that is half of what centred windows take at Zipf's law, and
    a seventh at exponent 1.5. Even loads and single sites cost what they cost with centred windows.
    """
    return Mixed(sites, alpha, plan_windows)
