"""Equations one at a time: is this one new, and which unknowns does it determine?

`PivotBasis` decides in one finite field, and asks its caller for totals and a few single
coefficients only, which a database computes as sums; `RowSpace` stores equations and decides in two
fields at once.

Source     Source document 002, "Which records are exposed?": an unknown is determined iff its unit
           vector is a combination of the equations; the document takes one rank for each column.
Method     For a secret random v, an equation a is known by its total t = sum a_j v_j. Let I be the
           independent equations so far, B their pivot columns, M = A[I,B]^-1 and w = M t_I.
           An equation brings nothing new iff t = a_B . w. Row k of M A[I,:] is the unit vector of
           column B_k, that is x_{B_k} is determined, iff w_k = v_{B_k}. Only pivots can be
           determined, so r columns are looked at and not all of them.
Guarantee  What is determined modulo a prime is always found. Something else is taken for
           determined, or something new for old, with probability at most 1/p a test over v.
           `RowSpace` takes two random secret primes of 50 bits, each with fingerprints of its own.
           An unknown counts as determined when either says so, so a missed one means that both
           primes divide a minor. For a thousand 0/1 equations that has at most 5,000 bits, so 102
           of the 1.6e13 primes divide it: below 1e-22 for two. One claimed wrongly (probability
           below 2e-15 a column) has no certificate, see `certificate`.
Cost       At rank r, O(r^2) operations in double precision for a new equation, and O(r) for one
           that is not new; memory O(r^2) for a basis, whatever the number of columns.
Departure  Integers in place of the document's floating point, which misses most of the unknowns
           that seventy 0/1 equations determine;
           `test_a_float_rank_misses_what_the_anti_hadamard_queries_determine` shows it.
"""

import os
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact.modular import (
    SMALL_MATRIX_ROWS,
    WIDE_PRIME_BITS,
    Coefficients,
    CompiledInverse,
    Inverse,
    RandomBytes,
    SmallInverse,
    Vector,
    random_primes,
)
from casemate.exact.system import Equation, KeptEquations, weighted_sum


@dataclass(frozen=True)
class Pivot:
    """A column in which a new equation differs from its combination of the kept ones."""

    column: int
    fingerprint: int  # v_j
    coefficient: int  # in the new equation
    kept: Coefficients  # in each kept equation, in the order they were kept


FindPivot = Callable[[Vector], Pivot]
"""Given y, finds a column where the new equation is not y times the kept equations."""


@dataclass(frozen=True, eq=False)
class RankStep:
    """What an equation would do: nothing new, or one more pivot and these columns determined."""

    rank: int
    determined: tuple[int, ...] = ()
    pivot: Pivot | None = None
    combination: Vector | None = None  # y = a_B M
    direction: Vector | None = None  # M A[I,b]
    scale: int = 0  # 1 / (the residual in the new column)
    images: Vector | None = None  # w, afterwards

    @property
    def new(self) -> bool:
        """Whether the equation is no combination of the earlier ones."""
        return self.pivot is not None


