"""The fewest of given queries that determine one record, by exhaustive search.

Method     A combination of m queries is the record iff, once m - 2 of them are eliminated, two of
           the others are parallel except in the record's own coordinate. So the search goes over
           m - 2 queries and finds the last two by sorting. The other coordinates are replaced by
           m + 4 random combinations of them modulo a prime: what is parallel stays so.
Guarantee  A plan of at most 14 queries that is there is missed only if m + 4 random combinations
           of a vector that is not 0 all are: below 1e-28 for each vector. For its coefficients are
           quotients of determinants of 0/1 matrices, which are below the prime. One that is found
           is solved for and checked in exact arithmetic.
Cost       About N^(m-2) / (m-2)! steps, each linear in the number N of queries.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_boxes import Effort
from casemate.solve.shortest import on_equations
from casemate.solve.system import System

PRIME = 65_521
"""Above every determinant of a 0/1 matrix with up to 14 rows; its inverses fit in a small table."""

MORE = 4
"""Coordinates beyond the length of a plan."""

_MIX = np.array([PRIME**k % 2**61 | 1 for k in range(1, 64)], np.int64)
Rows = NDArray[np.int64]


class Fewest:
    """Exhaustive search among the rows of a 0/1 matrix: queries by records."""

    def __init__(self, matrix: NDArray[np.bool_], random: np.random.Generator) -> None:
        self._first, self._kind = different_columns(matrix, random)
        self._sizes = np.bincount(self._kind)
        self._matrix, self._random = matrix, random

    def of(self, length: int, target: int, effort: Effort) -> dict[int, Fraction] | None:
        """Exactly so many rows, with coefficients, that add up to the target; None if none do.

        No fewer may do: ask for fewer first.
        """
        if length == 1:
            return self._single(target)
        rows = self._projected(length + MORE, target)
        for chosen in self._pairs(rows, length, effort):
            found = self._solved(chosen, target)
            if found is not None:
                return found
        return None

    def steps(self, length: int) -> int:
        """How many steps a search takes at most."""
        return len(self._matrix) * math.comb(len(self._matrix), max(0, length - 2))

    def _single(self, target: int) -> dict[int, Fraction] | None:
        alone = self._matrix[:, target] & (self._matrix.sum(axis=1) == 1)
        return {int(np.flatnonzero(alone)[0]): Fraction(1)} if alone.any() else None

    def _projected(self, width: int, target: int) -> Rows:
        """Random combinations of the other columns, and the target's own column last."""
        kind = self._kind[target]
        others = self._first if self._sizes[kind] > 1 else np.delete(self._first, kind)
        weights = self._random.integers(0, PRIME, (len(others), width))
        mixed = self._matrix[:, others].astype(np.int64) @ weights % PRIME
        return np.column_stack([mixed, self._matrix[:, target].astype(np.int64)])

    def _pairs(self, rows: Rows, length: int, effort: Effort) -> Iterator[tuple[int, ...]]:
        """Rows that are a plan together, as far as the prime can tell."""
        effort.step(len(rows))
        if length == 2:
            yield from _parallel(rows)
            return
        for first in range(len(rows) - length + 1):
            line = rows[first]
            pivots = np.flatnonzero(line[:-1])
            if not len(pivots):
                continue  # it depends on those eliminated before
            pivot, later = int(pivots[0]), rows[first + 1 :]
            scaled = line * pow(int(line[pivot]), -1, PRIME) % PRIME
            left = (later - later[:, pivot, None] * scaled) % PRIME
            for others in self._pairs(left, length - 1, effort):
                yield first, *(first + 1 + other for other in others)

    def _solved(self, rows: tuple[int, ...], target: int) -> dict[int, Fraction] | None:
        """The coefficients, if these rows are a plan."""
        part = self._matrix[list(rows)]
        row, column = np.nonzero(part)
        system = System(len(rows), part.shape[1], row, column, np.ones(len(row), np.int64))
        found = on_equations(system, range(len(rows)), {target: 1})
        if found is None:
            return None
        weights = found.coefficients.items()
        return {rows[i]: Fraction(weight, found.divisor) for i, weight in weights}


def different_columns(
    matrix: NDArray[np.bool_], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One column of each kind of a 0/1 matrix, and the kind of each: told apart by random sums."""
    weights = random.integers(0, 2**64, len(matrix), np.uint64)
    sums = np.zeros(matrix.shape[1], np.uint64)
    for row, weight in zip(matrix, weights, strict=True):
        sums[row] += weight
    found = np.unique(sums, return_index=True, return_inverse=True)
    return found[1].astype(np.int64), found[2].astype(np.int64)


def _parallel(rows: Rows) -> Iterator[tuple[int, int]]:
    """Pairs of rows that are parallel except in the last coordinate."""
    places = np.flatnonzero(rows[:, :-1].any(axis=1))
    lines = rows[places]
    pivot = (lines[:, :-1] != 0).argmax(axis=1)
    leading = lines[np.arange(len(lines)), pivot]
    scaled = lines * _inverses()[leading][:, None] % PRIME
    keys = scaled[:, :-1] @ _MIX[: scaled.shape[1] - 1]  # modulo 2^64
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[:1]] - 1))
    head = np.repeat(starts, np.diff(starts, append=len(order)))
    others = np.flatnonzero(scaled[order, -1] != scaled[order[head], -1])
    others = others[np.unique(head[others], return_index=True)[1]]  # the first of each direction
    pairs = zip(places[order[head[others]]].tolist(), places[order[others]].tolist(), strict=True)
    yield from sorted(pairs)


@cache
def _inverses() -> Rows:
    """The inverse of each number modulo the prime, by its power p - 2."""
    power, exponent = np.arange(PRIME, dtype=np.int64), PRIME - 2
    result = np.ones_like(power)
    while exponent:
        if exponent & 1:
            result = result * power % PRIME
        power, exponent = power * power % PRIME, exponent >> 1
    return result
