"""Where each equation has its weight and its total in a pass over coded records."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.answers import Key
from casemate.query.expression import Expression
from casemate.query.kernel import Words, pack
from casemate.query.membership import Groups
from casemate.query.sketch_kernel import sign
from casemate.query.sketch_layout import Layout
from casemate.query.sketch_selection import Family, Selection

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each record for each list of keys, and the number of each cell."""

    codes: NDArray[np.int32]  # lists of keys x records
    numbers: Mapping[tuple[Expression, ...], Mapping[Key, int]]

    @classmethod
    def of(cls, groups: Mapping[tuple[Expression, ...], Groups], count: int) -> "Cells":
        """Cells read from a source."""
        codes = np.empty((len(groups), count), np.int32)
        for place, each in enumerate(groups.values()):
            codes[place] = each.codes
        numbers = {keys: {k: i for i, k in enumerate(g.keys)} for keys, g in groups.items()}
        return cls(codes, numbers)


@dataclass(frozen=True, eq=False)
class Shape:
    """Predicates, cells and equations as a compiled pass takes them."""

    layout: Layout
    cells: Cells
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

    def flipped(self, tried: Places) -> "Shape":
        """The same, with the zeros counted of bits that select more than half of these records."""
        share = self._bits(tried).mean(axis=0) if len(tried) else np.zeros(0)
        alone = {self.layout.bits[each.predicate] for each in self.selections if not each.keys}
        return replace(self, dense=frozenset(alone.intersection(np.flatnonzero(share > 0.5))))

    def only(self, equations: Iterable[int]) -> "Shape":
        """The same for some of the equations."""
        chosen = [self.selections[each] for each in equations]
        some = self.layout.only(dict.fromkeys(each.predicate for each in chosen))
        dense = (place for each, place in some.bits.items() if self.layout.bits[each] in self.dense)
        return Shape(some, self.cells, chosen, frozenset(dense))

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
