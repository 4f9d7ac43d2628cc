"""Combinations of unknowns that are determined though their parts may not be: totals of groups.

`totals` finds the groups by bounded search; `in_row_space` and `single_values` decide about
combinations that are given.

Guarantee  `in_row_space` decides by the null vectors of an elimination, as for single unknowns;
           what it says is proved by a certificate for the same target. A value that
           `single_values` gives is proved in exact rationals, from below and from above.
Method     A total is determined iff it vanishes on every null vector, so groups of k are solutions
           of a k-sum problem over the undetermined unknowns: halves that cancel each other. Pairs
           are always searched in full; each larger size within a budget of halves looked at, or it
           is reported as undecided.
           Unknowns that no equation tells apart can be moved against each other, so a combination
           that treats them differently is never determined. Of the others, each vertex that a
           linear program comes to shows many to be free at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.bounds import bounds
from casemate.audit.region.collapse import CollapsedSystem, collapse_region
from casemate.exact import (
    Bound,
    Box,
    Determined,
    NullVectors,
    Region,
    System,
    Target,
    integer_array,
)

HALVES_BUDGET = 1_000_000

_HASH_KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # any odd numbers will do

ColumnGroup = tuple[int, ...]
Halves = NDArray[np.int64]
"""Groups of one size, one a row, each ascending."""


def totals(
    determined: Determined,
    largest: int,
    weights: Sequence[int] | None = None,
    budget: int = HALVES_BUDGET,
) -> tuple[list[ColumnGroup], list[int]]:
    """Minimal groups of unknowns, at least two, whose total is determined; sizes not searched.

    With `weights` an unknown counts as so many, and `largest` limits what a group's add up to.
    """
    null = next(null for null in determined.null if null.rank == determined.rank)
    heavy = np.ones(len(determined.determined), np.int64) if weights is None else np.array(weights)
    found: dict[ColumnGroup, None] = {}
    undecided: list[int] = []
    for size in range(2, largest + 1):
        fitting = ~determined.determined & (heavy <= largest - size + 1)
        matches = _vanishing(null, np.flatnonzero(fitting), size, budget)
        if matches is None:
            undecided.append(size)
            continue
        some = matches[heavy[matches].sum(axis=1) <= largest]
        news = [group for group in map(tuple, some.tolist()) if _is_minimal(group, found)]
        found |= dict.fromkeys(news)
    return list(found), undecided


def _is_minimal(group: ColumnGroup, smaller: dict[ColumnGroup, None]) -> bool:
    parts = chain.from_iterable(combinations(group, size) for size in range(2, len(group)))
    return not smaller or not any(part in smaller for part in parts)


def _vanishing(null: NullVectors, columns: Halves, size: int, budget: int) -> Halves | None:
    """Groups of one size whose null values add up to zero; None if they are too many to search."""
    half = size // 2
    if size > 2 and comb(len(columns), size - half) > budget:
        return None
    lower, upper = _subsets(columns, half), _subsets(columns, size - half)
    below, above = _sums(null, lower), _sums(null, upper)
    opposite = np.mod(-above, null.prime)
    keys, wanted = _hash_sums(below), _hash_sums(opposite)
    order = np.argsort(keys)
    first = np.searchsorted(keys[order], wanted, "left")
    many = np.searchsorted(keys[order], wanted, "right") - first
    if int(many.sum()) > max(budget, len(columns)) * size:
        return None
    upper_places = np.repeat(np.arange(len(upper)), many)
    inside = np.arange(len(upper_places)) - np.repeat(np.cumsum(many) - many, many)
    lower_places = order[first[upper_places] + inside]
    apart = lower[lower_places, -1] < upper[upper_places, 0]  # so that each group is met once
    same = (below[:, lower_places] == opposite[:, upper_places]).all(axis=0)
    chosen = np.flatnonzero(apart & same)
    found = np.concatenate([lower[lower_places[chosen]], upper[upper_places[chosen]]], axis=1)
    return found[np.lexsort(found.T[::-1])]


def _subsets(columns: Halves, size: int) -> Halves:
    """All subsets of one size."""
    if size == 1:
        return columns[:, None]
    if size == 2:
        places = np.triu_indices(len(columns), 1)
        return np.stack([columns[places[0]], columns[places[1]]], axis=1)
    flat: Iterator[Any] = chain.from_iterable(combinations(columns.tolist(), size))
    return np.fromiter(flat, np.int64).reshape(-1, size)


def _sums(null: NullVectors, groups: Halves) -> NDArray[np.int64]:
    """What the members of each group add up to in each null vector."""
    total = np.zeros((len(null.vectors), len(groups)), np.int64)
    for member in groups.T:
        total = np.mod(total + null.vectors[:, member], null.prime)
    return total


def _hash_sums(sums: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One key for the values in all vectors; two that share it by chance are told apart later."""
    total = np.zeros(sums.shape[1], np.uint64)
    for line, key in zip(sums.astype(np.uint64), _HASH_KEYS, strict=False):
        total += line * np.uint64(key)
    return total


