"""The search for cheap rounds, by an approximation; `tuned_design` proves what it finds."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.track.robust.tuned_search_kernel import cheapest

Floats = NDArray[np.float64]
_PLACES = np.arange(13.0)


@dataclass(frozen=True)
class Found:
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
) -> Found | None:
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
        found = Found(int(thresholds[j]), int(phases[m]), float(scales[i]), float(cost))
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
