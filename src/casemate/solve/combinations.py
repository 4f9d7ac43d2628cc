"""Combinations of unknowns that are determined, though their parts may not be.

Guarantee  `spanned` decides by the null vectors of an elimination, as for single unknowns; what it
           says is proved by a certificate for the same target. A value that `single_values` gives
           is proved in exact rationals, from below and from above.
Method     Unknowns that no equation tells apart can be moved against each other, so a combination
           that treats them differently is never determined. Of the others, each vertex that a
           linear program comes to shows many to be free at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.bounds import NEARLY
from casemate.solve.box import Region
from casemate.solve.certificate import Target
from casemate.solve.certify import proved_minimum
from casemate.solve.collapse import Collapsed
from casemate.solve.exposure import Exposure
from casemate.solve.linear_program import LinearProgram, Status, Vertex
from casemate.solve.scaled import Scaled
from casemate.solve.twins import collapse


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
    wanted: Combinations, collapsed: Collapsed, found: Exposure
) -> tuple[Combinations, NDArray[np.bool_]]:
    """The combinations in terms of the collapsed columns, and which of them are determined.

    >>> from casemate.solve.collapse import collapse as alike
    >>> from casemate.solve.exposure import exposure
    >>> from casemate.solve.system import System
    >>> small = alike(System.of([[1, 1, 1, 0], [0, 0, 1, 0]]))
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
class Singles:
    """The combinations that have one possible value, and those that were not decided."""

    values: Mapping[int, Fraction]
    undecided: frozenset[int]


def single_values(region: Region, wanted: Combinations) -> Singles:
    """Which combinations have one possible value, given the range of every column.

    The region's box is what is left of each column: one that can move has two different ends.

    >>> from casemate.solve.box import Box
    >>> from casemate.solve.system import System
    >>> sums = Region.of(System.of([[1, 1, 1]], [5]), Box.of(3, 0, 2))
    >>> single_values(sums, Combinations.of([{0: 1, 1: 1, 2: 1}, {0: 1}])).values
    {0: Fraction(5, 1)}
    """
    twins = collapse(region)
    inside, alike = wanted.grouped(twins.group, twins.size)
    fixed = np.array([end or 0 for end in region.box.low], object)
    known = twins.group[wanted.column] < 0
    constants = Combinations(
        wanted.count, wanted.which[known], wanted.column[known], wanted.weight[known]
    ).values(fixed)
    search = _Search(twins.region, inside, alike)
    search.run()
    values = {i: value + Fraction(constants[i]) for i, value in sorted(search.single.items())}
    return Singles(values, frozenset(search.undecided))


class _Search:
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
