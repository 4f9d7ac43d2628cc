"""Local maximum entropy: each scope alone, and what it does not promise."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surrogate.small_tables import EVERYTHING, PAIRS, SCOPES, SHAPE, TOTAL, TRIPLES, Tables

from casemate.grid import (
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    marginals,
)
from casemate.grid.product import measurement_from_dict
from casemate.surrogate import local
from casemate.surrogate.local import LocalSurrogate
from casemate.surrogate.replay import DenseSurrogate

TABLES = Tables(salt=60)
counts = TABLES.counts
measured = TABLES.measured
question = TABLES.question
every_question = TABLES.every_question


def transcript(seed: int) -> list[Measurement]:
    cells = counts(seed)
    made: list[Measurement] = [*measured(cells, [(1,), *PAIRS[:4], *TRIPLES[:2]], 20.0, seed)]
    for k, scope in enumerate([(0,), (1, 3), (0, 1, 2), EVERYTHING]):
        product = question(seed + k, scope, weighted=k % 2 == 1)
        made.append(MeasuredProduct(product, float(cells.ravel() @ product.dense()), 9.0))
    made.append(MeasuredProduct(Product(SHAPE, {}), 5_020.0, 400.0))
    return [made[i] for i in np.random.default_rng([seed, 64]).permutation(len(made))]


# What it is ---------------------------------------------------------------------------------------


def test_the_scope_of_everything_is_the_dense_stand_in(seed: int) -> None:
    tables = measured(counts(seed), PAIRS, 20.0, seed)
    alone, dense = LocalSurrogate(SHAPE, TOTAL), DenseSurrogate(SHAPE, TOTAL)
    alone.learn(tables)
    dense.learn(tables)
    assert alone.marginal(EVERYTHING) == pytest.approx(dense.marginal(EVERYTHING), rel=1e-6)


def test_a_triple_is_the_fit_of_its_three_pairs_alone(seed: int) -> None:
    cells = counts(seed)
    alone = LocalSurrogate(SHAPE, TOTAL)
    alone.learn(measured(cells, PAIRS))
    for scope in TRIPLES:
        inner = [(0, 1), (0, 2), (1, 2)]
        part = DenseSurrogate(tuple(SHAPE[a] for a in scope), TOTAL)
        part.learn(measured(marginals(cells, [scope])[scope], inner))
        assert alone.marginal(scope) == pytest.approx(part.marginal((0, 1, 2)), rel=1e-6, abs=1e-6)


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_a_question_is_a_sum_over_the_cells_of_its_own_scope(seed: int) -> None:
    stand_in = LocalSurrogate(SHAPE, 0, math.inf)
    stand_in.learn(transcript(seed))
    for product in every_question(seed):
        table = stand_in.marginal(product.scope)
        expected = float(table.ravel() @ product.over(product.scope))
        assert stand_in.answer(product) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_every_scope_has_the_total_and_nothing_negative(seed: int) -> None:
    stand_in = LocalSurrogate(SHAPE, 0, math.inf)
    stand_in.learn(transcript(seed))
    for scope, table in stand_in.marginals(SCOPES).items():
        assert table.shape == tuple(SHAPE[a] for a in scope)
        assert (table >= 0).all()
        assert table.sum() == pytest.approx(stand_in.total)


def test_scopes_that_share_attributes_may_disagree_about_them(seed: int) -> None:
    """A table of three is known to the scope that has all of it, and hardly to any other."""
    first, second, third, _ = np.indices((3, 3, 3, 2))
    cells = 100.0 * ((first + second) % 3 == third)
    stand_in = LocalSurrogate((3, 3, 3, 2), cells.sum())
    mask = np.array([True, False, False])
    product = Product((3, 3, 3, 2), dict.fromkeys((0, 1, 2), mask))
    stand_in.update(MeasuredProduct(product, 200.0, 0.0))
    assert stand_in.answer(product) == pytest.approx(200, abs=1)
    pair = stand_in.marginal((0, 1, 2)).sum(axis=2)
    assert np.abs(pair - stand_in.marginal((0, 1))).max() > 20


# What it fits -------------------------------------------------------------------------------------


def test_a_surprising_table_or_question_is_met_within_its_noise_at_once(seed: int) -> None:
    first, second, third, _ = np.indices((4, 4, 4, 4))
    cells = 200.0 * ((first + second) % 4 == third)
    stand_in = LocalSurrogate(cells.shape, cells.sum())
    stand_in.learn(measured(cells, PAIRS, 25.0, seed))
    exact = marginals(cells, [(0, 1, 2)])[0, 1, 2]
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() > 500
    low = np.array([True, True, False, False])
    asked = Product(cells.shape, dict.fromkeys((0, 1, 2, 3), low))
    truth = float(cells.ravel() @ asked.dense())
    stand_in.update(MeasuredProduct(asked, truth + 10, 100.0))
    assert abs(stand_in.answer(asked) - truth) <= 30
    (surprise,) = measured(cells, [(0, 1, 2)], 30.0, seed)
    stand_in.update(surprise)
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() <= 6 * 30


def test_attributes_that_were_measured_with_others_only_are_known_from_them(seed: int) -> None:
    cells = counts(seed)
    stand_in = LocalSurrogate(SHAPE, TOTAL)
    stand_in.learn(measured(cells, [(0, 1), (1, 2, 3)]))
    exact = marginals(cells, [(0,), (2, 3)])
    assert stand_in.marginal((0,)) == pytest.approx(exact[0,], abs=1)
    assert stand_in.marginal((2, 3)) == pytest.approx(exact[2, 3], abs=1)


def test_scopes_of_six_attributes_and_a_million_cells_are_fitted(seed: int) -> None:
    """Independent attributes, of which every pair is measured."""
    shape, draw = (10, 10, 10, 10, 10, 10, 50), np.random.default_rng([seed, 65])
    parts = [draw.dirichlet(np.ones(width)) for width in shape]
    stand_in = LocalSurrogate(shape, 1e6)
    stand_in.learn(
        [
            MeasuredMarginal(Marginal((a, b)), 1e6 * np.outer(parts[a], parts[b]), 0.0)
            for a, b in itertools.combinations(range(7), 2)
        ]
    )
    table = stand_in.marginal((0, 1, 2, 3, 4, 5))
    assert table.sum() == pytest.approx(1e6)
    expected = 1e6 * np.einsum("a,b,c,d,e,f->abcdef", *parts[:6])
    assert np.abs(table - expected).sum() <= 1e4


def test_a_scope_of_too_many_cells_is_a_tree_of_pairs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of attributes is a tree, so nothing is lost."""
    monkeypatch.setattr(local, "LARGEST_SCOPE", 20)
    draw = np.random.default_rng([seed, 66])
    first, *then = draw.dirichlet(np.ones(3)), *draw.dirichlet(np.full(3, 0.5), (3, 3))
    cells = TOTAL * np.einsum("a,ab,bc,cd->abcd", first, *then)
    stand_in = LocalSurrogate((3,) * 4, TOTAL)
    stand_in.learn(measured(cells, PAIRS), sweeps=50)
    assert stand_in.marginal(EVERYTHING) == pytest.approx(cells, abs=2)
    for scope in [(0, 1, 3), EVERYTHING]:
        product = Product((3,) * 4, {}, {a: draw.normal(0, 1, 3) for a in scope})
        assert stand_in.answer(product) == pytest.approx(
            float(cells.ravel() @ product.dense()), abs=10
        )


