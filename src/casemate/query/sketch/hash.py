"""A keyed hash of records that NumPy, the compiled passes and every SQL engine compute alike.

A record's name, a whole number, is mixed in two lanes of 31 bits: a product of 62 bits is folded
into its lower half by XOR, twice. No intermediate passes 63 bits, so no engine overflows or rounds.
The folds are what makes it a hash: sums and remainders alone would let second differences of names
add up to nothing.

Guarantee  The keys are random and secret, so nobody can choose queries whose fingerprints cancel;
           that combinations which nobody chose cancel is taken to have the chance of random numbers
           of 38 bits, and a claim that rests on it is confirmed without it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.exact import RandomBytes

HALF = 31
LOW = 2**HALF - 1
SMALL = 7
"""Bits of the second lane that belong to the fingerprint; the first has 31."""

MOST_ADDED = 2**24
"""So many fingerprints certainly add up within 63 bits."""

NAME_BITS = 62
FACTORS, PLACES = (0, 1, 3), 5


@dataclass(frozen=True, eq=False)
class HashKeys:
    """The secret numbers of the two lanes: factors of 31 bits, odd, and terms."""

    lanes: NDArray[np.int64]  # 2 x 5

    @classmethod
    def drawn(cls, random: RandomBytes | None = None) -> Self:
        """Keys of their own for one audit."""
        raw = (random or os.urandom)(8 * 2 * PLACES)
        lanes = (np.frombuffer(raw, np.uint64).reshape(2, PLACES) & np.uint64(LOW)).astype(np.int64)
        lanes[:, FACTORS] |= 2 ** (HALF - 1) + 1
        return cls(lanes)

    def __repr__(self) -> str:
        return "Keys(secret)"


def names(records: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers for the records: their own, or their places where they are something else."""
    if records.dtype == np.int64:
        found: NDArray[np.int64] = records
        return found
    return np.arange(len(records), dtype=np.int64)


def lane(name: NDArray[np.int64], key: NDArray[np.int64]) -> NDArray[np.int64]:
    """One lane of the hash: 31 bits."""
    mixed = (name & LOW) * key[0] + ((name >> HALF) & LOW) * key[1] + key[2]
    mixed = (mixed & LOW) ^ (mixed >> HALF)
    mixed = mixed * key[3] + key[4]
    folded: NDArray[np.int64] = ((mixed & LOW) ^ (mixed >> HALF)) & LOW
    return folded


def fingerprints(name: NDArray[np.int64], keys: HashKeys) -> NDArray[np.int64]:
    """What each record adds to the total of an equation that it is in: from 1 to 2^38.

    >>> fixed = Keys(np.ones((2, 5), np.int64))
    >>> fingerprints(np.array([1, 2, 3]), fixed).tolist()
    [388, 517, 646]
    """
    small = lane(name, keys.lanes[1]) & ((1 << SMALL) - 1)
    return (lane(name, keys.lanes[0]) << SMALL) + small + 1


# The same in SQL ------------------------------------------------------------------------------

WHOLE = {
    "duckdb": "CAST('0x' || substr(md5(CAST({} AS VARCHAR)), 1, 15) AS BIGINT)",
    "postgres": "CAST(CAST('x' || substr(md5(CAST({} AS text)), 1, 15) AS bit(60)) AS bigint)",
}
"""A name of another type as a whole number."""

XOR = {"duckdb": "xor({}, {})", "postgres": "({} # {})"}
FENCE = {"duckdb": "", "postgres": " OFFSET 0"}
"""What keeps an engine from writing an inner expression out wherever it is used."""


def hashed(
    inner: str, keys: HashKeys, dialect: str, whole: bool, columns: Sequence[str] = ()
) -> str:
    """A SELECT of some columns and the two lanes, y and w, of the records r of another SELECT."""
    name = "r" if whole else WHOLE[dialect].format("r")
    kept = "".join(f"{column}, " for column in columns)
    first, second = keys.lanes.tolist()
    mixed = f"SELECT {kept}{_mixed('x', first)} AS y, {_mixed('x', second)} AS w FROM "
    again = f"SELECT {kept}{_again('y', first, dialect)} AS y, "
    again += f"{_again('w', second, dialect)} AS w FROM "
    last = (
        f"SELECT {kept}{_folded('y', dialect)} & {LOW} AS y, {_folded('w', dialect)} & {LOW} AS w"
    )
    named = f"SELECT {kept}{name} & {2**NAME_BITS - 1} AS x FROM ({inner}) AS h"
    fence = FENCE[dialect]
    return f"{last} FROM ({again} ({mixed} ({named}) AS i{fence}) AS j{fence}) AS k{fence}"


def _mixed(name: str, key: Sequence[int]) -> str:
    return f"({name} & {LOW}) * {key[0]} + (({name} >> {HALF}) & {LOW}) * {key[1]} + {key[2]}"


def _folded(name: str, dialect: str) -> str:
    return XOR[dialect].format(f"({name} & {LOW})", f"({name} >> {HALF})")


def _again(name: str, key: Sequence[int], dialect: str) -> str:
    return f"{_folded(name, dialect)} * {key[3]} + {key[4]}"
