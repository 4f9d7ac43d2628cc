"""Compiled loops over records: the only place where a record is touched one by one."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Words = NDArray[np.uint64]


@njit(cache=True)
def restrict(words: Any, codes: Any, table: Any, places: Any) -> None:
    """AND each record's words with the row of the table that its code names.

    words is records x words, table is codes x places; `places` says which word each column of the
    table belongs to.
    """
    for record in range(words.shape[0]):
        code = codes[record]
        for j in range(places.shape[0]):
            words[record, places[j]] &= table[code, j]


@njit(cache=True)
def gather(words: Any, sources: Any, targets: Any) -> None:
    """Set bit `target` of each record that has bit `source`, for each pair."""
    one = np.uint64(1)
    for record in range(words.shape[0]):
        for j in range(sources.shape[0]):
            source, target = sources[j], targets[j]
            bit = (words[record, source >> 6] >> np.uint64(source & 63)) & one
            words[record, target >> 6] |= bit << np.uint64(target & 63)


@njit(cache=True)
def count_bits(words: Any, totals: Any) -> None:
    """Add to each total the number of records that have its bit."""
    one = np.uint64(1)
    for record in range(words.shape[0]):
        for word in range(words.shape[1]):
            left = words[record, word]
            base = word << 6
            while left:
                low = left & (~left + one)
                position = 0
                probe = low
                while probe > one:
                    probe >>= one
                    position += 1
                totals[base + position] += 1
                left ^= low


def pack(bits: NDArray[np.bool_]) -> Words:
    """Rows of booleans as rows of 64-bit words, lowest bit first."""
    rows, columns = bits.shape
    wide = np.zeros((rows, -(-columns // 64) * 64), np.uint8)
    wide[:, :columns] = bits
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)
