"""Limits carried along a stream in blocks."""

import numpy as np
import pytest

from casemate.attack.one_bit import one_bit_limit, parse_law
from casemate.attack.one_bit.attack import LeastErrors
from casemate.attack.one_bit.streams import Stream


@pytest.mark.parametrize("noise", ["laplace:30", "gaussian:1e-9", "uniform:30", "triangular:5"])
def test_limits_in_blocks_are_those_of_the_whole_stream(noise: str, seed: int) -> None:
    law, random = parse_law(noise), np.random.default_rng(seed)
    queries = random.random((700, 5)) * np.array([1.0, 5.0, 20.0, 3.0, 100.0])
    whole = one_bit_limit(Stream(np.eye(5), queries), law)
    parts = LeastErrors(law, 5)
    for block in np.split(queries, [1, 2, 10, 300]):
        parts.add(block)
    assert parts.queries == 700 and parts.kind == whole.kind
    assert parts.mean == pytest.approx(whole.mean, rel=1e-12)
    assert (parts.full_mean or 0.0) == pytest.approx(whole.full_mean, rel=1e-12)
    assert (parts.van_trees or 0.0) == pytest.approx(whole.root_mean_square, rel=1e-12)


def test_an_edge_leaves_no_bound() -> None:
    parts = LeastErrors(parse_law("uniform:1"), 2).add(np.ones((3, 2)))
    assert parts.kind == "none" and parts.van_trees is None and parts.full_mean is None
    assert parts.mean > 0
