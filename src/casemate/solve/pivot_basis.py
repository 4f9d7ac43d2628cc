"""Which unknowns a growing set of equations determines, decided in one finite field.

Method     For a secret random v, an equation a is known by its total t = sum a_j v_j. Let I be the
           independent equations so far, B their pivot columns, M = A[I,B]^-1 and w = M t_I.
           An equation brings nothing new iff t = a_B . w. Row k of M A[I,:] is the unit vector of
           column B_k, that is x_{B_k} is determined, iff w_k = v_{B_k}. Only pivots can be
           determined, so r columns are looked at and not all of them.
Guarantee  What is determined modulo the prime is always found. Something else is taken for
           determined, or something new for old, with probability at most 1/p a test over v.
Cost       O(r^2) a new equation, O(r) one that brings nothing new; memory O(r^2), whatever the
           number of columns: the caller gives totals and a few single coefficients, which a
           database computes as sums.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from casemate.solve.modular import SMALL, Coefficients, Inverse, SmallInverse, Vector
from casemate.solve.primes import WIDE


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
class Step:
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

    def consider(self, total: int, on_pivots: Coefficients, find: FindPivot) -> Step:
        """Say what an equation would do, given t, its coefficients on the pivots, and a finder."""
        inverse = self._inverse
        row = inverse.vector(on_pivots)
        residual = (total - inverse.dot(row, self._images)) % self.prime
        if residual == 0:
            return Step(self.rank)
        combination = inverse.left(row)
        pivot = find(combination)
        direction = inverse.right(inverse.vector(pivot.kept))
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
        return Step(self.rank, determined, pivot, combination, direction, scale, extended)

    def commit(self, step: Step) -> None:
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
        self._grow_up()

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
        return self._inverse.left(self._inverse.vector(row))

    def inverse_times(self, column: Coefficients) -> Vector:
        """x with A[I,B] x equal to the column, modulo the prime."""
        return self._inverse.right(self._inverse.vector(column))

    def _newly_determined(self, direction: Vector, images: Vector) -> tuple[int, ...]:
        """Pivots whose image moved (those of `direction`) onto their fingerprint."""
        moved = np.flatnonzero((direction != 0) & (images == self._fingerprints))
        return tuple(self.pivots[k] for k in moved.tolist())

    def _grow_up(self) -> None:
        """Leave Python's integers when they become slow."""
        inverse = self._inverse
        if isinstance(inverse, SmallInverse) and inverse.size > SMALL and self._compilable:
            from casemate.solve.modular_kernel import CompiledInverse

            self._inverse = CompiledInverse(self.prime, inverse.entries())
            self._fingerprints = self._inverse.vector(self._fingerprints)
            self._images = self._inverse.vector(self._images)

    @cached_property
    def _compilable(self) -> bool:
        return self.prime.bit_length() == WIDE
