"""Private answers in words and as `casemate.answer/1`."""

import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import pytest
from answer.answers import DATED, GROUPED, PURE, UNPROVEN
from hypothesis import given
from hypothesis import strategies as st

from casemate.answer.answer import Spending
from casemate.answer.report import as_json, as_text
from casemate.grid import Noised, Origin

# Text -----------------------------------------------------------------------------------------


def test_an_answer_is_an_aligned_table_with_its_cost_and_notes() -> None:
    assert as_text(GROUPED).splitlines() == [
        "sex      count   ±  proven, 95 %     source",
        "Female  10,012  32  9,050 to 10,974  surrogate",
        "NULL         0  12  0 to 962         surrogate",
        "",
        "surrogate: from the stand-in, and the gate let it pass",
        "cost: nothing; left: rho 0.02 (epsilon 0.9)",
        "note: ages are counted in bins of 5",
    ]


def test_the_ranges_for_all_answers_at_once_are_shown_on_request() -> None:
    head, first, *_ = as_text(GROUPED, session=True).splitlines()
    assert head.endswith("all answers at once  source")
    assert "8,000 to 12,000" in first


def test_a_column_has_as_many_decimals_as_two_digits_of_its_error() -> None:
    assert as_text(DATED).splitlines()[:2] == [
        "day           avg      ±  proven, 90 %       n     ±  proven, 90 %  source",
        "2024-02-29  0.500  0.012  0.250 to 0.750  7.00  0.50  1.00 to 9.00  measured",
    ]


def test_what_is_not_proven_has_no_range_and_says_so() -> None:
    lines = as_text(UNPROVEN).splitlines()
    assert lines[1].split() == ["41.0", "2.5", "–", "unverified"]
    assert "unverified: from the stand-in, and nothing checked it: nothing is proven" in lines


def test_what_was_spent_is_never_called_nothing() -> None:
    spent = Spending(Fraction(1, 400), Fraction(0))  # at a delta near 1
    assert "cost: rho 0.0025 (epsilon 0)" in as_text(replace(DATED, cost=spent))
    assert "cost: nothing" in as_text(replace(DATED, cost=Spending(Fraction(0), Fraction(0))))


def test_an_answer_without_noise_is_not_said_to_have_any() -> None:
    exact = replace(DATED, exact=True)
    assert "exact: counted in the table without noise" in as_text(exact)
    assert as_text(exact).splitlines()[1].endswith("  exact")
    assert "with noise" in as_text(DATED) and "with noise" not in as_text(exact)
    assert as_json(exact) == as_json(DATED), "the documented sources stay as they are"
    again = replace(exact, origin=Origin.CACHED)
    assert "cached: answered before" in as_text(again)


def test_a_budget_without_delta_has_no_rho() -> None:
    assert "cost: nothing; left: epsilon 0.25" in as_text(UNPROVEN)


def test_no_rows_is_said() -> None:
    assert as_text(replace(GROUPED, rows=())).splitlines()[:2] == ["sex  count", "no rows"]


def test_a_constant_among_answers_is_shown_as_it_is() -> None:
    rows = ((Noised(41.0, 1.0, 99.0, 2.5),), (2024,))
    assert [line.split() for line in as_text(replace(UNPROVEN, rows=rows)).splitlines()[1:3]] == [
        ["41.0", "2.5", "1.0", "to", "99.0", "unverified"],
        ["2024", "–", "–", "unverified"],
    ]


def test_an_average_of_nobody_is_null_and_keeps_its_range() -> None:
    rows = ((Noised(None, 3.0, 10.0),),)
    shown = as_text(replace(UNPROVEN, rows=rows, origin=Origin.SURROGATE)).splitlines()[1]
    assert shown.split() == ["NULL", "–", "3", "to", "10", "surrogate"]


# JSON -----------------------------------------------------------------------------------------


def test_the_object_has_exactly_these_fields() -> None:
    assert as_json(GROUPED) == {
        "schema": "casemate.answer/1",
        "columns": ["sex", "count"],
        "rows": [
            [
                "Female",
                {
                    "value": 10_012.4,
                    "lo": 9_050.0,
                    "hi": 10_974.25,
                    "error": 31.5,
                    "source": "surrogate",
                },
            ],
            [None, {"value": 0.0, "lo": 0.0, "hi": 962.0, "error": 12.0, "source": "surrogate"}],
        ],
        "confidence": 0.95,
        "cost": {"rho": 0.0, "epsilon": 0.0},
        "remaining": {"rho": 0.02, "epsilon": 0.9},
        "notes": ["ages are counted in bins of 5"],
    }


def test_the_object_has_the_ranges_for_all_answers_on_request() -> None:
    cell = as_json(GROUPED, session=True)["rows"][0][1]
    assert (cell["session_lo"], cell["session_hi"]) == (8_000.0, 12_000.0)


def test_rho_is_null_where_delta_is_0() -> None:
    assert as_json(UNPROVEN)["remaining"] == {"rho": None, "epsilon": 0.25}
    assert as_json(UNPROVEN)["rows"] == [
        [{"value": 41.0, "lo": None, "hi": None, "error": 2.5, "source": "unverified"}]
    ]


def test_dates_are_iso_text_as_keys_and_as_answers() -> None:
    rows = ((datetime(2024, 2, 29, 12, 30), Noised(datetime(2024, 1, 1), datetime(2023, 1, 1))),)
    found = as_json(replace(DATED, columns=("a", "b"), rows=rows))["rows"][0]
    assert found[0] == "2024-02-29T12:30:00"
    assert (found[1]["value"], found[1]["lo"]) == ("2024-01-01T00:00:00", "2023-01-01T00:00:00")


@pytest.mark.parametrize(
    ("key", "shown"),
    [(Decimal("2.50"), 2.5), (Decimal("3.0"), 3), (True, True), (7, 7), ("a", "a")],
)
def test_a_key_is_itself(key: object, shown: object) -> None:
    found = as_json(replace(UNPROVEN, rows=((key,),)))["rows"][0][0]  # type: ignore[arg-type]  # keys
    assert found == shown and type(found) is type(shown)


ends = st.one_of(st.none(), st.floats())


@given(st.lists(st.builds(Noised, st.floats(), ends, ends, ends, ends, ends), max_size=5))
def test_whatever_the_numbers_are_the_object_is_json_and_the_text_has_a_line_for_each(
    cells: list[Noised],
) -> None:
    answer = replace(UNPROVEN, rows=tuple((cell,) for cell in cells), remaining=PURE)
    found = json.loads(json.dumps(as_json(answer, session=True), allow_nan=False))
    assert len(found["rows"]) == len(cells)
    assert len(as_text(answer, session=True).splitlines()) == max(len(cells), 1) + 4
