from pathlib import Path

import pytest
from cli.running import Captured, shown, told

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


@pytest.fixture(autouse=True)
def files(folder: Path) -> None:
    (folder / "people.csv").write_text(ROWS)
    (folder / "casemate.toml").write_text(POLICY)


def test_init_prints_a_policy_that_check_accepts(folder: Path, capsys: Captured) -> None:
    assert exit_code(["policy", "init", "people.csv"]) == 0
    printed = capsys.readouterr()
    assert '[columns."Blood sugar"]' in printed.out and 'role = "private"\n' not in printed.out
    assert "Nothing in it is private yet" in printed.err
    (folder / "first.toml").write_text(printed.out)
    assert exit_code(["policy", "check", "first.toml"]) == 0
    assert "first.toml: 3 rows, valid" in capsys.readouterr().out


def test_init_writes_a_file_when_told_where(folder: Path, capsys: Captured) -> None:
    assert exit_code(["policy", "init", "people.csv", "--output", "first.toml", "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")
    assert "[table]" in (folder / "first.toml").read_text()


def test_init_never_overwrites_a_policy(folder: Path, capsys: Captured) -> None:
    assert exit_code(["policy", "init", "people.csv", "--output", "casemate.toml"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert (folder / "casemate.toml").read_text() == POLICY


def test_init_prints_one_object_as_json(capsys: Captured) -> None:
    printed = shown(capsys, "policy", "init", "hospital")
    assert printed["schema"] == "casemate.policy-draft/1"
    assert 'source = "hospital"' in printed["policy"]


def test_check_shows_columns_by_role_and_what_was_not_foreseen(capsys: Captured) -> None:
    lines = told(capsys, "policy", "check", "casemate.toml").splitlines()
    assert lines[0] == "casemate.toml: 3 rows, valid"
    assert [line.split()[0] for line in lines[1:4]] == ["private", "public", "identifier"]
    assert lines[1].endswith("1 NULL, 1 outside the bounds")
    assert "for the custodian, not for publication" in lines[4]
    assert lines[5] == "cells for private answers: 289 (ZIP 17, Blood sugar 17)"
    assert lines[6].startswith("warning: ZIP: bounds, values or bins were taken from the data")


def test_check_says_which_columns_are_not_on_the_grid_and_why(
    folder: Path, capsys: Captured
) -> None:
    (folder / "casemate.toml").write_text(POLICY.replace('role = "identifier"', ""))
    lines = told(capsys, "policy", "check", "casemate.toml").splitlines()
    assert lines[5:7] == [
        "cells for private answers: 289 (ZIP 17, Blood sugar 17)",
        "left out: the type of id is not known; declare `type` for it",
    ]
    assert shown(capsys, "policy", "check", "casemate.toml")["universe"] == {
        "cells": 289,
        "attributes": [{"name": "ZIP", "cells": 17}, {"name": "Blood sugar", "cells": 17}],
        "left_out": [
            {
                "name": "id",
                "reason": "the type of id is not known; declare `type` for it",
            }
        ],
    }


def test_check_prints_one_versioned_object_as_json(capsys: Captured) -> None:
    printed = shown(capsys, "policy", "check", "casemate.toml")
    assert list(printed) == [
        "schema",
        "policy",
        "rows",
        "people",
        "people_over_limit",
        "columns",
        "universe",
        "warnings",
        "note",
    ]
    assert printed["schema"] == "casemate.policy/1"
    assert printed["columns"][2] == {
        "name": "Blood sugar",
        "role": "private",
        "type": "decimal",
        "from": "public",
        "nulls": 1,
        "misfits": 0,
        "outside_bounds": 1,
        "undeclared_values": None,
    }


def test_a_policy_with_a_mistake_is_wrong_input_and_one_sentence(
    folder: Path, capsys: Captured
) -> None:
    (folder / "casemate.toml").write_text(POLICY.replace("min = 3", "mim = 3"))
    assert exit_code(["policy", "check", "casemate.toml"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        'casemate: casemate.toml: `columns."Blood sugar".mim` is not a key of this section; '
        "did you mean `min`?\n"
    )


def test_a_database_table_may_be_given_its_key(folder: Path, capsys: Captured) -> None:
    import duckdb

    with duckdb.connect("base.db") as connection:
        connection.execute("CREATE TABLE t AS FROM 'people.csv'")
    assert exit_code(["policy", "init", "duckdb:///base.db#t"]) == 2
    assert "needs `key`" in capsys.readouterr().err
    assert exit_code(["policy", "init", "duckdb:///base.db#t", "--key", "id"]) == 0
    assert 'key = "id"' in capsys.readouterr().out
