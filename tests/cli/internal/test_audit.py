"""The commands `casemate audit` and `audit block`: options, exit codes, and what they hide."""

from pathlib import Path
from typing import Any

import pytest
from census_block import COMMON, SECOND, TRUTH, people, seven
from cli.running import SUMS, Captured, shown, told

from casemate.audit.small_block.model import Person
from casemate.cli.main import exit_code

HOSPITAL = ("audit", "q.sql", "--table", "hospital")
PEOPLE = ("audit", "q.sql", "--table", "people.csv", "--private", "pay")
LOG = """sql,answer
"SELECT SUM(""Blood sugar"") FROM t",32.1
"SELECT SUM(""Blood sugar"") FROM t WHERE Gender = 'Female'",15.5
"SELECT SUM(""Blood sugar"") FROM t WHERE ZIP IN (32453, 33745) AND Gender = 'Male'",11.4
"""
LOGGED = ("audit", "log.csv", "--table", "hospital")


@pytest.fixture(autouse=True)
def log(folder: Path) -> Path:
    path = folder / "log.csv"
    path.write_text(LOG)
    return path


def test_a_value_is_named_with_its_certificate_and_hidden_until_it_is_to_be_revealed(
    capsys: Captured,
) -> None:
    for value, reveal in (("•", ()), ("5.2", ("--reveal",))):
        printed = told(capsys, *HOSPITAL, *reveal)
        who = "record 2, the only one with ZIP 43813"
        assert f"{who}: Blood sugar = {value}  by query 1 - query 2 - query 3" in printed
    hidden = shown(capsys, *HOSPITAL)
    assert hidden["exposed"][0]["value"] is None
    assert {group["total"] for group in hidden["groups"]} == {None}
    assert {each["lo"] for each in hidden["bounds"]} == {None}
    (found,) = shown(capsys, *HOSPITAL, "--reveal")["exposed"]
    terms = [
        (each["query"], each["cell"], each["coefficient"]) for each in found["certificate"]["terms"]
    ]
    assert terms == [(1, None, 1), (2, None, -1), (3, None, -1)]
    assert (found["value"], found["certificate"]["divisor"]) == (5.2, 1)


def test_it_fails_when_asked_to_and_somebody_is_exposed_or_undecided(
    folder: Path, capsys: Captured
) -> None:
    failing = [*HOSPITAL, "--fail-on", "exposed"]
    assert exit_code(failing) == 1
    (folder / "q.sql").write_text('SELECT SUM("Blood sugar") FROM t WHERE "Blood sugar" > 5')
    assert exit_code(failing) == 1
    (folder / "q.sql").write_text('SELECT SUM("Blood sugar") FROM t')
    assert exit_code(failing) == 0
    assert "none-exposed" in capsys.readouterr().out


def test_a_bare_file_is_audited_with_a_private_column_named_and_with_what_is_known(
    folder: Path, capsys: Captured
) -> None:
    (folder / "q.sql").write_text("SELECT age, SUM(pay) FROM people GROUP BY age")
    printed = told(capsys, *PEOPLE, "--reveal")
    assert "record 3, the only one with age 40: pay = 400  by query 1 [age = 40]" in printed
    assert "records 1, 2: pay adds up to 300" in printed
    assert "pay has no declared bounds" in printed
    (folder / "known.csv").write_text("record,value\n1,100\n")
    found = shown(capsys, *PEOPLE, "--known", "known.csv", "--reveal", "--bounds", "0:1000")
    exposed = [(each["record"], each["value"], each["proof"]) for each in found["exposed"]]
    assert exposed == [(2, 200, "bounds"), (3, 400, "rank"), (4, 800, "rank")]


