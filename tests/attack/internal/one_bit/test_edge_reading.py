from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from casemate.attack.one_bit.edge_table import bit_reading, law_moments, uniform_moments
from casemate.attack.one_bit.laws import Exponential, Gaussian, Law, Uniform

offsets = st.floats(-2.0, 2.0)
deviations = st.floats(0.01, 3.0)


def slow_moments(law: Law, offset: float, deviation: float) -> list[float]:
    """Adaptive quadrature, told where the corners are."""
    corners = [(offset - edge) / deviation for edge in law.edges if np.isfinite(edge)]
    inside = sorted({-9.0, 9.0, *(corner for corner in corners if abs(corner) < 9)})

    def part(power: int, low: float, high: float) -> float:
        def height(v: float) -> float:
            above = 1 - float(law.cdf(offset - deviation * v))
            return float(v**power * stats.norm.pdf(v) * above)

        return float(integrate.quad(height, low, high, limit=200)[0])

    ends = list(pairwise(inside))
    return [sum(part(power, low, high) for low, high in ends) for power in range(3)]


@given(offsets, deviations)
def test_the_closed_form_is_the_integral(offset: float, deviation: float) -> None:
    found = uniform_moments(1.0, offset, deviation)
    assert found == pytest.approx(slow_moments(Uniform(1.0), offset, deviation), abs=1e-7)


@pytest.mark.parametrize("law", [Uniform(1.0), Exponential(1.0), Gaussian(1.0)])
@pytest.mark.parametrize("deviation", [0.01, 0.3, 2.0])
def test_the_quadrature_is_the_integral_up_to_its_corners(law: Law, deviation: float) -> None:
    for offset in (-0.6, 0.0, 0.95):
        found = law_moments(law, np.array([offset]), deviation)[0]
        assert found == pytest.approx(slow_moments(law, offset, deviation), abs=2e-3)


def test_without_noise_a_bit_is_a_cut() -> None:
    nearly, sharp = uniform_moments(1e-5, 0.3, 1.0), uniform_moments(1e-9, 0.3, 1.0)
    assert nearly == pytest.approx(sharp, abs=1e-6)
    assert sharp[0] == pytest.approx(stats.norm.sf(0.3), abs=1e-12)


@given(offsets, deviations)
def test_what_both_bits_leave_is_what_there_was(offset: float, deviation: float) -> None:
    """The mean stays in place on average, and the variance splits (the law of total variance)."""
    moments = uniform_moments(1.0, offset, deviation)
    above, step_above, lost_above, step_below, lost_below, _ = bit_reading(moments, 1.0, False)
    below = 1 - above
    if min(above, below) < 1e-6:
        return
    assert above * step_above + below * step_below == pytest.approx(0, abs=1e-9)
    left = above * (1 - lost_above) + below * (1 - lost_below)
    moved = above * step_above**2 + below * step_below**2
    assert left + moved == pytest.approx(1, abs=1e-6)


def test_a_bit_that_cannot_be_is_not_read() -> None:
    chance, *moves, _ = bit_reading(uniform_moments(1.0, 2.0, 0.01), 1.0, False)
    assert chance < 1e-9
    assert moves[:2] == [0.0, 0.0]
    assert moves[2:] == pytest.approx((0.0, 0.0), abs=1e-6)
