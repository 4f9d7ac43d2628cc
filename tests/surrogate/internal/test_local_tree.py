"""A tree of pairs against the distribution written out, and against every other tree."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Floats, Product, Scope, marginals
from casemate.surrogate.local import PairTree, conditional, information

SHAPE = (2, 3, 2, 3)


def cells(seed: int) -> Floats:
    draw = np.random.default_rng([seed, 71])
    return 1_000 * draw.dirichlet(np.full(36, 0.5)).reshape(SHAPE)


def tree(counts: Floats, scope: Scope) -> PairTree:
    return PairTree(scope, lambda part: marginals(counts, [part])[part])


@given(st.integers(0, 10**6), st.sampled_from([(0, 1, 2, 3), (1, 2, 3), (0, 2), (3,)]))
def test_an_answer_is_the_sum_over_the_tree_written_out(seed: int, scope: Scope) -> None:
    made, draw = tree(cells(seed), scope), np.random.default_rng([seed, 72])
    dense = made.dense()
    assert dense.shape == tuple(SHAPE[a] for a in scope)
    assert dense.sum() == pytest.approx(1_000)
    assert (dense >= 0).all()
    product = Product(SHAPE, {}, {a: draw.normal(0, 1, SHAPE[a]) for a in scope})
    assert made.answer(product) == pytest.approx(float(dense.ravel() @ product.over(scope)))


@given(st.integers(0, 10**6))
def test_no_other_tree_is_nearer(seed: int) -> None:
    """Sixteen trees join four attributes; the nearest has the most mutual information."""
    counts, pairs = cells(seed), list(itertools.combinations(range(4), 2))
    told = {pair: information(marginals(counts, [pair])[pair]) for pair in pairs}
    trees = [
        edges
        for edges in itertools.combinations(pairs, 3)
        if len(set(itertools.chain(*edges))) == 4
    ]
    found = tree(counts, (0, 1, 2, 3)).dense()
    best = max(sum(told[edge] for edge in edges) for edges in trees)
    apart = sum(entropy(marginals(counts, [(a,)])[a,]) for a in range(4))
    assert len(trees) == 16
    assert entropy(found) == pytest.approx(apart - best)


def entropy(counts: Floats) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def test_shares_of_a_row_without_counts_are_even() -> None:
    shares = conditional(np.array([[1.0, 3.0], [0.0, 0.0]]))
    assert shares.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_information_is_nothing_for_independent_attributes_and_entropy_for_equal_ones() -> None:
    assert information(np.outer([1.0, 2.0], [3.0, 1.0])) == pytest.approx(0, abs=1e-12)
    assert information(np.diag([1.0, 1.0, 0.0])) == pytest.approx(np.log(2))
