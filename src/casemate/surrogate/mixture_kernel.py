"""Compiled passes of a mixture of products, whose components are the rows of every matrix.

Only sums, products, quotients and square roots, all in a fixed order that the compiler may not
change: the same numbers give the same bits on every machine, whatever library of linear algebra
it has and however many threads that uses.
"""

import math
from typing import Any

import numpy as np
from numba import njit

FADING, FADING_SQUARES = 0.9, 0.99
"""How much of the mean slope, and of the mean square of slopes, is kept from step to step."""


@njit(cache=True)
def _add_four(sums: Any, weights: Any, rows: Any) -> None:
    """Add four weighted rows at once, so that the sums are read and written once for all four."""
    a, b, c, d = weights
    first, second, third, fourth = rows
    for q in range(sums.shape[0]):
        sums[q] += (a * first[q] + b * second[q]) + (c * third[q] + d * fourth[q])


@njit(cache=True)
def _add(sums: Any, weight: Any, row: Any) -> None:
    for q in range(sums.shape[0]):
        sums[q] += weight * row[q]


@njit(cache=True)
def crossed(left: Any, right: Any) -> Any:
    """The sum over components k of left[k, p] * right[k, q]."""
    sums = np.zeros((left.shape[1], right.shape[1]))
    fours = left.shape[0] // 4 * 4
    for k in range(0, fours, 4):
        rows = right[k], right[k + 1], right[k + 2], right[k + 3]
        for p in range(left.shape[1]):
            weights = left[k, p], left[k + 1, p], left[k + 2, p], left[k + 3, p]
            _add_four(sums[p], weights, rows)
    for k in range(fours, left.shape[0]):
        for p in range(left.shape[1]):
            _add(sums[p], left[k, p], right[k])
    return sums


@njit(cache=True)
def spread(left: Any, table: Any) -> Any:
    """For each component k the sum over p of left[k, p] * table[p, q]."""
    sums = np.zeros((left.shape[0], table.shape[1]))
    fours = left.shape[1] // 4 * 4
    for p in range(0, fours, 4):
        rows = table[p], table[p + 1], table[p + 2], table[p + 3]
        for k in range(left.shape[0]):
            weights = left[k, p], left[k, p + 1], left[k, p + 2], left[k, p + 3]
            _add_four(sums[k], weights, rows)
    for p in range(fours, left.shape[1]):
        for k in range(left.shape[0]):
            _add(sums[k], left[k, p], table[p])
    return sums


@njit(cache=True)
def dots(left: Any, right: Any) -> Any:
    """For each component the sum of products of both rows."""
    sums = np.zeros(left.shape[0])
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            sums[k] += left[k, p] * right[k, p]
    return sums


@njit(cache=True)
def joined(left: Any, right: Any) -> Any:
    """For each component all products of a number on the left and one on the right."""
    components, wide, narrow = left.shape[0], left.shape[1], right.shape[1]
    pairs = np.empty((components, wide * narrow))
    for k in range(components):
        for p in range(wide):
            for q in range(narrow):
                pairs[k, p * narrow + q] = left[k, p] * right[k, q]
    return pairs


@njit(cache=True)
def parted(left: Any, right: Any, slopes: Any) -> Any:
    """The slopes of both sides of `joined` from those of what it made."""
    lefts, rights = np.zeros(left.shape), np.zeros(right.shape)
    narrow = right.shape[1]
    for k in range(left.shape[0]):
        for p in range(left.shape[1]):
            for q in range(narrow):
                slope = slopes[k, p * narrow + q]
                lefts[k, p] += slope * right[k, q]
                rights[k, q] += slope * left[k, p]
    return lefts, rights


@njit(cache=True)
def _longest(ends: Any) -> Any:
    """The most members of a product."""
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    return longest


@njit(cache=True)
def _multiplied(rows: Any, sums: Any, before: Any) -> None:
    """The product of the first rows: of none, of one, of two, ..."""
    for k in range(sums.shape[1]):
        before[0, k] = 1.0
        for m in range(rows.size):
            before[m + 1, k] = before[m, k] * sums[rows[m], k]


