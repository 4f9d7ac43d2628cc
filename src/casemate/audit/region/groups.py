"""Small groups whose total is determined, found by bounded search.

A total is determined iff it vanishes on every null vector, so groups of k are solutions of a k-sum
problem over the undetermined unknowns: halves that cancel each other. Pairs are always searched in
full; each larger size within a budget of halves looked at, or it is reported as undecided.

Combinations of unknowns that are determined, though their parts may not be.

Guarantee  `spanned` decides by the null vectors of an elimination, as for single unknowns; what it
           says is proved by a certificate for the same target. A value that `single_values` gives
           is proved in exact rationals, from below and from above.
Method     Unknowns that no equation tells apart can be moved against each other, so a combination
           that treats them differently is never determined. Of the others, each vertex that a
           linear program comes to shows many to be free at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.bounds import NEARLY
from casemate.audit.region.certify import proved_minimum
from casemate.audit.region.collapse import CollapsedSystem, collapse_region
from casemate.exact import (
    Exposure,
    LinearProgram,
    NullVectors,
    Region,
    Scaled,
    Status,
    Target,
    Vertex,
)

BUDGET = 1_000_000

_KEYS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)  # any odd numbers will do

ColumnGroup = tuple[int, ...]
Halves = NDArray[np.int64]
"""Groups of one size, one a row, each ascending."""


@dataclass(frozen=True)
class MinimalGroups:
    """The minimal groups found, and the sizes that were too many to search."""

    found: tuple[ColumnGroup, ...]
    undecided: tuple[int, ...]


def totals(
    exposed: Exposure,
    largest: int,
    weights: Sequence[int] | None = None,
    budget: int = BUDGET,
) -> MinimalGroups:
    """Groups of undetermined unknowns, at least two, whose total is determined.

    With `weights` an unknown counts as so many, and `largest` limits what a group's add up to.
    """
    null = next(null for null in exposed.null if null.rank == exposed.rank)
    heavy = np.ones(len(exposed.determined), np.int64) if weights is None else np.array(weights)
    found: dict[ColumnGroup, None] = {}
    undecided: list[int] = []
    for size in range(2, largest + 1):
        fitting = ~exposed.determined & (heavy <= largest - size + 1)
        matches = _vanishing(null, np.flatnonzero(fitting), size, budget)
        if matches is None:
            undecided.append(size)
            continue
        some = matches[heavy[matches].sum(axis=1) <= largest]
        news = [group for group in map(tuple, some.tolist()) if _is_minimal(group, found)]
        found |= dict.fromkeys(news)
    return MinimalGroups(tuple(found), tuple(undecided))


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
    keys, wanted = _hashed(below), _hashed(opposite)
    order = np.argsort(keys)
    first = np.searchsorted(keys[order], wanted, "left")
    many = np.searchsorted(keys[order], wanted, "right") - first
    if int(many.sum()) > max(budget, len(columns)) * size:
        return None
    theirs = np.repeat(np.arange(len(upper)), many)
    inside = np.arange(len(theirs)) - np.repeat(np.cumsum(many) - many, many)
    mine = order[first[theirs] + inside]
    apart = lower[mine, -1] < upper[theirs, 0]  # so that each group is met once
    same = (below[:, mine] == opposite[:, theirs]).all(axis=0)
    chosen = np.flatnonzero(apart & same)
    found = np.concatenate([lower[mine[chosen]], upper[theirs[chosen]]], axis=1)
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


def _hashed(sums: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One key for the values in all vectors; two that share it by chance are told apart later."""
    total = np.zeros(sums.shape[1], np.uint64)
    for line, key in zip(sums.astype(np.uint64), _KEYS, strict=False):
        total += line * np.uint64(key)
    return total


