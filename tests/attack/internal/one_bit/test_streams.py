from collections.abc import Callable

import numpy as np
import pytest
from attack.kalman_runs import dense
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit.streams import (
    Stream,
    angle,
    generic,
    group_basis,
    near_basis,
    subsets,
)

Maker = Callable[[np.random.Generator, int, int, int], Stream]
MAKERS: list[Maker] = [near_basis, generic, subsets, dense]
ALL = pytest.mark.parametrize("maker", MAKERS)


@ALL
@given(st.integers(1, 30), st.data())
def test_queries_lie_in_the_cube_and_in_the_space_of_the_basis(
    maker: Maker, size: int, data: st.DataObject
) -> None:
    dimensions = data.draw(st.integers(1, size))
    stream = maker(np.random.default_rng(size), size, dimensions, 40)
    assert len(stream) == 40
    assert stream.queries.shape == (40, size)
    assert stream.queries.min() >= 0
    assert stream.queries.max() <= 1
    assert np.linalg.norm(stream.queries, axis=1).min() > 0
    np.testing.assert_allclose(stream.basis @ stream.basis.T, np.eye(dimensions), atol=1e-9)
    np.testing.assert_allclose(stream.queries @ stream.basis.T, stream.coordinates, atol=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 8])
def test_queries_near_the_basis_are_within_the_angle_of_one_direction(
    dimensions: int, seed: int
) -> None:
    stream = near_basis(np.random.default_rng(seed), 24, dimensions, 2_000)
    lengths = np.linalg.norm(stream.coordinates, axis=1)
    cosines = np.clip(stream.coordinates / lengths[:, None], -1, 1)
    assert np.arccos(cosines).min(axis=1).max() < angle(dimensions)
    assert set(np.argmax(cosines, axis=1)) == set(range(dimensions))


def test_generic_queries_are_not_within_the_angle(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 24, 4, 2_000)
    lengths = np.linalg.norm(stream.coordinates, axis=1)
    nearest = np.arccos(stream.coordinates.max(axis=1) / lengths)
    assert np.mean(nearest < angle(4)) < 0.01


def test_subsets_are_of_zeros_and_ones(seed: int) -> None:
    queries = subsets(np.random.default_rng(seed), 10, 3, 200).queries
    np.testing.assert_allclose(queries, np.round(queries), atol=1e-12)
    assert len(np.unique(np.round(queries), axis=0)) == 7


def test_groups_that_do_not_divide_the_cube_differ_by_one() -> None:
    sizes = (group_basis(11, 4) > 0).sum(axis=1)
    assert sizes.tolist() == [3, 3, 3, 2]


def test_a_part_of_a_stream_is_its_queries(seed: int) -> None:
    stream = generic(np.random.default_rng(seed), 12, 3, 50)
    np.testing.assert_array_equal(stream.part(10, 20).queries, stream.rows(10, 20))
    np.testing.assert_allclose(stream.rows(10, 20), stream.queries[10:20], atol=1e-15)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="coordinate for each of the 2 directions"):
        Stream(np.eye(2), np.ones((5, 3)))
    with pytest.raises(ValueError, match="one row per vector"):
        Stream(np.ones(3), np.ones((5, 3)))
    for maker in MAKERS:
        with pytest.raises(ValueError, match="between 1 and 4 dimensions, got 5"):
            maker(np.random.default_rng(0), 4, 5, 1)
