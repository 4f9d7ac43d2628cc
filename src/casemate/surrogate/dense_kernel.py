"""Compiled passes over the cells of a dense stand-in, stored as rows x columns.

A product question is a pair: a weight for each row, and one for each column. Rows are added up
column by column, from the first to the last, and the compiler may not reorder a sum: the same
cells give the same bits on every machine. Rows without weight, and the columns before the first
weight and after the last, are not touched.
"""

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def _stretch(columns: Any) -> Any:
    """The first column with a weight and the one after the last."""
    first, last = 0, columns.shape[0]
    while first < last and columns[first] == 0:
        first += 1
    while last > first and columns[last - 1] == 0:
        last -= 1
    return first, last


@njit(cache=True)
def _scale(row: Any, factors: Any) -> None:
    for j in range(row.shape[0]):
        row[j] *= factors[j]


@njit(cache=True)
def _add(row: Any, weight: Any, sums: Any) -> None:
    for j in range(row.shape[0]):
        sums[j] += weight * row[j]


@njit(cache=True)
def _scale_then_add(row: Any, factors: Any, weight: Any, sums: Any) -> None:
    for j in range(row.shape[0]):
        scaled = row[j] * factors[j]
        row[j] = scaled
        sums[j] += weight * scaled


@njit(cache=True)
def _dot(sums: Any, columns: Any) -> Any:
    total = 0.0
    for j in range(sums.shape[0]):
        total += sums[j] * columns[j]
    return total


@njit(cache=True)
def weigh(cells: Any, asked: Any) -> Any:
    """The sum of rows[i] * cells[i, j] * columns[j]."""
    rows, columns = asked
    first, last = _stretch(columns)
    sums = np.zeros(last - first)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _add(cells[i, first:last], rows[i], sums)
    return _dot(sums, columns[first:last])


@njit(cache=True)
def tilt(cells: Any, inside: Any, ratio: Any) -> None:
    """Multiply the cells inside a 0/1 question by `ratio`."""
    rows, columns = inside
    first, last = _stretch(columns)
    factors = np.where(columns != 0, ratio, 1.0)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _scale(cells[i, first:last], factors[first:last])


@njit(cache=True)
def _factors_and_sums(columns: Any, ratio: Any) -> Any:
    """Two vectors half a page apart: at the same place in a page, each store stalls a load."""
    length = columns.shape[0]
    second = (length + 511) // 512 * 512 + 256
    room = np.zeros(second + length)
    room[:length] = np.where(columns != 0, ratio, 1.0)
    return room[:length], room[second:]


@njit(cache=True)
def tilt_then_weigh(cells: Any, inside: Any, ratio: Any, asked: Any) -> Any:
    """Multiply the cells inside one 0/1 question, and weigh the next question, in one pass."""
    rows, columns = inside
    asked_rows, asked_columns = asked
    first, last = _stretch(columns)
    factors, sums = _factors_and_sums(columns, ratio)
    for i in range(cells.shape[0]):
        if asked_rows[i] == 0:
            if rows[i] != 0:
                _scale(cells[i, first:last], factors[first:last])
        elif rows[i] == 0:
            _add(cells[i], asked_rows[i], sums)
        else:
            _scale_then_add(cells[i], factors, asked_rows[i], sums)
    return _dot(sums, asked_columns)


@njit(cache=True)
def spread(cells: Any, groups: Any, factors: Any) -> None:
    """Multiply every row by the factors of its group, one for each column."""
    for i in range(cells.shape[0]):
        _scale(cells[i], factors[groups[i]])


@njit(cache=True)
def gather(cells: Any, groups: Any, sums: Any) -> None:
    """Add every row to the sums of its group, one for each column."""
    for i in range(cells.shape[0]):
        _add(cells[i], 1.0, sums[groups[i]])


@njit(cache=True)
def spread_then_gather(cells: Any, groups: Any, factors: Any, next_groups: Any, sums: Any) -> None:
    """Multiply every row by its factors and add it to the next groups' sums, in one pass."""
    for i in range(cells.shape[0]):
        _scale_then_add(cells[i], factors[groups[i]], 1.0, sums[next_groups[i]])


@njit(cache=True)
def sum_out(source: Any, target: Any) -> None:
    """Add up the middle axis of before x width x after, in order."""
    before, width, after = source.shape
    for i in range(before):
        for j in range(after):
            total = source[i, 0, j]
            for k in range(1, width):
                total += source[i, k, j]
            target[i, j] = total
