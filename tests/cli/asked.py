"""A small protected table, and the commands that ask about it."""

import json
from pathlib import Path
from typing import Any

import pytest

from casemate.cli.main import ended

POLICY = """
[table]
source = "people.csv"
[columns.sex]
values = ["f", "m"]
[columns.joined]
type = "date"
min = 2024-01-01
max = 2024-12-31
bins = 2
[columns.ill]
role = "private"
values = [0, 1]
[budget]
epsilon = 1
delta = 1e-6
"""
PEOPLE = 600
GROUPED = "SELECT sex, COUNT(*) FROM t GROUP BY sex"
COUNT = "SELECT COUNT(*) FROM t"

Captured = pytest.CaptureFixture[str]


def written(folder: Path, more: str = "") -> Path:
    """The policy and its table in a folder."""
    rows = [f"{'fm'[i % 2]},2024-{i % 12 + 1:02}-15,{int(i % 7 == 0)}" for i in range(PEOPLE)]
    (folder / "people.csv").write_text("\n".join(["sex,joined,ill", *rows, ""]))
    (folder / "people.toml").write_text(POLICY + more)
    return folder


def ask(capsys: Captured, sql: str, *options: str, policy: str = "people.toml") -> dict[str, Any]:
    """The object that asking prints."""
    assert ended(["ask", policy, sql, *options, "--format", "json"]) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def spent(capsys: Captured, policy: str = "people.toml") -> float:
    """The epsilon that is spent."""
    assert ended(["budget", policy, "--format", "json"]) == 0, capsys.readouterr().err
    return float(json.loads(capsys.readouterr().out)["spent"]["epsilon"])
