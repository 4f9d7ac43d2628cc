"""Arithmetic modulo random secret primes: the primes, and the inverse of a growing square matrix.

The inverse grows by one row and one column at a time, in two implementations of one interface:
Python's integers while the matrix is small, so that a small question never waits for a compiler,
and compiled double precision from then on, modulo a prime of 50 bits.

Guarantee  Equations written without knowing the prime rarely have minors that it divides: one of
           `size` bits is divisible by at most size / (bits - 1) primes of that many bits.
Exact      Miller-Rabin with the first twelve primes as bases decides every number below 3.1e23
           (Sorenson and Webster, "Strong Pseudoprimes to Twelve Prime Bases", arXiv:1509.00864).
"""

import math
import os
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled, intrinsic

RandomBytes = Callable[[int], bytes]
"""Gives that many random bytes; `os.urandom` wherever None is passed instead."""

WIDE_PRIME_BITS = 50
"""Bits of a prime whose residues, a few of them added up, are exact in double precision."""

NARROW_PRIME_BITS = 23
"""Bits of a prime whose products, 96 of them added up, are exact in double precision."""

_MILLER_RABIN_BASES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_MOST_BITS = 64


def random_below(limit: int, random: RandomBytes | None = None) -> int:
    """Draw an integer uniformly from 0 to limit - 1."""
    draw = random or os.urandom
    bits = (limit - 1).bit_length()
    size, spare = -(-bits // 8), -bits % 8
    while True:
        value = int.from_bytes(draw(size)) >> spare
        if value < limit:
            return value


def random_prime(bits: int, random: RandomBytes | None = None) -> int:
    """Draw a prime uniformly from those that have exactly this many bits.

    >>> random_prime(2) in {2, 3}
    True
    """
    if not 2 <= bits <= _MOST_BITS:
        raise ValueError(f"a prime has 2 to {_MOST_BITS} bits here, got {bits}")
    low = 1 << (bits - 1)
    while True:
        candidate = low + random_below(low, random)
        if is_prime(candidate):
            return candidate


def random_primes(count: int, bits: int, random: RandomBytes | None = None) -> tuple[int, ...]:
    """Draw different primes of this many bits."""
    found: dict[int, None] = {}
    while len(found) < count:
        found[random_prime(bits, random)] = None
    return tuple(found)


def is_prime(number: int) -> bool:
    """Whether a number below 2^64 is prime."""
    if number >> _MOST_BITS:
        raise ValueError(f"primality is decided below 2^{_MOST_BITS} only")
    if number < 2 or number in _MILLER_RABIN_BASES:
        return number in _MILLER_RABIN_BASES
    if math.gcd(number, math.prod(_MILLER_RABIN_BASES)) > 1:
        return False
    return not any(_proves_composite(base, number) for base in _MILLER_RABIN_BASES)


def _proves_composite(base: int, number: int) -> bool:
    """Whether `base` proves that an odd number is composite."""
    twos = ((number - 1) & (1 - number)).bit_length() - 1
    power = pow(base, (number - 1) >> twos, number)
    if power in (1, number - 1):
        return False
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return False
    return True


# The inverse, in Python's integers --------------------------------------------------------------


SMALL_MATRIX_ROWS = 96
"""Sizes up to this one are left to Python's integers."""

Doubles = NDArray[np.float64]

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

    def times_inverse(self, row: Vector) -> Vector:
        """The row times M."""

    def inverse_times(self, column: Vector) -> Vector:
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

    def times_inverse(self, row: Vector) -> Vector:
        """The row times M."""
        return self.inverse_times(row, self._entries.T)

    def inverse_times(self, column: Vector, entries: NDArray[Any] | None = None) -> Vector:
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


# In compiled double precision -------------------------------------------------------------------
# Residues are whole numbers in double precision, which vectors of any processor multiply. The
# rounded product h of two of them and the rest l = fma(a, b, -h) are together exact; so is h - q p
# for the rounded quotient q, because it is a whole number below 2^53. Growing is lazy: each new row
# and column is one term of rank one beside the matrix, and so many at a time are worked into it, so
# that the matrix is read and written once for all of them.


PENDING_TERMS = 32
"""Terms of rank one that are kept beside the matrix."""

_STRIPE_LINES = 8  # lines of a matrix whose columns are whole lines of the cache


class PrimeField(NamedTuple):
    """A prime and its inverse, as doubles."""

    prime: float
    inverse: float


class RankOneTerms(NamedTuple):
    """Columns and rows, as lines of two matrices; the k-th of both are one term."""

    columns: Doubles
    rows: Doubles


def _emit_fma(_: Any, one: Any, other: Any, addend: Any) -> Any:  # types and values of Numba
    """How to compile one * other + addend with a single rounding."""
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(one, other, addend), generate


_fma: Callable[[float, float, float], float] = intrinsic(_emit_fma)


@compiled
def _reduce(number: float, field: PrimeField) -> float:
    """A whole number below 2^53 as a residue between -p/2 and p/2."""
    return _fma(-np.rint(number * field.inverse), field.prime, number)


@compiled
def _product(one: float, share: float, other: float, prime: float) -> float:
    """A residue between -p and p; `share` is one / p, and both factors are below p."""
    high = one * other
    return _fma(-np.rint(share * other), prime, high) + _fma(one, other, -high)


@compiled
def _nonnegative(number: float, field: PrimeField) -> float:
    """A whole number below 2^53 as a residue between 0 and p."""
    residue = _reduce(number, field)
    return residue + field.prime if residue < 0.0 else residue


@compiled
def _subtract_multiple(
    vector: Doubles, factor: float, direction: Doubles, field: PrimeField
) -> Doubles:
    """The vector less the factor times the direction."""
    prime, inverse = field
    result = np.empty_like(vector)
    share = factor * inverse
    for j in range(vector.shape[0]):
        result[j] = _nonnegative(vector[j] - _product(factor, share, direction[j], prime), field)
    return result


@compiled
def _dot(one: Doubles, other: Doubles, places: NDArray[np.int64], field: PrimeField) -> float:
    """The sum of the products at some places."""
    prime, inverse = field
    total = 0.0
    for j in places:
        total = _reduce(total + _product(one[j], one[j] * inverse, other[j], prime), field)
    return total


@compiled
def _add_four(
    target: Doubles,
    factors: tuple[float, float, float, float],
    lines: tuple[Doubles, Doubles, Doubles, Doubles],
    field: PrimeField,
) -> None:
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
        target[j] = _reduce(total, field)


@compiled
def _add_lines(
    target: Doubles,
    factors: Doubles,
    matrix: Doubles,
    places: NDArray[np.int64],
    field: PrimeField,
) -> None:
    """Add the lines of a matrix at some places, a multiple of four, each times its factor."""
    size = target.shape[0]
    for k in range(0, places.shape[0], 4):
        p, q, r, s = places[k], places[k + 1], places[k + 2], places[k + 3]
        four = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        lines = matrix[p, :size], matrix[q, :size], matrix[r, :size], matrix[s, :size]
        _add_four(target, four, lines, field)


@compiled
def _row_product(
    weights: Doubles, matrix: Doubles, terms: RankOneTerms, field: PrimeField
) -> Doubles:
    """The weights times the matrix and the terms columns[k] rows[k] beside it."""
    size = weights.shape[0]
    total = np.zeros(size)
    chosen = np.flatnonzero(weights)
    spare = -len(chosen) % 4  # the first line again, times 0
    places = np.append(chosen, np.zeros(spare, np.int64))
    _add_lines(total, np.append(weights[chosen], np.zeros(spare)), matrix, places, field)
    every = np.arange(terms.columns.shape[0])
    products = np.array([_dot(weights, terms.columns[k], chosen, field) for k in every])
    _add_lines(total, products, terms.rows, every, field)
    for j in range(size):
        total[j] = _nonnegative(total[j], field)
    return total


@compiled
def _add_terms(
    matrix: Doubles, transpose: Doubles, terms: RankOneTerms, size: int, field: PrimeField
) -> None:
    """Add the terms columns[k] rows[k] to the matrix, and write its transpose."""
    columns, rows = terms
    every = np.arange(rows.shape[0])
    for start in range(0, size, _STRIPE_LINES):
        stop = min(start + _STRIPE_LINES, size)
        for i in range(start, stop):
            _add_lines(matrix[i, :size], columns[:, i], rows, every, field)
        for j in range(size):  # while the stripe is in the cache
            for i in range(start, stop):
                transpose[j, i] = matrix[i, j]


def _pad(matrix: Doubles, width: int) -> Doubles:
    """The matrix in the corner of a larger one."""
    wide = np.zeros((width, width))
    wide[: len(matrix), : len(matrix)] = matrix
    return wide


class CompiledInverse:
    """The interface in double precision; it takes over the entries of a smaller one.

    M is `matrix` and the terms columns[k] rows[k]; `transpose` is the transpose of the matrix, so
    that M times a column with few entries reads only a few of its lines too.
    """

    def __init__(self, prime: int, entries: NDArray[Any]) -> None:
        if prime.bit_length() != WIDE_PRIME_BITS:
            raise ValueError(f"compiled arithmetic needs a prime of {WIDE_PRIME_BITS} bits")
        self.prime, self.size = prime, len(entries)
        self._field = PrimeField(float(prime), 1.0 / prime)
        self._hold(entries.astype(np.float64), entries.T.astype(np.float64))

    def _hold(self, matrix: Doubles, transpose: Doubles) -> None:
        """Take over a matrix and its transpose, with room for more terms and no terms yet."""
        width = len(matrix)
        if self.size + PENDING_TERMS > width:
            width = 2 * (self.size + PENDING_TERMS)
            matrix, transpose = _pad(matrix, width), _pad(transpose, width)
        self._matrix, self._transpose = matrix, transpose
        self._columns, self._rows = np.zeros((2, PENDING_TERMS, width))
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

    def times_inverse(self, row: Vector) -> Vector:
        """The row times M."""
        terms = RankOneTerms(self._columns[self._in_fours], self._rows[self._in_fours])
        return _row_product(row, self._matrix, terms, self._field)

    def inverse_times(self, column: Vector) -> Vector:
        """M times the column."""
        terms = RankOneTerms(self._rows[self._in_fours], self._columns[self._in_fours])
        return _row_product(column, self._transpose, terms, self._field)

    @property
    def _in_fours(self) -> slice:
        """The pending terms, and as many empty ones as make them a multiple of four."""
        return slice(-(-self._pending // 4) * 4)

    def minus(self, vector: Vector, direction: Vector, factor: int) -> Vector:
        """The vector less `factor` times the direction."""
        return _subtract_multiple(vector, float(factor), direction, self._field)

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
        if self._pending == PENDING_TERMS:
            self._fold_terms()

    def _fold_terms(self) -> None:
        """Work the terms into the matrix."""
        terms = RankOneTerms(self._columns, self._rows)
        _add_terms(self._matrix, self._transpose, terms, self.size, self._field)
        self._hold(self._matrix, self._transpose)

    def copy(self) -> "CompiledInverse":
        """Another one of the same matrix."""
        twin = copy(self)
        twin._matrix, twin._transpose = self._matrix.copy(), self._transpose.copy()
        twin._columns, twin._rows = self._columns.copy(), self._rows.copy()
        return twin

    def entries(self) -> NDArray[np.uint64]:
        """All of M."""
        self._fold_terms()
        found = self._matrix[: self.size, : self.size]
        return np.where(found < 0.0, found + self._field.prime, found).astype(np.uint64)
