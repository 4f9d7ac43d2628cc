"""Compiled arithmetic modulo a prime of 61 bits, for matrices too large for Python's integers.

A product of two residues needs its upper 64 bits too, which one machine instruction gives. Any two
residues are multiplied by Barrett's method; a factor f that is used many times carries
floor(f 2^64 / p) along (Shoup's trick), and then each product costs three multiplications.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # comes with numba and is as untyped
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from casemate.solve.modular import Coefficients, Vector
from casemate.solve.primes import WIDE

_SHIFT = np.uint64(WIDE - 1)
_UNSHIFT = np.uint64(65 - WIDE)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_HALF = np.uint64(32)
_MASK = np.uint64(2**32 - 1)


def _upper_half(_: Any, one: Any, other: Any) -> Any:
    """How to compile the upper half of a product of 64-bit integers."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        first, second = (builder.zext(each, wide) for each in arguments)
        product = builder.mul(first, second)
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(one, other), generate


_upper: Any = intrinsic(_upper_half)


@njit(cache=True)
def _product(one: Any, other: Any, field: Any) -> Any:
    """The product of two residues; the estimated quotient is at most 3 too small."""
    prime, barrett = field
    low = one * other
    quotient = _upper((_upper(one, other) << _UNSHIFT) | (low >> _SHIFT), barrett)
    rest = low - quotient * prime
    while rest >= prime:
        rest -= prime
    return rest


@njit(cache=True)
def _companion(factor: Any, field: Any) -> Any:
    """floor(factor 2^64 / prime), first estimated from half of it so that nothing overflows."""
    prime, barrett = field
    quotient = _upper(factor << (_UNSHIFT - _ONE), barrett) << _ONE
    rest = _NONE - quotient * prime
    while rest >= prime:
        rest -= prime
        quotient += _ONE
    return quotient


@njit(cache=True)
def _add_multiple(target: Any, factor: Any, source: Any, field: Any) -> None:
    """Add factor times the source to the target."""
    prime = field[0]
    if factor == _ONE or factor == prime - _ONE:
        for j in range(source.shape[0]):
            term = source[j] if factor == _ONE else prime - source[j]
            total = target[j] + term
            target[j] = total - prime if total >= prime else total
        return
    companion = _companion(factor, field)
    for j in range(source.shape[0]):
        term = factor * source[j] - _upper(companion, source[j]) * prime
        term = term - prime if term >= prime else term
        total = target[j] + term
        target[j] = total - prime if total >= prime else total


@njit(cache=True)
def _dot(one: Any, other: Any, field: Any) -> Any:
    prime = field[0]
    total = _NONE
    for j in range(one.shape[0]):
        if one[j] == _NONE:
            continue
        total += other[j] if one[j] == _ONE else _product(one[j], other[j], field)
        total = total - prime if total >= prime else total
    return total


@njit(cache=True)
def _left(row: Any, matrix: Any, field: Any) -> Any:
    size = row.shape[0]
    total = np.zeros(size, np.uint64)
    for i in range(size):
        if row[i] != _NONE:
            _add_multiple(total, row[i], matrix[i, :size], field)
    return total


@njit(cache=True)
def _signed(vector: Any, prime: Any) -> Any:
    """Residues between -p/2 and p/2."""
    result = np.empty(vector.shape[0], np.int64)
    for i in range(vector.shape[0]):
        large = vector[i] > prime >> _ONE
        result[i] = -np.int64(prime - vector[i]) if large else np.int64(vector[i])
    return result


@njit(cache=True)
def _right_small(matrix: Any, column: Any, field: Any) -> Any:
    """M times a column whose entries times their number stay below 2^30: sums of 32-bit halves."""
    prime = field[0]
    size = column.shape[0]
    total = np.empty(size, np.uint64)
    for i in range(size):
        low, high = np.int64(0), np.int64(0)
        row = matrix[i]
        for k in range(size):
            low += column[k] * np.int64(row[k] & _MASK)
            high += column[k] * np.int64(row[k] >> _HALF)
        shifted = _product(_residue(high, prime), _ONE << _HALF, field)
        added = shifted + _residue(low, prime)
        total[i] = added - prime if added >= prime else added
    return total


@njit(cache=True)
def _residue(number: Any, prime: Any) -> Any:
    """A signed 64-bit integer as a residue."""
    if number >= 0:
        return np.uint64(number) % prime
    rest = np.uint64(-number) % prime
    return prime - rest if rest else rest


@njit(cache=True)
def _right(matrix: Any, column: Any, field: Any) -> Any:
    size = column.shape[0]
    signed = _signed(column, field[0])
    if np.abs(signed).max() < (1 << 30) // size:
        return _right_small(matrix, signed, field)
    total = np.empty(size, np.uint64)
    for i in range(size):
        total[i] = _dot(column, matrix[i, :size], field)
    return total


@njit(cache=True)
def _border(matrix: Any, row: Any, column: Any, scale: Any, field: Any) -> None:
    """M + (M c)(a M)/s, and the new row and column of the inverse."""
    prime = field[0]
    size = row.shape[0]
    for i in range(size):
        if column[i] != _NONE:
            factor = _product(column[i], scale, field)
            _add_multiple(matrix[i, :size], factor, row, field)
            matrix[i, size] = prime - factor
    _add_multiple(matrix[size, :size], prime - scale, row, field)
    matrix[size, size] = scale


class CompiledInverse:
    """The interface in 64-bit integers; it takes over the entries of a smaller one."""

    def __init__(self, prime: int, entries: NDArray[np.uint64]) -> None:
        if prime.bit_length() != WIDE:
            raise ValueError(f"compiled arithmetic needs a prime of {WIDE} bits")
        self.prime, self.size = prime, len(entries)
        self._field = np.uint64(prime), np.uint64((1 << (2 * WIDE + 2)) // prime)
        self._matrix = np.zeros((2 * self.size, 2 * self.size), np.uint64)
        self._matrix[: self.size, : self.size] = entries

    def vector(self, numbers: Coefficients) -> Vector:
        """Integers as residues."""
        given = np.asarray(numbers)
        if given.dtype == np.uint64:
            return given % self._field[0]
        wide = given if given.dtype == object else given.astype(np.int64)
        residues: Vector = np.mod(wide, self.prime).astype(np.uint64)
        return residues

    def dot(self, one: Vector, other: Vector) -> int:
        """The sum of products."""
        return int(_dot(one, other, self._field))

    def left(self, row: Vector) -> Vector:
        """The row times M."""
        product: Vector = _left(row, self._matrix, self._field)
        return product

    def right(self, column: Vector) -> Vector:
        """M times the column."""
        product: Vector = _right(self._matrix, column, self._field)
        return product

    def minus(self, vector: Vector, direction: Vector, factor: int) -> Vector:
        """The vector less `factor` times the direction."""
        result = vector.copy()
        _add_multiple(result, np.uint64(-factor % self.prime), direction, self._field)
        return result

    def border(self, row: Vector, column: Vector, corner: int) -> None:
        """Grow by one: given a M and M c of the new row a, column c, and d - a M c of corner d."""
        if self.size == len(self._matrix):
            wider = np.zeros((2 * self.size, 2 * self.size), np.uint64)
            wider[: self.size, : self.size] = self._matrix
            self._matrix = wider
        scale = np.uint64(pow(corner, -1, self.prime))
        _border(self._matrix, row, column, scale, self._field)
        self.size += 1

    def entries(self) -> NDArray[np.uint64]:
        """All of M."""
        return self._matrix[: self.size, : self.size]
