"""The inverse of a growing square matrix modulo a prime, one row and one column at a time.

Two implementations of one interface: Python's integers while the matrix is small, so that a small
question never waits for a compiler, and compiled double precision from then on.

Compiled arithmetic modulo a prime of 50 bits, for matrices too large for Python's integers.

Residues are whole numbers in double precision, which vectors of any processor multiply. The
rounded product h of two of them and the rest l = fma(a, b, -h) are together exact; so is h - q p
for the rounded quotient q, because it is a whole number below 2^53.

Growing is lazy: each new row and column is one term of rank one beside the matrix, and so many at
a time are worked into it, so that the matrix is read and written once for all of them.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled, intrinsic
from casemate.exact.primes import WIDE

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


# Modular kernel ---------------------------------------------------------------------------------


LAZY = 32
"""Terms of rank one that are kept beside the matrix."""

_STRIPE = 8  # lines of a matrix whose columns are whole lines of the cache


def _fused(_: Any, one: Any, other: Any, addend: Any) -> Any:
    """How to compile one * other + addend with a single rounding."""
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(one, other, addend), generate


_fma: Any = intrinsic(_fused)


@compiled
def _reduced(number: Any, field: Any) -> Any:
    """A whole number below 2^53 as a residue between -p/2 and p/2."""
    prime, inverse = field
    return _fma(-np.rint(number * inverse), prime, number)


@compiled
def _product(one: Any, share: Any, other: Any, prime: Any) -> Any:
    """A residue between -p and p; `share` is one / p, and both factors are below p."""
    high = one * other
    return _fma(-np.rint(share * other), prime, high) + _fma(one, other, -high)


@compiled
def _positive(number: Any, field: Any) -> Any:
    """A whole number below 2^53 as a residue between 0 and p."""
    residue = _reduced(number, field)
    return residue + field[0] if residue < 0.0 else residue


@compiled
def _less(vector: Any, factor: Any, direction: Any, field: Any) -> Any:
    """The vector less the factor times the direction."""
    prime, inverse = field
    result = np.empty_like(vector)
    share = factor * inverse
    for j in range(vector.shape[0]):
        result[j] = _positive(vector[j] - _product(factor, share, direction[j], prime), field)
    return result


@compiled
def _dot(one: Any, other: Any, places: Any, field: Any) -> Any:
    """The sum of the products at some places."""
    prime, inverse = field
    total = 0.0
    for j in places:
        total = _reduced(total + _product(one[j], one[j] * inverse, other[j], prime), field)
    return total


@compiled
def _add_four(target: Any, factors: Any, lines: Any, field: Any) -> None:
    """Add four lines, each times its factor, to the target: below 5 p before the reduction."""
    prime, inverse = field
    a, b, c, d = factors
    e, f, g, h = a * inverse, b * inverse, c * inverse, d * inverse
    first, second, third, fourth = lines
    for j in range(target.shape[0]):
        total = target[j] + _product(a, e, first[j], prime)
        total += _product(b, f, second[j], prime)
        total += _product(c, g, third[j], prime)
        total += _product(d, h, fourth[j], prime)
        target[j] = _reduced(total, field)


@compiled
def _add_lines(target: Any, factors: Any, matrix: Any, places: Any, field: Any) -> None:
    """Add the lines of a matrix at some places, a multiple of four, each times its factor."""
    size = target.shape[0]
    for k in range(0, places.shape[0], 4):
        p, q, r, s = places[k], places[k + 1], places[k + 2], places[k + 3]
        four = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        lines = matrix[p, :size], matrix[q, :size], matrix[r, :size], matrix[s, :size]
        _add_four(target, four, lines, field)


@compiled
def _combined(weights: Any, matrix: Any, near: Any, far: Any, field: Any) -> Any:
    """The weights times the matrix and the terms near[k] far[k] beside it."""
    size = weights.shape[0]
    total = np.zeros(size)
    chosen = np.flatnonzero(weights)
    spare = -len(chosen) % 4  # the first line again, times 0
    places = np.append(chosen, np.zeros(spare, np.int64))
    _add_lines(total, np.append(weights[chosen], np.zeros(spare)), matrix, places, field)
    terms = np.arange(near.shape[0])
    products = np.array([_dot(weights, near[k], chosen, field) for k in terms])
    _add_lines(total, products, far, terms, field)
    for j in range(size):
        total[j] = _positive(total[j], field)
    return total


@compiled
def _work_in(matrix: Any, turned: Any, terms: Any, size: Any, field: Any) -> None:
    """Add the terms columns[k] rows[k] to the matrix, and write its transpose."""
    columns, rows = terms
    every = np.arange(rows.shape[0])
    for start in range(0, size, _STRIPE):
        stop = min(start + _STRIPE, size)
        for i in range(start, stop):
            _add_lines(matrix[i, :size], columns[:, i], rows, every, field)
        for j in range(size):  # while the stripe is in the cache
            for i in range(start, stop):
                turned[j, i] = matrix[i, j]


def _widened(matrix: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """The matrix in the corner of a larger one."""
    wide = np.zeros((width, width))
    wide[: len(matrix), : len(matrix)] = matrix
    return wide


class CompiledInverse:
    """The interface in double precision; it takes over the entries of a smaller one.

    M is `matrix` and the terms columns[k] rows[k]; `turned` is the transpose of the matrix, so
    that M times a column with few entries reads only a few of its lines too.
    """

    def __init__(self, prime: int, entries: NDArray[Any]) -> None:
        if prime.bit_length() != WIDE:
            raise ValueError(f"compiled arithmetic needs a prime of {WIDE} bits")
        self.prime, self.size = prime, len(entries)
        self._field = float(prime), 1.0 / prime
        self._hold(entries.astype(np.float64), entries.T.astype(np.float64))

    def _hold(self, matrix: NDArray[np.float64], turned: NDArray[np.float64]) -> None:
        """Take over a matrix and its transpose, with room for more terms and no terms yet."""
        width = len(matrix)
        if self.size + LAZY > width:
            width = 2 * (self.size + LAZY)
            matrix, turned = _widened(matrix, width), _widened(turned, width)
        self._matrix, self._turned = matrix, turned
        self._columns, self._rows = np.zeros((LAZY, width)), np.zeros((LAZY, width))
        self._pending = 0

    def vector(self, numbers: Coefficients) -> Vector:
        """Integers as residues."""
        given = np.asarray(numbers)
        kind = given.dtype if given.dtype in (np.uint64, object) else np.dtype(np.int64)
        residues: Vector = np.mod(given.astype(kind), kind.type(self.prime)).astype(np.float64)
        return residues

    def dot(self, one: Vector, other: Vector) -> int:
        """The sum of products."""
        return int(_dot(one, other, np.flatnonzero(one), self._field)) % self.prime

    def left(self, row: Vector) -> Vector:
        """The row times M."""
        terms = slice(-(-self._pending // 4) * 4)
        near, far = self._columns[terms], self._rows[terms]
        product: Vector = _combined(row, self._matrix, near, far, self._field)
        return product

    def right(self, column: Vector) -> Vector:
        """M times the column."""
        terms = slice(-(-self._pending // 4) * 4)
        near, far = self._rows[terms], self._columns[terms]
        product: Vector = _combined(column, self._turned, near, far, self._field)
        return product

    def minus(self, vector: Vector, direction: Vector, factor: int) -> Vector:
        """The vector less `factor` times the direction."""
        result: Vector = _less(vector, float(factor), direction, self._field)
        return result

    def border(self, row: Vector, column: Vector, scale: int) -> None:
        """Grow by one: given a M and M c of the new row a and column c, and 1 / (d - a M c).

        The inverse grows by the term (M c, -1) (a M, -1) times the scale.
        """
        size, place = self.size, self._pending
        self._rows[place, :size] = row
        self._rows[place, size] = -1.0
        self._columns[place, :size] = self.minus(np.zeros(size), column, self.prime - scale)
        self._columns[place, size] = -float(scale)
        self.size, self._pending = size + 1, place + 1
        if self._pending == LAZY:
            self._settle()

    def _settle(self) -> None:
        """Work the terms into the matrix."""
        terms = self._columns, self._rows
        _work_in(self._matrix, self._turned, terms, self.size, self._field)
        self._hold(self._matrix, self._turned)

    def copy(self) -> "CompiledInverse":
        """Another one of the same matrix."""
        twin = copy(self)
        twin._matrix, twin._turned = self._matrix.copy(), self._turned.copy()
        twin._columns, twin._rows = self._columns.copy(), self._rows.copy()
        return twin

    def entries(self) -> NDArray[np.uint64]:
        """All of M."""
        self._settle()
        found = self._matrix[: self.size, : self.size]
        return np.where(found < 0.0, found + self._field[0], found).astype(np.uint64)
