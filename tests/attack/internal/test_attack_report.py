"""An attack in words and as JSON: every field, and no value that is not revealed."""

import json
from dataclasses import replace

import numpy as np
import pytest
from attack.attacks import SECRETS, exact, judged, loose, outside, scored
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.report import (
    as_json,
    as_text,
    fractions,
    json_value,
    round_up,
    shown_value,
    verdict,
)

CONTRACT = {
    "schema",
    "solver",
    "records",
    "queries",
    "recovered",
    "within",
    "baseline",
    "residual",
    "iterations",
    "seconds",
    "values",
}


# JSON -----------------------------------------------------------------------------------------


def test_the_object_has_what_was_promised() -> None:
    fields = as_json(exact(), reveal=True)
    assert set(fields) >= CONTRACT and fields["schema"] == "casemate.attack/1"
    assert fields["recovered"] == fields["within"] == 1 and fields["records"] == 5
    assert set(fields["baseline"]) == {"prior_mean", "majority", "marginal", "leave_one_out"}
    assert (fields["queries"], fields["equations"], len(fields["refused"])) == (6, 5, 1)
    keys = {"record", "person", "column", "value", "lo", "hi", "probability"}
    assert {frozenset(each) for each in fields["values"]} == {frozenset(keys)}
    assert [each["value"] for each in fields["values"]] == pytest.approx(list(SECRETS))


@pytest.mark.parametrize("reveal", [False, True])
def test_there_is_no_number_in_it_that_is_none(reveal: bool) -> None:
    for found in (exact(), loose(), outside()):
        text = json.dumps(as_json(found, reveal=reveal), allow_nan=False)
        assert json.loads(text)["finished"] is True


def test_without_the_truth_there_is_no_score_and_values_are_shown() -> None:
    fields = as_json(outside())
    for name in ("recovered", "within", "baseline", "difference", "quantiles", "tolerance"):
        assert fields[name] is None
    assert [each["value"] for each in fields["values"]] == pytest.approx(list(SECRETS))


def test_infinite_ends_are_null() -> None:
    found = loose()
    open_ended = replace(
        found,
        reconstruction=replace(
            found.reconstruction, low=np.full(5, -np.inf), high=np.full(5, np.inf)
        ),
    )
    fields = as_json(open_ended, reveal=True)
    assert {(each["lo"], each["hi"]) for each in fields["values"]} == {(None, None)}
    assert set(fields["widths"].values()) == {None}
    json.dumps(fields, allow_nan=False)


def test_several_columns_are_put_together_by_their_records() -> None:
    scores = {"a": judged(0.5, records=30), "b": judged(0.9, records=10)}
    fields = as_json(scored(exact(), scores))
    assert fields["recovered"] == pytest.approx(0.6) and fields["difference"] is None
    assert fields["baseline"]["majority"] == pytest.approx(0.4)
    assert fields["baseline"]["prior_mean"] is None
    assert [(each["column"], each["records"]) for each in fields["columns"]] == [
        ("a", 30),
        ("b", 10),
    ]
    assert fields["columns"][1]["recovered"] == 0.9


def test_one_column_is_not_listed_twice() -> None:
    fields = as_json(scored(exact(), {"pay": judged()}))
    assert fields["columns"] is None and fields["difference"]["lo"] == 0.25
    assert [each["which"] for each in fields["difference"]["strata"]] == ["rare", "shared"]


# What is hidden -------------------------------------------------------------------------------


def sentinels() -> list[str]:
    return [str(each) for each in SECRETS] + [f"{each:.6g}" for each in SECRETS]


def test_no_value_is_written_without_reveal() -> None:
    hidden = as_text(exact()) + json.dumps(as_json(exact()))
    shown = as_text(exact(), reveal=True) + json.dumps(as_json(exact(), reveal=True))
    assert not [each for each in sentinels() if each in hidden]
    assert all(str(each) in shown for each in SECRETS)
    assert as_json(exact())["values"] is None


def test_errors_and_widths_are_rounded_up_without_reveal() -> None:
    found = scored(loose(), {"pay": judged()})
    hidden, shown = as_json(found), as_json(found, reveal=True)
    assert hidden["quantiles"] == {"median": 0, "p90": 1, "p99": 5, "max": 20}
    assert shown["quantiles"] == {"median": 0, "p90": 0.6, "p99": 3, "max": 17}
    for name, width in shown["widths"].items():
        assert hidden["widths"][name] == round_up(width) >= width


@given(st.floats(1e-6, 1e12))
def test_rounding_up_goes_at_most_two_and_a_half_times_too_far(size: float) -> None:
    assert size * (1 - 1e-9) <= round_up(size) <= 2.5 * size * (1 + 1e-9)
    assert round_up(round_up(size)) == round_up(size)


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
    ("low", "high", "word"),
    [
        (0.1, 0.3, "disclosure: "),
        (-0.1, 0.3, "no disclosure is shown"),
        (0.0, 0.3, "no disclosure is shown"),
        (-0.3, -0.1, "no disclosure: "),
    ],
)
def test_the_interval_decides_what_it_is_called(low: float, high: float, word: str) -> None:
    assert verdict(judged(low=low, high=high).comparison, 0).startswith(word)


def test_a_value_that_follows_from_the_answers_is_disclosed_whatever_the_average() -> None:
    unsure = judged(low=-0.1, high=0.3).comparison
    assert verdict(unsure, 1).startswith("disclosure: 1 value is determined")
    assert verdict(unsure, 7).startswith("disclosure: 7 values are determined")


def test_an_outsider_reads_values_and_that_nobody_can_judge_them() -> None:
    text = as_text(outside())
    assert text.startswith("reconstructed 5 values (the table does not have the truth)")
    assert "record 1: pay = 7654.12" in text and "the answers were given" in text


def test_where_the_answers_come_from_is_said() -> None:
    assert "the answers are the table's own, without noise" in as_text(exact())
    assert "with noise of the law gaussian:100 laid over them" in as_text(loose())


def test_what_was_interrupted_is_said() -> None:
    found = replace(exact(), finished=False)
    assert "interrupted: this is the best so far" in as_text(found)
    assert as_json(found)["finished"] is False


def test_values_read_as_numbers_do() -> None:
    assert [json_value(each) for each in (5.0, -0.0, 5.25, 0.1 + 0.2, "C", None, True)] == [
        5,
        0,
        5.25,
        0.3,
        "C",
        None,
        True,
    ]
    assert (shown_value(5.0), shown_value(31 / 6), shown_value("C")) == ("5", "5.16667", "C")
    assert shown_value(None) == "none of the values asked about"


def test_fractions_of_nothing_are_nothing() -> None:
    assert set(fractions([]).values()) == {None}
