"""Columns that no equation tells apart, taken together as groups.

Guarantee  Exact: a group's columns have the same coefficient in every equation. Of a group of two
           or more only the total can be determined, never one of its values.
Cost       Two sorts of the entries; equal columns are found by random hashes and then compared
           entry by entry.

Of a region, twins have the same bounds and type too, and enter it only through their total. The
total lies between the sums of the bounds, and what is known of the total says in closed form what
is known of each. Columns with one possible value move to the right side.
"""

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import Bound, Box, RandomBytes, Region, System


@dataclass(frozen=True, eq=False)
class CollapsedSystem:
    """A system whose unknowns are totals of groups, and the group of each original column."""

    system: System
    group: NDArray[np.int64]
    sizes: NDArray[np.int64]


def collapse(system: System, random: RandomBytes | None = None) -> CollapsedSystem:
    """Replace columns with equal coefficients everywhere by one; groups come in order of columns.

    >>> small = collapse(System.of([[1, 1, 0, 2], [0, 0, 3, 0]]))
    >>> small.group.tolist(), small.sizes.tolist(), small.system.dense()
    ([0, 0, 1, 2], [2, 1, 1], [[1, 0, 2], [0, 3, 0]])
    """
    entries = _CollapsedEntries(system)
    while True:  # until no two different columns have one hash, which is next to always at once
        group, leaders = _number_groups(entries.hashes(random or os.urandom))
        if entries.all_equal(leaders[group]):
            break
    kept = leaders[group[system.column]] == system.column
    smaller = System(
        system.rows,
        len(leaders),
        system.row[kept],
        group[system.column[kept]],
        system.value[kept],
        system.right,
    )
    return CollapsedSystem(smaller, group, np.bincount(group, minlength=len(leaders)))


def _number_groups(hashes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each column, and the first column of each group."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


class _CollapsedEntries:
    """The entries sorted by column and row, values replaced by small codes."""

    def __init__(self, system: System) -> None:
        order = np.lexsort((system.row, system.column))
        self.columns, self.rows = system.columns, system.rows
        self.column, self.row = system.column[order], system.row[order]
        self.code = np.unique(system.value[order], return_inverse=True)[1].astype(np.uint64)
        self.starts = np.searchsorted(self.column, np.arange(system.columns + 1))

    def hashes(self, draw: RandomBytes) -> NDArray[Any]:
        """A random hash of each column: a sum over its entries of keys of (row, value)."""
        keys = np.frombuffer(draw(32 * self.rows), np.uint64).reshape(2, 2, self.rows)
        total = np.zeros(self.columns, [("one", np.uint64), ("other", np.uint64)])
        for name, (factor, term) in zip(("one", "other"), keys, strict=True):
            hashed = (factor[self.row] | np.uint64(1)) * (self.code + term[self.row])
            running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashed, dtype=np.uint64)])
            total[name] = running[self.starts[1:]] - running[self.starts[:-1]]
        return total

    def all_equal(self, leader: NDArray[np.int64]) -> bool:
        """Whether each column has the entries of its leader."""
        lengths = np.diff(self.starts)
        if (lengths != lengths[leader]).any():
            return False
        own = np.arange(len(self.row))
        twin = own - self.starts[self.column] + self.starts[leader[self.column]]
        return bool((self.row == self.row[twin]).all() and (self.code == self.code[twin]).all())


# Twins of a region ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TwinRegion:
    """A region with one column per group of twins; `group` is -1 for a column with one value."""

    region: Region
    box: Box  # of the columns
    group: NDArray[np.int64]
    size: NDArray[np.int64]
    first: NDArray[np.int64]  # a column of each group

    def member(self, group: int, low: Bound, high: Bound) -> tuple[Bound, Bound]:
        """The range of each twin when their total lies between `low` and `high`."""
        column, others = int(self.first[group]), int(self.size[group]) - 1
        own = self.box
        least, most = own.low[column], own.high[column]
        floor = _less(low, most, others)
        ceiling = _less(high, least, others)
        if own.integer[column]:
            floor = None if floor is None else Fraction(math.ceil(floor))
            ceiling = None if ceiling is None else Fraction(math.floor(ceiling))
        return tighter(floor, least, max), tighter(ceiling, most, min)


def free_columns(box: Box) -> NDArray[np.bool_]:
    """The columns that have more than one possible value."""
    ends = zip(box.low, box.high, strict=True)
    return np.array([low is None or low != high for low, high in ends], np.bool_)


def collapse_region(region: Region) -> TwinRegion:
    """Group the columns with equal coefficients and bounds, and drop those with one value."""
    system, box = region.system, region.box
    alike = collapse(system).group.tolist()
    groups: dict[tuple[int, Bound, Bound, bool], int] = {}
    group = np.full(system.columns, -1, np.int64)
    for column in np.flatnonzero(free_columns(box)).tolist():
        key = alike[column], box.low[column], box.high[column], box.integer[column]
        group[column] = groups.setdefault(key, len(groups))
    kept = np.flatnonzero(group >= 0)
    size = np.bincount(group[kept], minlength=len(groups)).astype(np.int64)
    first = np.zeros(len(groups), np.int64)
    first[group[kept][::-1]] = kept[::-1]
    return TwinRegion(_totals(region, group, size, first), box, group, size, first)


def _totals(
    region: Region, group: NDArray[np.int64], size: NDArray[np.int64], first: NDArray[np.int64]
) -> Region:
    """The same equations in terms of the groups' totals."""
    system, box = region.system, region.box
    representative = np.zeros(system.columns, np.bool_)
    representative[first] = True
    keep = representative[system.column]
    entries = system.row[keep], group[system.column[keep]], system.value[keep]
    collapsed = System(system.rows, len(size), *entries)
    shift = _fixed_part(region, group)
    places = list(zip(first.tolist(), size.tolist(), strict=True))
    return Region(
        collapsed,
        Box(
            tuple(_times(box.low[column], count) for column, count in places),
            tuple(_times(box.high[column], count) for column, count in places),
            tuple(box.integer[column] for column, _ in places),
        ),
        tuple(None if v is None else v - s for v, s in zip(region.low, shift, strict=True)),
        tuple(None if v is None else v - s for v, s in zip(region.high, shift, strict=True)),
    )


def _fixed_part(region: Region, group: NDArray[np.int64]) -> list[Fraction]:
    """What the columns with one value add to each equation."""
    system, values = region.system, region.box.low
    shift = [Fraction(0)] * system.rows
    where = np.flatnonzero(group[system.column] < 0)
    for row, column, a in zip(
        system.row[where].tolist(),
        system.column[where].tolist(),
        system.value[where].tolist(),
        strict=True,
    ):
        value = values[column]
        if value:
            shift[row] += a * value
    return shift


def _times(bound: Bound, count: int) -> Bound:
    return bound if bound is None or count == 1 else bound * count


def _less(total: Bound, other: Bound, others: int) -> Bound:
    """A bound on one twin: the total less as much as the others can take."""
    if total is None or (others and other is None):
        return None
    return total if not others or other is None else total - others * other


def tighter(implied: Bound, own: Bound, choose: Any) -> Bound:
    """The tighter of two bounds, either of which may be absent."""
    if implied is None or own is None:
        return own if implied is None else implied
    chosen: Fraction = choose(implied, own)
    return chosen
