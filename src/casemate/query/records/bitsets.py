"""Membership: which records each of many aggregates selects, as one bit each.

Every predicate becomes a conjunction (rarely a union of some) of conditions on single columns.
Each column is read once and coded; for each code a row of bits says which conjunctions it leaves
possible; a record's bits are the AND of the rows its codes name. Predicates over several columns
at once, and joins, are decided by the engine.

Cost  One read of each column, and columns x aggregates / 64 word operations per record.

Compiled loops over records: the only place where a record is touched one by one.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.errors import Unsupported
from casemate.query.aggregate import Aggregate
from casemate.query.engines.answering import Key
from casemate.query.engines.engine import RECORD_COLUMN, engine_of, grouped, pieces, rows, tables
from casemate.query.engines.rendering import render
from casemate.query.language.expression import TRUE, Call, ColumnRef, Expression, Operation
from casemate.query.records.atoms import Atom, Formula, Subject, Term, formula, terms
from casemate.query.records.coding import (
    MOST_DISTINCT,
    Coding,
    by_interval,
    by_value,
    factorise,
    image,
    is_simple,
    verdict,
)
from casemate.table import ColumnType
from casemate.table.sources import Series, Source

Words = NDArray[np.uint64]


@compiled
def restrict(words: Any, codes: Any, table: Any, places: Any) -> None:
    """AND each record's words with the row of the table that its code names.

    words is records x words, table is codes x places; `places` says which word each column of the
    table belongs to.
    """
    for record in range(words.shape[0]):
        code = codes[record]
        for j in range(places.shape[0]):
            words[record, places[j]] &= table[code, j]


@compiled
def gather(words: Any, sources: Any, targets: Any) -> None:
    """Set bit `target` of each record that has bit `source`, for each pair."""
    one = np.uint64(1)
    for record in range(words.shape[0]):
        for j in range(sources.shape[0]):
            source, target = sources[j], targets[j]
            bit = (words[record, source >> 6] >> np.uint64(source & 63)) & one
            words[record, target >> 6] |= bit << np.uint64(target & 63)


@compiled
def count_bits(words: Any, totals: Any) -> None:
    """Add to each total the number of records that have its bit."""
    one = np.uint64(1)
    for record in range(words.shape[0]):
        for word in range(words.shape[1]):
            left = words[record, word]
            base = word << 6
            while left:
                low = left & (~left + one)
                position = 0
                probe = low
                while probe > one:
                    probe >>= one
                    position += 1
                totals[base + position] += 1
                left ^= low


def pack(bits: NDArray[np.bool_]) -> Words:
    """Rows of booleans as rows of 64-bit words, lowest bit first."""
    rows, columns = bits.shape
    wide = np.zeros((rows, -(-columns // 64) * 64), np.uint8)
    wide[:, :columns] = bits
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


# Membership -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class CellCodes:
    """The cell each record falls into: a position in `keys`, or -1 for none."""

    codes: NDArray[np.int32]
    keys: tuple[Key, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Membership:
    """One bit per record and aggregate, records in the order of `records`.

    Bit j of record i is bit j % 64 of words[i, j // 64]. For an aggregate with keys, `groups[j]`
    says which of its cells the record is in.
    """

    records: NDArray[Any]
    words: Words
    count: int
    groups: tuple[CellCodes | None, ...]

    def __repr__(self) -> str:
        """How large it is; never who is selected."""
        return f"<Membership: {len(self.records)} records, {self.count} aggregates>"

    def selected(self, index: int) -> NDArray[np.bool_]:
        """The records that one aggregate selects."""
        bit = self.words[:, index // 64] >> np.uint64(index % 64) & np.uint64(1)
        return bit.astype(np.bool_)

    def sizes(self) -> NDArray[np.int64]:
        """How many records each aggregate selects."""
        totals = np.zeros(self.words.shape[1] * 64, np.int64)
        count_bits(self.words, totals)
        return totals[: self.count]


def membership(aggregates: Sequence[Aggregate], source: Source) -> Membership:
    """Which records each aggregate selects."""
    records = Records(source)
    plan = _plan(aggregates)
    words = np.full((records.count, -(-max(1, plan.slots) // 64)), ~np.uint64(0))
    for restriction in restrictions(plan.conditions, records):
        _apply(words, restriction)
    if plan.extra:
        pairs = np.array(plan.extra, np.int64)
        gather(words, pairs[:, 0], pairs[:, 1])
    kept = words[:, : -(-max(1, len(aggregates)) // 64)]
    _clear_beyond(kept, len(aggregates))
    _apply_joins(kept, aggregates, records)
    groups = _groups(aggregates, records)
    return Membership(records.names, np.ascontiguousarray(kept), len(aggregates), groups)


def _clear_beyond(words: Words, count: int) -> None:
    """Bits past the last aggregate are 0."""
    used = count - 64 * (words.shape[1] - 1)
    if used < 64:
        words[:, -1] &= np.uint64((1 << used) - 1)


# What is asked of each column ---------------------------------------------------------------


Conditions = dict[int, Formula]
"""What is asked of one subject, by slot."""


@dataclass(frozen=True)
class _Plan:
    """Conditions by subject: for each, the slots (bits) they restrict.

    Slot j < number of aggregates is aggregate j's first conjunction; further conjunctions have
    slots after those, and `extra` says to which aggregate each belongs.
    """

    slots: int
    conditions: dict[Subject, Conditions]
    extra: list[tuple[int, int]]


def _plan(aggregates: Sequence[Aggregate]) -> _Plan:
    conditions: dict[Subject, Conditions] = defaultdict(dict)
    extra: list[tuple[int, int]] = []
    slots = len(aggregates)
    for index, aggregate in enumerate(aggregates):
        if aggregate.joins:
            continue
        for position, term in enumerate(conjunctions(aggregate.membership)):
            slot = index if position == 0 else slots
            if position:
                extra.append((slot, index))
                slots += 1
            for about, condition in term.items():
                conditions[about][slot] = condition
    return _Plan(slots, conditions, extra)


def conjunctions(predicate: Expression) -> list[Term]:
    """The conjunctions of a predicate; the engine decides one that has none, or too many."""
    found = formula(predicate)
    whole = Atom(predicate, True)
    return terms(found) or [{whole: whole}]


# Reading columns ------------------------------------------------------------------------------


class Records:
    """The records of a source in one fixed order, and columns read in that order."""

    def __init__(self, source: Source) -> None:
        self.source = source
        names = source.read(f"SELECT {RECORD_COLUMN} AS r FROM {tables(source, ())}")["r"].values
        self.names = names if (names[1:] > names[:-1]).all() else np.sort(names)
        self.count = len(self.names)

    def places(self, found: NDArray[Any]) -> NDArray[np.int64]:
        """The position of each record."""
        return np.searchsorted(self.names, found).astype(np.int64)

    def read(self, columns: dict[str, str]) -> dict[str, Series]:
        """Expressions of the protected table, one value per record, in the fixed order."""
        written = ", ".join(f"{text} AS {name}" for name, text in columns.items())
        shown = f"{RECORD_COLUMN} AS r, {written}"
        frame = self.source.read(f"SELECT {shown} FROM {tables(self.source, ())}")
        record = frame["r"].values
        if np.array_equal(record, self.names):
            return {name: frame[name] for name in columns}
        order = np.argsort(record, kind="stable")
        return {
            name: Series(frame[name].values[order], frame[name].missing[order]) for name in columns
        }

    def column(self, written: str) -> Series:
        """One expression of the protected table."""
        return self.read({"v": written})["v"]

    def distinct(self, reference: ColumnRef) -> int:
        """How many different values a column has."""
        counted = f"count(DISTINCT {render(reference, engine_of(self.source))})"
        frame = self.source.read(f"SELECT {counted} AS n FROM {tables(self.source, ())}")
        return int(frame["n"].values[0])


@dataclass(frozen=True, eq=False)
class Restriction:
    """A code for each record, and for each code the bits that it leaves possible.

    The table is codes x places; `places` says which word each of its columns belongs to.
    """

    codes: NDArray[Any]
    table: Words
    places: NDArray[np.int64]


def restrictions(asked: Mapping[Subject, Conditions], records: Records) -> Iterator[Restriction]:
    """All conditions on all subjects, each column of the table read once or twice."""
    for about, conditions in asked.items():
        if isinstance(about, Atom):
            yield from _by_engine(conditions, records)
            continue
        simple = {slot: each for slot, each in conditions.items() if is_simple(each, about)}
        other = {slot: each for slot, each in conditions.items() if slot not in simple}
        if simple:
            series = records.column(image(about, records.source))
            yield _restriction(simple, by_interval(series, simple.values()))
        if other and records.distinct(about) <= MOST_DISTINCT:
            coding = by_value(about, list(other.values()), records.source, records.column)
            yield _restriction(other, coding)
        elif other:
            yield from _by_engine(other, records)


def _restriction(conditions: Conditions, coding: Coding) -> Restriction:
    """The codes that satisfy the condition of each slot."""
    decided = {found: coding.satisfied(found) for found in dict.fromkeys(conditions.values())}
    size = len(next(iter(decided.values())))
    places = sorted({slot // 64 for slot in conditions})
    column = {place: 64 * i for i, place in enumerate(places)}
    table = np.ones((size, 64 * len(places)), np.bool_)
    for slot, found in conditions.items():
        table[:, column[slot // 64] + slot % 64] = decided[found]
    return Restriction(coding.codes, pack(table), np.array(places, np.int64))


def _by_engine(conditions: Conditions, records: Records) -> Iterator[Restriction]:
    """Conditions that the engine decides row by row, some at a time."""
    for chunk in pieces(list(conditions)):
        written = {
            f"b{i}": verdict(conditions[slot], records.source) for i, slot in enumerate(chunk)
        }
        read = records.read(written)
        for name, slot in zip(written, chunk, strict=True):
            yield _only(slot, read[name].values.astype(np.int32))


def _only(slot: int, inside: NDArray[np.int32]) -> Restriction:
    """One slot's bit is left where a record is inside."""
    table = np.array([[~np.uint64(1 << (slot % 64))], [~np.uint64(0)]], np.uint64)
    return Restriction(inside, table, np.array([slot // 64], np.int64))


def _apply(words: Words, restriction: Restriction) -> None:
    restrict(words, restriction.codes, restriction.table, restriction.places)


# Joins and groups -----------------------------------------------------------------------------


def _apply_joins(words: Words, aggregates: Sequence[Aggregate], records: Records) -> None:
    """Aggregates over joined tables: a record is in when any of its rows is."""
    by_tables: dict[object, list[int]] = defaultdict(list)
    for index, each in enumerate(aggregates):
        if each.joins:
            by_tables[each.joins].append(index)
    for indices in by_tables.values():
        for chunk in pieces(indices):
            _apply_joined(words, aggregates, chunk, records)


def _apply_joined(
    words: Words, aggregates: Sequence[Aggregate], indices: Sequence[int], records: Records
) -> None:
    source = records.source
    named = {f"b{index}": aggregates[index].membership for index in indices}
    inner = rows(source, aggregates[indices[0]].joins, _any_of(list(named.values())), named)
    results = {name: f"bool_or(coalesce({name}, FALSE))" for name in named}
    frame = source.read(grouped(inner, ["r"], results))
    places = records.places(frame["r"].values)
    for name, index in zip(named, indices, strict=True):
        inside = np.zeros(records.count, np.int32)
        inside[places] = frame[name].values.astype(np.int32)
        _apply(words, _only(index, inside))


def _any_of(predicates: list[Expression]) -> Expression:
    if len(predicates) == 1:
        return predicates[0]
    return Call(Operation.OR, tuple(predicates), ColumnType.BOOLEAN)


def _groups(aggregates: Sequence[Aggregate], records: Records) -> tuple[CellCodes | None, ...]:
    """The cells of aggregates with keys, each combination of tables and keys read once."""
    known: dict[object, CellCodes] = {}
    found: list[CellCodes | None] = []
    for each in aggregates:
        shared = (each.joins, each.keys, each.predicate if each.joins else None)
        if each.keys and shared not in known:
            known[shared] = _read_groups(each, records)
        found.append(known[shared] if each.keys else None)
    return tuple(found)


def _read_groups(aggregate: Aggregate, records: Records) -> CellCodes:
    if aggregate.joins and not aggregate.single_valued:
        raise Unsupported(
            "a record may meet several rows of a joined table here, so it may be in several "
            "cells; join on the public table's key, or use the lineage"
        )
    keys = {f"k{i}": key for i, key in enumerate(aggregate.keys)}
    predicate = aggregate.predicate if aggregate.joins else TRUE
    frame = records.source.read(rows(records.source, aggregate.joins, predicate, keys))
    records_met = frame["r"].values
    inner, tuples = factorise([frame[name] for name in keys], len(records_met))
    codes = np.full(records.count, -1, np.int32)
    codes[records.places(records_met)] = inner
    return CellCodes(codes, tuple(tuples))
