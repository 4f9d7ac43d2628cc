"""Scales put values between 0 and 1, and name round ones."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.report.plots import Bands, LinearScale, Logarithmic, Scale

FINITE = st.floats(1e-6, 1e9)


def named(scale: Scale) -> list[str]:
    return [tick.label for tick in scale.ticks()]


def test_a_linear_scale_names_round_numbers() -> None:
    assert named(LinearScale(0, 20)) == ["0", "5", "10", "15", "20"]
    assert named(LinearScale(0, 1)) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert named(LinearScale(-1, 1)) == ["-1", "-0.5", "0", "0.5", "1"]
    assert named(LinearScale(0, 20_000)) == ["0", "5,000", "10,000", "15,000", "20,000"]
    assert LinearScale(10, 20).share(15) == 0.5


def test_a_linear_scale_over_counts_begins_at_nothing() -> None:
    assert (LinearScale.over([]).high, LinearScale.over([0]).high) == (1, 1)
    assert LinearScale.over([7, 93]).high == 100


def test_a_logarithmic_scale_names_powers_of_ten() -> None:
    assert named(Logarithmic(1, 10_000)) == ["1", "10", "100", "1,000", "10,000"]
    assert named(Logarithmic(0.01, 10)) == ["0.01", "0.1", "1", "10"]
    assert named(Logarithmic(1e-9, 1e9))[:2] == ["10⁻⁹", "10⁻⁶"]
    assert Logarithmic(1, 100).share(10) == pytest.approx(0.5)


def test_a_short_logarithmic_scale_names_more() -> None:
    assert named(Logarithmic(1, 10)) == ["1", "2", "5", "10"]
    assert named(Logarithmic(3, 40)) == ["5", "10", "20"]


def test_bands_stand_side_by_side() -> None:
    bands = Bands(("a", "b", "c", "d"))
    assert [bands.share(tick.value) for tick in bands.ticks()] == [0.125, 0.375, 0.625, 0.875]
    assert named(bands) == ["a", "b", "c", "d"]


@given(FINITE, FINITE)
def test_named_values_lie_on_the_axis_and_are_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high <= low * (1 + 1e-6):
        return
    for scale in (LinearScale(low, high), Logarithmic(low, high), LinearScale.over([high])):
        shares = [scale.share(tick.value) for tick in scale.ticks()]
        assert shares == sorted(shares) and len(shares) <= 9
        assert all(-1e-6 <= share <= 1 + 1e-6 for share in shares)


@given(st.lists(FINITE, min_size=1))
def test_a_scale_over_values_holds_them(values: list[float]) -> None:
    scale = LinearScale.over(values)
    assert scale.share(max(values)) <= 1 + 1e-9
    assert scale.share(max(values)) >= 0.5 or math.isclose(scale.high, 1)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (math.nan, 1)])
def test_a_linear_scale_without_room_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="low < high"):
        LinearScale(*ends)


@pytest.mark.parametrize("ends", [(0, 1), (-1, 1), (2, 1)])
def test_a_logarithmic_scale_needs_positive_ends(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="0 < low < high"):
        Logarithmic(*ends)