class PivotBasis:
    """Independent equations modulo one prime, their pivots, and which of those are determined."""

    def __init__(self, prime: int) -> None:
        self.prime = prime
        self.pivots: list[int] = []
        self.determined: list[int] = []
        self._inverse: Inverse = SmallInverse(prime)
        self._fingerprints = self._images = self._inverse.vector([])

    @property
    def rank(self) -> int:
        """How many independent equations there are."""
        return len(self.pivots)

    def consider(self, total: int, on_pivots: Coefficients, find: FindPivot) -> RankStep:
        """Say what an equation would do, given t, its coefficients on the pivots, and a finder."""
        inverse = self._inverse
        row = inverse.vector(on_pivots)
        residual = (total - inverse.dot(row, self._images)) % self.prime
        if residual == 0:
            return RankStep(self.rank)
        combination = inverse.times_inverse(row)
        pivot = find(combination)
        direction = inverse.inverse_times(inverse.vector(pivot.kept))
        corner = (pivot.coefficient - inverse.dot(row, direction)) % self.prime
        if corner == 0:
            raise ValueError("the column found is not one in which the new equation differs")
        scale = pow(corner, -1, self.prime)
        image = residual * scale % self.prime
        images = inverse.minus(self._images, direction, image)
        determined = self._newly_determined(direction, images)
        if image == pivot.fingerprint % self.prime:
            determined = (*determined, pivot.column)
        extended = np.append(images, inverse.vector([image]))
        return RankStep(self.rank, determined, pivot, combination, direction, scale, extended)

    def commit(self, step: RankStep) -> None:
        """Take the equation of a step that was considered in the present state."""
        if step.rank != self.rank:
            raise ValueError("this step was considered before another equation was added")
        if step.pivot is None or step.combination is None or step.direction is None:
            return
        self._inverse.border(step.combination, step.direction, step.scale)
        fingerprint = self._inverse.vector([step.pivot.fingerprint])
        self._fingerprints = np.append(self._fingerprints, fingerprint)
        self._images = step.images if step.images is not None else self._images
        self.pivots.append(step.pivot.column)
        self.determined.extend(step.determined)
        self._switch_to_compiled()

    def copy(self) -> "PivotBasis":
        """Another one in the same state."""
        twin = copy(self)
        twin.pivots, twin.determined = list(self.pivots), list(self.determined)
        twin._inverse = self._inverse.copy()
        return twin

    def dot(self, coefficients: Coefficients, vector: Vector) -> int:
        """The sum of the products of integers with residues, modulo the prime."""
        return self._inverse.dot(self._inverse.vector(coefficients), vector)

    def times_inverse(self, row: Coefficients) -> Vector:
        """y with y A[I,B] equal to the row, modulo the prime."""
        return self._inverse.times_inverse(self._inverse.vector(row))

    def inverse_times(self, column: Coefficients) -> Vector:
        """x with A[I,B] x equal to the column, modulo the prime."""
        return self._inverse.inverse_times(self._inverse.vector(column))

    def _newly_determined(self, direction: Vector, images: Vector) -> tuple[int, ...]:
        """Pivots whose image moved (those of `direction`) onto their fingerprint."""
        moved = np.flatnonzero((direction != 0) & (images == self._fingerprints))
        return tuple(self.pivots[k] for k in moved.tolist())

    def _switch_to_compiled(self) -> None:
        """Leave Python's integers when they become slow."""
        inverse = self._inverse
        if (
            isinstance(inverse, SmallInverse)
            and inverse.size > SMALL_MATRIX_ROWS
            and self._compilable
        ):
            self._inverse = CompiledInverse(self.prime, inverse.entries())
            self._fingerprints = self._inverse.vector(self._fingerprints)
            self._images = self._inverse.vector(self._images)

    @cached_property
    def _compilable(self) -> bool:
        return self.prime.bit_length() == WIDE_PRIME_BITS


# Stored equations, in two fields ----------------------------------------------------------------


PRIME_COUNT = 2
_GOLDEN_STRIDE = 0x9E3779B1  # a prime near 2^32 / golden ratio: multiples of it spread evenly


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
            PrimeView(prime, np.frombuffer(draw(8 * columns), np.uint64))
            for prime in primes or random_primes(PRIME_COUNT, WIDE_PRIME_BITS, random)
        )
        self.kept = KeptEquations(columns)
        self.kept_equations: list[int] = []  # the position of each among those added
        self._added = 0
        self._scratch: NDArray[Any] = np.zeros(columns, np.int64)
        self._last: tuple[Equation, list[RankStep]] | None = None

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
        return self._new_columns(self._steps(equation))

    def add(self, equation: Equation) -> Added:
        """Add an equation and say what it did."""
        steps = self._steps(equation)
        determined = self._new_columns(steps)
        for view, step in zip(self.views, steps, strict=True):
            view.commit(step, self.kept.count)
        new = any(step.new for step in steps)
        if new:
            self.kept.append(equation)
            self.kept_equations.append(self._added)
        self._added += 1
        self._last = None
        return Added(new, determined)

    def copy(self) -> "RowSpace":
        """Another one with the same equations, which goes its own way from here."""
        twin = copy(self)
        twin.views = tuple(view.copy() for view in self.views)
        twin.kept, twin.kept_equations = self.kept.copy(), list(self.kept_equations)
        twin._last = None
        return twin

    def _steps(self, equation: Equation) -> list[RankStep]:
        """What each view makes of it; an equation asked about and then added is looked at once."""
        if self._last is None or self._last[0] is not equation:
            asked = EquationProbe(equation, self.kept, self._scratch)
            self._last = equation, [view.consider(asked) for view in self.views]
        return self._last[1]

    def _new_columns(self, steps: list[RankStep]) -> tuple[int, ...]:
        found = {column for step in steps for column in step.determined}
        return tuple(sorted(found.difference(self.determined))) if found else ()


