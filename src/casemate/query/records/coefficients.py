"""Lineage: how much of each record's secret enters each cell of each aggregate.

One scan per predicate gives, for every cell and record, the sum of the coefficients of the
record's unknowns. It stays right under joins (a record that meets two rows counts twice), CASE
and weights, and runs where the data is. The order of rows is never assumed.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.aggregate import Aggregate, Join
from casemate.query.engines.answering import (
    RECORD_COLUMN,
    Key,
    engine_of,
    group_by,
    pieces,
    rows,
    tables,
)
from casemate.query.engines.rendering import SqlDialect, render
from casemate.query.language.coercion import LARGEST_INTEGER
from casemate.query.language.expression import Expression
from casemate.query.records.coding import Codes, factorise
from casemate.query.records.linear import Term, Unknown, linear_form
from casemate.table import ColumnType
from casemate.table.sources import Series, Source


@dataclass(frozen=True)
class Cell:
    """One number of an aggregate: which aggregate, and the values of its keys."""

    aggregate: int
    key: Key


@dataclass(frozen=True, eq=False, repr=False)
class Lineage:
    """A sparse matrix of cells by (record, unknown), entry by entry.

    `record` and `cell` and `unknown` are positions in `records`, `cells` and `unknowns`; unknown
    -1 is the part of a cell that is public. `coefficient` is exact: int64 where all are whole,
    an object array of Decimal where some are decimals, float64 only for columns that are doubles.
    `rows` counts the rows behind an entry. Aggregates in `opaque` are not linear in the unknowns
    and have no entries.
    """

    records: NDArray[Any]
    unknowns: tuple[Unknown, ...]
    cells: tuple[Cell, ...]
    cell: NDArray[np.int64]
    record: NDArray[np.int64]
    unknown: NDArray[np.int64]
    coefficient: NDArray[Any]
    rows: NDArray[np.int64]
    opaque: frozenset[int]

    def __repr__(self) -> str:
        """How large it is; nothing of what is in it."""
        return f"<Lineage: {len(self.cell)} entries, {len(self.records)} records>"


@dataclass(frozen=True)
class _Scan:
    """What terms must share to be read in one pass."""

    joins: tuple[Join, ...]
    predicate: Expression
    keys: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class _Part:
    """The entries of one term: the code of a key, and a record, for each."""

    aggregate: int
    unknown: Unknown | None
    keys: list[Key]
    codes: Codes
    records: NDArray[Any]
    coefficient: NDArray[Any]
    rows: NDArray[np.int64]


PREDICATES_PER_STATEMENT = 32
"""Predicates in one statement: long ones take an engine more time the more there are."""

MAX_VALUES_PER_STATEMENT = 4_000_000
"""Records times predicates that one statement is asked for: it all comes back at once."""


def lineage(aggregates: Sequence[Aggregate], source: Source, wide: bool = False) -> Lineage:
    """The coefficients of every record's unknowns in every cell of the aggregates.

    `wide` is for somebody who answers from these coefficients (see `linear_form`).
    """
    forms = [linear_form(each, wide) for each in aggregates]
    scans: dict[_Scan, list[tuple[int, Term]]] = defaultdict(list)
    for index, form in enumerate(forms):
        for term in form or ():
            scan = _Scan(aggregates[index].joins, term.predicate, term.keys)
            scans[scan].append((index, term))
    records = all_records(source)
    parts = _parts(
        scans,
        min(PREDICATES_PER_STATEMENT, MAX_VALUES_PER_STATEMENT // max(1, len(records))),
        source,
    )
    opaque = frozenset(index for index, form in enumerate(forms) if form is None)
    return _assemble(parts, aggregates, opaque, records)


Terms = Sequence[tuple[int, Term]]
"""Terms, each with the number of its aggregate."""


def _parts(scans: Mapping[_Scan, Terms], few: int, source: Source) -> list[_Part]:
    """The entries of all terms; scans of the protected table alone are read `few` at a time."""
    single = dict.fromkeys(each for each in scans if few > 1 and not (each.keys or each.joins))
    parts = []
    for batch in pieces(list(single), few):
        parts += _read_together({scan: scans[scan] for scan in batch}, source)
    for scan in (each for each in scans if each not in single):
        for terms in pieces(scans[scan]):
            parts += _read(scan, terms, source)
    return parts


def all_records(source: Source) -> NDArray[Any]:
    """Every record's identity, in order."""
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r FROM {tables(source, ())}")
    return np.sort(frame["r"].values)


