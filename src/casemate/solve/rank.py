"""Equations one at a time: is this one new, and whose value does it give away?

Source     Source document 002, "Which records are exposed?": an unknown is determined iff its unit
           vector is a combination of the equations; the document takes one rank for each column.
Guarantee  Everything is decided modulo two random secret primes of 61 bits, each with fingerprints
           of its own. An unknown counts as determined when either says so, so a missed one means
           that both primes divide a minor: below 1e-28 for a thousand 0/1 equations. One claimed
           wrongly (probability below 1e-15 a column) has no certificate, see `certificate`.
Cost       O(r^2) 64-bit operations for a new equation at rank r, and O(r) for one that is not.
Departure  Integers in place of the document's floating point, which misses most of the unknowns
           that seventy 0/1 equations determine;
           `test_a_float_rank_misses_what_the_anti_hadamard_queries_determine` shows it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.equation import Equation, KeptEquations, weighted_sum
from casemate.solve.modular import Vector
from casemate.solve.pivot_basis import Pivot, PivotBasis, Step
from casemate.solve.primes import WIDE, RandomBytes, random_primes

PRIMES = 2


@dataclass(frozen=True)
class Added:
    """What an equation did: whether it was new, and which columns it determined."""

    new: bool
    determined: tuple[int, ...]


class RowSpace:
    """The combinations of the equations added so far, over `columns` unknowns.

    >>> space = RowSpace(3)
    >>> space.add(Equation.of({0: 1, 1: 1, 2: 1}))
    Added(new=True, determined=())
    >>> space.would_determine(Equation.of({1: 1, 2: 1}))
    (0,)
    """

    def __init__(
        self,
        columns: int,
        random: RandomBytes | None = None,
        primes: tuple[int, ...] | None = None,
    ) -> None:
        draw = random or os.urandom
        self.columns = columns
        self.views = tuple(
            View(prime, np.frombuffer(draw(8 * columns), np.uint64))
            for prime in primes or random_primes(PRIMES, WIDE, random)
        )
        self.kept = KeptEquations(columns)
        self.kept_equations: list[int] = []  # the position of each among those added
        self._added = 0
        self._scratch: NDArray[Any] = np.zeros(columns, np.int64)
        self._last: tuple[Equation, list[Step]] | None = None

    @property
    def rank(self) -> int:
        """How many of the equations are independent."""
        return max(view.basis.rank for view in self.views)

    @property
    def determined(self) -> tuple[int, ...]:
        """Every column determined so far."""
        return tuple(sorted({j for view in self.views for j in view.basis.determined}))

    def would_determine(self, equation: Equation) -> tuple[int, ...]:
        """The further columns that would be determined if this equation were added."""
        return self._newly(self._steps(equation))

    def add(self, equation: Equation) -> Added:
        """Add an equation and say what it did."""
        steps = self._steps(equation)
        determined = self._newly(steps)
        for view, step in zip(self.views, steps, strict=True):
            view.commit(step, self.kept.count)
        new = any(step.new for step in steps)
        if new:
            self.kept.append(equation)
            self.kept_equations.append(self._added)
        self._added += 1
        self._last = None
        return Added(new, determined)

    def _steps(self, equation: Equation) -> list[Step]:
        """What each view makes of it; an equation asked about and then added is looked at once."""
        if self._last is None or self._last[0] is not equation:
            steps = [view.consider(equation, self.kept, self._scratch) for view in self.views]
            self._last = equation, steps
        return self._last[1]

    def _newly(self, steps: list[Step]) -> tuple[int, ...]:
        found = {column for step in steps for column in step.determined}
        return tuple(sorted(found.difference(self.determined))) if found else ()


class View:
    """The equations as one prime and one set of fingerprints see them."""

    def __init__(self, prime: int, fingerprints: NDArray[np.uint64]) -> None:
        self.basis = PivotBasis(prime)
        self.slots: list[int] = []  # which of the kept equations are independent here
        self._fingerprints = fingerprints

    def consider(self, equation: Equation, kept: KeptEquations, scratch: NDArray[np.int64]) -> Step:
        """Say what the equation would do."""
        pivots = np.array(self.basis.pivots, np.int64)

        def find(combination: Vector) -> Pivot:
            return self._differing(equation, kept, combination, scratch)

        total = equation.total(self._fingerprints)
        return self.basis.consider(total, equation.on(pivots, scratch), find)

    def commit(self, step: Step, slot: int) -> None:
        """Take the equation, which will be kept in that slot."""
        self.basis.commit(step)
        if step.new:
            self.slots.append(slot)

    def _differing(
        self,
        equation: Equation,
        kept: KeptEquations,
        combination: Vector,
        scratch: NDArray[np.int64],
    ) -> Pivot:
        """Look for a column where the equation is not this combination of the kept ones."""
        slots, prime = np.array(self.slots, np.int64), self.basis.prime
        for columns in self._candidates(equation, kept, combination):
            own = equation.on(columns, scratch).tolist()
            made = weighted_sum(kept.at(columns, slots), combination)
            for column, coefficient, other in zip(columns.tolist(), own, made, strict=True):
                if (coefficient - other) % prime:
                    fingerprint = int(self._fingerprints[column])
                    return Pivot(column, fingerprint, coefficient, kept.at(column, slots))
        raise ValueError("the equation differs from the kept ones in no column")

    def _candidates(
        self, equation: Equation, kept: KeptEquations, combination: Vector
    ) -> Iterator[NDArray[np.int64]]:
        """The columns it can differ in, in batches: its own, then its combination's."""
        used = np.flatnonzero(combination).tolist()
        supports = chain([equation.columns], (kept.support(self.slots[k]) for k in used))
        size = 4
        for support in supports:
            start = 0
            while start < len(support):
                yield support[start : start + size]
                start, size = start + size, min(4 * size, 1024)
            size = 4
