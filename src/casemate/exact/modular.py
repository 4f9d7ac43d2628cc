"""The inverse of a growing square matrix modulo a prime, one row and one column at a time.

Two implementations of one interface: Python's integers while the matrix is small, so that a small
question never waits for a compiler, and compiled double precision from then on.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SMALL = 96
"""Sizes up to this one are left to Python's integers."""

Vector = NDArray[Any]
"""Residues, as the implementation that made them keeps them."""

Coefficients = Sequence[int] | NDArray[Any]


class Inverse(Protocol):
    """M, the inverse of a square matrix modulo `prime`, and the products that go with it."""

    prime: int
    size: int

    def vector(self, numbers: Coefficients) -> Vector:
        """Integers as residues."""

    def dot(self, one: Vector, other: Vector) -> int:
        """The sum of products."""

    def left(self, row: Vector) -> Vector:
        """The row times M."""

    def right(self, column: Vector) -> Vector:
        """M times the column."""

    def minus(self, vector: Vector, direction: Vector, factor: int) -> Vector:
        """The vector less `factor` times the direction."""

    def border(self, row: Vector, column: Vector, scale: int) -> None:
        """Grow by one: given a M and M c of the new row a and column c, and 1 / (d - a M c).

        Here d is the corner, the new row's coefficient in the new column.
        """

    def copy(self) -> "Inverse":
        """Another one of the same matrix."""


class SmallInverse:
    """The interface in Python's integers."""

    def __init__(self, prime: int) -> None:
        self.prime, self.size = prime, 0
        self._entries: NDArray[Any] = np.zeros((0, 0), object)

    def vector(self, numbers: Coefficients) -> Vector:
        """Integers as residues."""
        residues = np.empty(len(numbers), object)
        residues[:] = [int(number) % self.prime for number in numbers]
        return residues

    def dot(self, one: Vector, other: Vector) -> int:
        """The sum of products."""
        return int(one.dot(other)) % self.prime if len(one) else 0

    def left(self, row: Vector) -> Vector:
        """The row times M."""
        return self.right(row, self._entries.T)

    def right(self, column: Vector, entries: NDArray[Any] | None = None) -> Vector:
        """M times the column."""
        matrix = self._entries if entries is None else entries
        chosen = np.flatnonzero(column)
        if not len(chosen):
            return self.vector([0] * self.size)
        return np.asarray(matrix[:, chosen].dot(column[chosen]) % self.prime, object)

    def minus(self, vector: Vector, direction: Vector, factor: int) -> Vector:
        """The vector less `factor` times the direction."""
        difference: Vector = (vector - factor * direction) % self.prime
        return difference

    def border(self, row: Vector, column: Vector, scale: int) -> None:
        """Grow by one: given a M and M c of the new row a and column c, and 1 / (d - a M c)."""
        size = self.size
        grown = np.zeros((size + 1, size + 1), object)
        grown[:size, :size] = self._entries
        scaled = -column * scale % self.prime
        rows, columns = np.flatnonzero(column), np.flatnonzero(row)
        block = np.ix_(rows, columns)
        grown[block] = (grown[block] - np.outer(scaled[rows], row[columns])) % self.prime
        grown[:size, size] = scaled
        grown[size, :size] = -row * scale % self.prime
        grown[size, size] = scale
        self._entries, self.size = grown, size + 1

    def copy(self) -> "SmallInverse":
        """Another one of the same matrix, whose entries are replaced and never changed."""
        return copy(self)

    def entries(self) -> NDArray[np.uint64]:
        """All of M."""
        return self._entries.astype(np.uint64)
