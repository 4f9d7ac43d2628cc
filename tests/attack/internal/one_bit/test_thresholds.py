"""Where to ask under a known law, and how each bit is read."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from casemate.attack.one_bit.laws import (
    Exponential,
    Gaussian,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
    effective_scale,
)
from casemate.attack.one_bit.thresholds import (
    NEARLY_BEST_GAIN,
    OFFSET_COLUMN,
    TABLE_WIDTHS,
    UPPER_CHANCE_COLUMN,
    EdgeRule,
    _row,
    bit_reading,
    edge_rule,
    law_moments,
    place_threshold,
    table_row,
    uniform_moments,
    uniform_reading,
    widths,
)

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


# The table of a law -------------------------------------------------------------------------------


def rule(law: Law, *deviations: float) -> EdgeRule:
    """The rule of a law by its table, of which only the rows of these deviations are made."""
    rows = np.zeros((TABLE_WIDTHS, 2, 8))
    for row in {table_row(deviation / law.scale) for deviation in deviations}:
        rows[row] = _row(law, widths()[row] * law.scale)
    return 0.0, law.scale, effective_scale(law) ** 2, rows, False


def gain(law: Law, offset: float, deviation: float) -> float:
    chance, first, _ = law_moments(law, np.array([offset]), deviation)[0]
    return float(first**2 / (chance * (1 - chance)))


def test_every_row_is_found_by_its_own_width() -> None:
    assert [table_row(width) for width in widths()] == list(range(TABLE_WIDTHS))
    assert (table_row(0.0), table_row(1e9)) == (0, TABLE_WIDTHS - 1)


@pytest.mark.parametrize(
    "law", [Uniform(2.0), Exponential(3.0), Truncated(Gaussian(1.0), -2.0, 2.0), Gaussian(5.0)]
)
def test_no_offset_is_much_better_than_that_of_the_table(law: Law) -> None:
    low, high = (float(law.quantile(p)) for p in (0.001, 0.999))
    for width in (0.003, 0.1, 1.0):
        deviation = width * law.scale
        rows = rule(law, deviation)[3][table_row(width)]
        found = max(gain(law, float(row[OFFSET_COLUMN]), deviation) for row in rows)
        best = max(gain(law, offset, deviation) for offset in np.linspace(low, high, 400))
        assert found >= NEARLY_BEST_GAIN * 0.97 * best


def test_the_table_of_uniform_noise_is_its_closed_form() -> None:
    closed, deviations = edge_rule(Uniform(3.0)), (1e-5, 1e-3, 0.1, 0.5)
    table = rule(Uniform(3.0), *deviations)
    for deviation in deviations:
        for draw in (0.1, 0.9):
            offset, found = place_threshold(table, deviation, draw)
            assert offset == pytest.approx(
                place_threshold(closed, deviation, draw)[0], abs=0.15 * deviation
            )
            exact = uniform_reading(closed, offset, deviation, draw)
            assert found == pytest.approx(exact, rel=0.1, abs=1e-6)


def test_smooth_noise_is_asked_at_its_median() -> None:
    rows = rule(Gaussian(1.0), *np.geomspace(1e-6, 20, 40).tolist())[3]
    offsets, fair = np.abs(rows[:, :, OFFSET_COLUMN]), rows[:, 0, 0] == 0.5
    assert offsets.max() < 0.5
    assert offsets[fair].max() == pytest.approx(0, abs=1e-9)


def test_noise_with_one_edge_is_asked_there() -> None:
    law = Exponential(1.0)
    table = rule(law, 1e-3)
    assert table[3][table_row(1e-3), 0, UPPER_CHANCE_COLUMN] == 0.0
    assert place_threshold(table, 1e-3, 0.9)[0] == pytest.approx(law.edges[0], abs=3e-3)


def test_noise_with_two_humps_is_asked_on_a_hump() -> None:
    law = two_humps(Gaussian(0.4))
    offset, _ = place_threshold(rule(law, 0.01), 0.01, 0.1)
    assert 0.5 < offset < 1.5
    assert gain(law, offset, 0.01) > 100 * gain(law, 0.0, 0.01)


def two_humps(law: Law) -> Law:
    return MixtureLaw((Shifted(law, -1.0), Shifted(law, 1.0)), (0.5, 0.5))
