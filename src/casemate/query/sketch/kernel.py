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
"""

from typing import Any

import numpy as np

from casemate.compiled import compiled, intrinsic

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
