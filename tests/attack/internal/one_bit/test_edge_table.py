import math

import numpy as np
import pytest

from casemate.attack.one_bit.edge_table import (
    LEAN,
    NEARLY,
    OFFSET,
    ROWS,
    EdgeRule,
    edge_rule,
    edge_table,
    law_moments,
    place_threshold,
    reading_at,
    row_of,
    widths,
)
from casemate.attack.one_bit.laws import (
    Exponential,
    Gaussian,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
)


def gain(law: Law, offset: float, deviation: float) -> float:
    chance, first, _ = law_moments(law, np.array([offset]), deviation)[0]
    return float(first**2 / (chance * (1 - chance)))


def test_every_row_is_found_by_its_own_width() -> None:
    assert [row_of(width) for width in widths()] == list(range(ROWS))
    assert (row_of(0.0), row_of(1e9)) == (0, ROWS - 1)


@pytest.mark.parametrize(
    "law", [Uniform(2.0), Exponential(3.0), Truncated(Gaussian(1.0), -2.0, 2.0), Gaussian(5.0)]
)
def test_no_offset_is_much_better_than_that_of_the_table(law: Law) -> None:
    table = edge_table(law)
    low, high = (float(law.quantile(p)) for p in (0.001, 0.999))
    for width in (0.003, 0.1, 1.0):
        deviation = width * law.scale
        rows = table[row_of(width)]
        found = max(gain(law, float(row[OFFSET]), deviation) for row in rows)
        tried = np.linspace(low, high, 400)
        assert found >= NEARLY * 0.97 * max(gain(law, offset, deviation) for offset in tried)


def test_the_table_of_uniform_noise_is_its_closed_form() -> None:
    closed = edge_rule(Uniform(3.0))
    table = EdgeRule(0.0, closed.scale, closed.noise, edge_table(Uniform(3.0)))
    for deviation in (1e-5, 1e-3, 0.1, 0.5):
        for draw in (0.1, 0.9):
            offset, found = place_threshold(tuple(table), deviation, draw)
            assert offset == pytest.approx(
                place_threshold(tuple(closed), deviation, draw)[0], abs=0.15 * deviation
            )
            exact = reading_at(Uniform(3.0), deviation, offset)
            assert found == pytest.approx(exact, rel=0.1, abs=1e-6)


def test_smooth_noise_is_asked_at_its_median() -> None:
    rows = edge_rule(Gaussian(1.0)).rows
    assert np.abs(rows[:, :, OFFSET]).max() < 0.5
    assert np.abs(rows[rows[:, 0, 0] == 0.5][:, :, OFFSET]).max() == pytest.approx(0, abs=1e-9)


def test_noise_with_one_edge_is_asked_there() -> None:
    rule, law = edge_rule(Exponential(1.0)), Exponential(1.0)
    assert rule.rows[row_of(1e-3), 0, LEAN] == 0.0
    assert place_threshold(tuple(rule), 1e-3, 0.9)[0] == pytest.approx(law.edges[0], abs=3e-3)


def test_noise_with_two_humps_is_asked_on_a_hump() -> None:
    law = two_humps(Gaussian(0.4))
    offset, _ = place_threshold(tuple(edge_rule(law)), 0.01, 0.1)
    assert 0.5 < offset < 1.5
    assert gain(law, offset, 0.01) > 100 * gain(law, 0.0, 0.01)


def two_humps(law: Law) -> Law:
    return MixtureLaw((Shifted(law, -1.0), Shifted(law, 1.0)), (0.5, 0.5))


def test_any_threshold_can_be_read() -> None:
    chance, step_above, _, step_below, _, _ = reading_at(Exponential(1.0), 0.1, 0.4)
    assert 0 < chance < 0.5
    assert math.isfinite(step_above) and step_above > 0 > step_below


def test_the_closed_form_is_taken_where_there_is_one() -> None:
    assert edge_rule(Uniform(2.0)).bound == 2.0
    assert edge_rule(Gaussian(2.0)).bound == 0.0
