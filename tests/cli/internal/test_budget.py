"""The command `casemate budget`: what was spent, what is left, and no ledger where none is."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from cli.asked import COUNT, GROUPED, Captured, ask, written

from casemate.cli.main import ended


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return written(tmp_path)


def budget(capsys: Captured, policy: str = "people.toml") -> dict[str, Any]:
    assert ended(["budget", policy, "--format", "json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


@pytest.mark.parametrize("policy", ["people.toml", "hospital"])
def test_where_nothing_was_asked_all_is_left_and_no_file_appears(
    policy: str, folder: Path, capsys: Captured
) -> None:
    before = names(folder)
    found = budget(capsys, policy)
    assert found["spent"] == {"rho": 0.0, "epsilon": 0.0}
    assert found["remaining"] == found["budget"] and found["questions"] == 0
    (note,) = found["notes"]
    assert note.startswith("nothing was asked yet: there is no ledger ")
    assert names(folder) == before


def test_what_was_asked_is_spent(capsys: Captured) -> None:
    answer = ask(capsys, GROUPED, "--principal", "alice")
    found = budget(capsys)
    assert found["spent"] == answer["cost"] and found["remaining"] == answer["remaining"]
    assert (found["questions"], found["notes"]) == (1, [])
    assert found["strategy"] == "warm" and found["surprises_left"] > 0
    assert "neighbours add-remove, protects person" in found["statement"]
    ask(capsys, GROUPED)
    assert budget(capsys) == found


def test_surprises_are_counted_for_each_principal(folder: Path, capsys: Captured) -> None:
    written(folder, '[answer]\nstrategy = "cold"\n')
    path = folder / "people.toml"
    path.write_text(path.read_text().replace("epsilon = 1", "epsilon = 1000"))
    ask(capsys, "SELECT COUNT(*) FROM t WHERE ill = 1", "--principal", "bob")
    ask(capsys, "SELECT COUNT(*) FROM t WHERE sex = 'f'", "--principal", "alice")
    found = budget(capsys)
    assert found["surprises"] == 2
    assert found["principals"] == [
        {"principal": "alice", "surprises": 1},
        {"principal": "bob", "surprises": 1},
    ]


def test_a_table_without_delta_has_no_rho(folder: Path, capsys: Captured) -> None:
    path = folder / "people.toml"
    path.write_text(path.read_text().replace("delta = 1e-6", ""))
    assert budget(capsys)["budget"] == {"rho": None, "epsilon": 1.0}
    assert ask(capsys, COUNT)["cost"]["rho"] is None
    assert budget(capsys)["spent"]["epsilon"] > 0


def test_text_and_page_say_the_same(folder: Path, capsys: Captured) -> None:
    assert ended(["budget", "people.toml"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("people.csv: spent epsilon 0 of 1 at delta 1e-06")
    assert "one person being in it or not" in printed and "strategy   warm" in printed
    assert ended(["budget", "people.toml", "--format", "html", "--output", "b.html"]) == 0
    root = ET.fromstring((folder / "b.html").read_text())
    assert len(list(root.iter("svg"))) == 1


def test_a_ledger_that_is_gone_is_no_new_one(folder: Path, capsys: Captured) -> None:
    ask(capsys, COUNT)
    for name in ("casemate.ledger", "casemate.ledger-wal", "casemate.ledger-shm"):
        (folder / name).unlink(missing_ok=True)
    assert ended(["budget", "people.toml"]) == 3
    assert "casemate.ledger is gone" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["people.csv", "absent.toml"])
def test_a_table_without_a_budget_is_wrong_input(policy: str, capsys: Captured) -> None:
    assert ended(["budget", policy]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
