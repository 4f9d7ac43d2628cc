"""How wide the window of each site should be, when only the sum of the widths is limited.

A site with a fraction w of the load and a window of width d reports once in 1 + d items. Of all
widths with the sum D, those with 1 + d = max(1, scale * sqrt(w)) cost the fewest reports: busy
sites get wide windows, but not in proportion, and sites that are seldom heard of get none
(docs/derivations/allocated_tracking.md). Where all have one, that is

    (sum of sqrt w)^2 / (D + k) reports an item.
"""

from dataclasses import dataclass

import numpy as np

from casemate.track.engines.tally import Floats

FILL = 0.98
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
    total = FILL * limit
    best = best_widths(loads, total)

    def cost(widths: Floats) -> Floats:
        return items * (loads / (1.0 + widths) + best.price * widths)

    gains = cost(now) - cost(best.widths)
    changed = gains > prices
    left = total - float(now[~changed].sum())
    if left < float(best.widths[changed].sum()) / 2:  # too much is held by the rest
        changed = gains > 0
        left = total - float(now[~changed].sum())
    widths = now.copy()
    widths[changed] = best_widths(loads[changed], left).widths
    saved = items * float((loads / (1.0 + now) - loads / (1.0 + widths)).sum())
    too_wide = float(now.sum()) > limit
    return widths if too_wide or saved > float(prices[changed].sum()) else now
