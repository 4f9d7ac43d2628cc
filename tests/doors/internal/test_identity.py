"""What makes a dataset the same dataset, and where its files are."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from casemate.doors import dataset_of, edition_of, ledger_of, secrets_of
from casemate.doors.dataset import LONGEST_NAME
from casemate.table import (
    Answering,
    Budget,
    Column,
    ColumnType,
    Neighbours,
    Policy,
    Protects,
    Provenance,
    Role,
    Strategy,
)

AGE = Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10)
POLICY = Policy("people.csv", (AGE,), path=Path("/rules/casemate.toml"))
BUDGET = Budget(Fraction(1))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": (replace(AGE, bins=5),)},
        {"columns": (replace(AGE, high=98),)},
        {"columns": (replace(AGE, role=Role.PRIVATE),)},
        {"columns": (replace(AGE, provenance=Provenance.DATA),)},
        {"columns": (AGE, replace(AGE, name="other"))},
        {"version": "2"},
        {"key": "id"},
        {"person": "who", "rows_per_person": 2},
    ],
)
def test_whatever_changes_answers_makes_another_edition(changes: dict[str, Any]) -> None:
    assert edition_of(replace(POLICY, **changes), BUDGET) != edition_of(POLICY, BUDGET)


@pytest.mark.parametrize(
    "changes", [{"neighbours": Neighbours.REPLACE}, {"protects": Protects.PRIVATE_COLUMNS}]
)
def test_another_relation_makes_another_edition(changes: dict[str, Any]) -> None:
    assert edition_of(POLICY, replace(BUDGET, **changes)) != edition_of(POLICY, BUDGET)


def test_a_budget_may_grow_and_a_strategy_change_without_starting_anew() -> None:
    other = replace(POLICY, answering=Answering(Strategy.COLD), path=None, source="/moved/here.csv")
    more = Budget(Fraction(2), Fraction(1, 10**6), ledger="elsewhere.ledger")
    assert edition_of(other, more) == edition_of(POLICY, BUDGET)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/data/people.csv", "people.csv"),
        ("duckdb:////data/all.db#people", "people"),
        ("postgresql://user:secret@host/base#people", "people"),
        ("population:2000:1", "population:2000:1"),
        ("", "table"),
        ("x" * 500, "x" * LONGEST_NAME),
    ],
)
def test_a_dataset_is_named_after_its_table_without_folders_or_passwords(
    source: str, name: str
) -> None:
    assert dataset_of(replace(POLICY, source=source)) == name


@pytest.mark.parametrize(
    ("path", "ledger", "where", "secrets"),
    [
        ("/rules/a.toml", None, "/rules/casemate.ledger", "/rules/casemate.ledger"),
        ("/rules/a.toml", "/spent/a.ledger", "/spent/a.ledger", "/spent/a.ledger"),
        ("/rules/a.toml", "postgresql://h/b", "postgresql://h/b", "/rules/casemate.ledger"),
        (None, None, "people.csv.ledger", "people.csv.ledger"),
        (None, "postgresql://h/b", "postgresql://h/b", "people.csv.ledger"),
    ],
)
def test_files_are_beside_the_ledger_or_the_policy_or_named_after_the_dataset(
    path: str | None, ledger: str | None, where: str, secrets: str
) -> None:
    policy = replace(POLICY, path=None if path is None else Path(path))
    found = ledger_of(policy, replace(BUDGET, ledger=ledger))
    assert str(found) == where and secrets_of(policy, found) == Path(secrets)


def test_a_shipped_table_has_no_colon_in_its_files() -> None:
    policy = replace(POLICY, source="population:2000:1", path=None)
    assert ledger_of(policy, BUDGET) == Path("population-2000-1.ledger")
