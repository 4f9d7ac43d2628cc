"""Deterministic trackers: every site's count lies in a window that the server knows.

`Windows` is the engine. How wide windows should be where only their sum is limited, which to narrow
when that sum has become too large, and what centred ones would have sent, is for trackers that
divide the error over sites by their loads.

Source     Source document 001, Section 1.1: each site reports when its count has grown by 1 + alpha
           (`paper_rule`). `centred_windows` is ours: the server publishes a value inside the
           windows instead of their lower ends, so that a window may be twice as wide.
Guarantee  Sure, against anybody. Let L be the sum of the counts reported and U the sum of the
           windows' upper ends, so that L <= N <= U. Every value in [(1 - alpha) U, (1 + alpha) L]
           is within alpha N of N, whatever N is (docs/derivations/deterministic_tracking.md).
Cost       k / (2 alpha) words for each factor e of N when loads are even and windows centred, k /
           alpha as in the source; never more than one word an item.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from casemate.track.engine import Floats, PublishedCount, SiteTally, Whole, Wish
from casemate.track.reporting_rule import FIXED_POINT_ONE, Every, Growth, Rule


def alpha_fixed_point(alpha: float) -> int:
    """Alpha in fixed point, a hair below what was asked: more than publishing a float loses."""
    return max(int(Fraction(alpha) * FIXED_POINT_ONE) - 1, 0)


def fixed_point_bounds(alpha: float) -> tuple[int, int]:
    """1 + alpha and 1 - alpha in fixed point."""
    fixed = alpha_fixed_point(alpha)
    return FIXED_POINT_ONE + fixed, FIXED_POINT_ONE - fixed


def weight_of_top(alpha: float) -> float:
    """Where the value halfway between (1 - alpha) U and (1 + alpha) L lies: 0 is L and 1 is U."""
    return (FIXED_POINT_ONE - alpha_fixed_point(alpha)) / (2 * FIXED_POINT_ONE)


def paper_rule(alpha: float) -> Growth:
    """Report when the count has grown by a factor of 1 + alpha."""
    return Growth(FIXED_POINT_ONE + alpha_fixed_point(alpha), FIXED_POINT_ONE)


def centred_rule(alpha: float) -> Growth:
    """Report when no value is within alpha of every count in the window any more."""
    return Growth(*fixed_point_bounds(alpha))


class Windows:
    """The engine of trackers whose sites all keep one window rule for ever.

    It publishes what lies at this weight between the lower and the upper ends of the windows.
    """

    def __init__(self, sites: int, rule: Every | Growth, weight: float = 0.0) -> None:
        growth = rule if isinstance(rule, Growth) else Growth(1, 1)
        self.tally = SiteTally(sites, growth.numerator, growth.denominator, weight)
        self.tally.follow(slice(None), growth)
        self._rule = rule

    def opening(self) -> Rule:
        """The one rule."""
        return self._rule

    def summons(self) -> Rule:
        """The one rule."""
        return self._rule

    def begin(self, counts: Sequence[int]) -> None:
        """Windows begin at the exact counts."""
        self.tally.begin_all(counts, self._rule)

    def hear(self, site: int, rule: Rule, begun: int, reports: int, count: int) -> Wish:  # noqa: ARG002 - one for all sites
        """Move the site's window."""
        self.tally.note(site, self._rule, begun, reports, count)
        return None

    def decide(self, site: int) -> Wish:  # noqa: ARG002 - there are no marks
        """Nothing is ever decided."""
        return None

    def estimate(self) -> PublishedCount:
        """A value inside the windows."""
        t = self.tally
        return PublishedCount(t.value(), t.low, t.high, 1.0)


def centred_windows(sites: int, alpha: float) -> Windows:
    """The engine that publishes what is halfway between (1 - alpha) U and (1 + alpha) L."""
    return Windows(sites, centred_rule(alpha), weight_of_top(alpha))


