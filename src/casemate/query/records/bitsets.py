"""Membership: which records each of many aggregates selects, as one bit each.

Every predicate becomes a conjunction (rarely a union of some) of conditions on single columns.
Each column is read once and coded; for each code a row of bits says which conjunctions it leaves
possible; a record's bits are the AND of the rows its codes name. Predicates over several columns
at once, and joins, are decided by the engine.

Predicates of several conjunctions come first, and their k-th conjunctions stand in words of their
own with the same order of bits: so a union costs one OR of words and no work bit by bit.

Cost  One read of each column, and columns x aggregates / 64 word operations per record.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.errors import Unsupported
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
from casemate.query.engines.rendering import render
from casemate.query.language.expression import TRUE, ColumnRef, Expression, any_of
from casemate.query.records.coding import (
    MAX_CODED_VALUES,
    Atom,
    Coding,
    Formula,
    Subject,
    Term,
    by_interval,
    by_value,
    factorise,
    formula,
    image,
    is_simple,
    terms,
    verdict,
)
from casemate.table.sources import Series, Source

Words = NDArray[np.uint64]


class BitTables(NamedTuple):
    """A layout as kernels take it: the code of a record in row chosen[k] of the codes names row
    starts[k] + code of the table. Words past the first layer are further conjunctions, ORed into
    the words of the first layer that `joined` names."""

    codes: NDArray[np.uint16] | NDArray[np.uint32]
    chosen: NDArray[np.int64]
    starts: NDArray[np.int64]
    table: Words
    joined: NDArray[np.int64]


@compiled
def sign_record(record: int, tables: BitTables, words: Words) -> None:
    """The bits of one record."""
    codes, chosen, starts, table, joined = tables
    row = starts[0] + codes[chosen[0], record]
    for word in range(words.shape[0]):
        words[word] = table[row, word]
    for column in range(1, chosen.shape[0]):
        row = starts[column] + codes[chosen[column], record]
        for word in range(words.shape[0]):
            words[word] &= table[row, word]
    first = words.shape[0] - joined.shape[0]
    for further in range(joined.shape[0]):
        words[joined[further]] |= words[first + further]


@compiled
def sign(records: NDArray[np.int64], tables: BitTables, signed: Words) -> None:
    """The bits of these records, a row each."""
    words = np.empty(tables.table.shape[1], np.uint64)
    for place in range(records.shape[0]):
        sign_record(records[place], tables, words)
        signed[place] = words[: signed.shape[1]]


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

    The bit of aggregate j in record i is bit b % 64 of words[i, b // 64], where b is bits[j]. For
    an aggregate with keys, `groups[j]` says which of its cells the record is in.
    """

    records: NDArray[Any]
    words: Words
    bits: NDArray[np.int64]
    groups: tuple[CellCodes | None, ...]

    def __repr__(self) -> str:
        """How large it is; never who is selected."""
        return f"<Membership: {len(self.records)} records, {len(self.bits)} aggregates>"

    def mask(self, index: int) -> NDArray[np.bool_]:
        """The records that one aggregate selects."""
        place = int(self.bits[index])
        bit = self.words[:, place // 64] >> np.uint64(place % 64) & np.uint64(1)
        return bit.astype(np.bool_)

    def sizes(self) -> NDArray[np.int64]:
        """How many records each aggregate selects."""
        totals = [np.count_nonzero(self.mask(index)) for index in range(len(self.bits))]
        return np.array(totals, np.int64)


def membership(aggregates: Sequence[Aggregate], source: Source) -> Membership:
    """Which records each aggregate selects."""
    records = Records(source)
    found = layout((each.membership for each in aggregates if not each.joins), records)
    words = np.empty((records.count, found.words), np.uint64)
    sign(np.arange(records.count), found.compiled, words)
    joined = _joined_bits(aggregates, records)
    after = {index: 64 * found.words + place for place, index in enumerate(joined)}
    bits = [
        after[index] if each.joins else found.bits[each.membership]
        for index, each in enumerate(aggregates)
    ]
    if joined:
        words = np.hstack([words, pack(np.array(list(joined.values())).T)])
    groups = _groups(aggregates, records)
    return Membership(records.names, words, np.array(bits, np.int64), groups)


# What is asked of each column ---------------------------------------------------------------


Conditions = dict[int, Formula]
"""What is asked of one subject, by slot."""


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
        whole = self.count and self.names.dtype == np.int64
        if whole and int(self.names[-1]) - int(self.names[0]) == self.count - 1:
            return np.asarray(found - self.names[0], np.int64)  # without gaps: nothing to look up
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
class Coded:
    """One column of codes, and the bits that each of its codes leaves possible."""

    codes: NDArray[Any]
    table: Words


def restrictions(
    asked: Mapping[Subject, Conditions], records: Records, width: int
) -> Iterator[Coded]:
    """All conditions on all subjects in so many words, each column read once or twice."""
    for about, conditions in asked.items():
        if isinstance(about, Atom):
            yield from _by_engine(conditions, records, width)
            continue
        simple = {slot: each for slot, each in conditions.items() if is_simple(each, about)}
        other = {slot: each for slot, each in conditions.items() if slot not in simple}
        if simple:
            series = records.column(image(about, records.source))
            yield _restriction(simple, by_interval(series, simple.values()), width)
        if other and records.distinct(about) <= MAX_CODED_VALUES:
            coding = by_value(about, list(other.values()), records.source, records.column)
            yield _restriction(other, coding, width)
        elif other:
            yield from _by_engine(other, records, width)


def _restriction(conditions: Conditions, coding: Coding, width: int) -> Coded:
    """Of each code the bits of the slots whose conditions it satisfies, and of all other slots."""
    decided = {found: coding.satisfied(found) for found in dict.fromkeys(conditions.values())}
    size = len(next(iter(decided.values())))
    table = np.full((size, width), ~np.uint64(0))
    for slot, found in conditions.items():
        table[~decided[found], slot // 64] &= ~np.uint64(1 << slot % 64)
    return Coded(coding.codes, table)


def _by_engine(conditions: Conditions, records: Records, width: int) -> Iterator[Coded]:
    """Conditions that the engine decides row by row, some at a time."""
    outside_and_inside = np.array([False, True])
    for chunk in pieces(list(conditions)):
        written = {
            f"b{i}": verdict(conditions[slot], records.source) for i, slot in enumerate(chunk)
        }
        read = records.read(written)
        for name, slot in zip(written, chunk, strict=True):
            coding = Coding(read[name].values.astype(np.int32), lambda _: outside_and_inside)
            yield _restriction({slot: conditions[slot]}, coding, width)


# Bits of all predicates, laid out for one pass over the records ---------------------------------

MAX_MERGED_CODES = 1024
"""Columns are taken together as long as they have no more codes than this in all."""


@dataclass(frozen=True, eq=False)
class BitLayout:
    """Coded columns whose rows of bits, ANDed, say which predicates select a record.

    `conjunctions[i]` is the number of conjunctions of the predicate at bit i, in falling order.
    The bits of the k-th table are those of row chosen[k] of the codes, which are columns x records.
    """

    bits: dict[Expression, int]
    conjunctions: tuple[int, ...]
    codes: NDArray[Any]
    chosen: tuple[int, ...]
    tables: tuple[Words, ...]

    @property
    def words(self) -> int:
        """How many words hold one bit for each predicate."""
        return layers(self.conjunctions)[0]

    @cached_property
    def compiled(self) -> BitTables:
        """What the compiled passes take."""
        sizes = [len(table) for table in self.tables]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        table = np.concatenate(self.tables)
        chosen = np.array(self.chosen, np.int64)
        return BitTables(self.codes, chosen, starts, table, self._layer_targets())

    def _layer_targets(self) -> NDArray[np.int64]:
        """For each word past the first layer, the word of the first layer that it belongs to."""
        further = [np.arange(size) for size in layers(self.conjunctions)[1:]]
        return np.concatenate([np.zeros(0, np.int64), *further]).astype(np.int64)

    def only(self, predicates: Iterable[Expression]) -> "BitLayout":
        """The same for some of the predicates; columns that do not matter to them are left out."""
        chosen = sorted(predicates, key=lambda each: -self.conjunctions[self.bits[each]])
        places = [self.bits[each] for each in chosen]
        counts = tuple(self.conjunctions[place] for place in places)
        origin = np.full(64 * sum(layers(counts)), -1)
        old, new = first_words(self.conjunctions), first_words(counts)
        for place, (before, count) in enumerate(zip(places, counts, strict=True)):
            for layer in range(count):
                origin[64 * new[layer] + place] = 64 * old[layer] + before
        everything = pack(origin[None, :] >= 0)
        tables = [(which, _permute_bits(table, origin)) for which, table in self._numbered_tables()]
        matter = [each for each in tables if (each[1] != everything).any()] or tables[:1]
        return BitLayout(
            {each: place for place, each in enumerate(chosen)},
            counts,
            self.codes,
            tuple(which for which, _ in matter),
            tuple(table for _, table in matter),
        )

    def _numbered_tables(self) -> Iterable[tuple[int, Words]]:
        return zip(self.chosen, self.tables, strict=True)


def layers(conjunctions: Sequence[int]) -> list[int]:
    """How many words each layer takes: the first conjunctions of all, the second ones, ..."""
    most = max(conjunctions, default=1)
    held = [sum(count > layer for count in conjunctions) for layer in range(most)]
    return [-(-max(1, size) // 64) for size in held]


def first_words(conjunctions: Sequence[int]) -> list[int]:
    """The first word of each layer."""
    return list(accumulate(layers(conjunctions), initial=0))


def _permute_bits(table: Words, origin: NDArray[np.int64]) -> Words:
    """A table with its bits in another order; bits that come from nowhere are 0."""
    spread = np.unpackbits(table.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    return pack(spread[:, origin] & (origin >= 0))


def layout(predicates: Iterable[Expression], records: Records) -> BitLayout:
    """Read and code the columns that the predicates ask about."""
    terms = {each: conjunctions(each) for each in dict.fromkeys(predicates)}
    ordered = sorted(terms, key=lambda each: -len(terms[each]))
    counts = tuple(len(terms[each]) for each in ordered)
    first, width = first_words(counts), sum(layers(counts))
    asked: dict[Subject, Conditions] = defaultdict(dict)
    used = np.zeros(64 * width, np.bool_)
    for place, each in enumerate(ordered):
        for layer, term in enumerate(terms[each]):
            used[64 * first[layer] + place] = True
            for about, condition in term.items():
                asked[about][64 * first[layer] + place] = condition
    everyone = Coded(np.zeros(records.count, np.int32), pack(used[None, :]))
    read = [everyone, *restrictions(asked, records, width)]
    columns = list(merge_columns(sorted(read, key=lambda column: len(column.table))))
    return BitLayout(
        {each: place for place, each in enumerate(ordered)},
        counts,
        stack_codes([column.codes for column in columns], max(len(c.table) for c in columns)),
        tuple(range(len(columns))),
        tuple(column.table for column in columns),
    )


def stack_codes(codes: Sequence[NDArray[Any]], size: int) -> NDArray[Any]:
    """Columns of codes as rows of one array, in the narrower type that holds them."""
    found = np.empty((len(codes), len(codes[0])), np.uint16 if size <= 2**16 else np.uint32)
    for place, column in enumerate(codes):
        found[place] = column
    return found


def merge_columns(columns: Sequence[Coded]) -> Iterator[Coded]:
    """Columns of few codes taken together: a code for each combination of theirs."""
    current, *rest = columns
    for column in rest:
        size, further = len(current.table), len(column.table)
        if size * further > MAX_MERGED_CODES:
            yield current
            current = column
            continue
        codes = column.codes if size == 1 else current.codes * np.int32(further) + column.codes
        both = current.table[:, None, :] & column.table[None, :, :]
        table = both.reshape(size * further, both.shape[2])
        current = Coded(codes, table)
    yield current


# Joins and groups -----------------------------------------------------------------------------


def _joined_bits(aggregates: Sequence[Aggregate], records: Records) -> dict[int, NDArray[np.bool_]]:
    """Aggregates over joined tables: a record is in when any of its rows is."""
    by_tables: dict[tuple[Join, ...], list[int]] = defaultdict(list)
    for index, each in enumerate(aggregates):
        if each.joins:
            by_tables[each.joins].append(index)
    found: dict[int, NDArray[np.bool_]] = {}
    for joins, indices in by_tables.items():
        for chunk in pieces(indices):
            named = {f"b{index}": aggregates[index].membership for index in chunk}
            inner = rows(records.source, joins, any_of(list(named.values())), named)
            results = {name: f"bool_or(coalesce({name}, FALSE))" for name in named}
            frame = records.source.read(group_by(inner, ["r"], results))
            places = records.places(frame["r"].values)
            for name, index in zip(named, chunk, strict=True):
                found[index] = np.zeros(records.count, np.bool_)
                found[index][places] = frame[name].values.astype(np.bool_)
    return found


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
