"""What was found, by record: numbers with intervals, categories with their likeliest value."""

from pathlib import Path

import numpy as np
import pytest

from casemate.attack import Attack
from casemate.attack.attack import Attacked, AttackOptions
from casemate.attack.reconstruct.reconstruction import Solver

POLICY = """
[table]
source = "t.csv"
[columns.id]
role = "public"
[columns.status]
role = "private"
values = ["A", "B", "C"]
"""


def attacked(folder: Path, *statements: str) -> Attacked:
    (folder / "t.csv").write_text("id,status\n1,A\n2,B\n3,C\n4,C\n")
    (folder / "p.toml").write_text(POLICY)
    return Attack.of(statements, folder / "p.toml", random=np.random.default_rng(0))


def counts(value: str) -> list[str]:
    return [f"SELECT COUNT(*) FROM t WHERE status = '{value}' AND id = {i}" for i in range(1, 5)]


def test_a_category_is_what_its_unknowns_say_or_what_they_leave(tmp_path: Path) -> None:
    found = attacked(tmp_path, *counts("A"), *counts("B"))
    assert [each.value for each in found.secrets] == ["A", "B", "C", "C"]
    assert {each.column for each in found.secrets} == {"status"}
    assert [each.record for each in found.secrets] == [1, 2, 3, 4]
    assert {(each.low, each.high) for each in found.secrets} == {(None, None)}


def test_asking_about_the_last_value_tells_as_much(tmp_path: Path) -> None:
    found = attacked(tmp_path, *counts("A"), *counts("C"))
    assert [each.value for each in found.secrets] == ["A", "B", "C", "C"]


def test_values_that_nobody_asked_about_are_equally_likely(tmp_path: Path) -> None:
    """Of records 2 to 4 it is known that they are not A: B and C are then even."""
    secrets = list(attacked(tmp_path, *counts("A")).secrets)
    assert [each.value for each in secrets] == ["A", "B", "B", "B"]
    assert [each.probability for each in secrets] == pytest.approx([1, 0.5, 0.5, 0.5])


def test_numbers_have_intervals_and_no_category(tmp_path: Path) -> None:
    queries = [
        'SELECT SUM("Blood sugar") FROM t',
        'SELECT SUM("Blood sugar") FROM t WHERE Age > 40',
    ]
    found = Attack.of(queries, "hospital", random=np.random.default_rng(0))
    for each in found.secrets:
        assert isinstance(each.value, float) and each.low is not None and each.high is not None
        assert each.low <= each.value + 1e-6 and each.value <= each.high + 1e-6


def test_without_any_bound_there_is_no_end(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,pay\n1,1.5\n2,2.5\n")
    found = Attack.of(
        ["SELECT SUM(pay) FROM t"],
        tmp_path / "t.csv",
        private="pay",
        options=AttackOptions(solver=Solver.LEAST_SQUARES),
        random=np.random.default_rng(0),
    )
    assert [(each.value, each.low, each.high) for each in found.secrets] == [(2.0, None, None)] * 2


def test_nobody_is_shown_in_a_representation(tmp_path: Path) -> None:
    found = attacked(tmp_path, *counts("A"), *counts("B"))
    (secret, *_) = found.secrets
    assert repr(secret) == "<Secret: a value of status>"
    assert repr(found) == "<Attacked: 4 records, 8 queries>"
