"""Streams of queries over groups: how much each group weighs in each.

Source  Source document 000, section 2: queries in [0, 1]^D. Theorem 2.1 is about streams near the
        directions of a basis, here nearly one group at a time.

Streams of queries in [0, 1]^D that lie in a space of fewer dimensions.

Source     Source document 000, section 2: queries q of a d-dimensional space U, and Theorem 2.1's
           concentration of their directions around an orthonormal basis of U.
Departure  Non-negative unit vectors within the angle phi of orthonormal directions are nearly
           disjoint, so the concentrated streams here are groups of coordinates, one at a time.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial

import numpy as np

from casemate.attack.one_bit.oracle import Floats

WITHIN = 0.9
"""How far queries near the basis stray at most, as a part of the angle phi."""


@dataclass(frozen=True, eq=False)
class Stream:
    """Queries, one a row: `coordinates` times an orthonormal `basis`."""

    basis: Floats  # d x D: C
    coordinates: Floats  # T x d: x = C q

    def __post_init__(self) -> None:
        if self.basis.ndim != 2 or self.coordinates.ndim != 2:
            raise ValueError("need a basis and coordinates of one row per vector")
        if self.coordinates.shape[1] != len(self.basis):
            raise ValueError(
                f"need a coordinate for each of the {len(self.basis)} directions of the basis, "
                f"got {self.coordinates.shape[1]}"
            )

    @cached_property
    def queries(self) -> Floats:
        """The queries themselves, T x D; made when first asked for."""
        return self.rows(0, len(self))

    def rows(self, start: int, stop: int) -> Floats:
        """Some of the queries, for streams too long to hold at once."""
        return np.clip(self.coordinates[start:stop] @ self.basis, 0.0, 1.0)

    def part(self, start: int, stop: int) -> "Stream":
        """A stream of some of the queries."""
        return Stream(self.basis, self.coordinates[start:stop])

    def __len__(self) -> int:
        return len(self.coordinates)


def angle(dimensions: int) -> float:
    """How near a query must be to a basis vector for OnlineBisection to use it: phi."""
    return 2 * math.asin(1 / (64 * math.sqrt(dimensions)))


def group_basis(size: int, dimensions: int) -> Floats:
    """Disjoint, nearly equal groups of coordinates as an orthonormal basis."""
    if not 1 <= dimensions <= size:
        raise ValueError(f"need between 1 and {size} dimensions, got {dimensions}")
    basis = np.zeros((dimensions, size))
    for direction, members in zip(basis, np.array_split(np.arange(size), dimensions), strict=True):
        direction[members] = 1 / math.sqrt(len(members))
    return basis


# One bit stream ---------------------------------------------------------------------------------


LIGHTEST = 0.5
"""The least weight of the group that a query near one group is about."""


class Weighting(StrEnum):
    """How the weights of a query are drawn."""

    EVEN = "even"  # every group by an even number between 0 and 1
    SUBSETS = "subsets"  # every group is taken or left, and at least one is taken
    SINGLE = "single"  # nearly one group a query: what OnlineBisection needs


def drawn_queries(
    kind: Weighting, reach: Floats, count: int, random: np.random.Generator
) -> Floats:
    """So many queries, one a row: weights times what each group can add."""
    if kind is Weighting.EVEN:
        return random.random((count, len(reach))) * reach
    if kind is Weighting.SINGLE:
        return _single(reach, count, random)
    taken = random.random((count, len(reach))) < 0.5
    none = np.flatnonzero(~taken.any(axis=1))
    taken[none, random.integers(len(reach), size=none.size)] = True
    return taken * reach


def shortest_single(reach: Floats) -> float:
    """The least Euclidean length of a query near one group."""
    return LIGHTEST * float(reach.min())


def _single(reach: Floats, count: int, random: np.random.Generator) -> Floats:
    """One group each, and so little of the others that the angle to it stays below phi.

    A group too small to lean that far weighs at most 1, and the angle is smaller.
    """
    groups = len(reach)
    chosen, rows = random.integers(groups, size=count), np.arange(count)
    main = reach[chosen] * random.uniform(LIGHTEST, 1.0, count)
    found = np.abs(random.normal(size=(count, groups)))
    found[rows, chosen] = 0.0
    stray = WITHIN * math.tan(angle(groups)) * random.random(count) * main
    lengths = np.maximum(np.linalg.norm(found, axis=1), np.finfo(np.float64).tiny)
    found = np.minimum(found * (stray / lengths)[:, None], reach)
    found[rows, chosen] = main
    return np.asarray(found)


# Streams over equal groups, for simulations -------------------------------------------------------


def group_stream(
    kind: Weighting, random: np.random.Generator, size: int, dimensions: int, count: int
) -> Stream:
    """Queries about nearly equal groups of the coordinates; a group of g ones is sqrt(g) long."""
    basis = group_basis(size, dimensions)
    return Stream(basis, drawn_queries(kind, 1 / basis.max(axis=1), count, random))


near_basis = partial(group_stream, Weighting.SINGLE)
"""Queries each within the angle phi of one group's direction: what Theorem 2.1 needs."""

generic = partial(group_stream, Weighting.EVEN)
"""Queries that weigh every group by an even number between 0 and 1."""

subsets = partial(group_stream, Weighting.SUBSETS)
"""Queries that take each group or leave it, and at least one."""
