"""Streams of queries, and the directions that are found in them."""

import math

import numpy as np
import pytest
from attack.one_bit_streams import Streams, dense
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import (
    Stream,
    Weighting,
    concentrated_basis,
    draw_queries,
    generic,
    group_basis,
    near_basis,
    principal_basis,
    printed_angle,
    shortest_single,
    subsets,
)


@pytest.mark.parametrize("streams", [near_basis, generic, subsets, dense])
@given(st.integers(1, 30), st.data())
def test_queries_lie_in_the_cube_and_in_the_space_of_the_basis(
    streams: Streams, size: int, data: st.DataObject
) -> None:
    dimensions = data.draw(st.integers(1, size))
    stream = streams(np.random.default_rng(size), size, dimensions, 40)
    assert len(stream) == 40
    assert stream.queries.shape == (40, size)
    assert stream.queries.min() >= 0
    assert stream.queries.max() <= 1
    assert np.linalg.norm(stream.queries, axis=1).min() > 0
    np.testing.assert_allclose(stream.basis @ stream.basis.T, np.eye(dimensions), atol=1e-9)
    np.testing.assert_allclose(stream.queries @ stream.basis.T, stream.coordinates, atol=1e-9)


def test_groups_that_do_not_divide_the_cube_differ_by_one() -> None:
    sizes = (group_basis(11, 4) > 0).sum(axis=1)
    assert sizes.tolist() == [3, 3, 3, 2]


REACH = np.array([40.0, 400.0, 4.0, 100.0])


@pytest.mark.parametrize("kind", Weighting)
def test_weights_lie_between_0_and_1_and_no_query_is_empty(kind: Weighting, seed: int) -> None:
    """Subsets take or leave a group; even weights are not near one."""
    found = draw_queries(kind, REACH, 2_000, np.random.default_rng(seed)) / REACH
    assert found.shape == (2_000, 4) and found.min() >= 0 and found.max() <= 1
    assert (found.max(axis=1) > 0).all()
    assert (set(np.unique(found)) == {0.0, 1.0}) == (kind is Weighting.SUBSETS)
    near = found.max(axis=1) / np.linalg.norm(found, axis=1) >= math.cos(printed_angle(4))
    assert kind is not Weighting.EVEN or near.mean() < 0.05


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_single_queries_are_within_the_angle_of_a_group_and_long_enough(
    groups: int, seed: int
) -> None:
    reach = REACH[:groups]
    found = draw_queries(Weighting.SINGLE, reach, 2_000, np.random.default_rng(seed))
    lengths = np.linalg.norm(found, axis=1)
    assert (found.max(axis=1) / lengths >= math.cos(printed_angle(groups))).all()
    assert lengths.min() >= shortest_single(reach)
    assert set(found.argmax(axis=1)) == set(range(groups))


# Directions near which queries concentrate --------------------------------------------------------

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
