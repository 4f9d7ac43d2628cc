import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from casemate.attack.one_bit.square_root import (
    TAIL_SERIES_DEVIATIONS,
    above_moments,
    bit_moments,
    cell_moments,
)

near = st.floats(-8, 8)


def slow_moments(low: float, high: float) -> tuple[float, float, float]:
    """Mean, one minus the variance and log chance of a normal number in a cell, by integration."""
    peak = min(max(0.0, low), high)
    grid = np.linspace(max(low, peak - 12), min(high, peak + 12), 40_001)
    height = np.exp((peak * peak - grid**2) / 2)
    mass = float(integrate.simpson(height, x=grid))
    mean = float(integrate.simpson(grid * height, x=grid)) / mass
    variance = float(integrate.simpson((grid - mean) ** 2 * height, x=grid)) / mass
    return mean, 1 - variance, math.log(mass) - (peak * peak + math.log(2 * math.pi)) / 2


@given(near, st.booleans())
def test_a_bit_cuts_a_normal_law_as_integration_does(k: float, above: bool) -> None:
    low, high = (k, math.inf) if above else (-math.inf, k)
    assert bit_moments(k, above) == pytest.approx(slow_moments(low, high), rel=1e-6, abs=1e-7)


@given(near, st.floats(0.05, 8))
def test_a_cell_cuts_a_normal_law_as_integration_does(low: float, width: float) -> None:
    found = cell_moments(low, low + width)
    mean, shrink, chance = slow_moments(low, low + width)
    assert found == pytest.approx((mean, min(shrink, 0.999), chance), rel=1e-5, abs=1e-5)


def test_the_series_for_far_thresholds_joins_the_formula() -> None:
    joint = TAIL_SERIES_DEVIATIONS
    before, after = above_moments(joint), above_moments(joint + 1e-9)
    assert after == pytest.approx(before, rel=1e-4)
    assert after[2] == pytest.approx(stats.norm.logsf(joint), rel=1e-5)


@given(st.floats(-1e100, 1e100), st.booleans())
def test_no_threshold_is_too_far(k: float, above: bool) -> None:
    mean, shrink, chance = bit_moments(k, above)
    assert math.isfinite(mean) and 0 <= shrink < 1 and chance <= 0 and not math.isnan(chance)


@given(st.floats(-1e100, 1e100), st.floats(0, 1e100))
def test_no_cell_is_too_far_or_too_narrow(low: float, width: float) -> None:
    mean, shrink, chance = cell_moments(low, low + width)
    assert math.isfinite(mean) and 0 <= shrink < 1 and not math.isnan(chance)
