"""Random weightings of groups: weights in [0, 1], and near one group where that is asked for."""

import math

import numpy as np
import pytest

from casemate.attack.one_bit.streams import Weighting, angle, drawn_queries, shortest_single

REACH = np.array([40.0, 400.0, 4.0, 100.0])


@pytest.mark.parametrize("kind", Weighting)
def test_weights_lie_between_0_and_1_and_no_query_is_empty(kind: Weighting, seed: int) -> None:
    found = drawn_queries(kind, REACH, 2_000, np.random.default_rng(seed)) / REACH
    assert found.shape == (2_000, 4) and found.min() >= 0 and found.max() <= 1
    assert (found.max(axis=1) > 0).all()


def test_subsets_take_or_leave_a_group(seed: int) -> None:
    found = drawn_queries(Weighting.SUBSETS, REACH, 500, np.random.default_rng(seed)) / REACH
    assert set(np.unique(found)) == {0.0, 1.0}


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_single_queries_are_within_the_angle_of_a_group_and_long_enough(
    groups: int, seed: int
) -> None:
    reach = REACH[:groups]
    found = drawn_queries(Weighting.SINGLE, reach, 2_000, np.random.default_rng(seed))
    lengths = np.linalg.norm(found, axis=1)
    assert (found.max(axis=1) / lengths >= math.cos(angle(groups))).all()
    assert lengths.min() >= shortest_single(reach)
    assert set(found.argmax(axis=1)) == set(range(groups))


def test_even_weights_are_not_near_one_group(seed: int) -> None:
    found = drawn_queries(Weighting.EVEN, REACH * 0 + 1, 500, np.random.default_rng(seed))
    near = found.max(axis=1) / np.linalg.norm(found, axis=1) >= math.cos(angle(4))
    assert near.mean() < 0.05
