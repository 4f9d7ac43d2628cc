"""Unknowns that determine each other: pairs, and what a single insider learns about the others.

Guarantee  Two undetermined unknowns are kin iff some combination of the two is determined, that is
           iff in all random null vectors their values are in one proportion; then whoever knows one
           knows the other. Decided for all pairs at once, by any of the primes of full rank.
           Two that are not kin are taken for it with probability about 1/p^2 a pair.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import gcd

import numpy as np
from numpy.typing import NDArray

from casemate.solve.exposure import Exposure, exposure
from casemate.solve.lifting import rational
from casemate.solve.null_space import NullVectors
from casemate.solve.primes import RandomBytes
from casemate.solve.projective import proportional
from casemate.solve.system import System


@dataclass(frozen=True)
class Kin:
    """Two or more unknowns of which each determines all others.

    x_j - ratio x_first is determined for each, and `residues` has its ratio modulo `modulus`.
    """

    columns: tuple[int, ...]
    residues: tuple[int, ...]
    modulus: int

    def ratio(self, one: int, other: int) -> Fraction | None:
        """By what the unknown in one place moves with that in another; None if too large to read.

        One that is much too large may be taken for another; no certificate confirms that.
        """
        if gcd(self.residues[other], self.modulus) != 1:
            return None  # in one proportion for some of the primes only: not kin after all
        residue = self.residues[one] * pow(self.residues[other], -1, self.modulus) % self.modulus
        read = rational(residue, self.modulus, 1 << (2 * self.modulus.bit_length() // 5))
        return None if read is None else Fraction(*read)

    def sums(self) -> Iterator[tuple[int, int]]:
        """The pairs whose sum is determined."""
        return self._pairs(-1)

    def differences(self) -> Iterator[tuple[int, int]]:
        """The pairs whose difference is determined."""
        return self._pairs(1)

    def _pairs(self, factor: int) -> Iterator[tuple[int, int]]:
        named = zip(self.columns, self.residues, strict=True)
        for (one, residue), (other, its) in combinations(named, 2):
            if (residue - factor * its) % self.modulus == 0:
                yield one, other


def pairs(system: System, random: RandomBytes | None = None) -> tuple[Kin, ...]:
    """All kin of a system.

    >>> family, = pairs(System.of([[1, 1, 0, 0]]))
    >>> family.columns, list(family.sums())
    ((0, 1), [(0, 1)])
    """
    return kin(exposure(system, random))


def kin(found: Exposure) -> tuple[Kin, ...]:
    """All kin of a system whose null vectors are known."""
    parent: dict[int, int] = {}

    def root(column: int) -> int:
        while parent[column] != column:
            parent[column] = column = parent[parent[column]]
        return column

    sound = [null for null in found.null if null.rank == found.rank]
    for null in sound:
        for members in _proportional(null, found.determined):
            for column in members:
                parent.setdefault(column, column)
                parent[root(column)] = root(members[0])
    families = defaultdict(list)
    for column in sorted(parent):
        families[root(column)].append(column)
    return tuple(_named(members, sound) for members in families.values())


def _proportional(null: NullVectors, determined: NDArray[np.bool_]) -> list[list[int]]:
    """The columns whose values in the null vectors are in one proportion, where two or more are."""
    columns = np.flatnonzero(~determined)
    labels = proportional(null.vectors[:, columns], null.prime)
    shared = np.bincount(labels + 1)[labels + 1] > 1
    order = np.argsort(labels, kind="stable")
    order = order[shared[order] & (labels[order] >= 0)]
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return [part.tolist() for part in np.split(columns[order], starts) if len(part)]


def _named(members: list[int], sound: Sequence[NullVectors]) -> Kin:
    """The ratios to the first member, from all primes together."""
    modulus, residues = 1, [0] * len(members)
    for null in sound:
        lead = next(k for k, value in enumerate(null.vectors[:, members[0]].tolist()) if value)
        values = [int(null.vectors[lead, column]) for column in members]
        scale = pow(values[0], -1, null.prime)
        step = modulus * pow(modulus, -1, null.prime)
        residues = [
            r + (value * scale - r) * step for r, value in zip(residues, values, strict=True)
        ]
        modulus *= null.prime
    return Kin(tuple(members), tuple(residue % modulus for residue in residues), modulus)
