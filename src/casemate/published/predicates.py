"""Equations that are not stored: which records each of many sums adds up, decided again each pass.

The columns of the table are read once and kept as small codes. A pass takes some records at a time,
finds their bits out of the codes, and adds up; what it needs is the codes and the bits of those
records, however many records the sums add up. `fitting` chooses between this and equations that are
stored, which are faster to go through where they fit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.membership import Records
from casemate.query.sketch_cells import cells_of
from casemate.query.sketch_kernel import sign
from casemate.query.sketch_layout import layout
from casemate.query.sketch_selection import Selection
from casemate.query.sketch_shape import Cells, Shape
from casemate.solve.bits import Bits
from casemate.solve.ranges import Ranges
from casemate.solve.rows import Floats, Passes, Rows
from casemate.table.source import Source

AT_ONCE = 2**18
"""Words of bits that are in memory at once, as far as a few records at a time allow."""

FEWEST = 1024
"""Records at a time, at least: fewer would spend more on tables than on records."""

DENSE = 1 / 12
"""Bits are gone through faster than stored columns where sums add up more than this share."""

MOST_STORED = 2**30
"""Bytes up to which equations are stored."""


@dataclass(frozen=True, eq=False)
class Predicates:
    """Sums over the records of a table, as equations in one secret of each record.

    Equation i adds up the records of `shape.selections[i]`, in the order of `records`.
    """

    shape: Shape
    records: NDArray[Any]

    @classmethod
    def of(cls, selections: Sequence[Selection], source: Source) -> "Predicates":
        """Read and code the columns that the selections ask about."""
        records = Records(source)
        lists = dict.fromkeys(each.keys for each in selections if each.keys)
        cells = Cells.of({keys: cells_of(keys, records) for keys in lists}, records.count)
        coded = layout((each.predicate for each in selections), records)
        return cls(Shape(coded, cells, selections), records.names)

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

    def transposed(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        from casemate.solve.bits_kernel import add_cell_transposed, add_transposed

        factors = np.zeros(self.shape.width)
        np.add.at(factors, self.shape.index, weights / self.lengths)
        found = np.zeros(self.width)
        for part, words in self._chunks():
            add_transposed(words, factors, found[part])
            for codes, bit, start in self._families(part):
                add_cell_transposed(codes, words, bit, factors[start:], found[part])
        return found

    def _totals(self, point: Floats) -> Floats:
        from casemate.solve.bits_kernel import add_cell_times, add_times

        totals = np.zeros(self.shape.width)
        for part, words in self._chunks():
            add_times(words, point[part], totals)
            for codes, bit, start in self._families(part):
                add_cell_times(codes, words, bit, point[part], totals[start:])
        return totals[self.shape.index]

    def _chunks(self) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        """Some records at a time, and their bits: words x records."""
        wide = self.shape.layout.words
        step = max(FEWEST, AT_ONCE // wide)
        for start in range(0, self.width, step):
            end = min(start + step, self.width)
            words = np.empty((end - start, wide), np.uint64)
            sign(np.arange(start, end), self.shape.layout.compiled, words)
            yield slice(start, end), np.ascontiguousarray(words.T)

    def _families(self, part: slice) -> Iterator[tuple[NDArray[np.int32], int, int]]:
        """Cells of some records, the bit of their predicate, and where their totals begin."""
        codes, rows, bits, starts = self.shape.compiled[2]
        for row, bit, start in zip(rows.tolist(), bits.tolist(), starts.tolist(), strict=True):
            yield codes[row, part], bit, start

    # As something that is stored -----------------------------------------------------------

    def ranges(self) -> Ranges | None:
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
        return Ranges(order, first, first + self.sizes)

    def bits(self) -> Bits:
        """The same as bits; there must be no GROUP BY."""
        words = np.concatenate([words for _, words in self._chunks()], axis=1)
        return Bits(words, self.shape.index)

    def rows(self) -> Rows:
        """The same as stored columns."""
        step = max(1, 64 * AT_ONCE // max(1, self.height))
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
    selections: Sequence[Selection], source: Source, *, most_stored: int = MOST_STORED
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
    dense = not grouped and entries > DENSE * found.width * found.height
    if not dense and 4 * entries <= most_stored:
        return found.rows()
    if not grouped and as_bits <= most_stored:
        return found.bits()
    return found
