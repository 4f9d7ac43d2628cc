"""What owners learn from what they know: a single one about others, and a few together.

An unknown is a point modulo a prime: what random null vectors have in its place. Whatever holds for
all null vectors holds for these few, and the other way round up to chance.

Guarantee  A value follows from others iff its point lies in their span. Each size of coalition is
           searched in full within a budget, or it is reported as undecided. One found wrongly, by
           chance, has no certificate for the combination that it comes with.
           Two undetermined unknowns are kin iff some combination of the two is determined, that is
           iff in all random null vectors their values are in one proportion; then whoever knows one
           knows the other. Decided for all pairs at once, by any of the primes of full rank.
           Two that are not kin are taken for it with probability about 1/p^2 a pair.
Method     Modulo the span of all owners but one, what the last of them learns is in proportion to
           what he knows; an owner of several values learns whatever lies in the span of his own.
Limit      Needs two null vectors more than a coalition has values (`vectors_for`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, islice
from math import comb, gcd, isqrt, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.second import linked_components
from casemate.exact import Determined, NullVectors, reconstruct_rational

_INT64_SAFE_PRIME = 2**31  # products of smaller residues fit in 64 bits

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
    suffix_inverse, found = pow(product, -1, prime), [0] * len(numbers)
    for place in range(len(numbers) - 1, -1, -1):
        found[place] = suffix_inverse * running[place] % prime
        suffix_inverse = suffix_inverse * numbers[place] % prime
    return found


def wide(numbers: NDArray[Any], prime: int) -> NDArray[Any]:
    """The same residues in a type that holds the product of two."""
    return numbers.astype(np.int64 if prime < _INT64_SAFE_PRIME else object)


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
        remainder = [int(value) % prime for value in point]
        for line, pivot in zip(lines, pivots, strict=True):
            remainder = _less(remainder, line, remainder[pivot], prime)
        lead = next((place for place, value in enumerate(remainder) if value), None)
        if lead is None:
            continue
        scale = pow(remainder[lead], -1, prime)
        remainder = [value * scale % prime for value in remainder]
        lines = [*(_less(line, remainder, line[lead], prime) for line in lines), remainder]
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


# Coalitions -------------------------------------------------------------------------------------


COALITION_BUDGET_POINTS = 1_000_000
MAX_COALITIONS_FOUND = 20_000

Owners = tuple[int, ...]


@dataclass(frozen=True)
class LearnedPart:
    """Owners who learn one value: some multiples of theirs, and a number that is determined.

    `shares` is read off residues, so it is a proposal that a certificate must confirm; it is empty
    where the multiples are too large for that.
    """

    knows: frozenset[int]
    part: int
    shares: Mapping[int, Fraction] = field(hash=False, compare=False)

    @property
    def claim(self) -> dict[int, int]:
        """What has to be proved: the part less the shares of others, in whole numbers."""
        common = lcm(1, *(share.denominator for share in self.shares.values()))
        weights = {other: -int(share * common) for other, share in self.shares.items()}
        return {**weights, self.part: common}


def vectors_for(size: int, most_owned: int) -> int:
    """How many null vectors decide what coalitions of a size learn."""
    return size * most_owned + 2


def coalitions(
    null: NullVectors, owner: NDArray[np.int64], size: int, budget: int = COALITION_BUDGET_POINTS
) -> tuple[list[LearnedPart], bool]:
    """What exactly `size` owners learn together and no fewer do; whether that is all of it."""
    search = _CoalitionSearch(null, owner)
    if search.cost(size) > budget:
        return [], False
    found = list(islice(search.run(size), MAX_COALITIONS_FOUND + 1))
    return found[:MAX_COALITIONS_FOUND], len(found) <= MAX_COALITIONS_FOUND


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

    def run(self, size: int) -> Iterator[LearnedPart]:
        """Every coalition of one size that learns something only together."""
        for others in combinations(sorted(self._owned), size - 1):
            residues = seen_from(self._vectors, self._points(others), self._prime)
            for last, points in self._last(residues, others):
                knows = tuple(sorted((*others, last)))
                for point in points:
                    if self._all_needed(knows, point):
                        yield LearnedPart(frozenset(knows), point, self._shares(knows, point))

    def _points(self, owners: Sequence[int]) -> list[int]:
        return [point for each in owners for point in self._owned[each]]

    def _last(self, residues: NDArray[np.int64], others: Owners) -> Iterator[tuple[int, list[int]]]:
        """Who completes a coalition, each met once, and what it then learns."""
        labels = proportional(residues, self._prime)
        members: dict[int, list[int]] = {}
        for point in np.flatnonzero(labels >= 0).tolist():
            members.setdefault(int(labels[point]), []).append(point)
        for last in sorted(self._owned):
            if others and last < others[-1]:
                continue
            own = self._owned[last]
            if len(own) > 1:
                remaining = seen_from(residues, own, self._prime)
                learned = np.flatnonzero(~remaining.any(axis=0) & (labels >= 0)).tolist()
            else:
                learned = members.get(int(labels[own[0]]), [])
            yield last, [point for point in learned if int(self._owner[point]) != last]

    def _all_needed(self, knows: Owners, point: int) -> bool:
        """Whether no owner can be left out."""
        smaller = (self._points(some) for some in combinations(knows, len(knows) - 1))
        return all(self._residues(points, point) is None for points in smaller)

    def _residues(self, points: Sequence[int], point: int) -> list[int] | None:
        basis = self._vectors[:, list(points)].T.tolist()
        target = self._vectors[:, point].tolist()
        if not basis:
            return None if any(target) else []
        return shares(basis, target, self._prime)

    def _shares(self, knows: Owners, point: int) -> Mapping[int, Fraction]:
        """The multiples as fractions, where the prime is large enough to tell them all."""
        points, bound = self._points(knows), isqrt(self._prime // 2)
        residues = self._residues(points, point) or []
        read = [reconstruct_rational(residue, self._prime, bound) for residue in residues]
        named = {p: Fraction(*each) for p, each in zip(points, read, strict=True) if each}
        return {} if None in read else {p: share for p, share in named.items() if share}


# Kin: unknowns that determine each other --------------------------------------------------------


Ratios = dict[int, Fraction]
"""Unknowns of which each determines all others, with their ratios to the first of them."""


def kin(found: Determined) -> tuple[list[Ratios], int]:
    """All kin of a system whose null vectors are known; how often a ratio could not be read.

    One that is much too large may be taken for another; no certificate confirms that.
    """
    sound = [null for null in found.null if null.rank == found.rank]
    related = [each for null in sound for each in _proportional(null, found.determined)]
    label = linked_components(len(found.determined), related)
    linked_columns: dict[int, list[int]] = {}
    for column in sorted({int(column) for each in related for column in each}):
        linked_columns.setdefault(int(label[column]), []).append(column)
    families, unread = list[Ratios](), 0
    for columns in linked_columns.values():
        residues, modulus = _ratios(columns, sound)
        led: dict[int, Ratios] = {}  # by the place of the first member
        for place, column in enumerate(columns):
            for leader, family in led.items():
                ratio = _read(residues[place], residues[leader], modulus)
                if ratio is not None:
                    family[column] = ratio
                    break
            else:
                led[place] = {column: Fraction(1)}
        families += [family for family in led.values() if len(family) > 1]
        unread += len(led) - 1
    return families, unread


def _read(one: int, other: int, modulus: int) -> Fraction | None:
    """By what one unknown moves with another, given both ratios; None if too large to read."""
    if gcd(other, modulus) != 1:
        return None  # in one proportion for some of the primes only: not kin after all
    residue = one * pow(other, -1, modulus) % modulus
    read = reconstruct_rational(residue, modulus, 1 << (2 * modulus.bit_length() // 5))
    return None if read is None else Fraction(*read)


def _proportional(null: NullVectors, determined: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The columns whose values in the null vectors are in one proportion, where two or more are."""
    columns = np.flatnonzero(~determined)
    labels = proportional(null.vectors[:, columns], null.prime)
    shared = np.bincount(labels + 1)[labels + 1] > 1
    order = np.argsort(labels, kind="stable")
    order = order[shared[order] & (labels[order] >= 0)]
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return [part for part in np.split(columns[order], starts) if len(part)]


def _ratios(members: list[int], sound: Sequence[NullVectors]) -> tuple[list[int], int]:
    """The ratios to the first member, modulo the product of all primes."""
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
    return [residue % modulus for residue in residues], modulus
