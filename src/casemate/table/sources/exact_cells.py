"""Whether every cell of a table is shown exactly: for audits and attacks, which reason about cells.

A cell that the reader or the arithmetic cannot hold would count as missing, or as another number,
and a wrong table makes a wrong verdict; so it is refused, by the name of its column, when the table
is opened. Messages say how many such cells there are and where the first is, never what is in it.

Decimals   DuckDB computes with 26 digits before the point and 12 after it: each cell must keep to
           that, and so must the sum of a private column. PostgreSQL's have no such end.
Doubles    Infinity and NaN are nothing to reason about in a private column, whose sum must be
           finite too. A cell of a CSV file must be a double as one is printed, and not a number
           that had to be cut to become one.
Dates      Years 1 to 9999, and microseconds: what Python's have.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from casemate.errors import Misconfigured
from casemate.table.schema import Policy
from casemate.table.sources.source import Frame, SelectedFrom, quote_name

INTEGER_DIGITS, DECIMAL_DIGITS = 26, 12
"""Digits before and after the point of the decimals that DuckDB computes with."""

DATES = "dates outside the years 1 to 9999"
NANOSECONDS = "times more precise than microseconds"
NOT_FINITE = "numbers that are infinite or NaN"
WIDE = (
    f"numbers with more than {INTEGER_DIGITS} digits before the point or {DECIMAL_DIGITS} after it"
)
CUT = "numbers with more digits than a double holds"
WIDE_SUM = f"numbers whose sum may have more than {INTEGER_DIGITS} digits before the point"
INFINITE_SUM = "numbers whose sum may be infinite"


class CellEngine(Protocol):
    """The part of a source that knows its cells as its engine has them."""

    @property
    def dialect(self) -> str:
        """As in `Source`."""
        ...

    def cells(self, public: str | None = None) -> SelectedFrom:
        """The protected table, or the named public one."""
        ...

    def read(self, sql: str) -> Frame:
        """As in `Source`."""
        ...


@dataclass(frozen=True)
class Fault:
    """What is wrong with the cells of a column for which a condition holds, or with their sum."""

    column: str
    said: str
    condition: str = "FALSE"  # in SQL, on one cell
    limit: str | None = None  # of the sum of the cells without their signs

    @property
    def count(self) -> str:
        """The SQL aggregate that is 0 if nothing is wrong."""
        if self.limit is None:
            return f"count(*) FILTER (WHERE {self.condition})"
        cell = quote_name(self.column)
        # What is larger is cut to the limit, since an engine may fail on an infinite sum.
        size = f"least(abs(CAST({cell} AS double precision)), {self.limit})"
        total = f"sum({size}) FILTER (WHERE {cell} IS NOT NULL)"
        return f"CASE WHEN {total} >= {self.limit} THEN count({cell}) ELSE 0 END"


def check_exact(policy: Policy, source: CellEngine) -> None:
    """Refuse the first column with cells that are not shown exactly, or a sum that may not be."""
    private = {column.name for column in policy.private()}
    named = {*(column.name for column in policy.columns), policy.key, policy.person}
    _check(source, None, private, [name for name in source.cells().columns if name in named])
    for table in policy.public_tables:
        _check(source, table.name, (), [column.name for column in table.columns])


def _check(
    source: CellEngine, public: str | None, private: Collection[str], names: Sequence[str]
) -> None:
    cells = source.cells(public)
    rules = {"duckdb": _duckdb, "postgres": _postgres}[source.dialect]
    faults = [
        fault for name in names for fault in rules(name, cells.columns[name], name in private)
    ]
    cut = {Fault(name, CUT): counted for name, counted in cells.cut.items() if name in names}
    where = "" if public is None else f" of the public table {public!r}"
    for fault, (count, first) in {**cut, **_count_faults(source, cells, faults)}.items():
        place = "" if first is None else f", the first in record {first}"
        raise Misconfigured(
            f"the column {fault.column!r}{where} has {fault.said} ({count:,} of them{place}), "
            f"which cannot be computed with exactly; correct them, or leave the column out of a "
            f"policy"
        )


def _count_faults(
    source: CellEngine, cells: SelectedFrom, faults: Sequence[Fault]
) -> dict[Fault, tuple[int, int | None]]:
    """The faults that there are: in how many cells, and in which record first if rows have one."""
    if not faults:
        return {}
    position = cells.position or "CAST(NULL AS bigint)"
    wanted = [
        f"{fault.count} AS n{i}, min({position}) FILTER (WHERE {fault.condition}) AS f{i}"
        for i, fault in enumerate(faults)
    ]
    frame = source.read(f"SELECT {', '.join(wanted)} FROM {cells.text} AS casemate_cells")
    found = {}
    for i, fault in enumerate(faults):
        count, first = frame[f"n{i}"], frame[f"f{i}"]
        if count.values[0]:
            found[fault] = int(count.values[0]), None if first.missing[0] else int(first.values[0])
    return found


# What the engines' types hold that casemate cannot --------------------------------------------


def _duckdb(name: str, engine_type: str, private: bool) -> Iterator[Fault]:
    cell, (word, *digits) = quote_name(name), re.split(r"[(,]", engine_type.rstrip(")"))
    decimal = word in ("DECIMAL", "UBIGINT", "HUGEINT", "UHUGEINT")
    if engine_type.endswith("]"):  # a list, which no query sees
        return
    if decimal:
        yield Fault(name, WIDE, _wide(cell, int(digits[1]) if digits else 0))
    if private and decimal:
        yield Fault(name, WIDE_SUM, limit=f"1e{INTEGER_DIGITS}")
    if private and word in ("FLOAT", "DOUBLE"):
        yield Fault(name, NOT_FINITE, f"NOT isfinite({cell})")
        yield Fault(name, INFINITE_SUM, limit="1e300")
    if word == "DATE" or word.startswith("TIMESTAMP"):
        yield Fault(name, DATES, _outside(f"TRY_CAST({cell} AS TIMESTAMP)", cell))
    if word == "TIMESTAMP_NS":
        yield Fault(name, NANOSECONDS, f"epoch_ns({cell}) % 1000 <> 0")


def _wide(cell: str, scale: int) -> str:
    """A cell of 38 digits, `scale` of them after the point, that DECIMAL(38, 12) cannot hold."""
    if scale > DECIMAL_DIGITS:  # and so fewer than 26 before it
        fits = f"round({cell}, {DECIMAL_DIGITS}) = {cell}"
    else:
        wide = f"TRY_CAST({cell} AS DECIMAL(38, {scale}))"
        fits = f"abs({wide}) < CAST('1e{INTEGER_DIGITS}' AS DECIMAL(38, {scale}))"
    return f"NOT coalesce(TRY({fits}), {cell} IS NULL)"


def _postgres(name: str, engine_type: str, private: bool) -> Iterator[Fault]:
    cell = quote_name(name)
    special = f"{cell} IN ('NaN', 'Infinity', '-Infinity')"
    if engine_type == "numeric" or (private and engine_type in ("float4", "float8")):
        yield Fault(name, NOT_FINITE, special)
    if private and engine_type in ("float4", "float8"):
        yield Fault(name, INFINITE_SUM, limit="1e300")
    if engine_type in ("date", "timestamp", "timestamptz"):
        moment = f"({cell} AT TIME ZONE 'UTC')" if engine_type == "timestamptz" else cell
        yield Fault(name, DATES, _outside(moment, cell))


def _outside(moment: str, cell: str) -> str:
    """A date or timestamp that Python's cannot hold."""
    low, high = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
    return f"NOT coalesce({moment} BETWEEN {low} AND {high}, {cell} IS NULL)"
