"""Marginals of a dense stand-in: shared summation, and summed-area tables that answer ranges.

A marginal is made by adding up the attributes it does not keep, one after the other, the widest
first. Scopes that drop the same attributes first share those sums. Each marginal still has one
fixed chain of sums, so its bits do not depend on which others were wanted or remembered.

Compiled passes over the cells of a dense stand-in, stored as rows x columns.

A product question is a pair: a weight for each row, and one for each column. Rows are added up
column by column, from the first to the last, and the compiler may not reorder a sum: the same
cells give the same bits on every machine. Rows without weight, and the columns before the first
weight and after the last, are not touched.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.grid.product import Floats, MeasuredMarginal, Scope


@compiled
def _stretch(columns: Any) -> Any:
    """The first column with a weight and the one after the last."""
    first, last = 0, columns.shape[0]
    while first < last and columns[first] == 0:
        first += 1
    while last > first and columns[last - 1] == 0:
        last -= 1
    return first, last


@compiled
def _scale(row: Any, factors: Any) -> None:
    for j in range(row.shape[0]):
        row[j] *= factors[j]


@compiled
def _add(row: Any, weight: Any, sums: Any) -> None:
    for j in range(row.shape[0]):
        sums[j] += weight * row[j]


@compiled
def _scale_then_add(row: Any, factors: Any, weight: Any, sums: Any) -> None:
    for j in range(row.shape[0]):
        scaled = row[j] * factors[j]
        row[j] = scaled
        sums[j] += weight * scaled


@compiled
def _dot(sums: Any, columns: Any) -> Any:
    total = 0.0
    for j in range(sums.shape[0]):
        total += sums[j] * columns[j]
    return total


@compiled
def weigh(cells: Any, asked: Any) -> Any:
    """The sum of rows[i] * cells[i, j] * columns[j]."""
    rows, columns = asked
    first, last = _stretch(columns)
    sums = np.zeros(last - first)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _add(cells[i, first:last], rows[i], sums)
    return _dot(sums, columns[first:last])


@compiled
def tilt(cells: Any, inside: Any, ratio: Any) -> None:
    """Multiply the cells inside a 0/1 question by `ratio`."""
    rows, columns = inside
    first, last = _stretch(columns)
    factors = np.where(columns != 0, ratio, 1.0)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _scale(cells[i, first:last], factors[first:last])


@compiled
def _factors_and_sums(columns: Any, ratio: Any) -> Any:
    """Two vectors half a page apart: at the same place in a page, each store stalls a load."""
    length = columns.shape[0]
    second = (length + 511) // 512 * 512 + 256
    room = np.zeros(second + length)
    room[:length] = np.where(columns != 0, ratio, 1.0)
    return room[:length], room[second:]


@compiled
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


@compiled
def spread(cells: Any, groups: Any, factors: Any) -> None:
    """Multiply every row by the factors of its group, one for each column."""
    for i in range(cells.shape[0]):
        _scale(cells[i], factors[groups[i]])


@compiled
def gather(cells: Any, groups: Any, sums: Any) -> None:
    """Add every row to the sums of its group, one for each column."""
    for i in range(cells.shape[0]):
        _add(cells[i], 1.0, sums[groups[i]])


@compiled
def spread_then_gather(cells: Any, groups: Any, factors: Any, next_groups: Any, sums: Any) -> None:
    """Multiply every row by its factors and add it to the next groups' sums, in one pass."""
    for i in range(cells.shape[0]):
        _scale_then_add(cells[i], factors[groups[i]], 1.0, sums[next_groups[i]])


@compiled
def sum_out(source: Any, target: Any) -> None:
    """Add up the middle axis of before x width x after, in order."""
    before, width, after = source.shape
    for i in range(before):
        for j in range(after):
            total = source[i, 0, j]
            for k in range(1, width):
                total += source[i, k, j]
            target[i, j] = total


# Marginals --------------------------------------------------------------------------------------


KEPT = 2**24
"""So many numbers of marginals are remembered at most."""

MOST_CORNERS = 2**20
"""Corners of boxes that are looked up together."""

Number = TypeVar("Number", np.int64, np.float64)


def summed_over(table: Floats, axis: int) -> Floats:
    """The table without one axis, its entries added up in order."""
    before, after = math.prod(table.shape[:axis]), math.prod(table.shape[axis + 1 :])
    target = np.empty((before, after))
    sum_out(np.ascontiguousarray(table).reshape(before, table.shape[axis], after), target)
    return target.reshape(table.shape[:axis] + table.shape[axis + 1 :])


def marginals(cells: Floats, scopes: Iterable[Scope]) -> dict[Scope, Floats]:
    """All these marginals of an array with one axis for each attribute, by shared summation."""
    widest_first = sorted(range(cells.ndim), key=lambda axis: (-cells.shape[axis], axis))
    found: dict[Scope, Floats] = {}
    _descend(cells, tuple(range(cells.ndim)), widest_first, sorted(set(scopes)), found)
    return found


def _descend(
    table: Floats,
    present: Scope,
    undecided: Sequence[int],
    scopes: Sequence[Scope],
    found: dict[Scope, Floats],
) -> None:
    """Decide about one attribute: those scopes that drop it share its sum."""
    if not undecided:
        found[present] = table
        return
    attribute, rest = undecided[0], undecided[1:]
    without = [scope for scope in scopes if attribute not in scope]
    within = [scope for scope in scopes if attribute in scope]
    if without:
        place = present.index(attribute)
        left = present[:place] + present[place + 1 :]
        _descend(summed_over(table, place), left, rest, without, found)
    if within:
        _descend(table, present, rest, within, found)