def test_what_insiders_know_is_listed_without_values(folder: Path, capsys: Captured) -> None:
    """Of 507 in area 1 record 3 has at most 10, so that 1 and 2 nearly know each other."""
    rows = ("1,no,400", "1,no,100", "1,yes,7", "2,yes,3", "3,no,9", "3,no,8")
    (folder / "pay.csv").write_text("\n".join(("area,old,pay", *rows, "")))
    (folder / "q.sql").write_text(
        "SELECT area, SUM(pay) FROM t GROUP BY area HAVING COUNT(*) > 1;"
        "SELECT SUM(pay) FROM t WHERE old = 'yes'"
    )
    table = ("audit", "q.sql", "--table", "pay.csv", "--private", "pay")
    options = (*table, "--bounds", "0:", "--approximate")
    hidden = told(capsys, *options)
    assert "record 5: pay to whoever knows record 6" in hidden
    assert "record 1: pay is • to whoever knows record 2" in hidden
    assert "query 1 [area = 3]: pay by p-percent and dominance" in hidden
    assert "400" not in hidden and "407" not in hidden
    found = shown(capsys, *options)
    assert {"record": 6, "column": "pay", "knows": [5], "unless_zero": False} in found[
        "insider_exposed"
    ]
    assert found["approximate"] == [
        {"record": 1, "column": "pay", "knows": [2], "lo": None, "hi": None},
        {"record": 2, "column": "pay", "knows": [1], "lo": None, "hi": None},
    ]
    cells = [(each["query"], each["cell"], each["rules"]) for each in found["sensitive_cells"]]
    assert (1, {"area": 3}, ["p-percent", "dominance"]) in cells
    revealed = told(capsys, *options, "--reveal")
    assert "record 1: pay is 397 to 407 to whoever knows record 2" in revealed


NAMED = {
    """SELECT SUM("Blood sugar") FROM t WHERE Gender = "Male";
    SELECT SUM(Sugar) FROM t;""": [
        "query 1 (line 1): there is no column Male; text stands in single quotation",
        "query 2 (line 2): there is no column Sugar",
    ],
    """SELECT SUM("Blood sugar") FROM t WHERE ZIP < 0;
    SELECT Gender, MAX("Blood sugar") FROM t WHERE ZIP < 0 GROUP BY Gender;
    SELECT COUNT(*) FROM t WHERE "Blood sugar" > 4 AND ZIP < 0;
    SELECT Gender, SUM("Blood sugar") FROM t GROUP BY Gender HAVING COUNT(*) > 9;""": [
        f"query {query} is about nobody: no record counts in it" for query in range(1, 5)
    ],
}


@pytest.mark.parametrize(("statements", "said"), NAMED.items())
def test_statements_with_a_mistake_or_about_nobody_are_named_and_the_rest_is_audited(
    statements: str, said: list[str], folder: Path, capsys: Captured
) -> None:
    (folder / "q.sql").write_text(statements + SUMS)
    printed = told(capsys, *HOSPITAL)
    assert all(each in printed for each in said)
    first = len(said) + 1
    by = f"query {first} - query {first + 1} - query {first + 2}"
    assert f": Blood sugar = •  by {by}" in printed
    assert f"query {first} is about" not in printed


# Second tables, rounded answers, limits ---------------------------------------------------------


def test_second_tables_are_written_and_what_is_in_the_file_is_checked(
    folder: Path, capsys: Captured
) -> None:
    options = ("--witness", "second.csv", "--reveal", "--quiet")
    assert shown(capsys, *LOGGED, *options)["witness"] == {
        "file": "second.csv",
        "tables": 2,
        "covered": 5,
        "narrow": [],
        "uncovered": [],
    }
    lines = (folder / "second.csv").read_text().splitlines()
    assert lines[0] == "table,record,column,value,exact" and len(lines) == 1 + 2 * 6
    assert [line for line in lines if line.split(",")[1] == "2"] == [
        "1,2,Blood sugar,5.2,",
        "2,2,Blood sugar,5.2,",
    ]
    printed = told(capsys, *LOGGED, *options)
    assert "second tables: 2 in second.csv, covering 5 records" in printed


