"""Columns that no equation tells apart, taken together as groups.

Guarantee  Exact: a group's columns have the same coefficient in every equation. Of a group of two
           or more only the total can be determined, never one of its values.
Cost       Two sorts of the entries; equal columns are found by random hashes and then compared
           entry by entry.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import RandomBytes, System


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
    entries = _Entries(system)
    while True:  # until no two different columns have one hash, which is next to always at once
        group, leaders = _numbered(entries.hashes(random or os.urandom))
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


def _numbered(hashes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each column, and the first column of each group."""
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[inverse], first[order]


class _Entries:
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
