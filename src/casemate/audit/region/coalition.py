"""Insiders: whose values follow for a few owners who put what they know together.

Guarantee  A value follows from others iff its point (`projective`) lies in their span. Each size of
           coalition is searched in full within a budget, or it is reported as undecided. One found
           wrongly, by chance, has no certificate for the combination that it comes with.
Method     Modulo the span of all owners but one, what the last of them learns is in proportion to
           what he knows; an owner of several values learns whatever lies in the span of his own.
Limit      Needs two null vectors more than a coalition has values (`vectors_for`).

Points modulo a prime: which are in one proportion, and which lie in the span of others.

An unknown is a point: what random null vectors have in its place. Whatever holds for all null
vectors holds for these few, and the other way round up to chance.

Unknowns that determine each other: pairs, and what a single insider learns about the others.

Guarantee  Two undetermined unknowns are kin iff some combination of the two is determined, that is
           iff in all random null vectors their values are in one proportion; then whoever knows one
           knows the other. Decided for all pairs at once, by any of the primes of full rank.
           Two that are not kin are taken for it with probability about 1/p^2 a pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from math import comb, gcd, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.second import linked
from casemate.exact import Exposure, NullVectors, rational

_NARROW = 2**31  # products of smaller residues fit in 64 bits

Point = Sequence[int]


def proportional(vectors: NDArray[Any], prime: int) -> NDArray[np.int64]:
    """A number for each column, equal for those in one proportion; -1 where all are zero.

    >>> proportional(np.array([[1, 2, 0, 3], [2, 4, 0, 5]]), 11).tolist()
    [0, 0, -1, 1]
    """
    labels = np.full(vectors.shape[1], -1, np.int64)
    some = np.flatnonzero(vectors.any(axis=0))
    if not len(some):
        return labels
    chosen = vectors[:, some]
    lead = chosen[(chosen != 0).argmax(axis=0), np.arange(len(some))]
    scale = np.array(inverses(lead.tolist(), prime), object)
    scaled = (wide(chosen, prime) * scale.astype(wide(lead, prime).dtype) % prime).astype(np.int64)
    _, first, inverse = np.unique(scaled, axis=1, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    labels[some] = rank[inverse.ravel()]
    return labels


def inverses(numbers: Sequence[int], prime: int) -> list[int]:
    """The inverse of each number modulo the prime, with one division for all of them."""
    running, product = [], 1
    for number in numbers:
        running.append(product)
        product = product * number % prime
    left, found = pow(product, -1, prime), [0] * len(numbers)
    for place in range(len(numbers) - 1, -1, -1):
        found[place] = left * running[place] % prime
        left = left * numbers[place] % prime
    return found


def wide(numbers: NDArray[Any], prime: int) -> NDArray[Any]:
    """The same residues in a type that holds the product of two."""
    return numbers.astype(np.int64 if prime < _NARROW else object)


def seen_from(vectors: NDArray[Any], known: Sequence[int], prime: int) -> NDArray[Any]:
    """The points modulo the span of some columns: what is left to whoever knows those."""
    lines = annihilator(vectors[:, list(known)].T.tolist(), len(vectors), prime)
    matrix = wide(np.array(lines, object).reshape(len(lines), len(vectors)), prime)
    total = np.zeros((len(lines), vectors.shape[1]), matrix.dtype)
    for place, line in enumerate(wide(vectors, prime)):
        total = (total + matrix[:, place, None] * line) % prime
    return total


def annihilator(points: Sequence[Point], width: int, prime: int) -> list[list[int]]:
    """A basis of the vectors orthogonal to all points."""
    lines, pivots = echelon(points, prime)
    found = []
    for free in (place for place in range(width) if place not in pivots):
        vector = [0] * width
        vector[free] = 1
        for line, pivot in zip(lines, pivots, strict=True):
            vector[pivot] = -line[free] % prime
        found.append(vector)
    return found


def echelon(points: Sequence[Point], prime: int) -> tuple[list[list[int]], list[int]]:
    """A basis of the span, reduced, and the place of each leading 1."""
    lines: list[list[int]] = []
    pivots: list[int] = []
    for point in points:
        rest = [int(value) % prime for value in point]
        for line, pivot in zip(lines, pivots, strict=True):
            rest = _less(rest, line, rest[pivot], prime)
        lead = next((place for place, value in enumerate(rest) if value), None)
        if lead is None:
            continue
        scale = pow(rest[lead], -1, prime)
        rest = [value * scale % prime for value in rest]
        lines = [*(_less(line, rest, line[lead], prime) for line in lines), rest]
        pivots.append(lead)
    return lines, pivots


def _less(one: Point, other: Point, factor: int, prime: int) -> list[int]:
    return [(a - factor * b) % prime for a, b in zip(one, other, strict=True)]


def shares(points: Sequence[Point], target: Point, prime: int) -> list[int] | None:
    """How much of each point adds up to the target, using a basis of them; None if it is outside.

    >>> shares([[1, 0, 2], [0, 1, 1], [1, 1, 3]], [2, 3, 7], 101)
    [2, 3, 0]
    """
    columns = [list(each) for each in zip(*points, target, strict=True)]
    lines, pivots = echelon(columns, prime)
    if len(points) in pivots:
        return None
    found = [0] * len(points)
    for line, pivot in zip(lines, pivots, strict=True):
        found[pivot] = line[-1]
    return found


# Coalition --------------------------------------------------------------------------------------


BUDGET = 1_000_000
MOST_FOUND = 20_000

Owners = tuple[int, ...]


@dataclass(frozen=True)
class CoalitionFinding:
    """Owners who learn one value: some multiples of theirs, and a number that is determined.

    `shares` is read off residues, so it is a proposal that a certificate must confirm; it is None
    where the multiples are too large for that.
    """

    knows: Owners
    point: int
    shares: Mapping[int, Fraction] | None


@dataclass(frozen=True)
class Coalitions:
    """The smallest coalitions found, and the sizes that were not searched in full."""

    found: tuple[CoalitionFinding, ...]
    undecided: tuple[int, ...]


def vectors_for(size: int, most_owned: int) -> int:
    """How many null vectors decide what coalitions of a size learn."""
    return size * most_owned + 2


def coalitions(
    null: NullVectors, owner: NDArray[np.int64], size: int, budget: int = BUDGET
) -> Coalitions:
    """What exactly `size` owners learn together and no fewer of them do."""
    search = _CoalitionSearch(null, owner)
    if search.cost(size) > budget:
        return Coalitions((), (size,))
    found = tuple(islice(search.run(size), MOST_FOUND + 1))
    return Coalitions(found[:MOST_FOUND], (size,) if len(found) > MOST_FOUND else ())


class _CoalitionSearch:
    """The undetermined values, by owner."""

    def __init__(self, null: NullVectors, owner: NDArray[np.int64]) -> None:
        self._vectors, self._prime, self._owner = null.vectors, null.prime, owner
        self._owned: dict[int, list[int]] = {}
        for point in np.flatnonzero(null.vectors.any(axis=0)).tolist():
            self._owned.setdefault(int(owner[point]), []).append(point)
        self._several = [each for each, points in self._owned.items() if len(points) > 1]

    def cost(self, size: int) -> int:
        """How many points are looked at, about."""
        seats = comb(len(self._owned), size - 1)
        return seats * (1 + len(self._several)) * int(self._vectors.shape[1])

    def run(self, size: int) -> Iterator[CoalitionFinding]:
        """Every coalition of one size that learns something only together."""
        for others in combinations(sorted(self._owned), size - 1):
            left = seen_from(self._vectors, self._points(others), self._prime)
            for last, points in self._last(left, others):
                knows = tuple(sorted((*others, last)))
                for point in points:
                    if self._all_needed(knows, point):
                        yield CoalitionFinding(knows, point, self._shares(knows, point))

    def _points(self, owners: Sequence[int]) -> list[int]:
        return [point for each in owners for point in self._owned[each]]

    def _last(self, left: NDArray[np.int64], others: Owners) -> Iterator[tuple[int, list[int]]]:
        """Who completes a coalition, each met once, and what it then learns."""
        labels = proportional(left, self._prime)
        members: dict[int, list[int]] = {}
        for point in np.flatnonzero(labels >= 0).tolist():
            members.setdefault(int(labels[point]), []).append(point)
        for last in sorted(self._owned):
            if others and last < others[-1]:
                continue
            own = self._owned[last]
            if len(own) > 1:
                known = seen_from(left, own, self._prime)
                learned = np.flatnonzero(~known.any(axis=0) & (labels >= 0)).tolist()
            else:
                learned = members.get(int(labels[own[0]]), [])
            yield last, [point for point in learned if int(self._owner[point]) != last]

    def _all_needed(self, knows: Owners, point: int) -> bool:
        """Whether no owner can be left out."""
        smaller = (self._points(some) for some in combinations(knows, len(knows) - 1))
        return all(self._residues(points, point) is None for points in smaller)

    def _residues(self, points: Sequence[int], point: int) -> list[int] | None:
        known = self._vectors[:, list(points)].T.tolist()
        target = self._vectors[:, point].tolist()
        if not known:
            return None if any(target) else []
        return shares(known, target, self._prime)

    def _shares(self, knows: Owners, point: int) -> Mapping[int, Fraction] | None:
        """The multiples as fractions, where the prime is large enough to tell them."""
        points, bound = self._points(knows), isqrt(self._prime // 2)
        residues = self._residues(points, point) or []
        read = [rational(residue, self._prime, bound) for residue in residues]
        named = {p: Fraction(*each) for p, each in zip(points, read, strict=True) if each}
        return None if None in read else {p: share for p, share in named.items() if share}


# Kinship ----------------------------------------------------------------------------------------


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


def kin(found: Exposure) -> tuple[Kin, ...]:
    """All kin of a system whose null vectors are known."""
    sound = [null for null in found.null if null.rank == found.rank]
    related = [each for null in sound for each in _proportional(null, found.determined)]
    label = linked(len(found.determined), related)
    families: dict[int, list[int]] = {}
    for column in sorted({int(column) for each in related for column in each}):
        families.setdefault(int(label[column]), []).append(column)
    return tuple(_named(members, sound) for members in families.values())


def _proportional(null: NullVectors, determined: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The columns whose values in the null vectors are in one proportion, where two or more are."""
    columns = np.flatnonzero(~determined)
    labels = proportional(null.vectors[:, columns], null.prime)
    shared = np.bincount(labels + 1)[labels + 1] > 1
    order = np.argsort(labels, kind="stable")
    order = order[shared[order] & (labels[order] >= 0)]
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return [part for part in np.split(columns[order], starts) if len(part)]


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
