"""Simulated trackers and their predicted words: as text, as objects, and as pages."""

import json
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rendered import forms, sections, words
from track.trackings import SETTING, forecasts, simulation

from casemate.report.plots import Logarithmic, Plot
from casemate.track.modes import BREAKS, MODES, plan
from casemate.track.report import (
    CURVE_SITES,
    LINE_HEIGHT,
    RUNS_DRAWN,
    WordsCurve,
    apart,
    curves,
    end_names,
    evenly_apart,
    plan_report,
    ratios,
    simulation_report,
)
from casemate.track.setting import Setting

plan_text, plan_json, plan_html = forms(plan_report)
simulation_text, simulation_json, simulation_html = forms(simulation_report)

DRAWN = ("deterministic", "sampled", "robust", "robust-tuned", "auto")
CURVES = [
    WordsCurve(mode, ((4, 100.0 * i), (1024, 3000.0 * i), (65536, 40000.0 * i)))
    for i, mode in enumerate(DRAWN, start=1)
]


def test_the_text_of_runs_says_words_errors_and_kinds() -> None:
    assert simulation_text(simulation(0.5, 1.25)) == (
        "sampled against stop-on-change: 1,628 words for 100,000 items at 64 sites "
        "(0.0163 words an item)\n"
        "largest error at any time: 1.250 alpha (alpha = 0.05)\n"
        "runs that ever were off by more: 1 of 2\n"
        "\n"
        "    report           1,500\n"
        "      call              64\n"
        "    answer              64\n"
        "      rule               0\n"
        "\n"
        "2 rounds, 1.2 s"
    )


def test_the_object_of_runs_has_means_the_largest_error_and_the_setting() -> None:
    fields = simulation_json(simulation(0.5, 1.25))
    assert fields == {
        "schema": "casemate.track-simulation/1",
        "mode": "sampled",
        "adversary": "stop-on-change",
        "sites": 64,
        "alpha": 0.05,
        "delta": 0.02,
        "items": 100_000,
        "runs": 2,
        "finished": True,
        "words": 1628.0,
        "words_by_kind": {"report": 1500.0, "call": 64.0, "answer": 64.0, "rule": 0.0},
        "max_error_over_alpha": 1.25,
        "violations": 1,
        "rounds": 1.5,
        "seconds": 1.25,
    }
    assert json.loads(json.dumps(fields, allow_nan=False)) == fields
    assert simulation_json(simulation(1.0))["violations"] == 0


def test_a_plan_is_a_table_and_an_object_with_every_mode_and_its_promise() -> None:
    lines = plan_text(forecasts()).splitlines()
    assert lines[0].split() == ["mode", "words", "of", "the", "cheapest", "within", "alpha"]
    assert [line.split()[0] for line in lines[1:]] == [each.mode for each in forecasts()]
    assert lines[2].split()[1:3] == ["2,000", "2.00x"] and lines[2].endswith(f"  {BREAKS}")
    fields = plan_json(forecasts())
    modes = fields.pop("modes")
    assert fields == {
        "schema": "casemate.track-plan/1",
        "sites": 64,
        "alpha": 0.05,
        "delta": 0.02,
        "horizon": 100_000,
    }
    promises = {each["mode"]: each["promise"] for each in modes}
    assert promises == {name: mode.promise for name, mode in MODES.items()}
    assert [each["words"] for each in modes] == [1000.0 * (i + 1) for i in range(len(MODES))]


# Pages ------------------------------------------------------------------------------------------


def drawing(page: str, name: str) -> ET.Element:
    """The drawing of this section."""
    found = ET.fromstring(page).find(f".//section[@id='{name}']//svg")
    assert found is not None
    return found


def labels(drawn: ET.Element) -> set[str | None]:
    return {each.text for each in drawn.iter("text")}


def dots(page: str, name: str) -> list[tuple[str, float]]:
    """The tone and the height of each dot."""
    return [(e.attrib["class"], float(e.attrib["cy"])) for e in drawing(page, name).iter("circle")]


def test_the_page_of_runs_says_what_was_sent_and_how_far_it_was_off() -> None:
    page = simulation_html(simulation(1.5, 0.25, 0.75), forecasts())
    assert sections(page) == ["words", "errors", "compared", "assumptions"]
    assert "sampled against stop-on-change: 2,128 words for 100,000 items at 64 sites" in words(
        page
    )
    assert "Runs that ever were off by more: 1 of 3." in words(page)
    assert "adversary stop-on-change chose the site of each item" in words(page)
    assert {"report", "call", "answer", "rule", "2,000", "64", "0"} <= labels(
        drawing(page, "words")
    )
    (line,) = drawing(page, "errors").iter("polyline")
    level, found = float(line.attrib["points"].split(",")[1].split()[0]), dots(page, "errors")
    assert [tone for tone, _ in found] == ["plain", "plain", "strong"]
    assert found[0][1] > found[1][1] > level > found[2][1]
    compared = dots(page, "compared")
    assert min(compared, key=lambda dot: dot[1])[0] == "strong"  # measured, above what is predicted
    assert [tone for tone, _ in compared].count("soft") == 2  # those that break
    assert len(compared) == len(MODES) + 1
    assert {"sampled, measured", *MODES} <= labels(drawing(page, "compared"))


