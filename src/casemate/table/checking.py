"""How the data of an open table agree with its policy.

The counts are exact and of protected data: they are for the custodian and not for publication.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from casemate.errors import Misconfigured
from casemate.table.schema import Column, ColumnType, Policy, Provenance, Role
from casemate.table.sources.exactness import check_key
from casemate.table.sources.place import shown
from casemate.table.sources.source import PERSON, literal, quoted
from casemate.table.sources.types import filled_name
from casemate.table.table import Table
from casemate.table.universe import Universe


@dataclass(frozen=True)
class ColumnReview:
    """How many cells of a column are missing, misfits, outside its bounds, or not listed."""

    column: Column
    nulls: int
    misfits: int | None  # cells that are not of the policy's type; None where it has none
    outside: int | None  # None where the policy sets no bounds
    undeclared: int | None  # None where the policy lists no values


@dataclass(frozen=True)
class Review:
    """A table against its policy."""

    rows: int
    columns: tuple[ColumnReview, ...]
    people: int | None  # None where a row is a person
    people_over_limit: int | None
    universe: Universe  # the grid on which questions are answered privately
    warnings: tuple[str, ...]


def reviewed(policy: str | Path | Policy) -> tuple[Policy, Review]:
    """Open the table of a policy as private answers read it, and review it."""
    with Table.open(policy, by_policy=True, filled=True) as table:
        if not table.policy.columns:
            raise Misconfigured(
                f"{shown(table.policy.source)} is a table and no policy; draft one with "
                f"casemate policy init"
            )
        if table.policy.key is not None:
            check_key(table.source, table.policy.key)
        return table.policy, review(table)


def review(table: Table) -> Review:
    """Count what a policy does not foresee, in a table opened by its policy with `filled`."""
    counts = _counts(table)
    columns = tuple(
        ColumnReview(
            column, counts[f"n{place}"], *(counts.get(f"{letter}{place}") for letter in "mou")
        )
        for place, column in enumerate(table.policy.columns)
    )
    people, over = _people(table)
    warnings = (*_about_columns(columns), *_about_table(table, over))
    universe = Universe.of(table.policy)
    return Review(counts["n"], columns, people, over, universe, warnings)


def _counts(table: Table) -> dict[str, int]:
    """Every count of every column in one pass."""
    wanted = ["COUNT(*) AS n"]
    for place, column in enumerate(table.policy.columns):
        wanted += (
            f"COUNT(*) FILTER (WHERE {condition}) AS {letter}{place}"
            for letter, condition in _conditions(place, column).items()
        )
    answer = table.source.read(f"SELECT {', '.join(wanted)} FROM {table.source.relation()} AS t")
    return {name: int(series.values[0]) for name, series in answer.items()}


def _conditions(place: int, column: Column) -> Mapping[str, str]:
    name, filled = quoted(column.name), filled_name(place)
    conditions = {"n": f"NOT {filled}"}
    if column.type is None:
        return conditions
    conditions["m"] = f"{filled} AND {name} IS NULL"
    if column.low is not None and column.high is not None:
        low, high = literal(column.low), literal(column.high)
        conditions["o"] = f"{name} < {low} OR {name} > {high}"
    if column.values is not None:
        conditions["u"] = f"{name} NOT IN ({', '.join(map(literal, column.values))})"
    return conditions


def _people(table: Table) -> tuple[int | None, int | None]:
    """The people of the table, and those of them with more rows than the policy keeps."""
    if table.policy.person is None:
        return None, None
    answer = table.source.read(
        f"SELECT COUNT(*) AS people, "
        f"COUNT(*) FILTER (WHERE n > {table.policy.rows_per_person}) AS over FROM "
        f"(SELECT COUNT(*) AS n FROM {table.source.relation()} AS t "
        f"WHERE {PERSON} IS NOT NULL GROUP BY {PERSON}) AS p"
    )
    return int(answer["people"].values[0]), int(answer["over"].values[0])


def _about_columns(columns: tuple[ColumnReview, ...]) -> Iterator[str]:
    seen = [item.column.name for item in columns if item.column.provenance is Provenance.DATA]
    if seen:
        yield (
            f"{', '.join(seen)}: bounds, values or bins were taken from the data, so every "
            f"guarantee is conditional on this policy"
        )
    for found in columns:
        column = found.column
        if found.nulls and not column.nullable:
            yield f"{column.name}: some rows are NULL, and the policy does not say `nullable`"
        if found.misfits:
            yield (
                f"{column.name}: some cells are not of type {column.type}, which the policy gives "
                f"it; they share one cell with NULL"
            )
        if found.outside:
            yield f"{column.name}: some rows are outside the bounds and will be clamped to them"
        if found.undeclared:
            yield f"{column.name}: some rows hold values that are not listed; they share one cell"
        if _is_unlimited(column):
            yield f"{column.name}: private without bounds or values; declare one of them"


def _is_unlimited(column: Column) -> bool:
    limited = column.low is not None or column.values is not None
    return column.role is Role.PRIVATE and not limited and column.type is not ColumnType.BOOLEAN


def _about_table(table: Table, over: int | None) -> Iterator[str]:
    if not table.policy.private():
        yield "no column is private, so nothing is protected yet"
    if over:
        yield "some people have more rows than `rows_per_person`; the rows beyond it are left out"
