"""Everybody's value by halving: a set whose sum is as small or as large as can be is settled.

A set of bits with known sum is split in two; the sum of one half is asked for, that of the other
follows. With d ones among n records this takes about d log2(n / d) queries, far fewer than a fixed
plan when ones (or zeros) are rare. Where they are not, a detecting matrix on the set takes fewer.

Method     `costs` has, for a set of s bits with d ones, the most queries that it can take if this
           set and all its parts are treated in the way that is cheaper then. That way is taken.
Guarantee  At most one query more than a detecting matrix on all records, whatever the bits are; for
           numbers between two ends, at most one query for each record.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_oracle import Asking
from casemate.attack.plan_subsets import Chosen, Subsets
from casemate.solve.detecting import DetectingMatrix, sums_needed


@cache
def costs(size: int) -> NDArray[np.int64]:
    """For 0 to `size` ones among so many bits, the most queries beyond their known sum.

    >>> costs(4).tolist()
    [0, 2, 3, 2, 0]
    """
    if size < 2:
        return np.zeros(size + 1, np.int64)
    split = 1 + _worst(costs(size // 2), costs(size - size // 2))
    split[[0, size]] = 0
    return np.minimum(split, sums_needed(size))


def _worst(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each total, the largest sum of an entry of each whose places add up to it."""
    found = np.zeros(len(left) + len(right) - 1, np.int64)
    for place, cost in enumerate(left.tolist()):
        part = found[place : place + len(right)]
        np.maximum(part, cost + right, out=part)
    return found


@dataclass
class Splitting:
    """A run that finds the value of every record, asking as it goes."""

    subsets: Subsets
    asking: Asking
    low: Fraction
    high: Fraction
    bits: bool
    values: list[Fraction] = field(init=False)
    _total: Fraction = field(init=False, default=Fraction(0))

    def run(self) -> list[Fraction]:
        """Every record's value, in the order of the records."""
        everybody = self.subsets.everybody
        self.values = [self.low] * self.subsets.count
        self._total = self.asking.ask(self.subsets.statement(everybody))
        order = np.argsort(self.subsets.axis.places)  # so that halves are ranges
        pending = [(order, self._total)]
        while pending:
            places, total = pending.pop()
            if not self._settled(places, total):
                pending += self._split(places, total)
        return self.values

    def _settled(self, places: NDArray[np.int64], total: Fraction) -> bool:
        """Whether a set is known: by its sum alone, or because its bits are decoded."""
        size = len(places)
        if size == 1:
            self.values[places[0]] = total
        elif total in (self.low * size, self.high * size):
            for place in places.tolist():
                self.values[place] = total / size
        elif not (self.bits and self._decoded(places, int(total))):
            return False
        return True

    def _decoded(self, places: NDArray[np.int64], ones: int) -> bool:
        """Whether a detecting matrix is the cheaper way; if so it is asked."""
        size = len(places)
        if costs(size)[ones] < sums_needed(size):
            return False
        matrix = DetectingMatrix(size)
        bits = matrix.decode([int(self._sum(places[row])) for row in matrix.rows])
        for place, bit in zip(places.tolist(), bits.tolist(), strict=True):
            self.values[place] = Fraction(bit)
        return True

    def _split(
        self, places: NDArray[np.int64], total: Fraction
    ) -> list[tuple[NDArray[np.int64], Fraction]]:
        half = len(places) // 2
        left = self._sum(places[:half])
        return [(places[half:], total - left), (places[:half], left)]

    def _sum(self, places: NDArray[np.int64]) -> Fraction:
        """The sum of a set, by its complement where it is too small to be asked for."""
        chosen: Chosen = np.zeros(self.subsets.count, np.bool_)
        chosen[places] = True
        if not self.subsets.turned(chosen):
            return self.asking.ask(self.subsets.statement(chosen))
        return self._total - self.asking.ask(self.subsets.statement(~chosen))
