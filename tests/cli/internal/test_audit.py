"""The command `casemate audit`: exit codes, bad input, and what it prints."""

import json
from pathlib import Path

import pytest

from casemate.cli.main import ended

QUERIES = """
SELECT SUM("Blood sugar") FROM hospital;
SELECT SUM("Blood sugar") FROM hospital WHERE Gender = 'Female';
SELECT SUM("Blood sugar") FROM hospital WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male';
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(QUERIES)
    (tmp_path / "people.csv").write_text("id,age,pay\n1,30,100\n2,30,200\n3,40,400\n4,50,800\n")
    return tmp_path


def audit(*options: str) -> int:
    return ended(["audit", "q.sql", *options])


def test_the_report_hides_values_until_it_is_told_to_reveal_them(capsys: Captured) -> None:
    assert audit("--table", "hospital") == 0
    printed = capsys.readouterr().out
    assert "record 2: Blood sugar = •  by query 1 - query 2 - query 3" in printed
    assert "5.2" not in printed and "11.4" not in printed
    assert audit("--table", "hospital", "--reveal") == 0
    assert "record 2: Blood sugar = 5.2  by query 1 - query 2 - query 3" in capsys.readouterr().out


def test_json_hides_values_too(capsys: Captured) -> None:
    assert audit("--table", "hospital", "--format", "json") == 0
    hidden = json.loads(capsys.readouterr().out)
    assert hidden["exposed"][0]["value"] is None
    assert {group["total"] for group in hidden["groups"]} == {None}
    assert {each["lo"] for each in hidden["bounds"]} == {None}
    assert audit("--table", "hospital", "--format", "json", "--reveal") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["exposed"][0]["value"] == 5.2
    assert shown["exposed"][0]["certificate"] == {
        "terms": [
            {"query": 1, "cell": None, "coefficient": 1},
            {"query": 2, "cell": None, "coefficient": -1},
            {"query": 3, "cell": None, "coefficient": -1},
        ],
        "divisor": 1,
    }


def test_the_page_hides_values_too_and_goes_to_a_file(folder: Path, capsys: Captured) -> None:
    options = ("--table", "hospital", "--format", "html", "--output", "audit.html")
    assert audit(*options) == 0
    assert capsys.readouterr().out == ""
    hidden = (folder / "audit.html").read_text()
    assert hidden.startswith("<!DOCTYPE html>") and "5.2" not in hidden and "11.4" not in hidden
    assert audit(*options, "--reveal") == 0
    assert "<td>5.2</td>" in (folder / "audit.html").read_text()


def test_it_fails_when_asked_to_and_somebody_is_exposed_or_undecided(
    folder: Path, capsys: Captured
) -> None:
    assert audit("--table", "hospital", "--fail-on", "exposed") == 1
    (folder / "q.sql").write_text('SELECT SUM("Blood sugar") FROM t WHERE "Blood sugar" > 5')
    assert audit("--table", "hospital", "--fail-on", "exposed") == 1
    (folder / "q.sql").write_text('SELECT SUM("Blood sugar") FROM t')
    assert audit("--table", "hospital", "--fail-on", "exposed") == 0
    assert "none-exposed" in capsys.readouterr().out


def test_a_bare_file_is_audited_with_a_private_column_named(folder: Path, capsys: Captured) -> None:
    (folder / "q.sql").write_text("SELECT age, SUM(pay) FROM people GROUP BY age")
    assert audit("--table", "people.csv", "--private", "pay", "--reveal") == 0
    printed = capsys.readouterr().out
    assert "record 3: pay = 400  by query 1 [age = 40]" in printed
    assert "records 1, 2: pay adds up to 300" in printed
    assert "pay has no declared bounds" in printed


def test_what_is_known_narrows_what_is_left(folder: Path, capsys: Captured) -> None:
    (folder / "q.sql").write_text("SELECT age, SUM(pay) FROM people GROUP BY age")
    (folder / "known.csv").write_text("record,value\n1,100\n")
    options = ("--table", "people.csv", "--private", "pay", "--known", "known.csv", "--reveal")
    assert audit(*options, "--bounds", "0:1000", "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["record"], each["value"], each["proof"]) for each in found["exposed"]] == [
        (2, 200, "bounds"),
        (3, 400, "rank"),
        (4, 800, "rank"),
    ]


def test_what_insiders_know_is_listed_without_values(folder: Path, capsys: Captured) -> None:
    """Of 507 in area 1 record 3 has at most 10, so that 1 and 2 nearly know each other."""
    rows = ("1,no,400", "1,no,100", "1,yes,7", "2,yes,3", "3,no,9", "3,no,8")
    (folder / "pay.csv").write_text("\n".join(("area,old,pay", *rows, "")))
    (folder / "q.sql").write_text(
        "SELECT area, SUM(pay) FROM t GROUP BY area HAVING COUNT(*) > 1;"
        "SELECT SUM(pay) FROM t WHERE old = 'yes'"
    )
    options = ("--table", "pay.csv", "--private", "pay", "--bounds", "0:", "--approximate")
    assert audit(*options) == 0
    hidden = capsys.readouterr().out
    assert "record 5: pay to whoever knows record 6" in hidden
    assert "record 1: pay is • to whoever knows record 2" in hidden
    assert "query 1 [area = 3]: pay by p-percent and dominance" in hidden
    assert "400" not in hidden and "407" not in hidden
    assert audit(*options, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert {"record": 6, "column": "pay", "knows": [5]} in found["insider_exposed"]
    assert found["approximate"] == [
        {"record": 1, "column": "pay", "knows": [2], "lo": None, "hi": None},
        {"record": 2, "column": "pay", "knows": [1], "lo": None, "hi": None},
    ]
    cells = [(each["query"], each["cell"], each["rules"]) for each in found["sensitive_cells"]]
    assert (1, {"area": 3}, ["p-percent", "dominance"]) in cells
    assert audit(*options, "--reveal") == 0
    assert "record 1: pay is 397 to 407 to whoever knows record 2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--table", "people.csv"), "no column is private"),
        (("--table", "people.csv", "--private", "salary"), "salary"),
        (("--table", "hospital", "--bounds", "7"), "not LO:HI"),
        (("--table", "hospital", "--bounds", "7:3"), "is empty"),
        (("--table", "hospital", "--protect", "much"), "not a share"),
        (("--table", "hospital", "--group-size", "0"), "too small"),
        (("--table", "hospital", "--insiders", "-1"), "negative"),
        (("--table", "hospital", "--certificates", "-1"), "negative"),
        (("--table", "hospital", "--dominance", "2"), "not N,K%"),
        (("--table", "hospital", "--known", "gone.csv"), "gone.csv cannot be read"),
        (("--table", "hospital", "--known", "people.csv"), "must begin with record,value"),
        (("--table", "hospital", "--dialect", "klingon"), "klingon"),
        (("--table", "nowhere"), "nowhere"),
    ],
)
def test_bad_input_is_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    assert audit(*options) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


def test_a_statement_with_a_mistake_is_named_and_the_rest_is_audited(
    folder: Path, capsys: Captured
) -> None:
    mistakes = """
    SELECT SUM("Blood sugar") FROM t WHERE Gender = "Male";
    SELECT SUM(Sugar) FROM t;
    """
    (folder / "q.sql").write_text(mistakes + QUERIES)
    assert audit("--table", "hospital") == 0
    printed = capsys.readouterr().out
    assert "query 1 (line 2): there is no column Male; text stands in single quotation" in printed
    assert "query 2 (line 3): there is no column Sugar" in printed
    assert "record 2: Blood sugar = •  by query 3 - query 4 - query 5" in printed


def test_a_statement_that_is_about_nobody_is_named(folder: Path, capsys: Captured) -> None:
    empty = "\n".join(
        [
            'SELECT SUM("Blood sugar") FROM t WHERE ZIP < 0;',
            'SELECT Gender, MAX("Blood sugar") FROM t WHERE ZIP < 0 GROUP BY Gender;',
            'SELECT COUNT(*) FROM t WHERE "Blood sugar" > 4 AND ZIP < 0;',
            'SELECT Gender, SUM("Blood sugar") FROM t GROUP BY Gender HAVING COUNT(*) > 9;',
        ]
    )
    (folder / "q.sql").write_text(empty + QUERIES)
    assert audit("--table", "hospital") == 0
    printed = capsys.readouterr().out
    for query in range(1, 5):
        assert f"query {query} is about nobody: no record counts in it" in printed
    assert "query 5 is about" not in printed
    assert "record 2: Blood sugar = •  by query 5 - query 6 - query 7" in printed
