import math

import numpy as np
import pytest

from casemate.attack.one_bit.bisection import (
    checked_basis,
    concentrated_basis,
    principal_basis,
    printed_angle,
)
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import Stream, generic, near_basis

SHAPES = [(16, 2), (64, 4), (64, 8), (30, 7)]


def shares(stream: Stream, basis: Floats) -> Floats:
    """The share of the queries within the angle of each direction."""
    lengths = np.linalg.norm(stream.queries, axis=1, keepdims=True)
    near = stream.queries @ basis.T >= math.cos(printed_angle(len(basis))) * lengths
    return np.asarray(near.mean(axis=0))


@pytest.mark.parametrize(("dimension", "directions"), SHAPES)
def test_the_directions_of_a_concentrated_stream_are_found(
    dimension: int, directions: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    stream = near_basis(rng, dimension, directions, 2_000)
    found = concentrated_basis(
        stream.queries[: 64 * directions], directions, printed_angle(directions)
    )
    assert found is not None
    np.testing.assert_allclose(found @ found.T, np.eye(directions), atol=1e-12)
    assert shares(stream, found).min() > 0.6 / directions
    assert shares(stream, found).sum() > 0.98
    outside = stream.queries - stream.queries @ found.T @ found
    assert np.abs(outside).max() < 1e-9  # the space is the same


@pytest.mark.parametrize(("dimension", "directions"), SHAPES)
def test_principal_components_are_near_at_most_one_of_them(
    dimension: int, directions: int, seed: int
) -> None:
    stream = near_basis(np.random.default_rng(seed), dimension, directions, 2_000)
    centred = stream.queries - stream.queries.mean(axis=0)
    for queries in (stream.queries, centred):
        principal = principal_basis(queries, directions)
        np.testing.assert_allclose(principal @ principal.T, np.eye(directions), atol=1e-12)
        assert np.count_nonzero(shares(stream, principal)) <= 1


def test_directions_are_found_among_queries_that_are_near_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    near, astray = near_basis(rng, 32, 4, 200), generic(rng, 32, 4, 100)
    queries = rng.permutation(np.concatenate([near.queries, astray.queries]))
    found = concentrated_basis(queries, 4, printed_angle(4))
    assert found is not None
    assert shares(near, found).min() > 0.1


def test_a_stream_without_enough_directions_has_none(seed: int) -> None:
    one = np.ones((50, 8)) * np.linspace(0.1, 1, 50)[:, None]
    assert concentrated_basis(one, 2, 0.02) is None
    assert concentrated_basis(np.zeros((50, 8)), 1, 0.02) is None


@pytest.mark.parametrize(("lean", "usable"), [(0.1, True), (0.69, False)])
def test_directions_that_lean_to_each_other_are_no_basis(lean: float, usable: bool) -> None:
    """Two at right angles, and a third that leans to both."""
    third = np.array([lean, lean, math.sqrt(1 - 2 * lean**2)])
    queries = np.repeat([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], third], 3, axis=0)
    assert (concentrated_basis(queries, 3, 0.02) is not None) == usable


@pytest.mark.parametrize("wrong", [np.ones((2, 4)), np.eye(3), np.ones(4), 2 * np.eye(4)])
def test_a_basis_has_to_be_orthonormal_and_of_the_right_width(wrong: Floats) -> None:
    with pytest.raises(ValueError, match="need"):
        checked_basis(wrong, 4)
