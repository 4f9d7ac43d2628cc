"""The pages of simulated trackers and of plans: well-formed, and with what they are about."""

import xml.etree.ElementTree as ET

from track.trackings import SETTING, forecasts, simulation

from casemate.track.modes import MODES
from casemate.track.page import DOTS_SHOWN, plan_html, simulation_html, thinned
from casemate.track.report import WordsCurve
from casemate.track.setting import Setting

CURVES = [
    WordsCurve(mode, ((4, 100.0 * i), (1024, 3000.0 * i), (65536, 40000.0 * i)))
    for i, mode in enumerate(
        ("deterministic", "sampled", "robust", "robust-tuned", "auto"), start=1
    )
]


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page)


def words(page: str) -> str:
    return " ".join("".join(parsed(page).itertext()).split())


def sections(page: str) -> list[str]:
    return [each.attrib["id"] for each in parsed(page).iter("section")]


def drawing(page: str, name: str) -> ET.Element:
    """The drawing of this section."""
    found = parsed(page).find(f".//section[@id='{name}']//svg")
    assert found is not None
    return found


def dots(page: str, name: str) -> list[tuple[str, float]]:
    """The tone and the height of each dot."""
    return [(e.attrib["class"], float(e.attrib["cy"])) for e in drawing(page, name).iter("circle")]


# Runs -----------------------------------------------------------------------------------------


def test_runs_have_their_sections() -> None:
    page = simulation_html(simulation(0.5, 1.25), forecasts())
    assert sections(page) == ["words", "errors", "compared", "assumptions"]
    assert "sampled sent 1,628 words for 100,000 items at 64 sites" in words(page)
    assert "was off by more than alpha in 1 of 2 runs." in words(page)
    assert "adversary stop-on-change chose the site of each item" in words(page)


def test_runs_that_keep_their_promise_say_so() -> None:
    page = words(simulation_html(simulation(0.5, 1.0), forecasts()))
    assert "and was never off by more than alpha." in page
    assert (
        "with probability 1 - delta, whoever adapts to counts and messages (delta = 0.02)." in page
    )
    assert "0 of 2 runs passed it; each may with probability 0.02 at most." in page


def test_every_kind_of_words_is_a_bar() -> None:
    drawn = drawing(simulation_html(simulation(0.5), forecasts()), "words")
    labels = [each.text for each in drawn.iter("text")]
    assert {"report", "call", "answer", "rule", "1,000", "64", "0"} <= set(labels)


def test_errors_are_dots_in_their_order_and_those_above_the_line_stand_out() -> None:
    page = simulation_html(simulation(1.5, 0.25, 0.75), forecasts())
    (line,) = drawing(page, "errors").iter("polyline")
    level = float(line.attrib["points"].split(",")[1].split()[0])
    found = dots(page, "errors")
    assert [tone for tone, _ in found] == ["plain", "plain", "strong"]
    assert found[0][1] > found[1][1] > level > found[2][1]


def test_of_very_many_runs_some_are_drawn_the_best_and_the_worst_among_them() -> None:
    ranked = [(i, i / 5000) for i in range(1, 5001)]
    shown = thinned(ranked, DOTS_SHOWN)
    assert len(shown) == len(set(shown)) == DOTS_SHOWN
    assert shown[0] == ranked[0] and shown[-1] == ranked[-1]
    assert thinned(ranked[:DOTS_SHOWN], DOTS_SHOWN) == ranked[:DOTS_SHOWN]


def test_what_was_measured_stands_above_what_is_predicted_for_every_protocol() -> None:
    page = simulation_html(simulation(0.5), forecasts())
    found = dots(page, "compared")
    assert min(found, key=lambda dot: dot[1])[0] == "strong"
    assert [tone for tone, _ in found].count("soft") == 2  # those that break
    assert len(found) == len(MODES) + 1
    labels = [each.text for each in drawing(page, "compared").iter("text")]
    assert {"sampled, measured", *MODES} <= set(labels)


def test_a_protocol_that_breaks_is_said_to_promise_nothing() -> None:
    page = words(simulation_html(simulation(7.4, mode="block"), forecasts()))
    assert "This protocol promises nothing against somebody who adapts." in page


# Plans ----------------------------------------------------------------------------------------


def test_a_plan_has_its_sections_and_names_the_cheapest_that_promises_something() -> None:
    page = plan_html(forecasts(), CURVES)
    assert sections(page) == ["words", "growth", "promises", "assumptions"]
    headline = parsed(page).findtext(".//h1")
    assert headline == "auto is predicted to send 3,000 words for 100,000 items at 64 sites."


def test_every_protocol_is_a_dot_and_the_recommended_one_stands_out() -> None:
    tones = [tone for tone, _ in dots(plan_html(forecasts(), CURVES), "words")]
    assert tones.count("strong") == 1 and tones.count("soft") == 2
    assert len(tones) == len(MODES)


def test_every_curve_has_its_name_and_the_given_number_of_sites_is_marked() -> None:
    drawn = drawing(plan_html(forecasts(), CURVES), "growth")
    assert len(list(drawn.iter("polyline"))) == len(list(drawn.iter("circle"))) == len(CURVES)
    labels = [each.text for each in drawn.iter("text")]
    assert {"64", *(curve.mode for curve in CURVES)} <= set(labels)
    assert len({each.attrib["cx"] for each in drawn.iter("circle")}) == 1


def test_a_plan_for_fewer_or_more_sites_than_the_curves_have_is_drawn_too() -> None:
    for sites in (1, 10**6):
        setting = Setting(sites, SETTING.alpha, SETTING.delta, SETTING.items)
        drawn = drawing(plan_html(forecasts(setting), CURVES), "growth")
        (x,) = {float(each.attrib["cx"]) for each in drawn.iter("circle")}
        assert 50 < x < 640


def test_what_each_promises_is_a_table() -> None:
    page = parsed(plan_html(forecasts(), CURVES))
    rows = [[*each.itertext()] for each in page.iterfind(".//tbody/tr")]
    assert {row[0]: row[-1] for row in rows} == {name: m.promise for name, m in MODES.items()}
    assert [row[2] for row in rows[:4]] == ["0.33x", "0.67x", "1.00x", "1.33x"]
