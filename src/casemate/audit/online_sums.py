"""Sums before they are answered: would they determine a value, or what a person's rows add up to?

Whether a sum determines anything follows from who is added up, and never from the answer; so a
refusal says nothing that the asker did not know.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.solve.equation import Equation
from casemate.solve.primes import RandomBytes
from casemate.solve.rank import RowSpace


@dataclass(frozen=True, eq=False)
class _Considered:
    """Equations as each space sees them, and the spaces with them added if they are several."""

    equations: tuple[Equation, ...]
    seen: list[list[Equation]]
    spaces: list[RowSpace] | None
    exposing: bool


class OnlineSums:
    """The sums answered so far over some unknowns.

    Where a person has several of them, their total is a secret too. It is looked for in a second
    space, in which it stands in the place of the person's first unknown.
    """

    def __init__(self, persons: NDArray[np.int64], random: RandomBytes | None = None) -> None:
        """`persons` names, for each unknown, the first one of the same person."""
        size = len(persons)
        several = bool((persons != np.arange(size)).any())
        self._persons = persons
        self._order = np.argsort(persons, kind="stable")
        self._start = np.searchsorted(persons[self._order], np.arange(size + 1))
        self._spaces = [RowSpace(size, random) for _ in range(2 if several else 1)]
        self._last: _Considered | None = None

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return self._spaces[0].rank

    def would_expose(self, equations: tuple[Equation, ...]) -> bool:
        """Whether answering all of these would determine anything that is not determined."""
        return self._considered(equations).exposing

    def record(self, equations: tuple[Equation, ...]) -> None:
        """Take note of sums that were answered."""
        considered = self._considered(equations)
        if considered.spaces is not None:
            self._spaces = considered.spaces
        else:
            for space, seen in zip(self._spaces, considered.seen, strict=True):
                for equation in seen:
                    space.add(equation)
        self._last = None

    def _considered(self, equations: tuple[Equation, ...]) -> _Considered:
        """Sums asked about and then recorded are looked at once."""
        if self._last is None or self._last.equations is not equations:
            self._last = self._consider(equations)
        return self._last

    def _consider(self, equations: tuple[Equation, ...]) -> _Considered:
        seen = [list(equations)]
        if len(self._spaces) > 1:
            seen.append([self._by_totals(each) for each in equations])
        if len(equations) == 1:
            asked = zip(self._spaces, seen, strict=True)
            exposing = any(space.would_determine(each[0]) for space, each in asked)
            return _Considered(equations, seen, None, exposing)
        spaces = [space.copy() for space in self._spaces]
        asked = zip(spaces, seen, strict=True)
        exposing = any(_determines(space, each) for space, each in asked)
        return _Considered(equations, seen, None if exposing else spaces, exposing)

    def _by_totals(self, equation: Equation) -> Equation:
        """The same sum with x1 = total - x2 - ... - xk put in for every first unknown x1."""
        columns, values = equation.columns, equation.values.astype(object)
        first = self._persons[columns] == columns
        begin, end = self._start[columns[first]] + 1, self._start[columns[first] + 1]
        others = self._order[_ranges(begin, end)]
        further = np.concatenate([columns, others])
        changes = np.concatenate([values, -np.repeat(values[first], end - begin)])
        distinct, place = np.unique(further, return_inverse=True)
        totals = np.zeros(len(distinct), object)
        np.add.at(totals, place, changes)
        kept = totals != 0
        return Equation(distinct[kept], totals[kept])


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of several ranges, one after the other.

    >>> _ranges(np.array([3, 9, 5]), np.array([5, 9, 6])).tolist()
    [3, 4, 5]
    """
    length = end - begin
    before = np.cumsum(length) - length
    numbers: NDArray[np.int64] = np.arange(length.sum()) + np.repeat(begin - before, length)
    return numbers


def _determines(space: RowSpace, equations: Sequence[Equation]) -> bool:
    """Add equations until one determines something."""
    return any(space.add(equation).determined for equation in equations)
