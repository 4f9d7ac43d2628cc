"""Compiled passes over coded records: combinations of equations evaluated record by record.

A record's codes name one row of bits each; their AND, in cache and never stored, says which
predicates select it. A pass adds up weights over those predicates (a combination of equations at
this record) and, the other way round, the record's fingerprint into a total for each predicate.
`Selection` is the records of one published sum, and `PassShape` says where each has its weight and
its total.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled, intrinsic
from casemate.query.engines.answering import Key
from casemate.query.language.expression import Expression
from casemate.query.records.bitsets import (
    BitLayout,
    BitTables,
    CellCodes,
    Words,
    pack,
    sign,
    sign_record,
)
from casemate.query.sketch.record_hash import fingerprint

Places = NDArray[np.int64]
_ONE = np.uint64(1)


def _trailing_zeros(_: Any, word: Any) -> Any:
    """How to compile the position of the lowest bit that is set."""
    from llvmlite import ir
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(word), generate


_lowest: Any = intrinsic(_trailing_zeros)


class EquationBits(NamedTuple):
    """The bits that are equations, and those of them that select more than half of the records, of
    which the zeros are counted."""

    equations: Words
    flipped: Words


class CellFamilies(NamedTuple):
    """Family f is the cells of row rows[f] of the codes where the predicate of bits[f] holds; its
    weights and totals begin at starts[f]."""

    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    bits: NDArray[np.int64]
    starts: NDArray[np.int64]


class CompiledShape(NamedTuple):
    """What selects records, as a pass takes it."""

    tables: BitTables
    bits: EquationBits
    cells: CellFamilies


class Weights(NamedTuple):
    """A factor for each bit, each cell, and last for everybody; a modulus of 0 stands for 2^64."""

    factors: NDArray[np.int64]
    modulus: int


class HashedNames(NamedTuple):
    """The whole numbers that records are named by, and the keys of the hash."""

    names: NDArray[np.int64]
    lanes: NDArray[np.int64]


class MarkTotals(NamedTuple):
    """The fingerprint of a record, and the totals that it goes to."""

    mark: int
    totals: NDArray[np.int64]


@compiled
def _combine(
    record: int,
    words: Words,
    shape: CompiledShape,
    factors: NDArray[np.int64],
    marked: MarkTotals | None,
) -> int:
    """The sum of the factors of what selects the record, whose mark goes to the totals of it.

    What is asked of `marked` is decided when it is compiled: nobody pays for totals not wanted.
    """
    total: int = factors[factors.shape[0] - 1]
    if marked is not None:
        marked.totals[marked.totals.shape[0] - 1] += marked.mark
    for word in range(shape.bits.equations.shape[0]):
        remaining = (words[word] ^ shape.bits.flipped[word]) & shape.bits.equations[word]
        while remaining:
            slot = (word << 6) + np.int64(_lowest(remaining))
            total += factors[slot]
            if marked is not None:
                marked.totals[slot] += marked.mark
            remaining &= remaining - _ONE
    for family in range(shape.cells.rows.shape[0]):
        bit = shape.cells.bits[family]
        if (words[bit >> 6] >> np.uint64(bit & 63)) & _ONE:
            code = shape.cells.codes[shape.cells.rows[family], record]
            slot = shape.cells.starts[family] + code
            total += factors[slot]
            if marked is not None:
                marked.totals[slot] += marked.mark
    return total


@compiled
def evaluate(records: Places, shape: CompiledShape, weights: Weights) -> NDArray[np.int64]:
    """The value of a combination at these records, modulo the modulus."""
    words = np.empty(shape.tables.table.shape[1], np.uint64)
    values = np.empty(records.shape[0], np.int64)
    for place in range(records.shape[0]):
        sign_record(records[place], shape.tables, words)
        total = _combine(records[place], words, shape, weights.factors, None)
        values[place] = total % weights.modulus if weights.modulus else total
    return values


@compiled
def survey(
    span: tuple[int, int],
    shape: CompiledShape,
    weights: Weights,
    totals: NDArray[np.int64],
    hashed: HashedNames,
) -> NDArray[np.int64]:
    """Like `evaluate` for the records of a span, whose fingerprints are added to the totals."""
    words = np.empty(shape.tables.table.shape[1], np.uint64)
    values = np.empty(span[1] - span[0], np.int64)
    for record in range(span[0], span[1]):
        sign_record(record, shape.tables, words)
        mark = MarkTotals(fingerprint(hashed.names[record], hashed.lanes), totals)
        total = _combine(record, words, shape, weights.factors, mark)
        values[record - span[0]] = total % weights.modulus
    return values


# Selections --------------------------------------------------------------------------------------


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


# Where each equation has its weight and its total ------------------------------------------------


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
    def compiled(self) -> CompiledShape:
        """What the compiled passes take."""
        own = np.zeros(64 * self.layout.words, np.bool_)
        own[[self.layout.bits[each.predicate] for each in self.selections if not each.keys]] = True
        rows = {keys: row for row, keys in enumerate(self.cells.numbers)}
        families = [
            (rows[keys], self.layout.bits[predicate], start)
            for (predicate, keys), start in self._families.items()
        ]
        listed = np.array(families, np.int64).reshape(-1, 3).T.copy()
        bits = EquationBits(_word(own), _word(self._flips))
        return CompiledShape(self.layout.compiled, bits, CellFamilies(self.cells.codes, *listed))

    @cached_property
    def _flips(self) -> NDArray[np.bool_]:
        flips = np.zeros(64 * self.layout.words, np.bool_)
        flips[list(self.dense)] = True
        return flips

    def flip_dense(self, tried: Places) -> "PassShape":
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

    def weights(self, combination: Iterable[int], modulus: int) -> Weights:
        """What a combination of equations adds up to, as weights of a pass."""
        factors = np.zeros(self.width, np.int64)
        np.add.at(factors, self.index, np.asarray(combination, np.int64))
        flips = np.flatnonzero(self._flips)
        factors[-1] = factors[flips].sum()
        factors[flips] *= -1
        return Weights(factors, modulus)

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
