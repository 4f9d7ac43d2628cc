"""A small protected table, and the commands that ask about it."""

from pathlib import Path
from typing import Any

from cli.running import Captured, shown

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


def write_people(folder: Path, more: str = "", epsilon: int = 1) -> None:
    """The policy and its table in a folder."""
    rows = [f"{'fm'[i % 2]},2024-{i % 12 + 1:02}-15,{int(i % 7 == 0)}" for i in range(PEOPLE)]
    (folder / "people.csv").write_text("\n".join(["sex,joined,ill", *rows, ""]))
    policy = POLICY.replace("epsilon = 1", f"epsilon = {epsilon}")
    (folder / "people.toml").write_text(policy + more)


def ask(capsys: Captured, sql: str, *options: str, policy: str = "people.toml") -> dict[str, Any]:
    """The object that asking prints."""
    return shown(capsys, "ask", policy, sql, *options)


def spent(capsys: Captured, policy: str = "people.toml") -> float:
    """The epsilon that is spent."""
    return float(shown(capsys, "budget", policy)["spent"]["epsilon"])
