import json
from pathlib import Path

import pytest

from casemate.cli.main import ended

NOWHERE = """
[table]
source = "postgresql://nobody@nowhere.invalid/db#people"
key = "id"
[columns.id]
role = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.ill]
role = "private"
type = "boolean"
values = [true, false]
[budget]
epsilon = 1.0
delta = 1e-6
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.sql"
    path.write_text("SELECT COUNT(*) FROM people WHERE ill;\nSELECT age FROM people;")
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "casemate.toml"
    path.write_text(NOWHERE)
    return path


def test_a_plan_is_made_without_reaching_the_table(
    policy: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["plan", str(policy), "--queries", str(log), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["schema"] == "casemate.plan/1"
    assert shown["questions"]["read"] == 1
    assert [each["line"] for each in shown["refused"]] == [2]


def test_without_a_log_the_usual_questions_are_planned(
    policy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["plan", str(policy), "--people", "1000", "--expect", "500"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("recommended: ")
    assert "500 questions (ranges over three attributes assumed), 1,000 people" in shown


def test_a_plan_can_be_a_page(policy: Path, tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    arguments = ["plan", str(policy), "--format", "html", "--output", str(page), "--quiet"]
    assert ended(arguments) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("option", ["--expect", "--people"])
def test_numbers_that_mean_nothing_are_refused(
    policy: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(["plan", str(policy), option, "0"]) == 2
    assert capsys.readouterr().err == f"casemate: {option} 0 is too small; give at least 1\n"


def test_a_table_without_a_policy_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(["plan", "people.csv"]) == 2
    assert "planning never opens a table" in capsys.readouterr().err