# Combinations that are given --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Combinations:
    """Integer combinations of columns, entry by entry; no (which, column) occurs twice."""

    count: int
    which: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[Any]  # of Python's integers where int64 is too small

    @classmethod
    def of(cls, targets: Sequence[Target]) -> "Combinations":
        """The combinations with these coefficients."""
        entries = [(i, j, w) for i, target in enumerate(targets) for j, w in target.items() if w]
        places = np.array([entry[:2] for entry in entries], np.int64).reshape(-1, 2).T
        weights = integer_array([weight for _, _, weight in entries])
        return cls(len(targets), places[0], places[1], weights)

    def in_groups(
        self, group: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> tuple["Combinations", NDArray[np.bool_]]:
        """The same in terms of the totals of groups, where each treats a group's members alike.

        A column of group -1 is left out. The second result says for which this can be done.
        """
        there = group[self.column] >= 0
        weights, code = np.unique(self.weight[there], return_inverse=True)
        entries = np.stack([self.which[there], group[self.column[there]], code])
        parts, members = np.unique(entries, axis=1, return_counts=True)
        alike = np.ones(self.count, np.bool_)
        alike[parts[0][members != sizes[parts[1]]]] = False
        kept = parts[:, alike[parts[0]]]
        return Combinations(self.count, kept[0], kept[1], weights[kept[2]]), alike

    def target(self, which: int) -> dict[int, int]:
        """The coefficients of one of them."""
        order, starts = self._by_combination
        own = order[starts[which] : starts[which + 1]]
        return dict(zip(self.column[own].tolist(), self.weight[own].tolist(), strict=True))

    @cached_property
    def _by_combination(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The entries in the order of the combinations, and where each of these begins."""
        order = np.argsort(self.which, kind="stable")
        return order, np.searchsorted(self.which[order], np.arange(self.count + 1))

    def values(self, point: NDArray[Any]) -> NDArray[Any]:
        """What they come to at a point; exactly, where that is of Python's integers."""
        found = np.zeros(self.count, point.dtype)
        np.add.at(found, self.which, self.weight.astype(point.dtype) * point[self.column])
        return found


def in_row_space(
    wanted: Combinations, collapsed: CollapsedSystem, found: Determined
) -> tuple[Combinations, NDArray[np.bool_]]:
    """The combinations in terms of the collapsed columns, and which of them are determined.

    >>> from casemate.audit.region.collapse import collapse
    >>> from casemate.exact.determination import determine
    >>> from casemate.exact.system import System
    >>> small = collapse(System.of([[1, 1, 1, 0], [0, 0, 1, 0]]))
    >>> pairs = Combinations.of([{0: 1, 1: 1}, {0: 1, 2: 1}, {2: 5}])
    >>> in_row_space(pairs, small, determine(small.system))[1].tolist()
    [True, False, True]
    """
    inside, alike = wanted.in_groups(collapsed.group, collapsed.sizes)
    determined = np.zeros(wanted.count, np.bool_)
    for null in found.null:
        if null.rank == found.rank:
            sums = [inside.values(vector.astype(object)) for vector in null.vectors]
            determined |= ~np.any([np.mod(each, null.prime) != 0 for each in sums], axis=0)
    return inside, alike & determined


def single_values(
    region: Region, wanted: Combinations, seconds: float = float("inf")
) -> tuple[dict[int, Fraction], set[int]]:
    """Which combinations have one possible value, given every range, and which were not decided.

    The region's box is what is left of each column: one that can move has two different ends.

    >>> from casemate.exact import Box
    >>> from casemate.exact.system import System
    >>> sums = Region.of(System.of([[1, 1, 1]], [5]), Box.of(3, 0, 2))
    >>> single_values(sums, Combinations.of([{0: 1, 1: 1, 2: 1}, {0: 1}]))[0]
    {0: Fraction(5, 1)}
    """
    twins = collapse_region(region)
    inside, alike = wanted.in_groups(twins.group, twins.size)
    fixed = np.array([end or 0 for end in region.box.low], object)
    constant = twins.group[wanted.column] < 0
    constants = Combinations(
        wanted.count, wanted.which[constant], wanted.column[constant], wanted.weight[constant]
    ).values(fixed)
    chosen = np.flatnonzero(alike).tolist()
    longer = with_combinations(twins.region, [inside.target(i) for i in chosen])
    places = range(twins.region.system.columns, longer.system.columns)
    found = bounds(longer, seconds=seconds, columns=places)
    placed = list(zip(chosen, places, strict=True))
    ends = {i: (found.low[place], found.high[place]) for i, place in placed}
    values = {
        i: low + Fraction(constants[i])
        for i, (low, high) in ends.items()
        if low is not None and low == high
    }
    unchecked = {i for i, place in placed if found.proof[place] == "unchecked"}
    return values, unchecked


def with_combinations(region: Region, targets: Sequence[Target], *, whole: bool = False) -> Region:
    """The region with one more column for each of some combinations of its columns."""
    system, box = region.system, region.box
    entries = [
        (system.rows + k, column, weight)
        for k, target in enumerate(targets)
        for column, weight in ((*target.items(), (system.columns + k, -1)))
    ]
    row, column, weight = np.array(entries, object).reshape(-1, 3).T
    ends = [_extent(target, box) for target in targets]
    zeros = (Fraction(0),) * len(targets)
    return Region(
        System(
            system.rows + len(targets),
            system.columns + len(targets),
            np.concatenate([system.row, row.astype(np.int64)]),
            np.concatenate([system.column, column.astype(np.int64)]),
            np.concatenate([system.value, weight.astype(system.value.dtype)]),
        ),
        Box(
            (*box.low, *(low for low, _ in ends)),
            (*box.high, *(high for _, high in ends)),
            (*box.integer, *(whole for _ in targets)),
        ),
        (*region.low, *zeros),
        (*region.high, *zeros),
    )


def _extent(target: Target, box: Box) -> tuple[Bound, Bound]:
    """The least and the greatest that the ranges of a combination's columns allow."""
    sides: list[Bound] = []
    for first, last in ((box.low, box.high), (box.high, box.low)):
        ends = [(first if weight > 0 else last)[column] for column, weight in target.items()]
        terms = [w * end for w, end in zip(target.values(), ends, strict=True) if end is not None]
        sides.append(sum(terms, Fraction(0)) if len(terms) == len(target) else None)
    return sides[0], sides[1]
