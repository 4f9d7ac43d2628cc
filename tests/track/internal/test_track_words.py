"""Words drawn: rows on a scale of ratios, and names that do not cover each other."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.report import Logarithmic, Plot, Tone
from casemate.track.modes import plan, tuned_curve
from casemate.track.report import (
    LINE,
    SITES,
    ProtocolRow,
    apart,
    curves,
    end_names,
    ratios,
    rows_drawn,
)
from casemate.track.setting import Setting

places = st.lists(st.floats(0, 1000), min_size=1, max_size=12).map(sorted)


def test_rows_stand_below_each_other_in_their_order_and_dots_by_their_words() -> None:
    rows = [
        ProtocolRow("few", 10, Tone.STRONG),
        ProtocolRow("some", 100),
        ProtocolRow("many", 1000, Tone.SOFT),
    ]
    drawn = ET.fromstring(rows_drawn("words", "Words", rows))
    dots = {each.attrib["class"]: each.attrib for each in drawn.iter("circle")}
    heights = [float(dots[tone]["cy"]) for tone in ("strong", "plain", "soft")]
    across = [float(dots[tone]["cx"]) for tone in ("strong", "plain", "soft")]
    assert heights == sorted(heights) and len(set(heights)) == 3
    assert abs((across[1] - across[0]) - (across[2] - across[1])) < 0.02  # equal ratios
    values = [each.text for each in drawn.iter("text") if each.attrib.get("class") == "value"]
    assert values == ["1,000", "100", "10"]
    assert drawn.findtext("desc") == "few: 10; some: 100; many: 1,000."


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=5))
def test_a_scale_of_ratios_has_room_for_every_number_of_words(values: list[float]) -> None:
    scale = ratios(values)
    assert all(0 < scale.share(max(1.0, value)) < 1 for value in values)


@given(places, st.floats(1, 50))
def test_names_are_moved_apart_and_keep_their_order_and_their_middle(
    given_places: list[float], gap: float
) -> None:
    moved = apart(given_places, gap)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(moved))
    assert abs(sum(moved) - sum(given_places)) < 1e-6 * (1 + sum(given_places))


def test_names_with_room_are_not_moved() -> None:
    assert apart([10.0, 40.0, 100.0], 14) == [10.0, 40.0, 100.0]


def test_two_curves_that_end_in_one_point_have_two_names() -> None:
    plot = Plot(Logarithmic(1, 10), Logarithmic(1, 10))
    names = ET.fromstring(end_names(plot, [("one", (10, 5), "a"), ("other", (10, 5), "b")]))
    first, second = names.iter("text")
    assert {first.text, second.text} == {"one", "other"}
    assert abs(float(second.attrib["y"]) - float(first.attrib["y"]) - LINE) < 0.02


def test_a_curve_goes_through_what_is_planned_and_auto_is_the_better_of_its_two() -> None:
    setting = Setting(sites=64, alpha=0.1, delta=0.05, items=10**5)
    planned = {each.mode: each.words for each in plan(64, 0.1, 0.05, 10**5)}
    found = {curve.mode: dict(curve.points) for curve in curves(setting, (16, 64, 4096))}
    assert set(found) == {"auto", "deterministic", "sampled", "robust", "robust-tuned"}
    drawn = {mode: points[64] for mode, points in found.items()}
    assert drawn["sampled"] == planned["sampled"] and drawn["robust"] == planned["robust"]
    assert drawn == pytest.approx({mode: planned[mode] for mode in drawn}, rel=0.1)
    for sites, words in found["auto"].items():
        assert words == min(found["deterministic"][sites], found["sampled"][sites])
    assert SITES[0] == 4 and SITES[-1] == 65_536


@pytest.mark.parametrize("horizon", [1, 40, 10**4])
def test_before_rounds_begin_the_tuned_tracker_costs_what_windows_cost(horizon: int) -> None:
    assert 0 < tuned_curve(Setting(16, 0.01, 0.01, horizon)) <= horizon