def summed_area(table: Floats) -> Floats:
    """Entry (i, j, ...) is the sum over all codes below i, j, ..."""
    area = np.zeros([width + 1 for width in table.shape])
    area[(slice(1, None),) * table.ndim] = table
    for axis in range(table.ndim):
        np.cumsum(area, axis=axis, out=area)
    return area


def over_ranges(area: Floats, firsts: Sequence[object], ends: Sequence[object]) -> Floats:
    """The sums over boxes: one sequence of first codes and one of ends for each axis."""
    corners = area
    for first, end in zip(firsts, ends, strict=True):
        corners = corners[end] - corners[first]  # type: ignore[call-overload]  # an index
    return corners


def over_many_ranges(area: Floats, ranges: NDArray[np.int64]) -> Floats:
    """The sums over many boxes: for each box and axis a first code and an end.

    Corner by corner, in the order in which one box alone is worked out; so many boxes at a time
    that memory stays bounded.
    """
    some = max(1, MOST_CORNERS >> area.ndim)
    if len(ranges) > some:
        pieces = (ranges[first : first + some] for first in range(0, len(ranges), some))
        return np.concatenate([over_many_ranges(area, piece) for piece in pieces])
    corners = np.empty((2,) * area.ndim + (len(ranges),))
    for corner in np.ndindex(corners.shape[:-1]):
        corners[corner] = area[tuple(ranges[:, axis, end] for axis, end in enumerate(corner))]
    for _ in range(area.ndim):
        corners = corners[1] - corners[0]
    return corners


def contracted(table: NDArray[Number], factors: Sequence[Floats]) -> NDArray[Number]:
    """The sum of a table's entries, each times the factors of its first axes.

    Only entries whose factors are not zero are looked at.
    """
    supports = [factor.nonzero()[0] for factor in factors]
    if supports:
        table = table[np.ix_(*supports)]
    for factor, support in zip(factors, supports, strict=True):
        weights = factor[support].astype(table.dtype)
        if (weights != 1).any():
            table = weights.reshape(-1, *[1] * (table.ndim - 1)) * table
        table = np.asarray(table.sum(axis=0))
    return table


def agreed(tables: Sequence[MeasuredMarginal], total: float) -> list[Floats]:
    """Noisy tables, moved so that they agree on the total and on every attribute they share.

    The counts of an attribute are the mean of what its tables say, each weighed by its variance.
    Once the totals agree, a table can be moved along one attribute without touching another.
    """
    moved = [t.values + (total - t.values.sum()) / t.values.size for t in tables]
    for attribute in sorted({a for t in tables for a in t.marginal.scope}):
        holding = [i for i, t in enumerate(tables) if attribute in t.marginal.scope]
        sides = [_other_axes(tables[i], attribute) for i in holding]
        shown = [moved[i].sum(axis=axes) for i, axes in zip(holding, sides, strict=True)]
        share = [1 / _variance(tables[i], attribute) for i in holding]
        mean = sum(w * one for w, one in zip(share, shown, strict=True)) / sum(share)
        for i, axes, one in zip(holding, sides, shown, strict=True):
            others = moved[i].size // one.size
            moved[i] = moved[i] + np.expand_dims((mean - one) / others, axes)
    return moved


def _other_axes(table: MeasuredMarginal, attribute: int) -> tuple[int, ...]:
    return tuple(axis for axis, a in enumerate(table.marginal.scope) if a != attribute)


def _variance(table: MeasuredMarginal, attribute: int) -> float:
    """The variance of a count of one attribute, summed from the table; exact ones count most."""
    width = table.values.shape[table.marginal.scope.index(attribute)]
    return float(max(table.variance, 1e-12) * (table.values.size // width))


class MarginalTables:
    """The marginals that are asked for, until the cells change; then all are made again at once."""

    def __init__(self) -> None:
        self._tables: dict[Scope, Floats] = {}
        self._areas: dict[Scope, Floats] = {}
        self._used: dict[Scope, None] = {}  # since the cells changed, the latest last
        self._wanted: list[Scope] = []  # those used before they changed

    def forget(self) -> None:
        """The cells have changed."""
        if self._used:
            self._wanted = list(self._used)
        self._tables, self._areas, self._used = {}, {}, {}

    def table(self, cells: Floats, scope: Scope) -> Floats:
        """The marginal of a scope; `cells` has one axis for each attribute."""
        if scope not in self._tables:
            self._tables |= marginals(cells, [scope, *self._wanted])
            self._wanted = []
        self._used.pop(scope, None)
        self._used[scope] = None
        found = self._tables[scope]
        self._shrink()
        return found

    def area(self, cells: Floats, scope: Scope) -> Floats:
        """The summed-area table of a scope."""
        table = self.table(cells, scope)
        if scope not in self._areas:
            self._areas[scope] = summed_area(table)
        return self._areas[scope]

    def _shrink(self) -> None:
        """Drop what was used longest ago, so that memory stays bounded."""
        while len(self._tables) > 1 and sum(t.size for t in self._tables.values()) > KEPT:
            oldest = next((s for s in self._tables if s not in self._used), next(iter(self._used)))
            for kept in (self._tables, self._areas, self._used):
                kept.pop(oldest, None)
