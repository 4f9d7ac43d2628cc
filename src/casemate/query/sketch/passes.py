"""Compiled passes over coded records: combinations of equations evaluated record by record.

A record's codes name one row of bits each; their AND, in cache and never stored, says which
predicates select it. A pass adds up weights over those predicates (a combination of equations at
this record) and, the other way round, the record's fingerprint into a total for each predicate.

`shape` is (layout, slots, cells). In layout = (codes, chosen, starts, table, joined), the code of a
record in column chosen[k] names row starts[k] + code; the words past the first ones are further
conjunctions, ORed into the words that `joined` names. In slots = (own, flipped) are the bits that
are equations, and those of them that select more than half of the records, of which the zeros are
counted. In cells = (codes, rows, bits, starts), family f of cells is the column rows[f] of codes,
where the predicate of bits[f] holds; its weights and totals begin at starts[f]. The last weight and
the last total are everybody's. A modulus of 0 stands for 2^64.

A keyed hash of records that NumPy, the compiled passes and every SQL engine compute alike.

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

from casemate.compiled import compiled, intrinsic
from casemate.exact import RandomBytes

_ONE = np.uint64(1)
_HALF = 31
_LOW = 2**_HALF - 1
_SMALL = 7


def _trailing_zeros(_: Any, word: Any) -> Any:
    """How to compile the position of the lowest bit that is set."""
    from llvmlite import ir
    from numba import types

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(word), generate


_lowest: Any = intrinsic(_trailing_zeros)


@compiled
def _lane(name: Any, key: Any) -> Any:
    mixed = (name & _LOW) * key[0] + ((name >> _HALF) & _LOW) * key[1] + key[2]
    mixed = (mixed & _LOW) ^ (mixed >> _HALF)
    mixed = mixed * key[3] + key[4]
    return ((mixed & _LOW) ^ (mixed >> _HALF)) & _LOW


@compiled
def _fingerprint(name: Any, keys: Any) -> Any:
    """The same number as `fingerprints` of `sketch_hash` gives."""
    small = _lane(name, keys[1]) & ((1 << _SMALL) - 1)
    return (_lane(name, keys[0]) << _SMALL) + small + 1


@compiled
def _sign(record: Any, layout: Any, words: Any) -> None:
    """The bits of one record."""
    codes, chosen, starts, table, joined = layout
    row = starts[0] + codes[chosen[0], record]
    for word in range(words.shape[0]):
        words[word] = table[row, word]
    for column in range(1, chosen.shape[0]):
        row = starts[column] + codes[chosen[column], record]
        for word in range(words.shape[0]):
            words[word] &= table[row, word]
    first = words.shape[0] - joined.shape[0]
    for further in range(joined.shape[0]):
        words[joined[further]] |= words[first + further]


@compiled
def sign(records: Any, layout: Any, signed: Any) -> None:
    """The bits of these records, a row each."""
    words = np.empty(layout[3].shape[1], np.uint64)
    for place in range(records.shape[0]):
        _sign(records[place], layout, words)
        signed[place] = words[: signed.shape[1]]


@compiled
def _combined(record: Any, words: Any, slots: Any, cells: Any, weights: Any) -> Any:
    """The sum of the weights of what selects the record."""
    own, flipped = slots
    total = weights[weights.shape[0] - 1]
    for word in range(own.shape[0]):
        left = (words[word] ^ flipped[word]) & own[word]
        while left:
            total += weights[(word << 6) + np.int64(_lowest(left))]
            left &= left - _ONE
    codes, rows, bits, starts = cells
    for family in range(rows.shape[0]):
        bit = bits[family]
        if (words[bit >> 6] >> np.uint64(bit & 63)) & _ONE:
            total += weights[starts[family] + codes[rows[family], record]]
    return total


@compiled
def survey(span: Any, shape: Any, weights: Any, totals: Any, names: Any) -> Any:
    """Evaluate a combination at the records of a span, and add their fingerprints to the totals.

    `names` is (names, keys). Gives the records at which the combination is not zero modulo the
    modulus, and what it is there.
    """
    layout, slots, cells = shape
    factors, modulus = weights
    words = np.empty(layout[3].shape[1], np.uint64)
    found = np.empty(span[1] - span[0], np.int64)
    values = np.empty(span[1] - span[0], np.int64)
    count = 0
    for record in range(span[0], span[1]):
        _sign(record, layout, words)
        mark = _fingerprint(names[0][record], names[1])
        total = _counted(record, words, slots, cells, (factors, totals, mark)) % modulus
        if total:
            found[count], values[count] = record, total
            count += 1
    return found[:count].copy(), values[:count].copy()


@compiled
def _counted(record: Any, words: Any, slots: Any, cells: Any, sums: Any) -> Any:
    """The sum of the weights of what selects the record, whose mark goes to the totals of it."""
    own, flipped = slots
    factors, totals, mark = sums
    total = factors[factors.shape[0] - 1]
    totals[totals.shape[0] - 1] += mark
    for word in range(own.shape[0]):
        left = (words[word] ^ flipped[word]) & own[word]
        while left:
            slot = (word << 6) + np.int64(_lowest(left))
            total += factors[slot]
            totals[slot] += mark
            left &= left - _ONE
    codes, rows, bits, starts = cells
    for family in range(rows.shape[0]):
        bit = bits[family]
        if (words[bit >> 6] >> np.uint64(bit & 63)) & _ONE:
            slot = starts[family] + codes[rows[family], record]
            total += factors[slot]
            totals[slot] += mark
    return total


@compiled
def evaluate(records: Any, shape: Any, weights: Any) -> Any:
    """The value of a combination at these records, modulo the modulus."""
    layout, slots, cells = shape
    factors, modulus = weights
    words = np.empty(layout[3].shape[1], np.uint64)
    values = np.empty(records.shape[0], np.int64)
    for place in range(records.shape[0]):
        _sign(records[place], layout, words)
        values[place] = _combined(records[place], words, slots, cells, factors) % modulus
    return values


@compiled
def strays(count: Any, shape: Any, weights: Any) -> Any:
    """The records at which a combination is not zero."""
    layout, slots, cells = shape
    factors, modulus = weights
    words = np.empty(layout[3].shape[1], np.uint64)
    found = np.empty(16, np.int64)
    size = 0
    for record in range(count):
        _sign(record, layout, words)
        total = _combined(record, words, slots, cells, factors)
        if modulus:
            total %= modulus
        if total:
            if size == found.shape[0]:
                found = np.concatenate((found, found))
            found[size] = record
            size += 1
    return found[:size].copy()


# Hash -------------------------------------------------------------------------------------------


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

    >>> fixed = HashKeys(np.ones((2, 5), np.int64))
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
