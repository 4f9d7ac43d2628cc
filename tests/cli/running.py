"""Commands run in this process: what they print, what they refuse, and the files they read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from casemate.cli.main import exit_code

Captured = pytest.CaptureFixture[str]
SUMS = """
SELECT SUM("Blood sugar") FROM hospital;
SELECT SUM("Blood sugar") FROM hospital WHERE Gender = 'Female';
SELECT SUM("Blood sugar") FROM hospital WHERE ZIP > 32000 AND ZIP < 35000 AND Gender = 'Male';
"""
CLASSIFIER = """
import json, sys
import numpy as np
weights = np.array([1.0, -2.0, 0.5])
count = 0
def predict(points):
    global count
    count += len(points)
    return np.where(points @ weights + 0.3 > 0, "spam", "ham")
noise = np.random.default_rng(0)
def noisy(points):
    return (points @ weights + 0.3 + 0.2 * noise.normal(size=len(points)) > 0).astype(int)
def parabola(points):
    return (points[:, 1] > points[:, 0] ** 2 - 0.2).astype(int)
def constant(points):
    return ["ham"] * len(points)
def fails(points):
    raise ZeroDivisionError
def slow(points):
    if len(points) > 30:
        print("asked", file=sys.stderr, flush=True)
        import time
        time.sleep(60)
    return noisy(points)
if __name__ == "__main__":
    for line in sys.stdin:
        print(predict(np.array([json.loads(line)]))[0], flush=True)
"""


def write_files(folder: Path) -> None:
    """Three sums that expose somebody, small tables, and a classifier to copy."""
    (folder / "q.sql").write_text(SUMS)
    (folder / "people.csv").write_text("id,age,pay\n1,30,100\n2,30,200\n3,40,400\n4,50,800\n")
    (folder / "seen.csv").write_text("id,age\n1,30\n2,30\n3,40\n4,50\n")
    (folder / "pay.sql").write_text(
        "SELECT age, SUM(pay) FROM t GROUP BY age; SELECT SUM(pay) FROM t WHERE id < 3 AND id <> 1"
    )
    rows = [f"{place},{place % 3},{7 * place % 40},x" for place in range(60)]
    (folder / "many.csv").write_text("\n".join(["id,area,pay,word", *rows, ""]))
    (folder / "stolen.py").write_text(CLASSIFIER)
    (folder / "truth.json").write_text('{"weights": [1, -2, 0.5], "intercept": 0.3}')
    (folder / "short.csv").write_text("1,2")


def shown(capsys: Captured, *arguments: str, code: int = 0) -> dict[str, Any]:
    """The object that a command prints."""
    assert exit_code([*arguments, "--format", "json"]) == code, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def told(capsys: Captured, *arguments: str, code: int = 0) -> str:
    """The text that a command prints."""
    assert exit_code(arguments) == code, capsys.readouterr().err
    return capsys.readouterr().out


def assert_one_sentence(capsys: Captured, sentence: str) -> None:
    """Nothing was printed but one sentence, on stderr."""
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


def assert_refused(capsys: Captured, arguments: Sequence[str], sentence: str) -> None:
    """The input is wrong: one sentence says so, and nothing is printed."""
    assert exit_code(arguments) == 2
    assert_one_sentence(capsys, sentence)