class EquationProbe:
    """An equation beside the kept ones; what one view has looked up is there for the next."""

    def __init__(self, equation: Equation, kept: KeptEquations, scratch: NDArray[np.int64]) -> None:
        self.equation = equation
        self._kept, self._scratch = kept, scratch
        self._on: tuple[NDArray[np.int64], NDArray[Any]] | None = None
        self._at: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]] | None = None

    def on(self, columns: NDArray[np.int64]) -> NDArray[Any]:
        """The equation's coefficients in these columns."""
        if self._on is None or not np.array_equal(self._on[0], columns):
            self._on = columns, self.equation.on(columns, self._scratch)
        return self._on[1]

    def at(self, columns: NDArray[np.int64], slots: NDArray[np.int64]) -> NDArray[Any]:
        """The coefficients of the equations kept in these slots."""
        known = self._at
        if known is None or not all(map(np.array_equal, known, (columns, slots))):
            self._at = known = columns, slots, self._kept.at(columns, slots)
        return known[2]

    def candidates(
        self, slots: NDArray[np.int64], rank: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """The columns in which it can differ from these, in batches, and its coefficients there.

        They are its own and then the others'. Each time they begin elsewhere, so that earlier
        pivots, where it cannot differ, are rare among the first.
        """
        own = self.equation.columns
        for part in _batches(len(own), rank):
            yield own[part], self.equation.values[part]
        for support in map(self._kept.support, slots.tolist()):
            for part in _batches(len(support), rank):
                yield support[part], self.equation.on(support[part], self._scratch)


def _batches(count: int, turn: int) -> Iterator[slice]:
    """All of so many places, beginning elsewhere each turn: one, then more and more at a time."""
    begin = turn * _GOLDEN_STRIDE % max(1, count)
    for first, stop in ((begin, count), (0, begin)):
        start, size = first, 1
        while start < stop:
            yield slice(start, min(start + size, stop))
            start, size = start + size, min(4 * size, 1024)


class PrimeView:
    """The equations as one prime and one set of fingerprints see them."""

    def __init__(self, prime: int, fingerprints: NDArray[np.uint64]) -> None:
        self.basis = PivotBasis(prime)
        self.slots = np.zeros(0, np.int64)  # which of the kept equations are independent here
        self._pivots = np.zeros(0, np.int64)
        self._fingerprints = fingerprints

    def consider(self, asked: EquationProbe) -> RankStep:
        """Say what the equation would do."""

        def find(combination: Vector) -> Pivot:
            return self._find_pivot(asked, combination)

        total = asked.equation.total(self._fingerprints)
        return self.basis.consider(total, asked.on(self._pivots), find)

    def commit(self, step: RankStep, slot: int) -> None:
        """Take the equation, which will be kept in that slot."""
        self.basis.commit(step)
        if step.pivot is not None:
            self.slots = np.append(self.slots, slot)
            self._pivots = np.append(self._pivots, step.pivot.column)

    def copy(self) -> "PrimeView":
        """Another one that sees the same."""
        twin = copy(self)
        twin.basis = self.basis.copy()
        return twin

    def _find_pivot(self, asked: EquationProbe, combination: Vector) -> Pivot:
        """Look for a column where the equation is not this combination of the kept ones."""
        used = self.slots[np.flatnonzero(combination)]
        for columns, own in asked.candidates(used, self.basis.rank):
            others = asked.at(columns, self.slots)
            combined = self._combine(others, combination)
            for place, (coefficient, other) in enumerate(zip(own.tolist(), combined, strict=True)):
                if (coefficient - other) % self.basis.prime:
                    fingerprint = int(self._fingerprints[columns[place]])
                    return Pivot(int(columns[place]), fingerprint, coefficient, others[place])
        raise ValueError("the equation differs from the kept ones in no column")

    def _combine(self, lines: NDArray[Any], combination: Vector) -> list[int]:
        """What a combination of the kept equations has in some columns, modulo the prime."""
        if len(lines) == 1:
            return [self.basis.dot(lines[0], combination)]
        return weighted_sum(lines, combination.astype(np.uint64))
