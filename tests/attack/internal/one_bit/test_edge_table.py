import math

import numpy as np
import pytest

from casemate.attack.one_bit.edge_table import (
    NEARLY,
    OFFSET,
    ROWS,
    TableRule,
    UniformRule,
    edge_table,
    law_moments,
    place_of,
    rule_for,
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
    assert [place_of(width) for width in widths()] == list(range(ROWS))
    assert (place_of(0.0), place_of(1e9)) == (0, ROWS - 1)


@pytest.mark.parametrize(
    "law", [Uniform(2.0), Exponential(3.0), Truncated(Gaussian(1.0), -2.0, 2.0), Gaussian(5.0)]
)
def test_no_offset_is_much_better_than_that_of_the_table(law: Law) -> None:
    table = edge_table(law)
    low, high = (float(law.quantile(p)) for p in (0.001, 0.999))
    for width in (0.003, 0.1, 1.0):
        deviation = width * law.scale
        rows = table.rows[table.place(deviation)]
        found = max(gain(law, float(row[OFFSET]), deviation) for row in rows)
        tried = np.linspace(low, high, 400)
        assert found >= NEARLY * 0.97 * max(gain(law, offset, deviation) for offset in tried)


def test_the_table_of_uniform_noise_is_its_closed_form() -> None:
    law, rule = Uniform(3.0), UniformRule(3.0)
    table = TableRule(law)
    for deviation in (1e-5, 1e-3, 0.1, 0.5):
        for upper in (True, False):
            offset = table.offset(deviation, upper)
            assert offset == pytest.approx(rule.offset(deviation, upper), abs=0.15 * deviation)
            found, part, counted = table.read(deviation, offset)
            exact, same, also = rule.read(deviation, offset)
            assert counted == also
            assert found.chance == pytest.approx(exact.chance, rel=0.1)
            for above in (True, False):
                step, shrink = (part * number for number in found.after(above))
                assert step == pytest.approx(exact.after(above)[0], rel=0.1, abs=1e-6)
                assert shrink == pytest.approx(same * exact.after(above)[1], rel=0.1, abs=1e-6)


def test_smooth_noise_is_asked_at_its_median() -> None:
    rows = edge_table(Gaussian(1.0)).rows
    assert np.abs(rows[:, :, OFFSET]).max() < 0.5
    assert np.abs(rows[rows[:, 0, 1] == 0.5][:, :, OFFSET]).max() == pytest.approx(0, abs=1e-9)


def test_noise_with_one_edge_is_asked_there() -> None:
    rule, law = TableRule(Exponential(1.0)), Exponential(1.0)
    assert rule.lean(1e-3) == 0.0
    assert rule.offset(1e-3, upper=False) == pytest.approx(law.edges[0], abs=3e-3)


def test_noise_with_two_humps_is_asked_on_a_hump() -> None:
    law = two_humps(Gaussian(0.4))
    rule = TableRule(law)
    assert 0.5 < rule.offset(0.01, upper=True) < 1.5
    best, middle = gain(law, rule.offset(0.01, True), 0.01), gain(law, 0.0, 0.01)
    assert best > 100 * middle


def two_humps(law: Law) -> Law:
    return MixtureLaw((Shifted(law, -1.0), Shifted(law, 1.0)), (0.5, 0.5))


def test_any_threshold_can_be_read() -> None:
    rule = TableRule(Exponential(1.0))
    reading, part, _ = rule.read(0.1, 0.4)
    assert 0 < reading.chance < 0.5 and 0 < part <= 1
    assert math.isfinite(reading.step_above) and reading.step_above > 0 > reading.step_below


def test_the_closed_form_is_taken_where_there_is_one() -> None:
    assert rule_for(Uniform(2.0)) == UniformRule(2.0)
    assert rule_for(Gaussian(2.0)) == TableRule(Gaussian(2.0))
