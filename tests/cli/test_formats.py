"""A table without a policy whose numbers are text: what is said, and the options that cure it."""

from pathlib import Path

import duckdb
import pytest
from cli.running import Captured, assert_refused, shown, told

from casemate.cli.main import exit_code

SENTENCE = (
    'pay is text because 3 of 3 cells are not numbers (currency "$", marker "N"); declare '
    'missing_markers = ["N"], currency = "$" in the policy or say --currency \'$\' '
    "--missing-marker N"
)
SUM = "SELECT SUM(pay) FROM t WHERE team = 'a';"
ONE_BIT = ["attack", "one-bit", "--dimensions=2", "--bounds=0:9", "--seed=1"]
SAID = ["--currency=$", "--missing-marker", "N"]


@pytest.fixture(autouse=True)
def staff(folder: Path) -> Path:
    (folder / "staff.csv").write_text("id,team,pay\n1,a,$5\n2,b,N\n3,b,$7.25\n")
    (folder / "log.sql").write_text(SUM)
    (folder / "mixed.sql").write_text(f"{SUM}\nSELECT COUNT(*) FROM t;")
    with duckdb.connect(str(folder / "staff.db")) as connection:
        connection.execute("CREATE TABLE staff AS FROM read_csv('staff.csv', all_varchar = true)")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "log.sql"],
        ["attack", "reconstruct", "log.sql"],
    ],
)
def test_a_log_of_which_nothing_is_read_because_numbers_are_text_is_wrong_input(
    command: list[str], capsys: Captured
) -> None:
    assert_refused(capsys, [*command, "--table=staff.csv", "--private=pay"], SENTENCE)


def test_where_something_else_is_read_the_audit_is_incomplete_and_says_why(
    capsys: Captured,
) -> None:
    found = shown(capsys, "audit", "mixed.sql", "--table=staff.csv", "--private=pay")
    assert found["verdict"] == "incomplete"
    assert [each["reason"] for each in found["refused"]] == [
        f"sum needs numbers, and this is text: {SENTENCE}"
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["audit", "log.sql", "--missing=public"],
        ["attack", "reconstruct", "log.sql", "--seed=1"],
        ["attack", "plan", "--target=3"],
        [*ONE_BIT, "--noise=laplace:1", "--queries=10"],
    ],
)
@pytest.mark.parametrize("table", ["staff.csv", "duckdb:///staff.db#staff"])
def test_commands_on_a_plain_source_take_its_key_markers_and_formats(
    command: list[str], table: str, capsys: Captured
) -> None:
    assert told(capsys, *command, f"--table={table}", "--private=pay", "--key=id", *SAID)


@pytest.mark.parametrize("command", [["audit", "log.sql"], ["attack", "plan", "--target=1"]])
def test_a_database_table_without_a_key_is_refused_by_the_name_of_the_option(
    command: list[str], capsys: Captured
) -> None:
    arguments = [*command, "--table=duckdb:///staff.db#staff", "--private=pay"]
    assert_refused(capsys, arguments, "needs `key`: a column that is unique and never NULL; name")
    assert exit_code([*arguments, "--key=gone"]) == 2
    assert "gone" in capsys.readouterr().err


def test_a_drafted_policy_declares_the_formats_and_its_audit_works(
    staff: Path, capsys: Captured
) -> None:
    draft = told(capsys, "policy", "init", "staff.csv")
    assert 'missing_markers = ["N"]\ncurrency = "$"\nmissing = "secret"' in draft
    start, _, end = draft.partition('[columns.pay]\nrole = "public"')
    (staff / "casemate.toml").write_text(f'{start}[columns.pay]\nrole = "private"{end}')
    assert "not a" not in told(capsys, "policy", "check", "casemate.toml")
    found = shown(capsys, "audit", "log.sql", "--table=casemate.toml")
    assert found["verdict"] == "exposed" and found["refused"] == []
    undeclared = (staff / "casemate.toml").read_text().replace('currency = "$"\n', "")
    (staff / "casemate.toml").write_text(undeclared.replace('missing_markers = ["N"]\n', ""))
    assert SENTENCE in told(capsys, "policy", "check", "casemate.toml")
    arguments = ["audit", "log.sql", "--table=casemate.toml"]
    assert_refused(capsys, arguments, SENTENCE)
    assert_refused(capsys, [*arguments, *SAID], "declare `missing_markers` or `currency` in it")


def test_a_marker_may_look_like_an_option_or_a_number(staff: Path, capsys: Captured) -> None:
    (staff / "staff.csv").write_text("id,team,pay\n1,a,5\n2,b,-\n3,b,-9\n")
    said = ["--missing-marker=-", "--missing-marker", "-9"]
    arguments = ["audit", "log.sql", "--table=staff.csv", "--private=pay"]
    assert shown(capsys, *arguments, *said)["refused"] == []
    assert_refused(capsys, arguments, "say --missing-marker=-")
