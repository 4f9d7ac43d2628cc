"""Detecting matrices: few subset sums that determine many bits, and these sums written as SQL.

Source     Lindström, "On a combinatory detection problem I" (1964); Cantor and Mills,
           "Determination of a subset from certain combinatorial properties" (1966).
Guarantee  2^k - 1 sums determine k 2^(k-1) bits, so n bits need about 2 n / log2 n sums; by
           counting, n / log2(n + 1) are necessary. Any n is served: r sums determine as many bits
           as there are ones in the binary numbers 1 to r.
Method     Sums and groups of bits are numbered by sets: 1 to r in binary. The group of a set A has
           |A| bits; the i-th of them is in the sum of B iff B meets A in one of 2^i chosen subsets
           of A of odd size. Added up over all B inside A, with signs by the parity of B, the i-th
           bit of A then counts 2^i times, so these bits are the binary digits of the total, and a
           bit of another set A' counts 0 times unless A' contains A. Sets are decoded from the
           last to the first, and every set comes after its subsets.
Cost       Decoding takes about r^2 log r operations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.setting import Chosen, ReadBack, Subsets


def sums_needed(bits: int) -> int:
    """How many sums the matrix for so many bits has.

    >>> [sums_needed(bits) for bits in (1, 2, 4, 12, 1024)]
    [1, 2, 3, 7, 255]
    """
    covered, sums = 0, 0
    while covered < bits:
        sums += 1
        covered += sums.bit_count()
    return sums


def sums_necessary(bits: int) -> int:
    """So many sums of bits have as many different answers as there are bit strings, and no fewer.

    >>> sums_necessary(1024)
    103
    """
    return math.ceil(bits / math.log2(bits + 1)) if bits else 0


@dataclass(frozen=True)
class DetectingMatrix:
    """A 0/1 matrix whose product with a vector of bits determines the bits.

    >>> matrix = DetectingMatrix(4)
    >>> matrix.rows.astype(int).tolist()
    [[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 0, 0]]
    >>> matrix.decode([2, 2, 2]).tolist()
    [1, 1, 0, 1]
    """

    bits: int

    @cached_property
    def rows(self) -> NDArray[np.bool_]:
        """A row for each sum, a column for each bit."""
        sums = np.arange(1, self._last + 1)
        columns = [part for group in sums.tolist() for part in _group(group, sums)]
        return np.array(columns[: self.bits], np.bool_).reshape(self.bits, self._last).T

    @cached_property
    def _last(self) -> int:
        return sums_needed(self.bits)

    def decode(self, answers: Sequence[int]) -> NDArray[np.int64]:
        """The bits, from the sums in the order of the rows."""
        if len(answers) != self._last:
            raise ValueError(f"{self._last} sums are needed for {self.bits} bits")
        residuals = np.array([0, *answers], np.int64)
        found = np.zeros(self.bits, np.int64)
        end = sum(group.bit_count() for group in range(1, self._last + 1))
        for group in range(self._last, 0, -1):
            start = end - group.bit_count()
            columns = np.arange(start, min(end, self.bits))
            found[columns] = _digits(_total(residuals, group), group.bit_count())[: len(columns)]
            residuals[1:] -= self.rows[:, columns] @ found[columns]
            end = start
        if residuals.any():
            raise ValueError("these are not the sums of bits")
        return found


def _group(group: int, sums: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """The columns of one group: for each of its bits, the sums that it is in."""
    places = [place for place in range(group.bit_length()) if group >> place & 1]
    met = sum((sums >> place & 1) << k for k, place in enumerate(places))
    odd = np.bitwise_count(met) % 2 == 1
    return [odd & (met >> 1 < 1 << i) for i in range(len(places))]  # met // 2 numbers the odd ones


def _total(sums: NDArray[np.int64], group: int) -> int:
    """The sums of all subsets of a group's set, those of even size taken away."""
    numbers = np.arange(group + 1)
    inside = numbers[numbers & ~group == 0]
    return int((sums[inside] * np.where(np.bitwise_count(inside) % 2, 1, -1)).sum())


def _digits(total: int, count: int) -> list[int]:
    if not 0 <= total < 1 << count:
        raise ValueError("these are not the sums of bits")
    return [total >> i & 1 for i in range(count)]


# All bits of a table by fewer queries than records ----------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """Queries about sets of records, from which every record's bit can be decoded.

    The sums of a detecting matrix are about sets of records that no range selects, so they are
    lists of values of a public column that tells all records apart.
    With `whole`, the first query is about everybody, and sets with too few records are asked for
    by their complements.
    """

    subsets: Subsets

    @cached_property
    def _matrix(self) -> DetectingMatrix:
        return DetectingMatrix(self.subsets.count)

    @cached_property
    def whole(self) -> bool:
        """Whether everybody has to be asked about too."""
        return any(self.subsets.needs_complement(row) for row in self._matrix.rows)

    @property
    def possible(self) -> bool:
        """Whether every set, or its complement, may be asked for."""
        sizes = np.unique(self._matrix.rows.sum(axis=1)).tolist()
        return all(self.subsets.can_ask(size) for size in sizes)

    @property
    def sets(self) -> list[Chosen]:
        """The set of records of each query."""
        rows = [~row if self.subsets.needs_complement(row) else row for row in self._matrix.rows]
        return [self.subsets.everybody, *rows] if self.whole else rows

    def queries(self) -> tuple[str, ...]:
        """The queries."""
        return tuple(self.subsets.statement(each) for each in self.sets)

    def decode(self, answers: Sequence[int]) -> NDArray[np.int64]:
        """Every record's bit, from the answers in the order of the queries."""
        total, sums = (answers[0], answers[1:]) if self.whole else (0, answers)
        pairs = zip(self._matrix.rows, sums, strict=True)
        return self._matrix.decode(
            [total - each if self.subsets.needs_complement(row) else each for row, each in pairs]
        )

    def verify(self, reading: ReadBack) -> bool:
        """Whether queries, read back, are about exactly these sets."""
        secret = self.subsets.secret.unknown
        return all(
            {part.unknown: part.weight for part in reading.parts[number]} == secret
            and np.array_equal(reading.selection(number), chosen)
            and int(chosen.sum()) >= self.subsets.least
            for number, chosen in enumerate(self.sets)
        )
