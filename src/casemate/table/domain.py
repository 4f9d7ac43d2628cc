"""Bounds and values of a column, and whether they suit its type."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import TypeGuard

from casemate.table.schema import Column, ColumnType, Value

KINDS: dict[ColumnType, tuple[type, ...]] = {
    ColumnType.BOOLEAN: (bool,),
    ColumnType.INTEGER: (int,),
    ColumnType.DECIMAL: (int, Decimal),
    ColumnType.DOUBLE: (int, Decimal),
    ColumnType.TEXT: (str,),
    ColumnType.DATE: (date,),
    ColumnType.TIMESTAMP: (datetime,),
}
"""The Python types of the values a column of each type may hold: exactly these, no subclasses."""

EXPECTED = {
    ColumnType.BOOLEAN: "true or false",
    ColumnType.INTEGER: "whole numbers",
    ColumnType.DECIMAL: "numbers",
    ColumnType.DOUBLE: "numbers",
    ColumnType.TEXT: "strings",
    ColumnType.DATE: "dates such as 2020-12-31",
    ColumnType.TIMESTAMP: "date-times such as 2020-12-31T23:59:59",
}

ORDERED = frozenset(KINDS) - {ColumnType.BOOLEAN, ColumnType.TEXT}
"""The types that bounds make sense for."""


def is_value(value: object) -> TypeGuard[Value]:
    """Whether a policy may name this value: finite, and without a time zone."""
    if isinstance(value, Decimal):
        return value.is_finite()
    if isinstance(value, datetime):
        return value.tzinfo is None
    return type(value) in (bool, int, str, date)


def of_one_kind(values: Iterable[Value]) -> bool:
    """Whether some column type could hold all of these."""
    present = {type(value) for value in values}
    return any(present <= set(kinds) for kinds in KINDS.values())


def misfit(column: Column, type_: ColumnType) -> tuple[str, str] | None:
    """The policy key of a column that contradicts its type, and what is wrong with it."""
    kinds, expected = KINDS[type_], EXPECTED[type_]
    for key, bound in (("min", column.low), ("max", column.high)):
        if bound is not None and type_ not in ORDERED:
            return key, f"does not suit a {type_} column; list its `values` instead"
        if bound is not None and type(bound) not in kinds:
            return key, f"does not suit a {type_} column; expected {expected}"
    if any(type(value) not in kinds for value in column.values or ()):
        return "values", f"does not suit a {type_} column; expected {expected}"
    return None
