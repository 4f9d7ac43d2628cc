"""Predicates as rows of bits over coded columns, laid out for one pass over the records.

Predicates of several conjunctions come first, and their k-th conjunctions stand in words of their
own with the same order of bits: so a union costs one OR of words and no work bit by bit.

The records that one published sum adds up, as a predicate and a cell.

Where each equation has its weight and its total in a pass over coded records.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.engines.answering import Key
from casemate.query.language.expression import Expression
from casemate.query.records.atoms import Subject
from casemate.query.records.bitsets import (
    CellCodes,
    Conditions,
    Records,
    Restriction,
    Words,
    conjunctions,
    pack,
    restrictions,
)
from casemate.query.sketch.passes import sign

MOST_MERGED = 1024
"""Columns are taken together as long as they have no more codes than this in all."""


@dataclass(frozen=True, eq=False)
class Coded:
    """One column of codes, and the bits that each of its codes leaves possible."""

    codes: NDArray[Any]
    table: Words


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
    def compiled(self) -> tuple[NDArray[Any], ...]:
        """What the compiled passes take: codes, chosen, starts, table, joined."""
        sizes = [len(table) for table in self.tables]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
        table = np.concatenate(self.tables)
        return self.codes, np.array(self.chosen, np.int64), starts, table, self._joined()

    def _joined(self) -> NDArray[np.int64]:
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
        tables = [(which, _taken(table, origin)) for which, table in self._numbered()]
        matter = [each for each in tables if (each[1] != everything).any()] or tables[:1]
        return BitLayout(
            {each: place for place, each in enumerate(chosen)},
            counts,
            self.codes,
            tuple(which for which, _ in matter),
            tuple(table for _, table in matter),
        )

    def _numbered(self) -> Iterable[tuple[int, Words]]:
        return zip(self.chosen, self.tables, strict=True)


def layers(conjunctions: Sequence[int]) -> list[int]:
    """How many words each layer takes: the first conjunctions of all, the second ones, ..."""
    most = max(conjunctions, default=1)
    held = [sum(count > layer for count in conjunctions) for layer in range(most)]
    return [-(-max(1, size) // 64) for size in held]


def first_words(conjunctions: Sequence[int]) -> list[int]:
    """The first word of each layer."""
    return list(accumulate(layers(conjunctions), initial=0))


def _taken(table: Words, origin: NDArray[np.int64]) -> Words:
    """A table with its bits in another order; bits that come from nowhere are 0."""
    spread = np.unpackbits(table.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    return pack(spread[:, origin] & (origin >= 0))


# Building it ----------------------------------------------------------------------------------


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
    read = (_widened(each, width) for each in restrictions(asked, records))
    columns = list(merged(sorted([everyone, *read], key=lambda column: len(column.table))))
    return BitLayout(
        {each: place for place, each in enumerate(ordered)},
        counts,
        stacked([column.codes for column in columns], max(len(c.table) for c in columns)),
        tuple(range(len(columns))),
        tuple(column.table for column in columns),
    )


def stacked(codes: Sequence[NDArray[Any]], size: int) -> NDArray[Any]:
    """Columns of codes as rows of one array, in the narrower type that holds them."""
    found = np.empty((len(codes), len(codes[0])), np.uint16 if size <= 2**16 else np.uint32)
    for place, column in enumerate(codes):
        found[place] = column
    return found


def _widened(restriction: Restriction, width: int) -> Coded:
    table = np.full((len(restriction.table), width), ~np.uint64(0))
    table[:, restriction.places] = restriction.table
    return Coded(restriction.codes, table)


def merged(columns: Sequence[Coded]) -> Iterator[Coded]:
    """Columns of few codes taken together: a code for each combination of theirs."""
    current, *rest = columns
    for column in rest:
        size, further = len(current.table), len(column.table)
        if size * further > MOST_MERGED:
            yield current
            current = column
            continue
        codes = column.codes if size == 1 else current.codes * np.int32(further) + column.codes
        table = (current.table[:, None, :] & column.table[None, :, :]).reshape(size * further, -1)
        current = Coded(codes, table)
    yield current


# Sketch selection -------------------------------------------------------------------------------


Family = tuple[Expression, tuple[Expression, ...]]
"""A predicate and keys: selections that differ in their cell alone."""


@dataclass(frozen=True)
class Selection:
    """The records that one equation adds up: a predicate's, in one cell of its keys."""

    predicate: Expression
    keys: tuple[Expression, ...] = ()
    key: Key = ()

    @property
    def family(self) -> Family:
        """What it shares with the other cells of its GROUP BY."""
        return self.predicate, self.keys


