"""The search for cheap rounds finds what going through every combination finds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from casemate.track.protocols.tuned.design import around, cheapest, cheapest_silent, rate, whole

SCALES = np.geomspace(0.15, 6.0, 9)
THRESHOLDS = np.unique(np.geomspace(1, 60, 14).round())
PHASES = np.unique(np.geomspace(1, 200, 15).round())


def strays(scale: float, room: float, slope: float, phases: float) -> float:
    """About how likely the lengths of phases stray, as docs/derivations/robust_tuned.md has it."""
    ratio = math.exp(-1 / scale)
    deviation = math.sqrt(2 * ratio / (1 - ratio) ** 2 * phases)

    def excess(t: float) -> float:
        spread = (1 - ratio * math.exp(t)) * (1 - ratio * math.exp(-t))
        return 2 * math.log1p(-ratio) - math.log(spread) - t * slope

    decay = brentq(excess, 1e-9, 1 / scale - 1e-12) if slope > 0 else 0.0
    late = norm.sf((room + slope * phases) / deviation)
    early = math.exp(-decay * room) * norm.sf((room - slope * phases) / deviation)
    return float(2 * (late + early))


def cheapest_of_all(
    sites: int, alpha: float, target: float, budget: float, grows: bool
) -> tuple[float, tuple[int, int, int]]:
    """Every combination of the grids, one after the other."""
    best, where = math.inf, (-1, -1, -1)
    for i, scale in enumerate(SCALES):
        slack = sites * math.tanh(0.25 / scale) + 0.3 * math.sqrt(sites)
        for j, threshold in enumerate(THRESHOLDS):
            room = budget - slack - (1 - alpha) * (threshold - 1) / 2
            slope = alpha * (threshold - 1) if grows else 0.0
            for m, phases in enumerate(PHASES):
                cost = float(rate(sites, alpha, budget, threshold, phases))
                right = room > slope and strays(scale, room - slope, slope, phases) <= target
                if right and cost < best:
                    best, where = cost, (i, j, m)
    return best, where


@pytest.mark.parametrize("grows", [True, False])
@pytest.mark.parametrize(
    ("sites", "alpha", "target", "budget"),
    [(64, 0.05, 1e-3, 40.0), (20, 0.2, 1e-2, 25.0), (100, 0.01, 1e-5, 90.0), (9, 0.1, 1e-4, 3.0)],
)
def test_the_cheapest_is_that_of_all(
    sites: int, alpha: float, target: float, budget: float, grows: bool
) -> None:
    spread = 0.3 * math.sqrt(sites)
    grids = (SCALES, THRESHOLDS, PHASES)
    found = cheapest(sites, alpha, target, budget, spread, *grids, grows)
    assert found == cheapest_of_all(sites, alpha, target, budget, grows)


def test_without_noise_too() -> None:
    thresholds, phases = np.array([3, 6, 9, 12]), np.arange(1, 60)
    j, m = cheapest_silent(7, 0.1, 12.5, thresholds, phases)
    costs = [[rate(7, 0.1, 12.5, t, c) for c in phases.tolist()] for t in thresholds.tolist()]
    assert costs[j][m] == np.min(costs)


@given(st.floats(0.01, 10.0), st.floats(1.01, 1e4), st.integers(0, 12))
def test_a_finer_grid_is_one_of_ratios(low: float, wide: float, place: int) -> None:
    grid = np.geomspace(low, low * wide, 13)
    finer = around(grid, place)
    neighbours = grid[max(place - 1, 0)], grid[min(place + 1, 12)]
    assert finer.tolist() == np.geomspace(*neighbours, 13).tolist()


@given(st.floats(0.5, 10.0), st.floats(1.01, 1e4))
def test_whole_numbers_come_once_and_in_order(low: float, wide: float) -> None:
    grid = np.geomspace(low, low * wide, 30)
    assert whole(grid).tolist() == np.unique(grid.round()).tolist()
