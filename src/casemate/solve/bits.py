"""Equations as bits: one for each unknown and equation, for sums of a good part of everybody.

An entry costs an eighth of a byte, whether it is 0 or 1, where a stored column costs four bytes,
and about a tenth of its time: from about a twelfth of all unknowns on, bits are faster too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats, Rows


@dataclass(frozen=True, eq=False)
class Bits:
    """Equations whose coefficients are 0 or 1: `words` is words x unknowns, lowest bit first.

    Equation i is bit `slots[i]` of each unknown; bits that are no equation are not looked at.

    >>> bits = Bits(np.array([[0b01, 0b11]], np.uint64), np.arange(2))
    >>> bits.lengths.round(3).tolist(), bits.times(np.array([2.0, 5.0])).round(3).tolist()
    ([1.414, 1.0], [4.95, 5.0])
    """

    words: NDArray[np.uint64]
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Rows) -> "Bits":
        """Stored equations as bits."""
        from casemate.solve.bits_kernel import set_bits

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

    def transposed(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        from casemate.solve.bits_kernel import add_transposed

        of_bits = np.zeros(64 * len(self.words))
        np.add.at(of_bits, self.slots, weights / self.lengths)
        found = np.zeros(self.width)
        add_transposed(self.words, of_bits, found)
        return found

    def _totals(self, point: Floats) -> Floats:
        from casemate.solve.bits_kernel import add_times

        of_bits = np.zeros(64 * len(self.words))
        add_times(self.words, point, of_bits)
        return of_bits[self.slots]
