"""Records in the support of a combination of equations, read out of linear sketches.

Source     The l0-sketch of the literature on streams: every record falls into one bucket, half of
           them on the first level, a quarter on the second, and so on; a bucket keeps the number of
           its members and the sums of pieces of their names.
Method     Sketches add up as equations do, so the sketch of a combination is the combination of
           sketches. A bucket in which one record is left has sums in the proportions of that
           record's name, and every piece of the quotient is within its limit.
Guarantee  A bucket of several records passes for one by chance of about the product of limit / p;
           the name found is then looked up, and belongs to nobody.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.solve.primes import NARROW
from casemate.solve.sketch import Places, Residues, Vanishing

_HALF = 2**12  # a factor of 23 bits is cut in two, so that 2^17 products add up exactly
_TERMS = 2**17


@dataclass(frozen=True, eq=False)
class Sketches:
    """For each equation and bucket: how many records there are, and sums of pieces of their names.

    `sums[0]` counts, and `sums[i]` adds up the i-th piece, which is below limits[i - 1]; each is
    equations x buckets.
    """

    sums: tuple[NDArray[np.int64], ...]
    limits: tuple[int, ...]


Name = tuple[int, ...]
"""The pieces of a record's name."""


class Sketched(Protocol):
    """Records that are known by the totals and the sketches of equations, and a few one by one."""

    @property
    def totals(self) -> NDArray[Any]:
        """For each equation the total of secret random numbers of its records."""

    @property
    def sketches(self) -> Sketches:
        """The sketch of every equation."""

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""

    def named(self, wanted: Iterable[Name]) -> Places:
        """The records of these names; a name may be nobody's."""

    def scanned(self, combination: Residues, prime: int, most: int) -> Places:
        """Some records at which a combination is not zero, found by evaluating it everywhere."""


class SketchSearch:
    """Looks for records at which combinations do not vanish: in sketches, and else by a scan."""

    def __init__(self, records: Sketched) -> None:
        self._records = records

    def differing(self, combinations: Vanishing, most: int) -> Places:
        """Up to `most` records at which some of the combinations are not zero; none if none is."""
        basis, prime = combinations.basis(), combinations.prime
        left = times(basis, self._records.totals[:, None], prime)[:, 0] != 0
        if not left.any():
            return np.zeros(0, np.int64)
        basis = basis[left]
        named = self._records.named(decode(basis, prime, self._records.sketches))
        there = times(basis, self._records.rows(named).astype(np.int64), prime)
        found = named[np.asarray(there != 0, np.bool_).any(axis=0)]
        if len(found):
            return found[:most]
        shortest = basis[np.argmin((basis != 0).sum(axis=1))]
        return self._records.scanned(shortest, prime, most)


def decode(combinations: NDArray[np.int64], prime: int, sketches: Sketches) -> list[Name]:
    """The names in buckets where a combination (one a row) leaves a single record.

    >>> one = Sketches((np.array([[2], [1]]), np.array([[30], [10]])), (64,))
    >>> decode(np.array([[1, 100]]), 101, one)  # the first less the second: names 10 and 20
    [(20,)]
    """
    counts, *pieces = (times(combinations, each, prime) for each in sketches.sums)
    there = np.nonzero(counts)
    inverse = np.array([pow(int(each), -1, prime) for each in counts[there]], object)
    names = [np.asarray(each[there] * inverse % prime, object) for each in pieces]
    good = np.ones(len(inverse), np.bool_)
    for name, limit in zip(names, sketches.limits, strict=True):
        good &= (name < limit).astype(np.bool_)
    found = zip(*(name[good] for name in names), strict=True)
    return list(dict.fromkeys(tuple(int(piece) for piece in name) for name in found))


def times(residues: NDArray[np.int64], numbers: NDArray[np.int64], prime: int) -> NDArray[Any]:
    """A product of matrices modulo a prime: in doubles, exactly, where the prime is narrow."""
    reduced = np.mod(numbers, prime)
    if prime.bit_length() > NARROW:
        return np.asarray(residues.astype(object) @ reduced.astype(object) % prime, object)
    total = np.zeros((len(residues), numbers.shape[1]))
    for start in range(0, numbers.shape[0], _TERMS):
        some = residues[:, start : start + _TERMS]
        part = reduced[start : start + _TERMS].astype(np.float64)
        high = np.mod((some // _HALF).astype(np.float64) @ part, prime) * _HALF
        total = np.mod(total + high + (some % _HALF).astype(np.float64) @ part, prime)
    return total.astype(np.int64)
