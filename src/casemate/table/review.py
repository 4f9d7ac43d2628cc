"""A policy beside its data: a first one written from them, and how an open table agrees with it.

A draft is for its custodian to correct. Nothing in it is private by itself, and bounds and values
that were read off the data say so (`from = "data"`): a bound that is some person's own value gives
that value away, so a guarantee that rests on such a policy is conditional on it. The counts of a
review are exact and of protected data: they are for the custodian and not for publication.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from casemate.errors import Misconfigured
from casemate.table.schema import NUMBERS, CellFormat, Column, ColumnType, Policy, Provenance, Role
from casemate.table.sources.place import redact_source
from casemate.table.sources.source import (
    PERSON,
    Series,
    Source,
    check_key,
    literal,
    quote_name,
)
from casemate.table.sources.text_numbers import KNOWN_MARKERS, TextColumn, format_lines
from casemate.table.sources.types import written_name
from casemate.table.table import Table, why_text
from casemate.table.toml import toml_key, toml_value
from casemate.table.universe import MOST_EXACT, USUAL_BINS, Universe

WORDS = {"n", "none", "unknown"}  # that are as likely to be values as markers
MOST_VALUES = 64  # of a text column that is worth listing

HEADER = """\
# A first policy, written from the data itself. Read it line by line before you use it:
#   1. Nothing is private yet. Set role = "private" on each column to protect, and
#      role = "identifier" on those that no query should use (names, numbers of people).
#   2. Bounds, values and bins marked from = "data" were read off the data and are not private:
#      they may be somebody's own value, and every guarantee is conditional on them. Replace
#      them by what is known without the data, and delete the mark.
#   3. If a person may have several rows, set `person` and `rows_per_person`.
#   4. Set a budget, then run: casemate policy check
"""
BUDGET = """\
# [budget]
# epsilon = 1.0
# delta = 1e-9
"""


@dataclass(frozen=True)
class Profile:
    """What a first policy says of a column."""

    rows: int
    filled: int
    different: int
    low: Any
    high: Any

    @property
    def names_each_row(self) -> bool:
        """Whether no two rows are alike in this column."""
        return self.rows > 1 and self.different == self.rows


def draft(table: Table) -> str:
    """The text of a first policy for an open table."""
    found = {each.name: _written_as(table, each) for each in table.policy.columns}
    formats = {name: form for name, form in found.items() if form is not None}
    if formats:
        columns = tuple(
            replace(each, type=None, format=formats[each.name]) if each.name in formats else each
            for each in table.policy.columns
        )
        with Table.open(replace(table.policy, columns=columns)) as declared:
            return _draft(declared)
    return _draft(table)


def _draft(table: Table) -> str:
    parts = [HEADER, *_table(table)]
    for column in table.policy.columns:
        parts.append("\n".join(_column(table.source, column)))
    return "\n".join([*parts, BUDGET])


def _written_as(table: Table, column: Column) -> CellFormat | None:
    """The format in which a column of text is one of numbers, if every cell is a number then."""
    found = why_text(table.source, column) if column.type is ColumnType.TEXT else None
    return None if found is None or found.unexplained else found.form


def _table(table: Table) -> Iterator[str]:
    source = _without_password(table.policy.source)
    if source != table.policy.source:
        yield "# The password is left out: keep it in ~/.pgpass or in the variable PGPASSWORD."
    yield "[table]"
    yield f"source = {toml_value(source)}"
    if table.policy.key is not None:
        yield f"key = {toml_value(table.policy.key)}"
    yield ""


def _without_password(source: str) -> str:
    """An address as PostgreSQL reads it, where a password may hold # and ?, without its password.

    >>> _without_password("postgresql://me:a#b?c@host/clinic?sslmode=require&password=d#visits")
    'postgresql://me@host/clinic?sslmode=require#visits'
    """
    if not source.startswith(("postgresql://", "postgres://")):
        return source
    scheme, _, rest = source.partition("://")
    address, sign, table = rest.rpartition("#") if "#" in rest else (rest, "", "")
    user, at, place = address.partition("@")
    if not at or "/" in user:
        user, at, place = "", "", address
    place, asks, query = place.partition("?")
    settings = [each for each in query.split("&") if not _is_password(each)]
    asks = asks if any(settings) else ""
    name = user.partition(":")[0]
    return f"{scheme}://{name}{at}{place}{asks}{'&'.join(settings)}{sign}{table}"


def _is_password(setting: str) -> bool:
    return unquote(setting.partition("=")[0]) in ("password", "sslpassword")


def _column(source: Source, column: Column) -> Iterator[str]:
    profile = _profile(source, column)
    yield f"[columns.{toml_key(column.name)}]"
    yield 'role = "public"'
    yield f'type = "{column.type}"'
    yield from format_lines(column.format)
    if profile.filled < profile.rows:
        yield 'missing = "secret"'
    if column.type is ColumnType.BOOLEAN:
        yield "values = [false, true]"
    elif column.type is ColumnType.TEXT:
        yield from _values(source, column, profile)
    elif profile.low is not None:
        yield from _bounds(profile)
    else:
        yield "# No value to take bounds from: set `min` and `max`."
    yield from _identifier(column, profile)
    yield ""


def _profile(source: Source, column: Column) -> Profile:
    name, relation = quote_name(column.name), source.relation()
    finite = name
    if column.type is ColumnType.DOUBLE:  # NaN is above every number, and no bound
        infinity = "CAST('Infinity' AS DOUBLE PRECISION)"
        finite = f"CASE WHEN {name} > -{infinity} AND {name} < {infinity} THEN {name} END"
    ends = f", MIN({finite}) AS low, MAX({finite}) AS high"
    if column.type in (ColumnType.BOOLEAN, ColumnType.TEXT):
        ends = ""
    answer = source.read(
        f"SELECT COUNT(*) AS n, COUNT({name}) AS filled, COUNT(DISTINCT {name}) AS different{ends} "
        f"FROM {relation} AS t"
    )
    rows, filled, different = (int(answer[key].values[0]) for key in ("n", "filled", "different"))
    low, high = (_bound(answer.get(key)) for key in ("low", "high"))
    if low is None or high is None:
        low = high = None
    return Profile(rows, filled, different, low, high)


def _bound(series: Series | None) -> Any:
    """The least or the greatest value as Python's own type, if there is one and it is finite."""
    if series is None or series.missing[0]:
        return None
    value = series.values[0]
    if isinstance(value, Decimal) and not value.is_finite():
        return None
    return value.item() if isinstance(value, np.generic) else value


