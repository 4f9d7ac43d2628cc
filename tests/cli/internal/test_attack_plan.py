"""The command `casemate attack plan`: plans, limits, forms, and bad input."""

import json
import xml.etree.ElementTree as ET
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from casemate.cli import main

Captured = pytest.CaptureFixture[str]


def ended(*arguments: str) -> tuple[int, str]:
    """How the command ends, and what it says on an error."""
    with redirect_stderr(StringIO()) as said:
        code = main.ended(["attack", "plan", *arguments])
    return code, said.getvalue().removeprefix("casemate: ").strip()


def planned(capsys: Captured, *options: str) -> dict[str, Any]:
    assert ended(*options, "--format", "json") == (0, "")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_plan_for_one_record_is_an_object(capsys: Captured) -> None:
    found = planned(capsys, "--table", "hospital", "--target", "2", "--min-count", "3")
    assert found.pop("seconds") >= 0
    assert found == {
        "schema": "casemate.attack-plan/1",
        "target": 2,
        "private": "Blood sugar",
        "records": 6,
        "min_count": 3,
        "queries": [
            'SELECT SUM("Blood sugar") FROM t',
            'SELECT SUM("Blood sugar") FROM t WHERE "ZIP" <= 43765',
        ],
        "combination": [1, -1],
        "counts": [6, 5],
        "values": None,
        "decoder": None,
        "verified": True,
        "optimal": True,
        "lower_bound": 2,
        "inseparable": [],
        "undetermined": [],
        "impossible": False,
        "reason": None,
    }


def test_a_plan_for_all_has_a_combination_for_each(capsys: Captured) -> None:
    found = planned(capsys, "--table", "hospital", "--target", "all", "--min-count", "4")
    assert found["verified"] and not found["optimal"]
    assert [each["record"] for each in found["combination"]] == [2, 3, 4, 6]
    assert found["undetermined"] == [1, 5]
    queries = {term["query"] for each in found["combination"] for term in each["combination"]}
    assert queries == set(range(1, len(found["queries"]) + 1))


def test_a_limit_that_is_too_small_is_a_result_and_not_an_error(capsys: Captured) -> None:
    options = ("--table", "hospital", "--target", "2", "--min-count", "3", "--max-queries", "1")
    found = planned(capsys, *options)
    assert (found["queries"], found["verified"], found["impossible"]) == ([], False, True)
    assert ended(*options) == (0, "")
    printed = capsys.readouterr().out
    assert printed == (
        "no plan for record 2\nrecord 2 needs at least 2 queries, and the limit is 1\n"
        "this is proved\n"
    )


def test_the_text_shows_the_queries_and_what_they_add_up_to(capsys: Captured) -> None:
    assert ended("--table", "hospital", "--target", "2", "--min-count", "3")[0] == 0
    assert capsys.readouterr().out == (
        "record 2: 2 queries, the fewest possible; verified\n"
        "every query selects at least 3 records\n\n"
        "queries:\n"
        '  1. SELECT SUM("Blood sugar") FROM t;  -- 6 records\n'
        '  2. SELECT SUM("Blood sugar") FROM t WHERE "ZIP" <= 43765;  -- 5 records\n\n'
        "Blood sugar of record 2 = query 1 - query 2\n"
    )


def test_another_dialect_writes_names_its_own_way(capsys: Captured) -> None:
    found = planned(capsys, "--table", "hospital", "--target", "2", "--dialect", "mysql")
    assert found["verified"]
    assert found["queries"] == ["SELECT SUM(`Blood sugar`) FROM t WHERE `ZIP` = 43813"]


def test_a_table_without_a_policy_is_told_which_column_is_private(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,s\n1,5\n2,6\n3,7\n")
    found = planned(
        capsys, "--table", str(path), "--private", "s", "--target", "2", "--seconds", "0"
    )
    assert found["queries"] == ['SELECT SUM("s") FROM t WHERE "a" = 2']


def test_a_page_lists_the_queries(tmp_path: Path) -> None:
    path = tmp_path / "plan.html"
    options = ("--table", "hospital", "--target", "2", "--format", "html", "--quiet")
    assert ended(*options, "--output", str(path)) == (0, "")
    assert ET.fromstring(path.read_text()).find(".//section[@id='queries']") is not None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--table", "hospital", "--target", "7"), "there is no record 7"),
        (("--table", "hospital", "--target", "2", "--min-count", "0"), "minimum count of 0"),
        (("--table", "hospital", "--target", "2", "--min-count", "9"), "minimum count of 9"),
        (("--table", "hospital", "--target", "2", "--max-queries", "0"), "at most 0 queries"),
        (("--table", "hospital", "--target", "2", "--seconds", "-1"), "--seconds -1.0 is not"),
        (("--table", "hospital", "--target", "2", "--seconds", "nan"), "--seconds nan is not"),
        (("--table", "hospital", "--target", "2", "--private", "Zip"), "'Zip', which is not"),
        (("--table", "hospital", "--target", "2", "--dialect", "x"), "no SQL dialect 'x'"),
        (("--table", "population:9", "--target", "2"), "several columns are private"),
        (("--table", "hospital"), "--target is missing; see casemate attack plan --help"),
    ],
)
def test_bad_input_is_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    code, said = ended(*options)
    assert code == 2 and sentence in said and "\n" not in said
    assert capsys.readouterr().out == ""
