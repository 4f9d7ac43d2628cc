"""Finding the directions near which queries concentrate.

Source     Source document 000, section 3: "some orthonormal basis" of the queries' space, for
           instance by principal components.
Departure  OnlineBisection uses a query only within a small angle of a basis vector, so the basis
           has to consist of the directions of the queries themselves: the densest ones, made
           orthonormal. Principal components are those only by accident:
           `test_a_basis_of_principal_components_never_shrinks`.
Cost       n^2 D time for n queries, each used once; d D numbers are kept.
"""

import math

import numpy as np

from casemate.solve.one_bit.protocol import Floats

NEARLY_ORTHOGONAL = 0.5
"""Directions whose least singular value is below this are no basis of concentration."""


def concentrated_basis(queries: Floats, directions: int, angle: float) -> Floats | None:
    """The directions near which most queries are, made orthonormal; None when there are too few.

    Each is the mean of the largest group of queries within twice the angle of one of them. The
    nearest orthonormal vectors (the polar factor) undo a lean to all other directions alike.
    """
    lengths = np.linalg.norm(queries, axis=1)
    left = queries[lengths > 0] / lengths[lengths > 0, None]
    found: list[Floats] = []
    while len(found) < directions and len(left) > 0:
        centre = _densest(left, 2 * angle)
        found.append(centre)
        left = left[left @ centre < math.cos(math.pi / 4)]
    if len(found) < directions:
        return None
    outer, sizes, inner = np.linalg.svd(np.array(found), full_matrices=False)
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


def checked_basis(basis: Floats, dimension: int) -> Floats:
    """A basis that is orthonormal and of the right width, one row for each direction."""
    given = np.ascontiguousarray(basis, np.float64)
    if given.ndim != 2 or given.shape[1] != dimension:
        raise ValueError(f"need a basis of rows of {dimension} numbers, got shape {given.shape}")
    if not np.allclose(given @ given.T, np.eye(len(given)), atol=1e-8):
        raise ValueError("need an orthonormal basis: rows of length 1 at right angles")
    return given
