"""A known solution of a region, and the changes that lead from it to others.

A second solution usually differs from the known one in few columns, so it is kept, and checked
in exact arithmetic, as what it changes: only the equations that the change touches are read.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.solve.box import Bound, Box, Region, within
from casemate.solve.system import System

Change = dict[int, Fraction]
"""The columns in which a second solution differs, and their values in it."""


class Solution:
    """A solution of a region.

    >>> from casemate.solve.box import Box
    >>> region = Region.of(System.of([[1, 1, 1]], [9]), Box.of(3, 0, 9))
    >>> known = Solution(region, [Fraction(2), Fraction(3), Fraction(4)])
    >>> known.allows({0: Fraction(3), 1: Fraction(2)}), known.allows({0: Fraction(3)})
    (True, False)
    """

    def __init__(self, region: Region, values: Sequence[Fraction]) -> None:
        if not region.contains(values):
            raise ValueError("the known solution must keep the bounds, the types and the equations")
        self.region, self.values = region, tuple(values)
        system = region.system
        order = np.argsort(system.column, kind="stable")
        self._row, self._value = system.row[order], system.value[order]
        self._start = np.searchsorted(system.column[order], np.arange(system.columns + 1))
        self._sums = [
            sum((a * values[j] for j, a in line), Fraction(0)) for line in region.equations
        ]

    def allows(self, change: Change) -> bool:
        """Whether the solution with this change is one too."""
        box, shifts = self.region.box, dict[int, Fraction]()
        for column, value in change.items():
            if not within(value, box.low[column], box.high[column]):
                return False
            if box.integer[column] and value.denominator != 1:
                return False
            moved = value - self.values[column]
            for row, a in self._entries(column):
                shifts[row] = shifts.get(row, Fraction(0)) + a * moved
        return all(
            within(self._sums[row] + shift, self.region.low[row], self.region.high[row])
            for row, shift in shifts.items()
        )

    def change_to(self, values: Sequence[Fraction | int]) -> Change:
        """What must change for these values."""
        pairs = enumerate(zip(self.values, values, strict=True))
        return {column: Fraction(new) for column, (old, new) in pairs if old != new}

    def far(self, change: Change, width: Sequence[Fraction]) -> set[int]:
        """The columns that a change moves by their width or more."""
        return {c for c, value in change.items() if abs(value - self.values[c]) >= width[c]}

    def _entries(self, column: int) -> Iterator[tuple[int, int]]:
        span = slice(self._start[column], self._start[column + 1])
        return zip(self._row[span].tolist(), self._value[span].tolist(), strict=True)


def components(system: System, counts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each column, the same for columns that equations link; -1 if it does not count.

    >>> links = System.of([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    >>> components(links, np.array([True, True, False, True])).tolist()
    [0, 0, -1, 3]
    """
    kept = counts[system.column]
    row, column = system.row[kept], system.column[kept]
    label = np.arange(system.columns)
    while True:
        least = np.full(system.rows, system.columns)
        np.minimum.at(least, row, label[column])
        fresh = label.copy()
        np.minimum.at(fresh, column, least[row])
        fresh = fresh[fresh]
        if (fresh == label).all():
            return np.where(counts, label, -1)
        label = fresh


def part(region: Region, columns: NDArray[np.int64]) -> Region:
    """The region of these columns alone, given that all others they meet have one value.

    >>> box = Box((Fraction(0),) * 3, (Fraction(9), Fraction(9), Fraction(0)), (False,) * 3)
    >>> smaller = part(Region.of(System.of([[1, 1, 1]], [4]), box), np.array([0, 1]))
    >>> smaller.system.dense(), smaller.low
    ([[1, 1]], (Fraction(4, 1),))
    """
    system, box = region.system, region.box
    place = np.full(system.columns, -1, np.int64)
    place[columns] = np.arange(len(columns))
    inside = place[system.column] >= 0
    rows = np.unique(system.row[inside])
    line = np.full(system.rows, -1, np.int64)
    line[rows] = np.arange(len(rows))
    shift = [Fraction(0)] * len(rows)
    for entry in np.flatnonzero(~inside & (line[system.row] >= 0)).tolist():
        value = box.low[system.column[entry]]
        shift[line[system.row[entry]]] += int(system.value[entry]) * (value or 0)
    entries = line[system.row[inside]], place[system.column[inside]], system.value[inside]
    own = columns.tolist()
    return Region(
        System(len(rows), len(columns), *entries),
        Box(
            tuple(box.low[c] for c in own),
            tuple(box.high[c] for c in own),
            tuple(box.integer[c] for c in own),
        ),
        _shifted([region.low[row] for row in rows.tolist()], shift),
        _shifted([region.high[row] for row in rows.tolist()], shift),
    )


def _shifted(ends: Sequence[Bound], shift: Sequence[Fraction]) -> tuple[Bound, ...]:
    return tuple(None if e is None else e - s for e, s in zip(ends, shift, strict=True))
