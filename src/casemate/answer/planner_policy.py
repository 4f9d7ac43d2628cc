"""What a policy alone says of a table: the types of its columns, without opening the source.

A type that is not declared is taken from the declared values or bounds, and a note says so; whole
bounds are taken for whole numbers. A column of which nothing is declared is on no grid.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from casemate.errors import Misconfigured
from casemate.table.policy import load_policy
from casemate.table.schema import Budget, Column, ColumnType, Policy, Role, Value
from casemate.table.shipped import names, shipped
from casemate.table.toml import listed

GUESSES: tuple[tuple[ColumnType, tuple[type, ...]], ...] = (
    (ColumnType.BOOLEAN, (bool,)),
    (ColumnType.INTEGER, (int,)),
    (ColumnType.DECIMAL, (int, Decimal)),
    (ColumnType.TEXT, (str,)),
    (ColumnType.DATE, (date,)),
    (ColumnType.TIMESTAMP, (datetime,)),
)
"""The types in the order in which they are tried: exactly these Python types, no subclasses."""


def policy_of(where: str | Path | Policy) -> Policy:
    """A policy, read from its file if need be, or that of a shipped table."""
    if isinstance(where, Policy):
        return where
    if str(where).lower().endswith(".toml"):
        return load_policy(where, absent=True)
    found = shipped(str(where))
    if found is None:
        raise Misconfigured(
            f"{where} is no policy; planning never opens a table, so it needs a policy (.toml) or "
            f"the name of a shipped table: {listed(names())}"
        )
    return found.policy


def budget_of(policy: Policy) -> Budget:
    """The budget of a policy that has one."""
    if policy.budget is None:
        raise Misconfigured(
            "there is no budget to plan with; add a section [budget] with `epsilon` to the policy"
        )
    return policy.budget


def with_types(policy: Policy) -> tuple[Policy, tuple[str, ...]]:
    """The policy with a type for each column on the grid, and notes on those that were guessed."""
    known = _shipped_types(policy.source)
    columns, notes = [], []
    for column in policy.columns:
        kind = column.type or known.get(column.name) or _guessed(column)
        if column.type is None and column.name not in known and column.role is not Role.IDENTIFIER:
            notes.append(_note(column, kind))
        columns.append(replace(column, type=kind))
    return replace(policy, columns=tuple(columns)), tuple(notes)


def readable(policy: Policy) -> Policy:
    """The same with text for every type that is still unknown, so that SQL can be read."""
    columns = [replace(each, type=each.type or ColumnType.TEXT) for each in policy.columns]
    return replace(policy, columns=tuple(columns))


def _shipped_types(source: str) -> dict[str, ColumnType]:
    kind = source.partition(":")[0]
    if kind not in names():
        return {}
    found = shipped("population:1" if kind == "population" else kind)  # a policy has no rows
    columns = () if found is None else found.policy.columns
    return {each.name: each.type for each in columns if each.type is not None}


def _guessed(column: Column) -> ColumnType | None:
    bounds = [each for each in (column.low, column.high) if each is not None]
    declared: list[Value] = [*bounds, *(column.values or ())]
    return _type_of(declared) if declared else None


def _type_of(values: Iterable[Value]) -> ColumnType | None:
    present = {type(value) for value in values}
    return next((kind for kind, types in GUESSES if present <= set(types)), None)


def _note(column: Column, kind: ColumnType | None) -> str:
    if kind is None:
        return (
            f"the type of {column.name} is not known without its table, so no question can use it "
            f"here; declare `type`, and `values` or bounds"
        )
    return f"{column.name} was taken for {kind} by what is declared; declare `type` to be sure"
