"""Insiders: whose values follow for a few owners who put what they know together.

Guarantee  A value follows from others iff its point (`projective`) lies in their span. Each size of
           coalition is searched in full within a budget, or it is reported as undecided. One found
           wrongly, by chance, has no certificate for the combination that it comes with.
Method     Modulo the span of all owners but one, what the last of them learns is in proportion to
           what he knows; an owner of several values learns whatever lies in the span of his own.
Limit      Needs two null vectors more than a coalition has values (`vectors_for`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from math import comb, isqrt

import numpy as np
from numpy.typing import NDArray

from casemate.solve.lifting import rational
from casemate.solve.null_space import NullVectors
from casemate.solve.projective import proportional, seen_from, shares

BUDGET = 1_000_000
MOST_FOUND = 20_000

Owners = tuple[int, ...]


@dataclass(frozen=True)
class Learned:
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

    found: tuple[Learned, ...]
    undecided: tuple[int, ...]


def vectors_for(size: int, most_owned: int) -> int:
    """How many null vectors decide what coalitions of a size learn."""
    return size * most_owned + 2


def coalitions(
    null: NullVectors, owner: NDArray[np.int64], size: int, budget: int = BUDGET
) -> Coalitions:
    """What exactly `size` owners learn together and no fewer of them do."""
    search = _Search(null, owner)
    if search.cost(size) > budget:
        return Coalitions((), (size,))
    found = tuple(islice(search.run(size), MOST_FOUND + 1))
    return Coalitions(found[:MOST_FOUND], (size,) if len(found) > MOST_FOUND else ())


class _Search:
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

    def run(self, size: int) -> Iterator[Learned]:
        """Every coalition of one size that learns something only together."""
        for others in combinations(sorted(self._owned), size - 1):
            left = seen_from(self._vectors, self._points(others), self._prime)
            for last, points in self._last(left, others):
                knows = tuple(sorted((*others, last)))
                for point in points:
                    if self._all_needed(knows, point):
                        yield Learned(knows, point, self._shares(knows, point))

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