def test_rounded_answers_give_a_value_with_a_margin(capsys: Captured) -> None:
    rounding = (*LOGGED, "--rounding")
    hidden = told(capsys, *rounding, "--fail-on", "exposed")
    assert "record 2: Blood sugar = • give or take 0.15  by query 1 - query 2 - query 3" in hidden
    assert "5.2" not in hidden
    (found,) = shown(capsys, *rounding, "--reveal")["exposed_if_exact"]
    assert (found["record"], found["value"], found["margin"], found["by"]) == (2, 5.2, 0.15, 3)
    (hidden_one,) = shown(capsys, *rounding)["exposed_if_exact"]
    assert hidden_one["value"] is None and hidden_one["certificate"] == found["certificate"]


def test_a_limit_that_is_too_short_makes_the_audit_incomplete(log: Path, capsys: Captured) -> None:
    total = '"SELECT SUM(""Blood sugar"") FROM t"'
    some = '"SELECT SUM(""Blood sugar"") FROM t WHERE Gender = \'Male\'"'
    log.write_text(f"sql\n{total}\n{some}\n")
    found = shown(capsys, *LOGGED, "--seconds", "1e-9", "--fail-on", "exposed", code=1)
    assert (found["verdict"], found["unchecked"]) == ("incomplete", [1, 2, 3, 4, 5, 6])
    assert exit_code([*LOGGED, "--seconds", "0", "--fail-on", "exposed"]) == 0


def test_bad_answers_are_named_with_their_lines_and_the_rest_is_audited(
    log: Path, capsys: Captured
) -> None:
    more = '"SELECT SUM(""Blood sugar"") FROM t",33\n"SELECT SUM(""Blood sugar"") FROM t",none\n'
    log.write_text(LOG + more)
    printed = told(capsys, *LOGGED)
    for said in (
        "the published numbers contradict each other",
        "query 4 (line 5): its answer contradicts that of query 1; correct one of them",
        "query 5 (line 6): the answer is not a number",
        ": Blood sugar = •  by query 1 - query 2 - query 3",
    ):
        assert said in printed


# The block of the literature --------------------------------------------------------------------


def block(capsys: Captured, folder: Path, text: str, *options: str) -> dict[str, Any]:
    (folder / "block.csv").write_text(text)
    return shown(capsys, "audit", "block", "block.csv", *options)


def persons(objects: list[dict[str, int | str]]) -> tuple[Person, ...]:
    return tuple(tuple(each.values()) for each in objects)


@pytest.mark.parametrize(
    ("suppressed", "solutions", "certain"),
    [((), 1, TRUTH), (("2A", "2B"), 8, COMMON), (("4A",), 2, ()), (("3B",), 64, people("8FBS"))],
)
def test_the_block_of_the_literature(
    suppressed: tuple[str, ...],
    solutions: int,
    certain: tuple[Person, ...],
    folder: Path,
    capsys: Captured,
) -> None:
    found = block(capsys, folder, seven(*suppressed), "--seconds", "0")
    tables = {persons(table) for table in found["tables"]}
    assert (found["solutions"], found["complete"], found["people"]) == (solutions, True, 7)
    assert persons(found["certain"]) == certain
    assert len(tables) == solutions and TRUTH in tables
    assert suppressed != ("4A",) or SECOND in tables


def test_fewer_solutions_and_other_ages_can_be_asked_for_and_the_text_names_everybody(
    folder: Path, capsys: Captured
) -> None:
    found = block(capsys, folder, seven("3B"), "--limit", "3")
    assert (found["solutions"], found["complete"]) == (3, False)
    assert persons(found["certain"]) == people("8FBS")
    assert block(capsys, folder, seven(), "--ages", "0:83")["solutions"] == 0
    printed = told(capsys, "audit", "block", "block.csv")
    assert printed.startswith("7 people, 1 solution\nthe statistics give away everybody\n")
    assert "  age 8, sex F, race B, married S\n" in printed
    (folder / "block.csv").write_text(seven(more="5A,F,,,,6,,"))
    printed = told(capsys, "audit", "block", "block.csv")
    assert "0 solutions" in printed and "contradict each other" in printed
