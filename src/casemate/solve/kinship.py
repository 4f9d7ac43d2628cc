"""Unknowns that determine each other: pairs, and what a single insider learns about the others.

Guarantee  Two undetermined unknowns are kin iff some combination of the two is determined, that is
           iff in all random null vectors their values are in one proportion; then whoever knows one
           knows the other. Decided for all pairs at once, by any of the primes of full rank.
           Two that are not kin are taken for it with probability about 1/p^2 a pair.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isqrt

import numpy as np

from casemate.solve.exposure import Exposure, exposure
from casemate.solve.lifting import rational
from casemate.solve.null_space import NullVectors
from casemate.solve.primes import RandomBytes
from casemate.solve.system import System


@dataclass(frozen=True)
class Kin:
    """Two or more unknowns of which each determines all others.

    x_j - ratio_j x_first is determined for each; a ratio too large to be read off is None.
    """

    columns: tuple[int, ...]
    ratios: tuple[Fraction | None, ...]

    def sums(self) -> Iterator[tuple[int, int]]:
        """The pairs whose sum is determined."""
        return self._pairs(-1)

    def differences(self) -> Iterator[tuple[int, int]]:
        """The pairs whose difference is determined."""
        return self._pairs(1)

    def _pairs(self, factor: int) -> Iterator[tuple[int, int]]:
        known = [(j, r) for j, r in zip(self.columns, self.ratios, strict=True) if r is not None]
        for (one, ratio), (other, its) in combinations(known, 2):
            if ratio == factor * its:
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
    parent = list(range(len(found.determined)))

    def root(column: int) -> int:
        while parent[column] != column:
            parent[column] = column = parent[parent[column]]
        return column

    sound = [null for null in found.null if null.rank == found.rank]
    for null in sound:
        for members in _proportional(null, found.determined).values():
            for other in members[1:]:
                parent[root(other)] = root(members[0])
    families = defaultdict(list)
    for column in np.flatnonzero(~found.determined).tolist():
        families[root(column)].append(column)
    return tuple(_named(members, sound[0]) for members in families.values() if len(members) > 1)


def _proportional(
    null: NullVectors, determined: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
) -> dict[tuple[int, ...], list[int]]:
    """Columns by their values in the null vectors, scaled so that the first non-zero one is 1."""
    prime, found = null.prime, defaultdict(list)
    for column in np.flatnonzero(~determined).tolist():
        values = null.vectors[:, column].tolist()
        lead = next((value for value in values if value), 0)
        if lead:
            scale = pow(lead, -1, prime)
            found[tuple(value * scale % prime for value in values)].append(column)
    return found


def _named(members: list[int], null: NullVectors) -> Kin:
    prime, bound = null.prime, isqrt(null.prime // 2)
    lead = next(k for k, value in enumerate(null.vectors[:, members[0]].tolist()) if value)
    values = [int(null.vectors[lead, column]) for column in members]
    scale = pow(values[0], -1, prime)
    read = [rational(value * scale % prime, prime, bound) for value in values]
    return Kin(tuple(members), tuple(None if each is None else Fraction(*each) for each in read))
