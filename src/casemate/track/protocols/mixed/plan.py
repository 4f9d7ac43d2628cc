"""What a mixed tracker does until it plans again: who is sampled, and who has which window."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from casemate.track.instruction import ONE, Growth, Rule, Sample
from casemate.track.protocols.windows import FILL, worthwhile_widths
from casemate.track.tally import Flags, Floats, SiteTally

REVIEW = 1.25
"""The growth of the count after which loads are looked at again."""

SHORTEST = float(np.log(2.0))
"""A plan is made as if it lasted until the count has doubled, or has grown as it did since the last
order, whichever is more: what has lasted will probably last."""


_SIGNIFICANT = 3.0  # deviations that the variance of even loads is seldom beyond


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
        return max(SHORTEST, self.lasted)


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
        return _without_chance(self._loads) / max(float(self._loads.sum()), 1.0)


def _without_chance(loads: Floats) -> Floats:
    """Loads that differ no more than even ones do by chance (as the roots of counts) are even."""
    mean, variance = float(loads.mean()), float(loads.var())
    by_chance = mean + _SIGNIFICANT * np.sqrt((2.0 * mean + 1.0) * mean / len(loads))
    kept = 1.0 - mean / variance if variance > by_chance else 0.0
    return mean + kept * (loads - mean)


def plan_windows(view: LoadView) -> MixedPlan:
    """Nobody is sampled: every site keeps a window, as wide as pays."""
    light = np.zeros(len(view.counts), dtype=np.bool_)
    return MixedPlan(light, None, widths_beside(view, light, 0.0), REVIEW * view.tally.value())


def go_on(view: LoadView) -> MixedPlan:
    """Sampling goes on as it is, beside windows that fit into what it leaves now."""
    t = view.tally
    limit = ((t.up - t.down) * t.low + t.marks.room) / t.down
    widths = _widths(view, t.sampled, max(limit, 0.0))
    return MixedPlan(t.sampled.copy(), view.sampling, widths, REVIEW * t.value())


def widths_beside(view: LoadView, light: Flags, taken: float) -> Floats:
    """Widths for the sites that are not light, where the light ones take so much of the error."""
    t = view.tally
    held = float(np.where(light | t.sampled, view.counts, t.known).sum())
    limit = ((t.up - t.down) * held - (t.up + t.down) * taken) / t.down
    return _widths(view, light, max(limit, 0.0))


def _widths(view: LoadView, light: Flags, limit: float) -> Floats:
    t, heavy = view.tally, ~light
    free = t.sampled  # these get an order and answer in any case
    now = np.where(free, 0.0, t.top - t.known)
    prices = np.where(free, 0.0, np.where(now > 0, 2.0, 1.0))
    widths = np.zeros(len(now))
    widths[heavy] = worthwhile_widths(
        view.loads[heavy], now[heavy], prices[heavy], limit, view.span * t.value()
    )
    return _whole(widths, view.counts, FILL * limit)


def _whole(widths: Floats, counts: Floats, total: float) -> Floats:
    """Whole widths with at most this sum, none beyond its count."""
    capped = np.minimum(widths, counts)
    rounded = np.rint(capped)
    return rounded if float(rounded.sum()) <= total else np.floor(capped)


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
    changed = tally.sampled | ((tally.top - tally.known != plan.widths) & (tally.known > 0))
    for site in np.flatnonzero(changed & ~plan.light).tolist():
        count = round(float(counts[site])) if tally.sampled[site] else int(tally.known[site])
        orders[site] = window(max(count, 1), int(plan.widths[site]))
    return orders


def window(count: int, width: int) -> Growth:
    """The window of this width at this count, which grows with it.

    >>> window(1000, 7).top(1000)
    1007
    """
    return Growth(ONE - -ONE * width // count, ONE)