@njit(cache=True)
def _carried_back(rows: Any, sums: Any, before: Any, after: Any, by_sum: Any) -> None:
    """The slope of each row of a product: all rows before it times all rows after it."""
    for m in range(rows.size - 1, -1, -1):
        for k in range(after.size):
            by_sum[rows[m], k] += before[m, k] * after[k]
            after[k] *= sums[rows[m], k]


@njit(cache=True)
def questions(weights: Any, sums: Any, asked: Any, measured: Any) -> Any:
    """Residuals of many products, and the slopes of weights and of the sums they are made of.

    A row of `sums` holds one factor's sum over its attribute, component by component; what is asked
    are rows of it, one product after the other, and the end of each product.
    """
    (members, ends), (wanted, trust) = asked, measured
    off, by_weight, by_sum = np.empty(ends.size), np.zeros(weights.size), np.zeros(sums.shape)
    before, after = np.empty((_longest(ends) + 1, weights.size)), np.empty(weights.size)
    start = 0
    for j in range(ends.size):
        rows = members[start : ends[j]]
        _multiplied(rows, sums, before)
        value = 0.0
        for k in range(weights.size):
            value += weights[k] * before[rows.size, k]
        off[j] = value - wanted[j]
        pull = trust[j] * off[j]
        for k in range(weights.size):
            by_weight[k] += pull * before[rows.size, k]
            after[k] = pull * weights[k]
        _carried_back(rows, sums, before, after, by_sum)
        start = ends[j]
    return off, by_weight, by_sum


@njit(cache=True)
def shares(roots: Any, firsts: Any) -> Any:
    """Squares of roots over their sum, attribute by attribute; and those sums."""
    found, sums = np.empty(roots.shape), np.empty((roots.shape[0], firsts.shape[0] - 1))
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mass = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mass += roots[k, i] * roots[k, i]
            sums[k, a] = mass
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = roots[k, i] * roots[k, i] / mass
    return found, sums


@njit(cache=True)
def root_slopes(roots: Any, slopes: Any, firsts: Any) -> Any:
    """The slopes of the roots from those of the shares."""
    found = np.empty(roots.shape)
    held, sums = shares(roots, firsts)
    for k in range(roots.shape[0]):
        for a in range(firsts.shape[0] - 1):
            mean = 0.0
            for i in range(firsts[a], firsts[a + 1]):
                mean += held[k, i] * slopes[k, i]
            for i in range(firsts[a], firsts[a + 1]):
                found[k, i] = 2.0 * roots[k, i] * (slopes[k, i] - mean) / sums[k, a]
    return found


@njit(cache=True)
def step(roots: Any, slopes: Any, memory: Any, length: Any, corrections: Any) -> None:
    """Move each root against its mean slope, measured in its usual size."""
    means, squares = memory
    for k in range(roots.shape[0]):
        for i in range(roots.shape[1]):
            slope = slopes[k, i]
            means[k, i] = FADING * means[k, i] + (1 - FADING) * slope
            squares[k, i] = FADING_SQUARES * squares[k, i] + (1 - FADING_SQUARES) * slope * slope
            size = math.sqrt(squares[k, i] / corrections[1]) + 1e-12
            roots[k, i] -= length * (means[k, i] / corrections[0]) / size


@njit(cache=True)
def weighed(weights: Any, by_code: Any, codes: Any, factors: Any, ends: Any) -> Any:
    """The value of a product: a row of `by_code` holds the shares of one code.

    The codes of each attribute with a factor lie one after the other, up to its end.
    """
    product, sums = weights.copy(), np.empty(weights.size)
    start = 0
    for end in ends:
        sums[:] = 0.0
        for place in range(start, end):
            _add(sums, factors[place], by_code[codes[place]])
        for k in range(weights.size):
            product[k] *= sums[k]
        start = end
    total = 0.0
    for k in range(weights.size):
        total += product[k]
    return total
