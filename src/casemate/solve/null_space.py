"""Random solutions of A z = 0 modulo a prime: what they have in common is what is determined.

An unknown is determined iff z is zero there for every solution z; two unknowns determine each other
iff their values are in one proportion in every solution. A few random solutions decide both, except
with probability about 1 / p^vectors.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.solve.elimination import Lines
from casemate.solve.equation import Equation
from casemate.solve.pivot_basis import PivotBasis
from casemate.solve.primes import RandomBytes, random_below
from casemate.solve.system import System

VECTORS = 3


@dataclass(frozen=True, eq=False)
class NullVectors:
    """Random solutions of A z = 0 modulo a prime, one a row of non-negative int64."""

    prime: int
    rank: int
    vectors: NDArray[np.int64]

    def zero(self) -> NDArray[np.bool_]:
        """Where all of them vanish: the columns determined modulo this prime."""
        return np.asarray(~self.vectors.any(axis=0), np.bool_)


def through_basis(
    basis: PivotBasis,
    kept: list[Equation],
    columns: int,
    random: RandomBytes | None = None,
    vectors: int = VECTORS,
) -> NullVectors:
    """Null vectors of the equations a basis keeps: free columns at random, pivots to match."""
    free = np.setdiff1d(np.arange(columns), basis.pivots)
    found = np.zeros((vectors, columns), np.int64)
    for vector in found:
        vector[free] = [random_below(basis.prime, random) for _ in free]
        totals = [-equation.total(vector.astype(np.uint64)) for equation in kept]
        vector[basis.pivots] = basis.inverse_times(residues(totals, basis.prime)).astype(np.int64)
    return NullVectors(basis.prime, basis.rank, found)


def residues(numbers: list[int], prime: int) -> NDArray[Any]:
    """Integers of any size modulo the prime."""
    return np.array([number % prime for number in numbers], np.int64)


def annuls(system: System, null: NullVectors) -> bool:
    """Whether A z = 0 modulo the prime for every vector and every equation of the system."""
    lines = Lines.of(system, null.prime, None)
    return bool(lines.annulled(null.vectors.T.astype(np.float64), null.prime).all())
