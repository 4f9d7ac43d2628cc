"""Linear equations with integer coefficients: a sparse system of them, and one at a time.

An equation is a published number; a column is something secret. Rows of rational coefficients are
multiplied by their common denominator before they get here, so everything below is exact.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class System:
    """A sparse integer matrix, entry by entry, and optionally what each equation adds up to.

    `row`, `column` and `value` are of one length; no (row, column) occurs twice and no value is 0.
    `value` is int64, or an object array of Python integers where some do not fit. `right` has one
    Fraction per row, or is None when the answers are not known.
    """

    rows: int
    columns: int
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: NDArray[Any]
    right: tuple[Fraction, ...] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, equations: Iterable[Sequence[int]], right: Sequence[Fraction | int] | None = None
    ) -> Self:
        """A system from dense rows; for tests and small cases.

        >>> System.of([[1, 1, 0], [0, 2, 3]]).value.tolist()
        [1, 1, 2, 3]
        """
        dense = [list(equation) for equation in equations]
        places = [(i, j) for i, line in enumerate(dense) for j, value in enumerate(line) if value]
        values = [dense[i][j] for i, j in places]
        fits = all(-(2**63) <= value < 2**63 for value in values)
        return cls(
            len(dense),
            len(dense[0]) if dense else 0,
            np.array([i for i, _ in places], np.int64),
            np.array([j for _, j in places], np.int64),
            np.array(values, np.int64 if fits else object),
            None if right is None else tuple(Fraction(each) for each in right),
        )

    def dense(self) -> list[list[int]]:
        """The matrix as lists of Python integers; for tests and small cases."""
        lines = [[0] * self.columns for _ in range(self.rows)]
        for i, j, value in zip(
            self.row.tolist(), self.column.tolist(), self.value.tolist(), strict=True
        ):
            lines[i][j] = int(value)
        return lines

    def by_row(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
        """Where the entries of each row begin, and their columns and values, row by row."""
        order = np.argsort(self.row, kind="stable")
        starts = np.searchsorted(self.row[order], np.arange(self.rows + 1))
        return starts, self.column[order], self.value[order]

    def part(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> "System":
        """The entries in these rows and columns, both numbered in the order given.

        >>> System.of([[1, 2], [3, 4]]).part(np.array([1, 0]), np.array([1])).dense()
        [[4], [2]]
        """
        row, column = np.full(self.rows, -1, np.int64), np.full(self.columns, -1, np.int64)
        row[rows], column[columns] = np.arange(len(rows)), np.arange(len(columns))
        i, j = row[self.row], column[self.column]
        inside = (i >= 0) & (j >= 0)
        return System(len(rows), len(columns), i[inside], j[inside], self.value[inside])


# One equation, and equations kept by column -----------------------------------------------------


_HALF_BITS = 32
_MASK = (1 << _HALF_BITS) - 1
_EQUATIONS_PER_BLOCK = 128
_NARROW_TYPES = {np.dtype(kind): np.iinfo(kind).max for kind in (np.int8, np.int16, np.int32)}


@dataclass(frozen=True, eq=False)
class Equation:
    """The non-zero coefficients of one equation: no column twice."""

    columns: NDArray[np.int64]
    values: NDArray[Any]

    @classmethod
    def of(cls, coefficients: dict[int, int]) -> Self:
        """An equation from a mapping; zeros are dropped.

        >>> Equation.of({4: 1, 2: 0, 7: -3}).columns.tolist()
        [4, 7]
        """
        kept = {column: value for column, value in coefficients.items() if value}
        narrow = all(-(2**63) <= value < 2**63 for value in kept.values())
        kind = np.int64 if narrow else object
        return cls(np.array(list(kept), np.int64), np.array(list(kept.values()), kind))

    def on(self, columns: NDArray[np.int64], scratch: NDArray[Any]) -> NDArray[Any]:
        """The coefficients in these columns; the scratch has a zero for every column there is."""
        wide = scratch if self.values.dtype != object else scratch.astype(object)
        wide[self.columns] = self.values
        found = wide[columns]
        wide[self.columns] = 0
        return found

    def total(self, fingerprints: NDArray[np.uint64]) -> int:
        """The sum of coefficients times fingerprints, exactly."""
        mine = fingerprints[self.columns]
        return weighted_sum(self.values[None, :], mine)[0] if len(mine) else 0


def equations(system: System) -> Iterator[Equation]:
    """The equations of a system, in order."""
    starts, columns, values = system.by_row()
    for start, stop in pairwise(starts.tolist()):
        yield Equation(columns[start:stop], values[start:stop])


def weighted_sum(matrix: NDArray[Any], weights: NDArray[Any]) -> list[int]:
    """A small integer matrix times non-negative integers below 2^64, exactly.

    The weights are cut in halves of 32 bits, so that no sum passes 63 bits; coefficients too large
    for that go the slow way through Python's integers.
    """
    rows, length = matrix.shape
    if matrix.dtype == object or not matrix.size or largest_magnitude(matrix) * length >> 31:
        exact = weights.astype(object)
        return [int(total) for total in matrix.astype(object) @ exact] if length else [0] * rows
    cut, wide = weights.astype(np.uint64), matrix.astype(np.int64)
    low = wide @ (cut & np.uint64(_MASK)).astype(np.int64)
    high = wide @ (cut >> np.uint64(_HALF_BITS)).astype(np.int64)
    return [(up << _HALF_BITS) + down for up, down in zip(high.tolist(), low.tolist(), strict=True)]


def largest_magnitude(matrix: NDArray[Any]) -> int:
    """The largest absolute value of integers; 0 if there is none."""
    return max(int(matrix.max()), -int(matrix.min())) if matrix.size else 0


class KeptEquations:
    """Coefficients by column and equation, in the narrowest integers that hold them.

    They stand in blocks of so many equations, so that nothing is copied as the number grows.
    """

    def __init__(self, columns: int) -> None:
        self.count = 0
        self._columns = columns
        self._blocks: list[NDArray[Any]] = []
        self._supports: list[NDArray[np.int64]] = []

    def append(self, equation: Equation) -> None:
        """Keep one more equation."""
        place = self.count % _EQUATIONS_PER_BLOCK
        if place == 0:
            self._blocks.append(np.zeros((self._columns, _EQUATIONS_PER_BLOCK), np.int8))
        last = self._blocks[-1]
        needed = np.promote_types(last.dtype, narrowest(equation.values))
        if needed != last.dtype:
            self._blocks[-1] = last = last.astype(needed)
        last[equation.columns, place] = equation.values
        self._supports.append(equation.columns)
        self.count += 1

    def copy(self) -> "KeptEquations":
        """Another one with the same equations; full blocks are shared, as they do not change."""
        twin = KeptEquations(self._columns)
        twin.count, twin._supports = self.count, list(self._supports)
        twin._blocks = [*self._blocks[:-1], *(last.copy() for last in self._blocks[-1:])]
        return twin

    def support(self, slot: int) -> NDArray[np.int64]:
        """The columns of one kept equation."""
        return self._supports[slot]

    def at(self, columns: NDArray[np.int64] | int, slots: NDArray[np.int64]) -> NDArray[Any]:
        """The coefficients of these columns in the equations of these slots."""
        if not self.count:
            shape = np.shape(columns)
            return np.zeros((*shape, 0), np.int8)
        lines = np.concatenate([block[columns] for block in self._blocks], axis=-1)
        whole = len(slots) == self.count
        return lines[..., : self.count] if whole else lines[..., slots]


def narrowest(values: NDArray[Any]) -> np.dtype[Any]:
    """The smallest signed integer type that holds the values."""
    if values.dtype == object or not len(values):
        return np.dtype(object if len(values) else np.int8)
    reach = largest_magnitude(values)
    fitting = (kind for kind, most in _NARROW_TYPES.items() if reach <= most)
    return next(fitting, np.dtype(np.int64))
