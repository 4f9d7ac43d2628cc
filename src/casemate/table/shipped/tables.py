"""The tables that come with casemate, by name.

`hospital`                   the six patients of source document 002, its example of a protected
                             table
`population[:ROWS[:SEED]]`   invented people in households, any number of them
`rand_hie`                   a real table, from the statsmodels package when it is installed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from numpy.random import Generator, Philox

from casemate.errors import Misconfigured
from casemate.table.schema import Budget, Column, ColumnType, Policy, Role
from casemate.table.shipped import population
from casemate.table.sources.source import Series

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
    return {
        column.name: Series.of(values, column.type or ColumnType.TEXT)
        for column, values in zip(COLUMNS, zip(*PATIENTS, strict=True), strict=True)
    }


# Tables by name ----------------------------------------------------------------------------------


LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True, eq=False)
class ShippedTable:
    """A table that needs no file: its policy, and its columns in the policy's order.

    All values of a decimal column are written with the same number of decimal places.
    """

    policy: Policy
    columns: Mapping[str, Series]


def names() -> tuple[str, ...]:
    """What may be given as the name of a shipped table, without sizes."""
    return ("hospital", "population", "rand_hie")


def shipped_table(name: str) -> ShippedTable | None:
    """The shipped table of this name, or None when casemate ships none.

    >>> shipped_table("hospital").policy.columns[-1].name
    'Blood sugar'
    >>> len(shipped_table("population:100:7").columns["age"].values)
    100
    >>> shipped_table("payroll.csv") is None
    True
    """
    kind, _, size = name.partition(":")
    if kind == "population":
        return _population(name, size)
    if name == "hospital":
        return ShippedTable(policy(), columns())
    if name in ("rand_hie", "rand-hie"):
        from casemate.table.shipped import rand_hie  # only who asks for it pays for its columns

        return ShippedTable(rand_hie.policy(), rand_hie.columns())
    return None


def _population(name: str, size: str) -> ShippedTable:
    parts = size.split(":") if ":" in name else []
    defaults = [str(population.DEFAULT_ROWS), str(population.DEFAULT_SEED)]
    rows, seed, *more = [_whole(part) for part in parts + defaults[len(parts) :]]
    if more or rows is None or seed is None or not 1 <= rows <= population.MOST_ROWS:
        raise Misconfigured(
            f"{name!r} is not a size of the population table; write population, population:ROWS or "
            f"population:ROWS:SEED, with ROWS from 1 to {population.MOST_ROWS} and SEED from 0 to "
            f"{LARGEST_SEED}, both in plain digits"
        )
    random = Generator(Philox(seed))
    return ShippedTable(population.policy(rows, seed), population.columns(rows, random))


def _whole(text: str) -> int | None:
    """The whole number written in plain digits, or None when it is not one or too large."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        return None
    number = int(text)
    return number if number <= LARGEST_SEED else None
