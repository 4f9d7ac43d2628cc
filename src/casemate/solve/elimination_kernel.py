"""Compiled loops of elimination modulo a prime of at most 23 bits, in double precision.

Residues are whole numbers from about -p/2 to p/2, kept as doubles: rounding the quotient may leave
one a few units beyond, and zero is always 0. Every intermediate stays below 2^53.
"""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def reduce_into(target: Any, product: Any, prime: Any) -> None:
    """Subtract a product from the target modulo the prime."""
    inverse = 1.0 / prime
    for i in range(target.shape[0]):
        for j in range(target.shape[1]):
            number = target[i, j] - product[i, j]
            target[i, j] = number - np.rint(number * inverse) * prime


@njit(cache=True)
def _subtract(target: Any, factor: Any, source: Any, prime: Any) -> None:
    inverse = 1.0 / prime
    for j in range(target.shape[0]):
        number = target[j] - factor * source[j]
        target[j] = number - np.rint(number * inverse) * prime


@njit(cache=True)
def _inverse_of(number: Any, prime: Any) -> Any:
    """By Fermat: the (p-2)-th power."""
    modulus = np.int64(prime)
    base, exponent, power = np.int64(number) % modulus, modulus - 2, np.int64(1)
    while exponent:
        if exponent & 1:
            power = power * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return float(power)


@njit(cache=True)
def _first_nonzero(row: Any, start: Any) -> Any:
    for j in range(start, row.shape[0]):
        if row[j] != 0.0:
            return j
    return -1


@njit(cache=True)
def reduce_panel(rows: Any, left: Any, prime: Any, made: Any) -> Any:
    """Bring a few rows to reduced echelon form in place; the pivot of each, or -1 where none.

    `made` starts as the identity and becomes the combinations of rows that were taken.
    """
    pivots = np.full(rows.shape[0], -1, np.int64)
    for i in range(rows.shape[0]):
        row = rows[i]
        for a in range(i):
            if pivots[a] >= 0 and row[pivots[a]] != 0.0:
                factor = row[pivots[a]]
                _subtract(row[left:], factor, rows[a, left:], prime)
                _subtract(made[i], factor, made[a], prime)
        found = _first_nonzero(row, left)
        if found < 0:
            continue
        scale = 1.0 - _inverse_of(row[found], prime)  # x - (1 - 1/v) x = x/v
        _subtract(row[left:], scale, row[left:], prime)
        _subtract(made[i], scale, made[i], prime)
        for a in range(i):
            factor = rows[a, found]
            if pivots[a] >= 0 and factor != 0.0:
                _subtract(rows[a, left:], factor, row[left:], prime)
                _subtract(made[a], factor, made[i], prime)
        pivots[i] = found
    return pivots


@njit(cache=True)
def swap_columns(matrix: Any, ones: Any, others: Any) -> None:
    """Exchange pairs of columns, one pair after the other."""
    for i in range(matrix.shape[0]):
        for k in range(ones.shape[0]):
            kept = matrix[i, ones[k]]
            matrix[i, ones[k]] = matrix[i, others[k]]
            matrix[i, others[k]] = kept
