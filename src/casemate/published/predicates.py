"""Equations that are not stored: which records each of many sums adds up, decided again each pass.

`Predicates` reads the columns of the table once and keeps them as small codes. A pass takes some
records at a time, finds their bits out of the codes, and adds up; what it needs is the codes and
the bits of those records, however many records the sums add up. `BitRows` and `RangeRows` are
equations of a special form, and `fitting` chooses among all of them and equations that are stored,
which are faster to go through where they fit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.exact import ANY_ORDER, Floats, Passes, Rows
from casemate.query.records import Records
from casemate.query.sketch import PassShape, Selection, pass_shape, sign
from casemate.table.sources import Source

Words = NDArray[np.uint64]
Codes = NDArray[np.int32]

# Bits: one for each unknown and equation --------------------------------------------------------
# For sums of a good part of everybody: an entry costs an eighth of a byte, whether it is 0 or 1,
# where a stored column costs four bytes, and about a tenth of its time: from about a twelfth of all
# unknowns on, bits are faster too.


@dataclass(frozen=True, eq=False)
class BitRows:
    """Equations whose coefficients are 0 or 1: `words` is words x unknowns, lowest bit first.

    Equation i is bit `slots[i]` of each unknown; bits that are no equation are not looked at.

    >>> bits = BitRows(np.array([[0b01, 0b11]], np.uint64), np.arange(2))
    >>> bits.lengths.round(3).tolist(), bits.times(np.array([2.0, 5.0])).round(3).tolist()
    ([1.414, 1.0], [4.95, 5.0])
    """

    words: Words
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows) -> "BitRows":
        """Stored equations as bits."""

        if rows.values is not None:
            raise ValueError("only equations whose coefficients are all 1 can be stored as bits")
        words = np.zeros((-(-max(1, rows.height) // 64), rows.width), np.uint64)
        set_bits(rows.starts, rows.columns, words)
        return cls(words, np.arange(rows.height))

    @property
    def height(self) -> int:
        """How many equations there are."""
        return len(self.slots)

    @property
    def width(self) -> int:
        """How many unknowns."""
        return int(self.words.shape[1])

    @cached_property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation; 1 for an empty one."""
        return np.sqrt(np.maximum(self._totals(np.ones(self.width)), 1.0))

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        return self._totals(point) / self.lengths

    def transpose_times(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""

        of_bits = np.zeros(64 * len(self.words))
        np.add.at(of_bits, self.slots, weights / self.lengths)
        found = np.zeros(self.width)
        add_transposed(self.words, of_bits, found)
        return found

    def _totals(self, point: Floats) -> Floats:

        of_bits = np.zeros(64 * len(self.words))
        add_times(self.words, point, of_bits)
        return of_bits[self.slots]


# Compiled passes over bits ----------------------------------------------------------------------
# Eight equations at a time, by tables of all 256 sums of eight numbers. Bit j of a record is bit j
# % 64 of words[j // 64, record]. Whatever the density, a byte costs one look in a table, after V.
# Arlazarov, E. Dinic, M. Kronrod and I. Faradzev, "On economical construction of the transitive
# closure of a directed graph", 1970; a word of zeros costs nothing. The eight tables of a word are
# 16 KiB, which stay in the first level of cache.


@compiled
def add_times(words: Words, point: Floats, found: Floats) -> None:
    """Add to each bit the values of the records that have it."""
    tables = np.empty(2048)
    for word in range(words.shape[0]):
        tables[:] = 0.0
        for record in range(words.shape[1]):
            left = np.int64(words[word, record])
            if left:
                for byte in range(8):
                    tables[256 * byte + ((left >> (8 * byte)) & 255)] += point[record]
        for byte in range(8):
            _add_eight(tables[256 * byte :], found[64 * word + 8 * byte :])


@compiled
def _add_eight(table: Floats, found: Floats) -> None:
    """Add to each of eight bits what stands at the bytes that have it; the table is used up."""
    half = 128
    for bit in range(7, -1, -1):
        total = 0.0
        for low in range(half):
            total += table[low + half]
            table[low] += table[low + half]
        found[bit] += total
        half >>= 1


@compiled(fastmath=ANY_ORDER)
def add_transposed(words: Words, weights: Floats, found: Floats) -> None:
    """Add to each record the weights of the bits that it has."""
    tables = np.empty(2048)
    for word in range(words.shape[0]):
        for byte in range(8):
            _fill(tables[256 * byte :], weights[64 * word + 8 * byte :])
        for record in range(words.shape[1]):
            left = np.int64(words[word, record])
            if left:
                total = 0.0
                for byte in range(8):
                    total += tables[256 * byte + ((left >> (8 * byte)) & 255)]
                found[record] += total


@compiled
def _fill(table: Floats, weights: Floats) -> None:
    """The sum of the weights of the bits of each byte."""
    table[0] = 0.0
    for bit in range(8):
        half = 1 << bit
        for low in range(half):
            table[half + low] = table[low] + weights[bit]


@compiled
def add_cell_times(codes: Codes, words: Words, bit: int, point: Floats, found: Floats) -> None:
    """Add to each cell the values of the records in it that have the bit."""
    word, shift = bit >> 6, np.uint64(bit & 63)
    for record in range(codes.shape[0]):
        if words[word, record] >> shift & np.uint64(1) and codes[record] >= 0:
            found[codes[record]] += point[record]


@compiled
def add_cell_transposed(
    codes: Codes, words: Words, bit: int, weights: Floats, found: Floats
) -> None:
    """Add to each record that has the bit the weight of its cell."""
    word, shift = bit >> 6, np.uint64(bit & 63)
    for record in range(codes.shape[0]):
        if words[word, record] >> shift & np.uint64(1) and codes[record] >= 0:
            found[record] += weights[codes[record]]


@compiled
def set_bits(starts: NDArray[np.int64], columns: NDArray[np.uint32], words: Words) -> None:
    """Set bit i of the records that equation i adds up."""
    for i in range(starts.shape[0] - 1):
        bit = np.uint64(1) << np.uint64(i & 63)
        for k in range(starts[i], starts[i + 1]):
            words[i >> 6, columns[k]] |= bit


# Ranges: everybody between two ends of one order ------------------------------------------------
# By sums from the beginning: a pass costs as much as there are unknowns and equations, however long
# the ranges are. The error of a difference of two such sums is that of the longer one, about 1e-16
# of all values added up.


@dataclass(frozen=True, eq=False)
class RangeRows:
    """Equation i adds up the unknowns order[first[i]], ..., order[last[i] - 1].

    >>> ranges = RangeRows(np.array([2, 0, 1]), np.array([0, 1]), np.array([1, 3]))
    >>> (ranges.times(np.array([1.0, 2.0, 3.0])) * ranges.lengths).round(9).tolist()
    [3.0, 3.0]
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @property
    def height(self) -> int:
        """How many equations there are."""
        return len(self.first)

    @property
    def width(self) -> int:
        """How many unknowns."""
        return len(self.order)

    @cached_property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation; 1 for an empty one."""
        counts: Floats = np.maximum(self.last - self.first, 1).astype(np.float64)
        return np.sqrt(counts)

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        sums = np.concatenate([[0.0], np.cumsum(point[self.order])])
        between: Floats = sums[self.last] - sums[self.first]
        return between / self.lengths

    def transpose_times(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        scaled, size = weights / self.lengths, self.width + 1
        begin = np.bincount(self.first, scaled, minlength=size)
        end = np.bincount(self.last, scaled, minlength=size)
        found = np.empty(self.width)
        found[self.order] = np.cumsum(begin - end)[:-1]
        return found


# Predicates, and the form that fits -------------------------------------------------------------


WORDS_PER_CHUNK = 2**18
"""Words of bits that are in memory at once, as far as a few records at a time allow."""

MIN_RECORDS_PER_CHUNK = 1024
"""Records at a time, at least: fewer would spend more on tables than on records."""

MIN_BITS_DENSITY = 1 / 12
"""Bits are gone through faster than stored columns where sums add up more than this share."""

MAX_STORED_BYTES = 2**30
"""Bytes up to which equations are stored."""


@dataclass(frozen=True, eq=False)
class Predicates:
    """Sums over the records of a table, as equations in one secret of each record.

    Equation i adds up the records of `shape.selections[i]`, in the order of `records`.
    """

    shape: PassShape
    records: NDArray[Any]

    @classmethod
    def of(cls, selections: Sequence[Selection], source: Source) -> "Predicates":
        """Read and code the columns that the selections ask about."""
        records = Records(source)
        return cls(pass_shape(selections, records), records.names)

    @property
    def height(self) -> int:
        """How many equations there are."""
        return len(self.shape.selections)

    @property
    def width(self) -> int:
        """How many unknowns."""
        return len(self.records)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many records each equation adds up."""
        return self._totals(np.ones(self.width)).astype(np.int64)

    @cached_property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation; 1 for an empty one."""
        return np.sqrt(np.maximum(self.sizes, 1))

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        return self._totals(point) / self.lengths

    def transpose_times(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""

        factors = np.zeros(self.shape.width)
        np.add.at(factors, self.shape.index, weights / self.lengths)
        found = np.zeros(self.width)
        for part, words in self._chunks():
            add_transposed(words, factors, found[part])
            for codes, bit, start in self._families(part):
                add_cell_transposed(codes, words, bit, factors[start:], found[part])
        return found

    def _totals(self, point: Floats) -> Floats:

        totals = np.zeros(self.shape.width)
        for part, words in self._chunks():
            add_times(words, point[part], totals)
            for codes, bit, start in self._families(part):
                add_cell_times(codes, words, bit, point[part], totals[start:])
        return totals[self.shape.index]

    def _chunks(self) -> Iterator[tuple[slice, Words]]:
        """Some records at a time, and their bits: words x records."""
        wide = self.shape.layout.words
        step = max(MIN_RECORDS_PER_CHUNK, WORDS_PER_CHUNK // wide)
        for start in range(0, self.width, step):
            end = min(start + step, self.width)
            words = np.empty((end - start, wide), np.uint64)
            sign(np.arange(start, end), self.shape.layout.compiled, words)
            yield slice(start, end), np.ascontiguousarray(words.T)

    def _families(self, part: slice) -> Iterator[tuple[Codes, int, int]]:
        """Cells of some records, the bit of their predicate, and where their totals begin."""
        codes, *places = self.shape.compiled.selected.cells
        for row, bit, start in zip(*(each.tolist() for each in places), strict=True):
            yield codes[row, part], bit, start

    # As something that is stored -----------------------------------------------------------

    def ranges(self) -> RangeRows | None:
        """The same as ranges of one order, if one column decides and its codes follow on."""
        shape = self.shape
        if len(shape.layout.tables) > 1 or any(each.keys for each in shape.selections):
            return None
        codes = shape.layout.codes[shape.layout.chosen[0]].astype(np.int64)
        order = np.argsort(codes, kind="stable")
        first_of_code = np.unique(codes[order], return_index=True)[1]
        inside = shape.rows(order[first_of_code])
        begins = np.diff(inside, axis=1, prepend=False, append=False)
        if (begins.sum(axis=1) > 2).any():
            return None
        ends = np.append(first_of_code, self.width)
        some = inside.any(axis=1)
        first = np.where(some, ends[begins.argmax(axis=1)], 0)
        return RangeRows(order, first, first + self.sizes)

    def bits(self) -> BitRows:
        """The same as bits; there must be no GROUP BY."""
        words = np.concatenate([words for _, words in self._chunks()], axis=1)
        return BitRows(words, self.shape.index)

    def rows(self) -> Rows:
        """The same as stored columns."""
        step = max(1, 64 * WORDS_PER_CHUNK // max(1, self.height))
        row, column = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)]
        for start in range(0, self.width, step):
            places = np.arange(start, min(start + step, self.width))
            equation, record = np.nonzero(self.shape.rows(places))
            row.append(equation)
            column.append((record + start).astype(np.uint32))
        order = np.argsort(np.concatenate(row), kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        return Rows(starts, np.concatenate(column)[order], None, self.width)


def fitting(
    selections: Sequence[Selection], source: Source, *, most_stored: int = MAX_STORED_BYTES
) -> Passes:
    """The equations in the form that is gone through fastest within so many bytes.

    Ranges of one order if they are; else stored columns or bits, whichever is faster and fits; else
    predicates. Unknown i is the i-th record of the source, by its key or its place in the file.
    """
    found = Predicates.of(selections, source)
    ranges = found.ranges()
    if ranges is not None:
        return ranges
    entries = int(found.sizes.sum())
    grouped = any(each.keys for each in selections)
    as_bits = 8 * found.width * found.shape.layout.words
    dense = not grouped and entries > MIN_BITS_DENSITY * found.width * found.height
    if not dense and 4 * entries <= most_stored:
        return found.rows()
    if not grouped and as_bits <= most_stored:
        return found.bits()
    return found