# How wide the window of each site should be, when only the sum is limited ------------------------
#
# A site with a fraction w of the load and a window of width d reports once in 1 + d items. Of all
# widths with the sum D, those with 1 + d = max(1, scale * sqrt(w)) cost the fewest reports: busy
# sites get wide windows, but not in proportion, and sites that are seldom heard of get none
# (docs/derivations/allocated_tracking.md). Where all have one, that is
# (sum of sqrt w)^2 / (D + k) reports an item.


PLANNED_WIDTH_SHARE = 0.98
"""How much of the width that there is gets planned with, for loads never stay quite the same."""


@dataclass(frozen=True)
class Widths:
    """The best widths, and what they cost."""

    widths: Floats
    reports: float  # of an item, on average
    price: float  # reports of an item that one more unit of width would save


def best_widths(loads: Floats, total: float) -> Widths:
    """The widths with this sum that cost the fewest reports.

    >>> found = best_widths(np.array([0.8, 0.2]), 7.0)
    >>> found.widths.round(6).tolist(), round(found.reports, 6)
    ([5.0, 2.0], 0.2)
    """
    scale = _scale(loads, total)
    steps = np.maximum(1.0, scale * np.sqrt(loads))
    price = scale**-2 if scale > 0 else float(loads.max(initial=0.0))
    return Widths(steps - 1.0, float((loads / steps).sum()), price)


def _scale(loads: Floats, total: float) -> float:
    """The scale at which the widths have this sum; the busiest sites share it."""
    roots = np.sort(np.sqrt(loads))[::-1]
    roots = roots[: np.count_nonzero(roots)]
    if not len(roots) or total <= 0:
        return 0.0
    scales = (total + np.arange(1, len(roots) + 1)) / np.cumsum(roots)
    sharing = np.flatnonzero(scales * roots >= 1.0)
    return float(scales[sharing[-1]]) if len(sharing) else 0.0


class LeastReports:
    """The reports of an item at the best widths, of the busiest sites only, however many."""

    def __init__(self, loads: Floats) -> None:
        roots = np.sqrt(np.sort(loads))[::-1]
        places = np.arange(1, len(roots) + 1)
        sums = np.cumsum(roots)
        with np.errstate(divide="ignore", invalid="ignore"):
            shared = np.where(roots > 0.0, sums / roots - places, np.inf)
        self._shared = np.maximum.accumulate(shared)  # from what sum of widths on each has one
        self._roots = np.concatenate([[0.0], sums])
        self.loads = np.concatenate([[0.0], np.cumsum(roots**2)])  # of so many together

    def __call__(self, sites: int, totals: Floats) -> Floats:
        """For each of these sums of widths."""
        wide = np.minimum(np.searchsorted(self._shared, totals, side="right"), sites)
        steps = np.maximum(totals + wide, 1.0)  # of nobody, 0 / 1
        found: Floats = self._roots[wide] ** 2 / steps + self.loads[sites] - self.loads[wide]
        return found


def worthwhile_widths(
    loads: Floats, now: Floats, prices: Floats, limit: float, items: float
) -> Floats:
    """Widths within a limit of their sum, changed from those of now only where it pays.

    A change costs its site's price in words, and must save more than that within so many items,
    where width is worth what the best widths make of it.
    """
    total = PLANNED_WIDTH_SHARE * limit
    best = best_widths(loads, total)

    def cost(widths: Floats) -> Floats:
        return items * (loads / (1.0 + widths) + best.price * widths)

    gains = cost(now) - cost(best.widths)
    changed = gains > prices
    remaining_width = total - float(now[~changed].sum())
    if remaining_width < float(best.widths[changed].sum()) / 2:  # too much is held by the rest
        changed = gains > 0
        remaining_width = total - float(now[~changed].sum())
    widths = now.copy()
    widths[changed] = best_widths(loads[changed], remaining_width).widths
    saved = items * float((loads / (1.0 + now) - loads / (1.0 + widths)).sum())
    too_wide = float(now.sum()) > limit
    return widths if too_wide or saved > float(prices[changed].sum()) else now


# Which windows to narrow when the sum has become too large for the count -------------------------


# of all width is set free beyond what is needed, for it will go on like this
_FREED_WIDTH_SHARE = 0.005
# of the count until the next plans: where halving a window costs its reports
_PLAN_GROWTH_SHARE = 0.7