def _read(scan: _Scan, terms: Terms, source: Source) -> list[_Part]:
    """One pass over the data for all terms of a scan."""
    keys = {f"k{i}": key for i, key in enumerate(scan.keys)}
    needed = list(dict.fromkeys(term.coefficient for _, term in terms))
    columns = {f"c{i}": each for i, each in enumerate(needed)}
    inner = rows(source, scan.joins, scan.predicate, {**keys, **columns})
    totals = {f"s{i}": f"sum(c{i})" for i in range(len(needed))}
    frame = source.read(group_by(inner, [*keys, "r"], {"n": "count(*)", **totals}))
    records, counts = frame["r"].values, frame["n"].values.astype(np.int64)
    codes, cells = factorise([frame[name] for name in keys], len(records))
    sums = {each: coefficients(frame[f"s{i}"], each.type) for i, each in enumerate(needed)}
    return [
        _Part(index, term.unknown, cells, codes, records, sums[term.coefficient], counts)
        for index, term in terms
    ]


def _read_together(scans: Mapping[_Scan, Terms], source: Source) -> list[_Part]:
    """One pass for many scans of the protected table alone: a column for each predicate."""
    engine = engine_of(source)
    needed = dict.fromkeys(t.coefficient for terms in scans.values() for _, t in terms)
    written = [
        f"{RECORD_COLUMN} AS r",
        *(f"{inside(scan.predicate, engine)} AS b{i}" for i, scan in enumerate(scans)),
        *(f"{render(each, engine)} AS c{i}" for i, each in enumerate(needed)),
    ]
    frame = source.read(f"SELECT {', '.join(written)} FROM {tables(source, ())}")
    shares = {each: coefficients(frame[f"c{i}"], each.type) for i, each in enumerate(needed)}
    parts = []
    for i, terms in enumerate(scans.values()):
        chosen = frame[f"b{i}"].values.astype(np.bool_)
        once = np.ones(int(chosen.sum()), np.int64)
        parts += [
            _Part(
                index,
                term.unknown,
                [()],
                once - 1,
                frame["r"].values[chosen],
                shares[term.coefficient][chosen],
                once,
            )
            for index, term in terms
        ]
    return parts


def inside(predicate: Expression, engine: SqlDialect) -> str:
    """A predicate as a value that is true or false, never NULL."""
    return f"coalesce({render(predicate, engine)}, FALSE)"


def coefficients(series: Series, kind: ColumnType) -> NDArray[Any]:
    """Sums of coefficients, with 0 where nothing was added up; whole ones as int64 if they fit."""
    found = series.values
    if series.missing.any():
        found = found.copy()
        found[series.missing] = Decimal(0) if found.dtype == object else 0
    if kind is ColumnType.INTEGER and found.dtype == object:
        found = np.array([int(each) for each in found], object)
        fits = all(abs(each) <= LARGEST_INTEGER for each in found)
        return found.astype(np.int64) if fits else found
    return found


def _assemble(
    parts: list[_Part],
    aggregates: Sequence[Aggregate],
    opaque: frozenset[int],
    records: NDArray[Any],
) -> Lineage:
    cells: dict[Cell, int] = {}
    for index, each in enumerate(aggregates):
        if not each.keys and index not in opaque:
            cells[Cell(index, ())] = len(cells)
    unknowns: dict[Unknown, int] = {}
    entries = [_entries(part, cells, unknowns, records) for part in parts]
    empty = np.zeros(0, np.int64)
    joined = [np.concatenate([empty, *(entry[i] for entry in entries)]) for i in range(5)]
    kept = joined[3] != 0
    cell, record, unknown, coefficient, count = (column[kept] for column in joined)
    return Lineage(
        records, tuple(unknowns), tuple(cells), cell, record, unknown, coefficient, count, opaque
    )


def _entries(
    part: _Part, cells: dict[Cell, int], unknowns: dict[Unknown, int], records: NDArray[Any]
) -> tuple[NDArray[Any], ...]:
    """The entries of one term in the positions of the whole."""
    places = [cells.setdefault(Cell(part.aggregate, key), len(cells)) for key in part.keys]
    cell = np.array(places, np.int64)[part.codes]
    which = -1 if part.unknown is None else unknowns.setdefault(part.unknown, len(unknowns))
    record = np.searchsorted(records, part.records).astype(np.int64)
    unknown = np.full(len(record), which, np.int64)
    return cell, record, unknown, part.coefficient, part.rows
