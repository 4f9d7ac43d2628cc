from pathlib import Path

import pytest
from cli.running import Captured, assert_refused, shown, told
from table.stored import run_in

from casemate.cli.main import exit_code

ROWS = "id,ZIP,Blood sugar\n1,20001,4.3\n2,20002,\n3,60000,11\n"
POLICY = """
[table]
source = "people.csv"
[columns.id]
role = "identifier"
[columns.ZIP]
min = 20000
max = 50000
from = "data"
[columns."Blood sugar"]
role = "private"
min = 3
max = 10
"""
GRID = "cells for private answers: 289 (ZIP 17, Blood sugar 17)"


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "people.csv").write_text(ROWS)
    (folder / "casemate.toml").write_text(POLICY)


def test_init_prints_or_writes_a_policy_that_check_accepts(folder: Path, capsys: Captured) -> None:
    assert exit_code(["policy", "init", "people.csv"]) == 0
    printed = capsys.readouterr()
    assert '[columns."Blood sugar"]' in printed.out and 'role = "private"\n' not in printed.out
    assert "Nothing in it is private yet" in printed.err
    assert told(capsys, "policy", "init", "people.csv", "--output", "first.toml", "--quiet") == ""
    assert (folder / "first.toml").read_text() == printed.out
    assert "first.toml: 3 rows, valid" in told(capsys, "policy", "check", "first.toml")
    found = shown(capsys, "policy", "init", "people.csv")
    assert found == {"schema": "casemate.policy-draft/1", "policy": printed.out}


def test_init_never_overwrites_a_policy(folder: Path, capsys: Captured) -> None:
    assert_refused(capsys, ["policy", "init", "people.csv", "--output", "casemate.toml"], "already")
    assert (folder / "casemate.toml").read_text() == POLICY


def test_check_shows_columns_by_role_and_what_was_not_foreseen(capsys: Captured) -> None:
    lines = told(capsys, "policy", "check", "casemate.toml").splitlines()
    assert lines[0] == "casemate.toml: 3 rows, valid"
    assert [line.split()[0] for line in lines[1:4]] == ["private", "public", "identifier"]
    assert lines[1].endswith("1 NULL, 1 outside the bounds")
    assert "for the custodian, not for publication" in lines[4]
    assert lines[5] == GRID
    assert lines[6].startswith("warning: ZIP: bounds, values or bins were taken from the data")
    found = shown(capsys, "policy", "check", "casemate.toml")
    assert found["schema"] == "casemate.policy/1"
    assert found["columns"][2] == {
        "name": "Blood sugar",
        "role": "private",
        "type": "decimal",
        "from": "public",
        "nulls": 1,
        "misfits": 0,
        "outside_bounds": 1,
        "undeclared_values": None,
    }


def test_check_says_which_columns_are_not_on_the_grid_and_why(
    folder: Path, capsys: Captured
) -> None:
    (folder / "casemate.toml").write_text(POLICY.replace('role = "identifier"', ""))
    reason = "the type of id is not known; declare `type` for it"
    lines = told(capsys, "policy", "check", "casemate.toml").splitlines()
    assert lines[5:7] == [GRID, f"left out: {reason}"]
    assert shown(capsys, "policy", "check", "casemate.toml")["universe"] == {
        "cells": 289,
        "attributes": [{"name": "ZIP", "cells": 17}, {"name": "Blood sugar", "cells": 17}],
        "left_out": [{"name": "id", "reason": reason}],
    }


def test_a_database_table_may_be_given_its_key(capsys: Captured) -> None:
    run_in("base.db", "CREATE TABLE t AS FROM 'people.csv'")
    assert_refused(capsys, ["policy", "init", "duckdb:///base.db#t"], "needs `key`")
    assert 'key = "id"' in told(capsys, "policy", "init", "duckdb:///base.db#t", "--key", "id")
