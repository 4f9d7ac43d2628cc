"""Streams of queries in [0, 1]^D: how groups weigh in each, and near which directions they lie.

Source     Source document 000, section 2: queries q of a d-dimensional space U, and Theorem 2.1's
           concentration of their directions around an orthonormal basis of U; section 3: "some
           orthonormal basis" of the queries' space, for instance by principal components.
Cost       n^2 D time to find the directions of n queries, each used once; d D numbers are kept.
Departure  Non-negative unit vectors within the angle phi of orthonormal directions are nearly
           disjoint, so the concentrated streams here are nearly one group of coordinates at a time.
           OnlineBisection uses a query only within a small angle of a basis vector, so the basis
           has to consist of the directions of the queries themselves: the densest ones, made
           orthonormal. Principal components are those only by accident:
           `test_a_basis_of_principal_components_never_shrinks`.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial

import numpy as np

from casemate.attack.one_bit.oracle import Floats

STRAY_ANGLE_RATIO = 0.9
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
        return np.clip(self.coordinates @ self.basis, 0.0, 1.0)

    def __len__(self) -> int:
        return len(self.coordinates)


def printed_angle(dimensions: int) -> float:
    """How near a query must be to a direction of the basis to count: 2 arcsin(1 / 64 sqrt d)."""
    return 2 * math.asin(1 / (64 * math.sqrt(dimensions)))


def group_basis(size: int, dimensions: int) -> Floats:
    """Disjoint, nearly equal groups of coordinates as an orthonormal basis."""
    if not 1 <= dimensions <= size:
        raise ValueError(f"need between 1 and {size} dimensions, got {dimensions}")
    basis = np.zeros((dimensions, size))
    for direction, members in zip(basis, np.array_split(np.arange(size), dimensions), strict=True):
        direction[members] = 1 / math.sqrt(len(members))
    return basis


# Finding the directions near which queries concentrate ------------------------------------------


NEARLY_ORTHOGONAL = 0.5
"""Directions whose least singular value is below this are no basis of concentration."""


def concentrated_basis(queries: Floats, directions: int, angle: float) -> Floats | None:
    """The directions near which most queries are, made orthonormal; None when there are too few.

    Each is the mean of the largest group of queries within twice the angle of one of them. The
    nearest orthonormal vectors (the polar factor) undo a lean to all other directions alike.
    """
    lengths = np.linalg.norm(queries, axis=1)
    remaining = queries[lengths > 0] / lengths[lengths > 0, None]
    centres: list[Floats] = []
    while len(centres) < directions and len(remaining) > 0:
        centre = _densest(remaining, 2 * angle)
        centres.append(centre)
        remaining = remaining[remaining @ centre < math.cos(math.pi / 4)]
    if len(centres) < directions:
        return None
    outer, sizes, inner = np.linalg.svd(np.array(centres), full_matrices=False)
    return np.asarray(outer @ inner) if sizes[-1] > NEARLY_ORTHOGONAL else None


def _densest(rows: Floats, angle: float) -> Floats:
    """The mean direction of the largest group of rows within an angle of one of them."""
    near = rows @ rows.T >= math.cos(angle)
    mean = rows[near[int(near.sum(axis=0).argmax())]].mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean))


def principal_basis(queries: Floats, directions: int) -> Floats:
    """The first principal components of the queries, each pointing to where most of them are."""
    _, _, inner = np.linalg.svd(queries, full_matrices=False)
    chosen = inner[:directions]
    signs = np.where((queries @ chosen.T).sum(axis=0) < 0, -1.0, 1.0)
    return np.asarray(chosen * signs[:, None])


# How much each group weighs in each query -------------------------------------------------------


LEAST_MAIN_WEIGHT = 0.5
"""The least weight of the group that a query near one group is about."""


class Weighting(StrEnum):
    """How the weights of a query are drawn."""

    EVEN = "even"  # every group by an even number between 0 and 1
    SUBSETS = "subsets"  # every group is taken or left, and at least one is taken
    SINGLE = "single"  # nearly one group a query: what OnlineBisection needs


def draw_queries(kind: Weighting, reach: Floats, count: int, random: np.random.Generator) -> Floats:
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
    return LEAST_MAIN_WEIGHT * float(reach.min())


def _single(reach: Floats, count: int, random: np.random.Generator) -> Floats:
    """One group each, and so little of the others that the angle to it stays below phi.

    A group too small to lean that far weighs at most 1, and the angle is smaller.
    """
    groups = len(reach)
    chosen, rows = random.integers(groups, size=count), np.arange(count)
    main = reach[chosen] * random.uniform(LEAST_MAIN_WEIGHT, 1.0, count)
    found = np.abs(random.normal(size=(count, groups)))
    found[rows, chosen] = 0.0
    stray = STRAY_ANGLE_RATIO * math.tan(printed_angle(groups)) * random.random(count) * main
    lengths = np.maximum(np.linalg.norm(found, axis=1), np.finfo(np.float64).tiny)
    found = np.minimum(found * (stray / lengths)[:, None], reach)
    found[rows, chosen] = main
    return np.asarray(found)


# Streams over equal groups, for simulations -----------------------------------------------------


def group_stream(
    kind: Weighting, random: np.random.Generator, size: int, dimensions: int, count: int
) -> Stream:
    """Queries about nearly equal groups of the coordinates; a group of g ones is sqrt(g) long."""
    basis = group_basis(size, dimensions)
    return Stream(basis, draw_queries(kind, 1 / basis.max(axis=1), count, random))


near_basis = partial(group_stream, Weighting.SINGLE)
"""Queries each within the angle phi of one group's direction: what Theorem 2.1 needs."""

generic = partial(group_stream, Weighting.EVEN)
"""Queries that weigh every group by an even number between 0 and 1."""

subsets = partial(group_stream, Weighting.SUBSETS)
"""Queries that take each group or leave it, and at least one."""