def test_a_table_that_no_memory_holds_is_refused_and_a_question_about_it_answered() -> None:
    stand_in = LocalSurrogate((10,) * 12, 1e6)
    with pytest.raises(ValueError, match="fewer attributes"):
        stand_in.marginal(tuple(range(12)))
    half = np.arange(10) < 5
    assert stand_in.answer(Product((10,) * 12, dict.fromkeys(range(12), half))) == pytest.approx(
        1e6 / 2**12
    )


# The same bits again ------------------------------------------------------------------------------


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_a_transcript_rebuilds_it_bit_for_bit_whatever_was_asked_or_forgotten(seed: int) -> None:
    live, again = LocalSurrogate(SHAPE, 0, math.inf), LocalSurrogate(SHAPE, 0, math.inf)
    questions = every_question(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "KEPT", 30)
        for measurement in transcript(seed):
            live.answers(questions[:3])
            live.update(measurement)
        first = live.answers(questions[::-1])[::-1]
    written = json.dumps([one.to_dict() for one in transcript(seed)])
    again.learn([measurement_from_dict(one) for one in json.loads(written)])
    assert again.total == live.total
    assert again.answers(questions).tobytes() == first.tobytes()
    assert again.marginal((0, 1, 3)).tobytes() == live.marginal((0, 1, 3)).tobytes()


def test_trees_are_forgotten_and_made_again_alike(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "LARGEST_SCOPE", 1)
    monkeypatch.setattr(local, "MOST_TREES", 1)
    stand_in = LocalSurrogate(SHAPE, TOTAL)
    stand_in.learn(measured(counts(seed), PAIRS, 20.0, seed))
    first = [stand_in.marginal(scope).tobytes() for scope in TRIPLES]
    assert [stand_in.marginal(scope).tobytes() for scope in TRIPLES] == first


def test_what_is_about_another_grid_is_refused_before_anything_changes(seed: int) -> None:
    stand_in = LocalSurrogate(SHAPE, 0, math.inf)
    good = measured(counts(seed), PAIRS)[0]
    with pytest.raises(ValueError, match="not about the grid"):
        stand_in.learn([good, MeasuredProduct(Product((3, 4), {}), 3.0, 1.0)])
    with pytest.raises(ValueError, match="a question about the grid"):
        stand_in.answer(Product((2, 2), {}))
    assert stand_in.total == 1
    assert stand_in.marginal(()) == 1
    assert stand_in.answer(Product(SHAPE, {})) == 1
