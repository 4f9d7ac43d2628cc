"""An attack in words and as JSON: every field, and no value that is not revealed."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from attack.attacks import SECRETS, exact, judged, loose, outside, scored
from rendered import forms, sections, words

from casemate.attack.attack import Attacked, NoisePoint
from casemate.attack.reconstruct.problem import NoiseLaw
from casemate.attack.report import attack_report
from casemate.attack.words import round_up, verdict

as_text, as_json, as_html = forms(attack_report)

CURVE = [NoisePoint(NoiseLaw("laplace", 2.0**i), 1 - i / 10) for i in range(5)]


# JSON -----------------------------------------------------------------------------------------


def test_the_object_has_what_was_promised() -> None:
    fields = as_json(exact(), reveal=True)
    promised = "schema solver records queries recovered within baseline residual iterations"
    assert set(fields) >= {*promised.split(), "seconds", "values"}
    assert fields["schema"] == "casemate.attack/1"
    assert fields["recovered"] == fields["within"] == 1 and fields["records"] == 5
    assert set(fields["baseline"]) == {"prior_mean", "majority", "marginal", "leave_one_out"}
    assert (fields["queries"], fields["equations"], len(fields["refused"])) == (6, 5, 1)
    keys = {"record", "person", "column", "value", "lo", "hi", "probability"}
    assert {frozenset(each) for each in fields["values"]} == {frozenset(keys)}
    assert [each["value"] for each in fields["values"]] == pytest.approx(list(SECRETS))


def test_without_the_truth_there_is_no_score_and_values_are_shown() -> None:
    fields = as_json(outside())
    for name in ("recovered", "within", "baseline", "difference", "quantiles", "tolerance"):
        assert fields[name] is None
    assert [each["value"] for each in fields["values"]] == pytest.approx(list(SECRETS))


def test_several_columns_are_put_together_by_their_records() -> None:
    scores = {"a": judged(0.5, records=30), "b": judged(0.9, records=10)}
    fields = as_json(scored(exact(), scores))
    assert fields["recovered"] == pytest.approx(0.6) and fields["difference"] is None
    assert fields["baseline"]["majority"] == pytest.approx(0.4)
    assert fields["baseline"]["prior_mean"] is None
    keys = ("column", "records", "recovered")
    columns = [tuple(map(each.get, keys)) for each in fields["columns"]]
    assert columns == [("a", 30, 0.5), ("b", 10, 0.9)]


# What is hidden -------------------------------------------------------------------------------


def whole(found: Attacked) -> Attacked:
    """The same attack as if its unknowns were whole, and its solver slow."""
    made = found.reconstruction
    history = tuple((i, 10.0**-i) for i in range(9))
    sure = np.linspace(0.4, 1.0, len(made.values))
    return replace(found, reconstruction=replace(made, history=history, probability=sure))


def test_no_value_is_written_without_reveal() -> None:
    sentinels = [form for each in SECRETS for form in (str(each), f"{each:.6g}")]
    for found in (exact(), loose(), whole(exact())):
        hidden = as_text(found) + json.dumps(as_json(found)) + as_html(found, CURVE)
        assert not [each for each in sentinels if each in hidden]
        assert as_json(found)["values"] is None
    for shown in (as_text(exact(), reveal=True), as_html(exact(), reveal=True)):
        assert all(f"{secret:.6g}" in shown for secret in SECRETS)


def test_errors_and_widths_are_rounded_up_without_reveal() -> None:
    found = scored(loose(), {"pay": judged()})
    hidden, shown = as_json(found), as_json(found, reveal=True)
    assert hidden["quantiles"] == {"median": 0, "p90": 1, "p99": 5, "max": 20}
    assert shown["quantiles"] == {"median": 0, "p90": 0.6, "p99": 3, "max": 17}
    for name, width in shown["widths"].items():
        assert hidden["widths"][name] == round_up(width) >= width


# Text -----------------------------------------------------------------------------------------


def test_the_text_says_how_much_by_what_and_beside_what() -> None:
    lines = as_text(scored(exact(), {"pay": judged()})).splitlines()
    assert lines[0].startswith("recovered 75.0 % of 40 private values, by the solver ")
    assert "   75.0 %  this attack (within 0.5)" in lines
    assert any(line.startswith("   37.5 %  the best guess from the same release") for line in lines)
    assert not any("prior mean" in line for line in lines)
    assert "  everybody: +37.5 points (+25.0 to +50.0) for 40 people" in lines
    assert "  rare values: +50.0 points (+12.5 to +75.0) for 10 people" in lines
    assert not any("shared" in line for line in lines), "it is everybody again"
    assert "not used: 1" in lines


@pytest.mark.parametrize(
    ("low", "high", "determined", "word"),
    [
        (0.1, 0.3, 0, "disclosure: the attack is right more often"),
        (0.1, 0.3, 7, "disclosure: the attack is right more often"),
        (-0.1, 0.3, 0, "no disclosure is shown"),
        (0.0, 0.3, 0, "no disclosure is shown"),
        (-0.3, -0.1, 0, "no disclosure: "),
        (-0.1, 0.3, 1, "disclosure: 1 value is determined"),
        (-0.1, 0.3, 7, "disclosure: 7 values are determined"),
    ],
)
def test_the_interval_decides_what_it_is_called_or_a_value_that_follows_from_the_answers(
    low: float, high: float, determined: int, word: str
) -> None:
    assert verdict(judged(low=low, high=high).comparison, determined).startswith(word)


# Pages ---------------------------------------------------------------------------------


def test_every_finding_has_its_section() -> None:
    page = as_html(whole(scored(exact(), {"pay": judged()})), CURVE, reveal=True)
    expected = "baselines strata noise errors intervals certainty convergence values refused"
    assert sections(page) == [*expected.split(), "assumptions"]


def test_an_outsiders_page_has_values_and_no_score() -> None:
    page = as_html(outside())
    assert not {"baselines", "strata", "noise", "errors"} & set(sections(page))
    assert "7654.12" in words(page) and "does not have the truth" in words(page)


def test_the_attack_is_drawn_beside_its_baselines_and_under_other_noise() -> None:
    root = ET.fromstring(as_html(scored(exact(), {"pay": judged()}), CURVE))
    (drawing,) = root.findall(".//section[@id='baselines']//svg")
    labels = [each.text for each in drawing.iter("text") if each.get("class") == "value"]
    assert labels == ["75.0", "37.5", "40.0", "30.0"]
    (line,) = drawing.iter("polyline")
    first, second = (point.split(",") for point in line.attrib["points"].split())
    assert first[0] == second[0] and float(first[1]) > float(second[1])
    (drawing,) = root.findall(".//section[@id='noise']//svg")
    assert len(drawing.findall(".//circle")) == len(CURVE)
    assert len(drawing.findall(".//polyline")) == 2, "the level of the best guess"
    assert "laplace:16: 60.0 %" in (drawing.findtext("desc") or "")


def test_the_scatter_is_drawn_only_when_values_are_revealed() -> None:
    assert "Found against true values" not in as_html(exact())
    root = ET.fromstring(as_html(exact(), reveal=True))
    drawings = root.findall(".//section[@id='errors']//svg")
    assert len(drawings) == 2 and len(drawings[1].findall(".//circle")) == len(SECRETS)
