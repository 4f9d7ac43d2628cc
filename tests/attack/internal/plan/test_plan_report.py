"""Plans in words, as an object and as a page."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction

from rendered import forms

from casemate.attack.plan.report import plan_report
from casemate.attack.plan.result import DeterminedRecord, Planned

as_text, as_json, as_html = forms(plan_report)

ONE = Planned(
    3,
    "income",
    10,
    2,
    queries=("SELECT 1", "SELECT 2", "SELECT 3"),
    combination=(Fraction(1, 2), Fraction(1, 3), Fraction(-2)),
    counts=(2, 1, 1000),
    verified=True,
    lower_bound=2,
    seconds=1.23456,
)
EVERYBODY = Planned(
    "all",
    "income",
    4,
    1,
    queries=("SELECT 1", "SELECT 2"),
    determined=(
        DeterminedRecord("a", {0: Fraction(1)}),
        DeterminedRecord("b", {1: Fraction(1), 0: Fraction(-1)}),
    ),
    counts=(1, 2),
    verified=True,
    optimal=True,
    lower_bound=2,
    inseparable=("c", "d"),
)


def test_a_plan_is_lines_to_read() -> None:
    assert as_text(ONE).splitlines() == [
        "record 3: 3 queries; verified",
        "every query selects at least 2 records",
        "at least 2 would be needed by any plan",
        "",
        "queries:",
        "  1. SELECT 1;  -- 2 records",
        "  2. SELECT 2;  -- 1 record",
        "  3. SELECT 3;  -- 1,000 records",
        "",
        "income of record 3 = 1/2 * query 1 + 1/3 * query 2 - 2 * query 3",
    ]


def test_a_plan_for_all_says_who_is_determined_and_who_cannot_be() -> None:
    assert as_text(EVERYBODY).splitlines() == [
        "all records: 2 queries, the fewest possible; verified",
        "every query selects at least 1 record",
        "2 of 4 records are determined",
        "2 records agree with another in every public column and cannot be told apart",
        "",
        "queries:",
        "  1. SELECT 1;  -- 1 record",
        "  2. SELECT 2;  -- 2 records",
        "",
        "income:",
        "  record a = query 1",
        "  record b = query 2 - query 1",
    ]


def test_long_lists_and_lines_are_cut_in_the_text_and_whole_in_the_object() -> None:
    many = dict.fromkeys(range(9), Fraction(1))
    long = replace(
        EVERYBODY,
        queries=("SELECT " + "1, " * 200,) * 30,
        counts=(1,) * 30,
        determined=tuple(DeterminedRecord(i, many) for i in range(25)),
    )
    lines = as_text(long).splitlines()
    assert "  and 10 more, all of them in the JSON" in lines
    assert "  and 5 more, all of them in the JSON" in lines
    assert any(line.endswith("...;  -- 1 record") and len(line) < 330 for line in lines)
    assert "  record 0 = a combination of 9 queries" in lines
    assert as_json(long)["queries"] == list(long.queries)
    assert len(as_json(long)["combination"]) == 25


def test_the_places_of_a_category_are_explained() -> None:
    found = as_text(replace(ONE, values=("no", None, "yes")))
    assert "the place of the value: 0 for no, 1 for NULL, 2 for yes" in found


def test_coefficients_are_exact_in_the_object() -> None:
    found = as_json(ONE)
    assert found["combination"] == [0.5, "1/3", -2]
    assert (found["schema"], found["seconds"]) == ("casemate.attack-plan/1", 1.235)
    assert as_json(EVERYBODY)["combination"][1] == {
        "record": "b",
        "combination": [{"query": 2, "coefficient": 1}, {"query": 1, "coefficient": -1}],
    }


def test_a_page_shows_the_queries_and_escapes_them() -> None:
    hostile = replace(ONE, queries=("SELECT '<script>'", "SELECT 2", "SELECT 3"))
    root = ET.fromstring(as_html(hostile))
    rows = root.findall(".//section[@id='queries']//tbody/tr")
    assert [[*(cell.itertext())] for cell in rows[0]] == [
        ["1"],
        ["SELECT '<script>'"],
        ["2 records"],
        ["1/2"],
    ]
    assert root.find(".//section[@id='records']") is None
    whole = ET.fromstring(as_html(EVERYBODY))
    assert len(whole.findall(".//section[@id='records']//tbody/tr")) == 2
    assert whole.findtext(".//section[@id='others']/p") == "Records c, d."
    assert "<section" not in as_html(Planned(3, "income", 10, 2, reason="no"))
