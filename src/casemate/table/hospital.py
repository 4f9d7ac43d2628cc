"""`hospital`: the six patients of source document 002, its example of a protected table."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from casemate.table.schema import Budget, Column, ColumnType, Policy, Role
from casemate.table.source import Series

PATIENTS = (
    (1, "John Smith", 32453, "Male", Decimal("4.3")),
    (2, "Jeremy Doe", 43813, "Male", Decimal("5.2")),
    (3, "Susan Atkinson", 43765, "Female", Decimal("6.1")),
    (4, "Eve Brown", 32187, "Female", Decimal("3.2")),
    (5, "Joseph Sky", 33745, "Male", Decimal("7.1")),
    (6, "Alison Moon", 22983, "Female", Decimal("6.2")),
)

COLUMNS = (
    Column("id", Role.IDENTIFIER, ColumnType.INTEGER),
    Column("Name", Role.IDENTIFIER, ColumnType.TEXT),
    Column("ZIP", Role.PUBLIC, ColumnType.INTEGER, low=20_000, high=50_000, bins=16),
    Column("Gender", Role.PUBLIC, ColumnType.TEXT, values=("Male", "Female")),
    Column("Blood sugar", Role.PRIVATE, ColumnType.DECIMAL, low=3, high=10),
)


def policy() -> Policy:
    """The document's view: ZIP and gender are known to everybody, blood sugar is protected."""
    budget = Budget(Fraction(1), Fraction(1, 10**9))
    return Policy("hospital", COLUMNS, key="id", budget=budget)


def columns() -> dict[str, Series]:
    """The six records, column by column."""
    present = np.zeros(len(PATIENTS), dtype=np.bool_)
    return {
        column.name: Series(np.array(values, dtype=_storage(column)), present)
        for column, values in zip(COLUMNS, zip(*PATIENTS, strict=True), strict=True)
    }


def _storage(column: Column) -> type:
    return np.int64 if column.type is ColumnType.INTEGER else object