def narrow_windows(tally: SiteTally, loads: Floats) -> dict[int, Rule]:
    """New rules for few sites, so that what is too wide is so no more, whatever they answer."""
    needed = tally.excess() + int(_FREED_WIDTH_SHARE * (tally.up - tally.down) * max(tally.low, 1))
    orders: dict[int, Rule] = {}
    for site in _cheapest(tally, loads):
        if needed <= 0:
            break
        rule = _half_window(tally, site)
        needed -= _freed_width(tally, site, rule)
        orders[site] = rule
    return orders


def _cheapest(tally: SiteTally, loads: Floats) -> list[int]:
    """The sites with a window, from the one that gives width away for the fewest words."""
    widths = np.where(tally.sampled, 0, tally.top - tally.reported)
    wide = np.flatnonzero(widths > 0)
    words = 2.0 + _PLAN_GROWTH_SHARE * tally.value() * loads[wide] / (1.0 + widths[wide])
    found: list[int] = wide[np.argsort(words / widths[wide], kind="stable")].tolist()
    return found


def _half_window(tally: SiteTally, site: int) -> Growth:
    """Half the window, or none where that would be less than one."""
    numerator, denominator = int(tally.numerator[site]), int(tally.denominator[site])
    half = Growth(denominator + (numerator - denominator) // 2, denominator)
    count = int(tally.reported[site])
    return half if half.top(count) > count else Growth(denominator, denominator)


def _freed_width(tally: SiteTally, site: int, rule: Growth) -> int:
    """By how much (1 - alpha) U - (1 + alpha) L falls at least, whatever the site answers."""
    lower, top = int(tally.reported[site]), int(tally.top[site])
    after = max(tally.down * rule.top(count) - tally.up * count for count in (lower, top))
    return tally.down * top - tally.up * lower - after


# What centred windows would have sent: the measure of what may be spent --------------------------


_MAX_LISTED_COUNT = 1 << 45  # a site's count up to which reports are listed; more are not counted


class CentredReports:
    """A site's reports under a centred window from its first item on.

    Between two reports lie as many items as the window is wide, which is a whole number, so many
    reports in a row are equally far apart. They are listed as one stretch: its first report, the
    step, and how many reports came before it.
    """

    def __init__(self, rule: Growth) -> None:
        self._growth, self._unit = rule.numerator - rule.denominator, rule.denominator
        self._stretches: list[tuple[int, int, int]] = []
        self._next = (1, 0)  # the first report that is not listed, and the reports before it
        self._list_to(1)

    def words(self, counts: Whole) -> int:
        """The reports of sites with these counts.

        >>> CentredReports(Growth(3, 1)).words(np.array([0, 1, 3, 4, 13]))
        7
        """
        farthest = min(int(counts.max(initial=0)), _MAX_LISTED_COUNT)
        if farthest >= self._next[0]:
            self._list_to(2 * farthest)
        begun = np.minimum(counts[counts > 0], self._next[0] - 1)
        at = np.searchsorted(self._firsts, begun, side="right") - 1
        return int((self._before[at] + (begun - self._firsts[at]) // self._steps[at] + 1).sum())

    def _list_to(self, count: int) -> None:
        while self._next[0] <= count:
            first, before = self._next
            step = 1 + first * self._growth // self._unit
            repeats = count  # of reports after the first: all, if the window never grows
            if self._growth:
                repeats = ((step * self._unit - 1) // self._growth - first) // step
            self._stretches.append((first, step, before))
            self._next = first + (repeats + 1) * step, before + repeats + 1
        self._firsts, self._steps, self._before = np.array(self._stretches, dtype=np.int64).T


def even_load_words(rule: Growth, sites: int, items: int) -> float:
    """The reports of windows of one rule, when items come evenly to the sites.

    >>> even_load_words(Growth(3, 1), sites=4, items=13)
    5.0
    """
    least, remainder = divmod(items, sites)  # so many sites have one item more
    fewer, most = (CentredReports(rule).words(np.array([count])) for count in (least, least + 1))
    return float((sites - remainder) * fewer + remainder * most)