def test_runs_that_keep_their_promise_say_so_and_who_promises_nothing_too() -> None:
    page = words(simulation_html(simulation(0.5, 1.0), forecasts()))
    promise = "with probability 1 - delta, whoever adapts to counts and messages (delta = 0.02)."
    assert "Runs that ever were off by more: 0 of 2." in page and promise in page
    assert "0 of 2 runs passed it; each may with probability 0.02 at most." in page
    page = words(simulation_html(simulation(7.4, mode="block"), forecasts()))
    assert "This protocol promises nothing against somebody who adapts." in page


def test_of_very_many_runs_some_are_drawn_the_best_and_the_worst_among_them() -> None:
    ranked = [(i, i / 5000) for i in range(1, 5001)]
    shown = evenly_apart(ranked, RUNS_DRAWN)
    assert len(shown) == len(set(shown)) == RUNS_DRAWN
    assert shown[0] == ranked[0] and shown[-1] == ranked[-1]
    assert evenly_apart(ranked[:RUNS_DRAWN], RUNS_DRAWN) == ranked[:RUNS_DRAWN]


def test_the_page_of_a_plan_names_the_cheapest_that_promises_something() -> None:
    page = plan_html(forecasts(), CURVES)
    assert sections(page) == ["words", "growth", "promises", "assumptions"]
    (headline,) = ET.fromstring(page).iter("h1")
    assert (
        "".join(headline.itertext())
        == "auto is predicted to send 3,000 words for 100,000 items at 64 sites."
    )
    tones = [tone for tone, _ in dots(page, "words")]
    assert (tones.count("strong"), tones.count("soft"), len(tones)) == (1, 2, len(MODES))
    drawn = drawing(page, "growth")
    assert len(list(drawn.iter("polyline"))) == len(list(drawn.iter("circle"))) == len(CURVES)
    assert {"64", *DRAWN} <= labels(drawn)
    promises = ET.fromstring(page).iterfind(".//section[@id='promises']//tbody/tr")
    rows = [[*each.itertext()] for each in promises]
    assert {row[0]: row[-1] for row in rows} == {name: m.promise for name, m in MODES.items()}
    assert [row[2] for row in rows[:4]] == ["1.00x", "2.00x", "3.00x", "4.00x"]


@pytest.mark.parametrize("sites", [1, 64, 10**6])
def test_a_plan_for_fewer_or_more_sites_than_the_curves_have_is_drawn_too(sites: int) -> None:
    setting = Setting(sites, SETTING.alpha, SETTING.delta, SETTING.items)
    drawn = drawing(plan_html(forecasts(setting), CURVES), "growth")
    (x,) = {float(each.attrib["cx"]) for each in drawn.iter("circle")}
    assert 50 < x < 640


# Words drawn ------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e15), min_size=1, max_size=5))
def test_a_scale_of_ratios_has_room_for_every_number_of_words(values: list[float]) -> None:
    scale = ratios(values)
    assert all(0 < scale.share(max(1.0, value)) < 1 for value in values)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=12).map(sorted), st.floats(1, 50))
def test_names_are_moved_apart_and_keep_their_order_and_their_middle(
    places: list[float], gap: float
) -> None:
    moved = apart(places, gap)
    assert all(b - a >= gap - 1e-6 for a, b in pairwise(moved))
    assert abs(sum(moved) - sum(places)) < 1e-6 * (1 + sum(places))


def test_two_curves_that_end_in_one_point_have_two_names() -> None:
    plot = Plot(Logarithmic(1, 10), Logarithmic(1, 10))
    names = ET.fromstring(end_names(plot, [("one", (10, 5), "a"), ("other", (10, 5), "b")]))
    first, second = names.iter("text")
    assert {first.text, second.text} == {"one", "other"}
    assert abs(float(second.attrib["y"]) - float(first.attrib["y"]) - LINE_HEIGHT) < 0.02


def test_a_curve_goes_through_what_is_planned_and_auto_is_the_better_of_its_two() -> None:
    setting = Setting(sites=64, alpha=0.1, delta=0.05, items=10**5)
    planned = {each.mode: each.words for each in plan(64, 0.1, 0.05, 10**5)}
    found = {curve.mode: dict(curve.points) for curve in curves(setting, (16, 64, 4096))}
    assert set(found) == set(DRAWN)
    drawn = {mode: points[64] for mode, points in found.items()}
    assert drawn == {mode: planned[mode] for mode in drawn}
    for sites, number in found["auto"].items():
        assert number == min(found["deterministic"][sites], found["sampled"][sites])
    assert CURVE_SITES[0] == 4 and CURVE_SITES[-1] == 65_536