# Combinations -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Combinations:
    """Integer combinations of columns, entry by entry; no (which, column) occurs twice."""

    count: int
    which: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.int64]

    @classmethod
    def of(cls, targets: Sequence[Target]) -> "Combinations":
        """The combinations with these coefficients."""
        entries = [(i, j, w) for i, target in enumerate(targets) for j, w in target.items() if w]
        columns = np.array(entries, np.int64).reshape(-1, 3).T
        return cls(len(targets), columns[0], columns[1], columns[2])

    def grouped(
        self, group: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> tuple["Combinations", NDArray[np.bool_]]:
        """The same in terms of the totals of groups, where each treats a group's members alike.

        A column of group -1 is left out. The second result says for which this can be done.
        """
        there = group[self.column] >= 0
        entries = np.stack([self.which[there], group[self.column[there]], self.weight[there]])
        parts, members = np.unique(entries, axis=1, return_counts=True)
        alike = np.ones(self.count, np.bool_)
        alike[parts[0][members != sizes[parts[1]]]] = False
        kept = parts[:, alike[parts[0]]]
        return Combinations(self.count, kept[0], kept[1], kept[2]), alike

    def target(self, which: int) -> dict[int, int]:
        """The coefficients of one of them."""
        start, end = self._spans[which], self._spans[which + 1]
        columns, weights = self._ordered
        return dict(zip(columns[start:end].tolist(), weights[start:end].tolist(), strict=True))

    @cached_property
    def _spans(self) -> NDArray[np.int64]:
        return np.searchsorted(np.sort(self.which), np.arange(self.count + 1))

    @cached_property
    def _ordered(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.which, kind="stable")
        return self.column[order], self.weight[order]

    def values(self, point: NDArray[Any]) -> NDArray[Any]:
        """What they come to at a point; exactly, where that is of Python's integers."""
        found = np.zeros(self.count, point.dtype)
        np.add.at(found, self.which, self.weight.astype(point.dtype) * point[self.column])
        return found


def spanned(
    wanted: Combinations, collapsed: CollapsedSystem, found: Exposure
) -> tuple[Combinations, NDArray[np.bool_]]:
    """The combinations in terms of the collapsed columns, and which of them are determined.

    >>> from casemate.audit.region.collapse import collapse
    >>> from casemate.exact.unknowns import exposure
    >>> from casemate.exact.system import System
    >>> small = collapse(System.of([[1, 1, 1, 0], [0, 0, 1, 0]]))
    >>> pairs = Combinations.of([{0: 1, 1: 1}, {0: 1, 2: 1}, {2: 5}])
    >>> spanned(pairs, small, exposure(small.system))[1].tolist()
    [True, False, True]
    """
    inside, alike = wanted.grouped(collapsed.group, collapsed.sizes)
    determined = np.zeros(wanted.count, np.bool_)
    for null in found.null:
        if null.rank == found.rank:
            sums = [inside.values(vector.astype(object)) for vector in null.vectors]
            determined |= ~np.any([np.mod(each, null.prime) != 0 for each in sums], axis=0)
    return inside, alike & determined


@dataclass(frozen=True)
class SingleValued:
    """The combinations that have one possible value, and those that were not decided."""

    values: Mapping[int, Fraction]
    undecided: frozenset[int]


def single_values(region: Region, wanted: Combinations) -> SingleValued:
    """Which combinations have one possible value, given the range of every column.

    The region's box is what is left of each column: one that can move has two different ends.

    >>> from casemate.exact.box import Box
    >>> from casemate.exact.system import System
    >>> sums = Region.of(System.of([[1, 1, 1]], [5]), Box.of(3, 0, 2))
    >>> single_values(sums, Combinations.of([{0: 1, 1: 1, 2: 1}, {0: 1}])).values
    {0: Fraction(5, 1)}
    """
    twins = collapse_region(region)
    inside, alike = wanted.grouped(twins.group, twins.size)
    fixed = np.array([end or 0 for end in region.box.low], object)
    known = twins.group[wanted.column] < 0
    constants = Combinations(
        wanted.count, wanted.which[known], wanted.column[known], wanted.weight[known]
    ).values(fixed)
    search = _GroupSearch(twins.region, inside, alike)
    search.run()
    values = {i: value + Fraction(constants[i]) for i, value in sorted(search.single.items())}
    return SingleValued(values, frozenset(search.undecided))


class _GroupSearch:
    """The combinations that no vertex has shown to be free."""

    def __init__(self, region: Region, wanted: Combinations, alike: NDArray[np.bool_]) -> None:
        self.single: dict[int, Fraction] = {}
        self.undecided: set[int] = set()
        self._scaled = Scaled.of(region)
        self._wanted, self._open = wanted, alike
        self._least = np.full(wanted.count, np.inf)
        self._most = np.full(wanted.count, -np.inf)

    def run(self) -> None:
        """Decide each, those that move by itself as by-catch of the others."""
        if not self._scaled.columns:
            self.single = dict.fromkeys(np.flatnonzero(self._open).tolist(), Fraction(0))
            return
        program = LinearProgram(self._scaled)
        for which in np.flatnonzero(self._open).tolist():
            if self._open[which]:
                self._decide(program, which)

    def _decide(self, program: LinearProgram, which: int) -> None:
        target = self._wanted.target(which)
        if not target:
            self.single[which] = Fraction(0)
            return
        ends = [self._end(program, which, target, sign) for sign in (1, -1)]
        if not self._open[which]:
            return
        low, high = ends
        if low is None or high is None:
            self.undecided.add(which)
            return
        for exact in (False, True):  # most are proved by simple fractions, at next to no cost
            least = self._proved(low, target, 1, exact)
            if least is not None and least == self._proved(high, target, -1, exact):
                self.single[which] = least
                return
        if not self._differ(low, high, target):
            self.undecided.add(which)

    def _end(self, program: LinearProgram, which: int, target: Target, sign: int) -> Vertex | None:
        """Where a combination is least or greatest; None where that was not found out."""
        costs = np.zeros(self._scaled.columns)
        costs[list(target)] = [sign * weight for weight in target.values()]
        status, vertex = program.minimise(costs)
        if status is Status.UNBOUNDED:
            self._open[which] = False
        if status is not Status.OPTIMAL:
            return None
        self._seen(vertex)
        return vertex

    def _proved(self, vertex: Vertex, target: Target, sign: int, exact: bool) -> Fraction | None:
        signed = {column: sign * weight for column, weight in target.items()}
        found = proved_minimum(vertex, signed, exact)
        return None if found is None else sign * self._scaled.restored(found)

    def _differ(self, low: Vertex, high: Vertex, target: Target) -> bool:
        """Whether two vertices, solved exactly, give the combination different values."""
        points = low.exact_point(), high.exact_point()
        totals = {
            sum((weight * point[column] for column, weight in target.items()), Fraction(0))
            for point in points
            if point is not None
        }
        return len(totals) > 1

    def _seen(self, vertex: Vertex) -> None:
        """Whatever differs between two vertices moves."""
        values = self._wanted.values(vertex.point)
        self._least = np.minimum(self._least, values)
        self._most = np.maximum(self._most, values)
        self._open = self._open & (self._most - self._least <= NEARLY)
