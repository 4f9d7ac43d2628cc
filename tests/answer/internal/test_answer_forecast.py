"""What a statement would cost: words, `casemate.forecast/1`, a page."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from answer.answers import FORECAST, HOSTILE, NOTHING, PURE, SOME

from casemate.answer.report import as_html, forecast_as_json, forecast_as_text


def test_a_forecast_is_lines_to_read() -> None:
    assert forecast_as_text(FORECAST).splitlines() == [
        "costs at most: rho 0.0025 (epsilon 0.3); left: rho 0.02 (epsilon 0.9)",
        "it costs less where the stand-in is close enough already; nothing was asked and nothing "
        "was charged",
        "note: a note",
    ]


def test_what_was_answered_before_costs_nothing() -> None:
    told = forecast_as_text(replace(FORECAST, cost=NOTHING, known=True))
    assert "costs at most: nothing" in told and "it was answered before" in told


def test_a_measurement_costs_what_it_costs() -> None:
    assert "that is what a fresh measurement costs" in forecast_as_text(FORECAST, measured=True)
    assert "That is what a fresh measurement costs." in as_html(FORECAST, measured=True)


def test_what_cannot_be_paid_for_is_said_to_be_so() -> None:
    assert "more than is left" in forecast_as_text(replace(FORECAST, remaining=NOTHING))


def test_the_object_has_exactly_these_fields() -> None:
    assert forecast_as_json(replace(FORECAST, remaining=PURE)) == {
        "schema": "casemate.forecast/1",
        "cost": {"rho": 0.0025, "epsilon": 0.3},
        "remaining": {"rho": None, "epsilon": 0.25},
        "known": False,
        "notes": ["a note"],
    }


def test_the_page_is_escaped_and_says_what_it_costs() -> None:
    page = as_html(replace(FORECAST, sql=HOSTILE, notes=(HOSTILE,), cost=SOME))
    root = ET.fromstring(page)
    assert HOSTILE not in page
    assert root.findtext("body/main/header/h1") == "This costs at most rho 0.0025 (epsilon 0.3)."
