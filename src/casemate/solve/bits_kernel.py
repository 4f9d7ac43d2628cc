"""Compiled passes over bits: eight equations at a time, by tables of all 256 sums of eight numbers.

Bit j of a record is bit j % 64 of words[j // 64, record]. Whatever the density, a byte costs one
look in a table, after V. Arlazarov, E. Dinic, M. Kronrod and I. Faradzev, "On economical
construction of the transitive closure of a directed graph", 1970; a word of zeros costs nothing.
The eight tables of a word are 16 KiB, which stay in the first level of cache.
"""

from typing import Any

import numpy as np
from numba import njit

from casemate.solve.rows_kernel import ANY_ORDER


@njit(cache=True)
def add_times(words: Any, point: Any, found: Any) -> None:
    """Add to each bit the values of the records that have it."""
    tables = np.empty(2048)
    for word in range(words.shape[0]):
        tables[:] = 0.0
        for record in range(words.shape[1]):
            left = np.int64(words[word, record])
            if left:
                for byte in range(8):
                    tables[256 * byte + ((left >> (8 * byte)) & 255)] += point[record]
        for byte in range(8):
            _add_eight(tables[256 * byte :], found[64 * word + 8 * byte :])


@njit(cache=True)
def _add_eight(table: Any, found: Any) -> None:
    """Add to each of eight bits what stands at the bytes that have it; the table is used up."""
    half = 128
    for bit in range(7, -1, -1):
        total = 0.0
        for low in range(half):
            total += table[low + half]
            table[low] += table[low + half]
        found[bit] += total
        half >>= 1


@njit(cache=True, fastmath=ANY_ORDER)
def add_transposed(words: Any, weights: Any, found: Any) -> None:
    """Add to each record the weights of the bits that it has."""
    tables = np.empty(2048)
    for word in range(words.shape[0]):
        for byte in range(8):
            _fill(tables[256 * byte :], weights[64 * word + 8 * byte :])
        for record in range(words.shape[1]):
            left = np.int64(words[word, record])
            if left:
                total = 0.0
                for byte in range(8):
                    total += tables[256 * byte + ((left >> (8 * byte)) & 255)]
                found[record] += total


@njit(cache=True)
def _fill(table: Any, weights: Any) -> None:
    """The sum of the weights of the bits of each byte."""
    table[0] = 0.0
    for bit in range(8):
        half = 1 << bit
        for low in range(half):
            table[half + low] = table[low] + weights[bit]


@njit(cache=True)
def add_cell_times(codes: Any, words: Any, bit: Any, point: Any, found: Any) -> None:
    """Add to each cell the values of the records in it that have the bit."""
    word, shift = bit >> 6, np.uint64(bit & 63)
    for record in range(codes.shape[0]):
        if words[word, record] >> shift & np.uint64(1) and codes[record] >= 0:
            found[codes[record]] += point[record]


@njit(cache=True)
def add_cell_transposed(codes: Any, words: Any, bit: Any, weights: Any, found: Any) -> None:
    """Add to each record that has the bit the weight of its cell."""
    word, shift = bit >> 6, np.uint64(bit & 63)
    for record in range(codes.shape[0]):
        if words[word, record] >> shift & np.uint64(1) and codes[record] >= 0:
            found[record] += weights[codes[record]]


@njit(cache=True)
def set_bits(starts: Any, columns: Any, words: Any) -> None:
    """Set bit i of the records that equation i adds up."""
    for i in range(starts.shape[0] - 1):
        bit = np.uint64(1) << np.uint64(i & 63)
        for k in range(starts[i], starts[i + 1]):
            words[i >> 6, columns[k]] |= bit
