"""`casemate audit` with second tables, rounded answers, a time limit, and bad answers."""

import json
from pathlib import Path

import pytest

from casemate.cli.main import ended

LOG = """sql,answer
"SELECT SUM(""Blood sugar"") FROM t",32.1
"SELECT SUM(""Blood sugar"") FROM t WHERE Gender = 'Female'",15.5
"SELECT SUM(""Blood sugar"") FROM t WHERE ZIP IN (32453, 33745) AND Gender = 'Male'",11.4
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def audit(*options: str) -> int:
    return ended(["audit", "log.csv", "--table", "hospital", *options])


def test_second_tables_are_written_and_what_is_in_the_file_is_checked(
    folder: Path, capsys: Captured
) -> None:
    assert audit("--witness", "second.csv", "--reveal", "--format", "json") == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)["witness"]
    assert found == {
        "file": "second.csv",
        "tables": 2,
        "covered": 5,
        "narrow": [],
        "uncovered": [],
    }
    assert printed.err == "wrote second.csv\n"
    lines = (folder / "second.csv").read_text().splitlines()
    assert lines[0] == "table,record,column,value" and len(lines) == 1 + 2 * 6
    assert [line for line in lines if line.split(",")[1] == "2"] == [
        "1,2,Blood sugar,5.2",
        "2,2,Blood sugar,5.2",
    ]


def test_second_tables_are_a_line_of_the_text(capsys: Captured) -> None:
    assert audit("--witness", "second.csv", "--reveal", "--quiet") == 0
    assert "second tables: 2 in second.csv, covering 5 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--witness", "second.csv"), "add --reveal"),
        (("--witness", ".", "--reveal"), "not a file"),
        (("--witness", "gone/second.csv", "--reveal"), "a folder that exists"),
        (("--seconds", "-1"), "is not a time"),
        (("--seconds", "nan"), "is not a time"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence_and_nothing_is_written(
    options: tuple[str, ...], sentence: str, folder: Path, capsys: Captured
) -> None:
    assert audit(*options) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1
    assert sorted(each.name for each in folder.iterdir()) == ["log.csv"]


def test_rounded_answers_give_a_value_with_a_margin(capsys: Captured) -> None:
    assert audit("--rounding", "--fail-on", "exposed") == 0
    hidden = capsys.readouterr().out
    assert "record 2: Blood sugar = • give or take 0.15  by query 1 - query 2 - query 3" in hidden
    assert "5.2" not in hidden
    assert audit("--rounding", "--reveal", "--format", "json") == 0
    (found,) = json.loads(capsys.readouterr().out)["exposed_if_exact"]
    assert (found["record"], found["value"], found["margin"], found["by"]) == (2, 5.2, 0.15, 3)
    assert audit("--rounding", "--format", "json") == 0
    (hidden_one,) = json.loads(capsys.readouterr().out)["exposed_if_exact"]
    assert hidden_one["value"] is None and hidden_one["certificate"] == found["certificate"]


def test_a_limit_that_is_too_short_makes_the_audit_incomplete(
    folder: Path, capsys: Captured
) -> None:
    total = '"SELECT SUM(""Blood sugar"") FROM t"'
    some = '"SELECT SUM(""Blood sugar"") FROM t WHERE Gender = \'Male\'"'
    (folder / "log.csv").write_text(f"sql\n{total}\n{some}\n")
    assert audit("--seconds", "1e-9", "--fail-on", "exposed", "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["verdict"], found["unchecked"]) == ("incomplete", [1, 2, 3, 4, 5, 6])
    assert audit("--seconds", "0", "--fail-on", "exposed") == 0


def test_bad_answers_are_named_with_their_lines_and_the_rest_is_audited(
    folder: Path, capsys: Captured
) -> None:
    more = '"SELECT SUM(""Blood sugar"") FROM t",33\n"SELECT SUM(""Blood sugar"") FROM t",none\n'
    (folder / "log.csv").write_text(LOG + more)
    assert audit() == 0
    printed = capsys.readouterr().out
    assert "the published numbers contradict each other" in printed
    assert (
        "query 4 (line 5): its answer contradicts that of query 1; correct one of them" in printed
    )
    assert "query 5 (line 6): the answer is not a number" in printed
    assert "record 2: Blood sugar = •  by query 1 - query 2 - query 3" in printed
