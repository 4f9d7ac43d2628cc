"""A first policy for a table, written from the data for its custodian to correct.

Nothing in it is private by itself, and bounds and values that were read off the data say so
(`from = "data"`): a bound that is some person's own value gives that value away, so a guarantee
that rests on such a policy is conditional on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from casemate.table.schema import Column, ColumnType
from casemate.table.sources.source import Series, Source, quoted
from casemate.table.table import Table
from casemate.table.toml import written, written_key
from casemate.table.universe import MOST_EXACT, USUAL_BINS

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
    parts = [HEADER, *_table(table)]
    for column in table.policy.columns:
        parts.append("\n".join(_column(table.source, column)))
    return "\n".join([*parts, BUDGET])


def _table(table: Table) -> Iterator[str]:
    source = _without_password(table.policy.source)
    if source != table.policy.source:
        yield "# The password is left out: keep it in ~/.pgpass or in the variable PGPASSWORD."
    yield "[table]"
    yield f"source = {written(source)}"
    if table.policy.key is not None:
        yield f"key = {written(table.policy.key)}"
    yield ""


def _without_password(source: str) -> str:
    if not source.startswith(("postgresql://", "postgres://")):
        return source
    parts = urlsplit(source)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host))


def _column(source: Source, column: Column) -> Iterator[str]:
    profile = _profiled(source, column)
    yield f"[columns.{written_key(column.name)}]"
    yield 'role = "public"'
    yield f'type = "{column.type}"'
    if profile.filled < profile.rows:
        yield "nullable = true"
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


def _profiled(source: Source, column: Column) -> Profile:
    name, relation = quoted(column.name), source.relation()
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
    name = quoted(column.name)
    answer = source.read(
        f"SELECT DISTINCT {name} AS x FROM {source.relation()} AS t WHERE {name} IS NOT NULL"
    )
    yield f"values = [{', '.join(written(value) for value in sorted(answer['x'].values))}]"
    yield 'from = "data"'


def _bounds(profile: Profile) -> Iterator[str]:
    yield f"min = {written(profile.low)}"
    yield f"max = {written(profile.high)}"
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
