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
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.exact import RandomBytes

LANE_BITS = 31
LANE_MASK = 2**LANE_BITS - 1
SECOND_LANE_BITS = 7
"""Bits of the second lane that belong to the fingerprint; the first has 31."""


Number = TypeVar("Number", int, NDArray[np.int64])


def lane(name: Number, key: NDArray[np.int64]) -> Number:
    """One lane of the hash: 31 bits."""
    low, high = name & LANE_MASK, (name >> LANE_BITS) & LANE_MASK
    mixed: Number = low * key[0] + high * key[1] + key[2]
    mixed = (mixed & LANE_MASK) ^ (mixed >> LANE_BITS)
    mixed = mixed * key[3] + key[4]
    folded: Number = ((mixed & LANE_MASK) ^ (mixed >> LANE_BITS)) & LANE_MASK
    return folded


def join_lanes(first: Number, second: Number) -> Number:
    """The fingerprint of a record with these two lanes: from 1 to 2^38."""
    return (first << SECOND_LANE_BITS) + (second & ((1 << SECOND_LANE_BITS) - 1)) + 1


_lane, _join_lanes = compiled(lane), compiled(join_lanes)


@compiled
def fingerprint(name: int, lanes: NDArray[np.int64]) -> int:
    """The same number as `fingerprints` gives."""
    return _join_lanes(_lane(name, lanes[0]), _lane(name, lanes[1]))


MAX_ADDED_FINGERPRINTS = 2**24
"""So many fingerprints certainly add up within 63 bits."""

NAME_BITS = 62
FACTOR_PLACES, NUMBERS_PER_LANE = (0, 1, 3), 5


@dataclass(frozen=True, eq=False)
class HashKeys:
    """The secret numbers of the two lanes: factors of 31 bits, odd, and terms."""

    lanes: NDArray[np.int64]  # 2 x 5

    @classmethod
    def draw(cls, random: RandomBytes | None = None) -> Self:
        """Keys of their own for one audit."""
        raw = (random or os.urandom)(8 * 2 * NUMBERS_PER_LANE)
        lanes = np.frombuffer(raw, np.int64).reshape(2, NUMBERS_PER_LANE) & LANE_MASK
        lanes[:, FACTOR_PLACES] |= 2 ** (LANE_BITS - 1) + 1
        return cls(lanes)

    def __repr__(self) -> str:
        return "Keys(secret)"


def names(records: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers for the records: their own, or their places where they are something else."""
    if records.dtype == np.int64:
        found: NDArray[np.int64] = records
        return found
    return np.arange(len(records), dtype=np.int64)


def fingerprints(name: NDArray[np.int64], keys: HashKeys) -> NDArray[np.int64]:
    """What each record adds to the total of an equation that it is in.

    >>> fixed = HashKeys(np.ones((2, 5), np.int64))
    >>> fingerprints(np.array([1, 2, 3]), fixed).tolist()
    [388, 517, 646]
    """
    return join_lanes(lane(name, keys.lanes[0]), lane(name, keys.lanes[1]))


# The same in SQL ------------------------------------------------------------------------------

NAME_TO_INTEGER = {
    "duckdb": "CAST('0x' || substr(md5(CAST({} AS VARCHAR)), 1, 15) AS BIGINT)",
    "postgres": "CAST(CAST('x' || substr(md5(CAST({} AS text)), 1, 15) AS bit(60)) AS bigint)",
}
"""A name of another type as a whole number."""

XOR = {"duckdb": "xor({}, {})", "postgres": "({} # {})"}
FENCE = {"duckdb": "", "postgres": " OFFSET 0"}
"""What keeps an engine from writing an inner expression out wherever it is used."""


def hash_lanes(
    inner: str, keys: HashKeys, dialect: str, whole: bool, columns: Sequence[str] = ()
) -> str:
    """A SELECT of some columns and the two lanes, y and w, of the records r of another SELECT."""
    name = "r" if whole else NAME_TO_INTEGER[dialect].format("r")
    steps = [[f"{name} & {2**NAME_BITS - 1} AS x"], [], [], []]
    for column, key in zip("yw", keys.lanes.tolist(), strict=True):
        folded = XOR[dialect].format(f"({column} & {LANE_MASK})", f"({column} >> {LANE_BITS})")
        halves = (f"(x & {LANE_MASK})", f"((x >> {LANE_BITS}) & {LANE_MASK})")
        steps[1].append(f"{halves[0]} * {key[0]} + {halves[1]} * {key[1]} + {key[2]} AS {column}")
        steps[2].append(f"{folded} * {key[3]} + {key[4]} AS {column}")
        steps[3].append(f"{folded} & {LANE_MASK} AS {column}")
    for number, step in enumerate(steps):
        fence = FENCE[dialect] if number else ""
        inner = f"SELECT {', '.join([*columns, *step])} FROM ({inner}) AS h{number}{fence}"
    return inner