# Sketch shape -----------------------------------------------------------------------------------


Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CodedCells:
    """The cell of each record for each list of keys, and the number of each cell."""

    codes: NDArray[np.int32]  # lists of keys x records
    numbers: Mapping[tuple[Expression, ...], Mapping[Key, int]]

    @classmethod
    def of(cls, groups: Mapping[tuple[Expression, ...], CellCodes], count: int) -> "CodedCells":
        """Cells read from a source."""
        codes = np.empty((len(groups), count), np.int32)
        for place, each in enumerate(groups.values()):
            codes[place] = each.codes
        numbers = {keys: {k: i for i, k in enumerate(g.keys)} for keys, g in groups.items()}
        return cls(codes, numbers)


@dataclass(frozen=True, eq=False)
class PassShape:
    """Predicates, cells and equations as a compiled pass takes them."""

    layout: BitLayout
    cells: CodedCells
    selections: Sequence[Selection]
    dense: frozenset[int] = field(default=frozenset())  # bits that select more than half

    @cached_property
    def _families(self) -> dict[Family, int]:
        """Where the weights of each family begin: after those of the single predicates."""
        start, found = 64 * self.layout.words, {}
        for each in self.selections:
            if each.keys and each.family not in found:
                found[each.family] = start
                start += len(self.cells.numbers[each.keys])
        return found

    @cached_property
    def width(self) -> int:
        """How many weights there are: bits, cells, and everybody."""
        sizes = (len(self.cells.numbers[keys]) for _, keys in self._families)
        return 64 * self.layout.words + sum(sizes) + 1

    @cached_property
    def index(self) -> NDArray[np.int64]:
        """The weight that belongs to each equation."""
        return np.array([self._place(each) for each in self.selections], np.int64)

    def _place(self, selection: Selection) -> int:
        if not selection.keys:
            return self.layout.bits[selection.predicate]
        start = self._families[selection.family]
        return start + self.cells.numbers[selection.keys][selection.key]

    @cached_property
    def compiled(self) -> tuple[Any, ...]:
        """Layout, slots and cells, as `sketch_kernel` describes them."""
        own = np.zeros(64 * self.layout.words, np.bool_)
        own[[self.layout.bits[each.predicate] for each in self.selections if not each.keys]] = True
        rows = {keys: row for row, keys in enumerate(self.cells.numbers)}
        families = [
            (rows[keys], self.layout.bits[predicate], start)
            for (predicate, keys), start in self._families.items()
        ]
        listed = np.array(families, np.int64).reshape(-1, 3).T.copy()
        slots = (_word(own), _word(self._flips))
        return self.layout.compiled, slots, (self.cells.codes, listed[0], listed[1], listed[2])

    @cached_property
    def _flips(self) -> NDArray[np.bool_]:
        flips = np.zeros(64 * self.layout.words, np.bool_)
        flips[list(self.dense)] = True
        return flips

    def flipped(self, tried: Places) -> "PassShape":
        """The same, with the zeros counted of bits that select more than half of these records."""
        share = self._bits(tried).mean(axis=0) if len(tried) else np.zeros(0)
        alone = {self.layout.bits[each.predicate] for each in self.selections if not each.keys}
        return replace(self, dense=frozenset(alone.intersection(np.flatnonzero(share > 0.5))))

    def only(self, equations: Iterable[int]) -> "PassShape":
        """The same for some of the equations."""
        chosen = [self.selections[each] for each in equations]
        some = self.layout.only(dict.fromkeys(each.predicate for each in chosen))
        dense = (place for each, place in some.bits.items() if self.layout.bits[each] in self.dense)
        return PassShape(some, self.cells, chosen, frozenset(dense))

    def weights(self, combination: Iterable[int], modulus: int) -> tuple[NDArray[np.int64], int]:
        """What a combination of equations adds up to, as weights of a pass."""
        factors = np.zeros(self.width, np.int64)
        np.add.at(factors, self.index, np.asarray(combination, np.int64))
        flips = np.flatnonzero(self._flips)
        factors[-1] = factors[flips].sum()
        factors[flips] *= -1
        return factors, modulus

    def totals(self, added: NDArray[Any]) -> NDArray[Any]:
        """The total of each equation, out of what a pass added up."""
        found = added.copy()
        flips = np.flatnonzero(self._flips)
        found[flips] = added[-1] - added[flips]
        return found[self.index]

    def _bits(self, places: Places) -> NDArray[np.bool_]:
        """Records x bits."""
        words = np.empty((len(places), self.layout.words), np.uint64)
        sign(places, self.layout.compiled, words)
        return np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""
        bits = self._bits(places).T
        found = bits[[self.layout.bits[each.predicate] for each in self.selections]]
        rows = {keys: row for row, keys in enumerate(self.cells.numbers)}
        for place, each in enumerate(self.selections):
            if each.keys:
                number = self.cells.numbers[each.keys][each.key]
                found[place] &= self.cells.codes[rows[each.keys], places] == number
        return found


def _word(bits: NDArray[np.bool_]) -> Words:
    return pack(bits[None, :]).reshape(-1)