def _values(source: Source, column: Column, profile: Profile) -> Iterator[str]:
    if not 0 < profile.different <= MOST_VALUES or profile.names_each_row:
        yield f"# It has {profile.different} different values: list `values` if they are public."
        return
    name = quote_name(column.name)
    answer = source.read(
        f"SELECT DISTINCT {name} AS x FROM {source.relation()} AS t WHERE {name} IS NOT NULL"
    )
    values = sorted(answer["x"].values)
    yield f"values = [{', '.join(map(toml_value, values))}]"
    markers = [each for each in values if each.strip().lower() in KNOWN_MARKERS - WORDS]
    if markers:
        listed = ", ".join(map(toml_value, markers))
        yield f"# missing_markers = [{listed}], without it in `values`, if it stands for none."
    yield 'from = "data"'


def _bounds(profile: Profile) -> Iterator[str]:
    yield f"min = {toml_value(profile.low)}"
    yield f"max = {toml_value(profile.high)}"
    bins = _bins(profile.low, profile.high)
    if bins > 1:
        yield f"bins = {bins}"
    yield 'from = "data"'


def _bins(low: Any, high: Any) -> int:
    """One for each of a few whole numbers or days, else a fixed number; 1 when all are equal."""
    if low == high:
        return 1
    if isinstance(low, float | Decimal | datetime):
        return USUAL_BINS
    steps = (high - low) // timedelta(days=1) if isinstance(low, date) else high - low
    return steps + 1 if steps < MOST_EXACT else USUAL_BINS


def _identifier(column: Column, profile: Profile) -> Iterator[str]:
    """A suggestion only: whether a column names people is for people to say."""
    if profile.names_each_row and column.type in (ColumnType.TEXT, ColumnType.INTEGER):
        yield '# It is different in every row: role = "identifier", if it names people.'


# How the data agree with a policy ----------------------------------------------------------------


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
    not_exact: str | None = None  # why audits and attacks, which need every cell, refuse it


def review_policy(policy: str | Path | Policy) -> tuple[Policy, Review]:
    """Open the table of a policy as private answers read it, then as audits do, and review it."""
    with Table.open(policy, by_policy=True, filled=True) as table:
        if not table.policy.columns:
            raise Misconfigured(
                f"{redact_source(table.policy.source)} is a table and no policy; draft one with "
                f"casemate policy init"
            )
        if table.policy.key is not None:
            check_key(table.source, table.policy.key)
        typed, found = table.policy, review(table)
    return typed, replace(found, not_exact=_why_not_exact(policy))


def _why_not_exact(policy: str | Path | Policy) -> str | None:
    """Why a table cannot be opened with every cell read exactly; None if it can."""
    try:
        with Table.open(policy):
            return None
    except Misconfigured as error:
        return str(error)


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
    warnings = (*_about_columns(columns), *_about_text(table, columns), *_about_table(table, over))
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
    name, written = quote_name(column.name), written_name(place)
    conditions = {"n": f"{written} IS NULL"}
    if column.type is None:
        return conditions
    conditions["m"] = f"{written} IS NOT NULL AND {name} IS NULL"
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
            yield f"{column.name}: some rows are NULL, and the policy does not say `missing`"
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


def _about_text(table: Table, columns: tuple[ColumnReview, ...]) -> Iterator[str]:
    """What the misfits of a column of numbers are, where that can be said."""
    source = table.source
    for place, item in enumerate(columns):
        column, written = item.column, written_name(place)
        cell = f"CASE WHEN lower({written}) <> 'nan' THEN {written} END"  # a double of an engine
        if item.misfits and column.type in NUMBERS:
            text = TextColumn(source.read, source.relation(), column.name, cell)
            found = text.numbers(column.format)
            if found is not None:
                yield found.sentence


def _is_unlimited(column: Column) -> bool:
    limited = column.low is not None or column.values is not None
    return column.role is Role.PRIVATE and not limited and column.type is not ColumnType.BOOLEAN


def _about_table(table: Table, over: int | None) -> Iterator[str]:
    if not table.policy.private():
        yield "no column is private, so nothing is protected yet"
    if over:
        yield "some people have more rows than `rows_per_person`; the rows beyond it are left out"
