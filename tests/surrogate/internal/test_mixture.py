"""A mixture of products: one distribution, close to what was measured, the same bits again."""

import itertools
import json
import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.measurements import measurement_from_dict
from surrogate.small_tables import EVERYTHING, PAIRS, SCOPES, SHAPE, TOTAL, TRIPLES, Tables

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    marginals,
)
from casemate.surrogate.mixture import MixtureSurrogate
from casemate.surrogate.replay import DenseSurrogate

ROUGH = {"components": 9, "steps": 6}  # where it does not matter how well it fits
TABLES = Tables(salt=20)
counts = TABLES.counts
measured = TABLES.measured
question = TABLES.question
every_question = TABLES.every_question


def transcript(seed: int) -> list[Measurement]:
    """Questions, weighted ones, tables of one to three attributes and a total, in some order."""
    cells = counts(seed)
    made: list[Measurement] = [*measured(cells, [(1,), *PAIRS[:3], *TRIPLES[:2]], 20.0, seed)]
    for k, scope in enumerate([(0,), (1, 3), (0, 1, 2), (2,), EVERYTHING]):
        product = question(seed + k, scope, weighted=k % 2 == 1)
        made.append(MeasuredProduct(product, float(cells.ravel() @ product.dense()), 9.0))
    made.append(MeasuredProduct(Product(SHAPE, {}), 5_020.0, 400.0))
    return [made[i] for i in np.random.default_rng([seed, 24]).permutation(len(made))]


def learnt(seed: int) -> MixtureSurrogate:
    stand_in = MixtureSurrogate(SHAPE, 0, math.inf, **ROUGH)
    stand_in.learn(transcript(seed))
    return stand_in


def written_out(stand_in: MixtureSurrogate) -> Floats:
    """Every cell of the explicit mixture, component by component."""
    cells = np.zeros(SHAPE)
    for weight, row in zip(*stand_in.mixture, strict=True):
        parts = np.split(row, np.cumsum(SHAPE)[:-1])
        cells += weight * reduce(np.multiply.outer, parts)
    return stand_in.total * cells


# One distribution ---------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_every_answer_is_that_of_the_mixture_written_out(seed: int) -> None:
    stand_in, questions = learnt(seed), every_question(seed)
    cells = written_out(stand_in)
    assert stand_in.answers(questions) == pytest.approx(
        [float(cells.ravel() @ product.dense()) for product in questions], rel=1e-9, abs=1e-9
    )
    for scope, table in stand_in.marginals(SCOPES).items():
        assert table == pytest.approx(cells.sum(axis=tuple(set(EVERYTHING) - set(scope))))


@settings(max_examples=10)
@given(st.integers(0, 10**6))
def test_marginals_are_not_negative_agree_with_each_other_and_sum_to_the_total(seed: int) -> None:
    stand_in = learnt(seed)
    tables = stand_in.marginals(SCOPES)
    for wide, narrow in itertools.product(SCOPES, SCOPES):
        if set(narrow) <= set(wide):
            dropped = tuple(axis for axis, a in enumerate(wide) if a not in narrow)
            assert tables[wide].sum(axis=dropped) == pytest.approx(tables[narrow], abs=1e-8)
    assert all((table >= 0).all() for table in tables.values())
    assert tables[EVERYTHING].sum() == pytest.approx(stand_in.total)
    assert stand_in.answer(Product(SHAPE, {})) == stand_in.total


def test_many_answers_are_the_single_ones_in_their_order(seed: int) -> None:
    stand_in, questions = learnt(seed), every_question(seed)
    alone = [stand_in.answer(product) for product in questions]
    assert stand_in.answers(questions).tolist() == alone
    assert stand_in.answers(questions[::-1]).tolist() == alone[::-1]
    assert stand_in.answers([]).shape == (0,)


def test_before_anything_is_measured_all_cells_are_equal() -> None:
    assert MixtureSurrogate(SHAPE, TOTAL).marginal(EVERYTHING) == pytest.approx(
        np.full(SHAPE, TOTAL / 72)
    )


def test_attributes_that_were_measured_alone_are_independent(seed: int) -> None:
    cells, singles = counts(seed), [(0,), (1,), (3,)]
    stand_in = MixtureSurrogate(SHAPE, TOTAL)
    stand_in.learn(measured(cells, [*singles]))
    exact = marginals(cells, singles)
    found = stand_in.marginal((0, 1, 3))
    expected = np.einsum("a,b,c->abc", *(exact[s] for s in singles)) / TOTAL**2
    assert found == pytest.approx(expected, abs=2)


# What it fits -------------------------------------------------------------------------------------


def test_all_two_way_tables_are_met_within_their_noise(seed: int) -> None:
    cells = counts(seed)
    for deviation in (20.0, 5.0):
        tables, stand_in = measured(cells, PAIRS, deviation, seed), MixtureSurrogate(SHAPE, TOTAL)
        stand_in.learn(tables)
        for table in tables:
            off = stand_in.marginal(table.marginal.scope) - table.values
            assert np.abs(off).max() <= 5 * deviation


def test_it_is_between_the_dense_stand_in_and_independence_and_nearer_to_the_truth(
    seed: int,
) -> None:
    """A chain of attributes, each of which depends on the one before: pairs say everything."""
    draw = np.random.default_rng([seed, 25])
    first, then = draw.dirichlet(np.ones(4)), [draw.dirichlet(np.ones(4), 4) for _ in range(3)]
    cells = 50_000 * np.einsum("a,ab,bc,cd->abcd", first, *then)
    dense, mixture, apart = (
        DenseSurrogate((4,) * 4, 50_000),
        MixtureSurrogate((4,) * 4, 50_000),
        MixtureSurrogate((4,) * 4, 50_000),
    )
    for stand_in in (dense, mixture):
        stand_in.learn(measured(cells, PAIRS, 20.0, seed))
    apart.learn(measured(cells, [(a,) for a in range(4)], 20.0, seed))
    least, nearly, most = (
        sum(
            float(np.abs(stand_in.marginal(scope) - exact).mean())
            for scope, exact in marginals(cells, TRIPLES).items()
        )
        for stand_in in (dense, mixture, apart)
    )
    assert least <= nearly <= 0.6 * most


def parity(width: int) -> Floats:
    """Every pair is uniform; the third is the sum of the first two, and others are free."""
    first, second, third, _, _ = np.indices((width,) * 5)
    cells: Floats = 50_000 / width**4 * ((first + second) % width == third)
    return cells


def test_a_surprising_table_is_met_within_its_noise_at_once(seed: int) -> None:
    cells, pairs = parity(4), list(itertools.combinations(range(5), 2))
    stand_in = MixtureSurrogate(cells.shape, 50_000)
    stand_in.learn(measured(cells, pairs, 25.0, seed))
    exact = marginals(cells, [(0, 1, 2)])[0, 1, 2]
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() > 2_000
    (surprise,) = measured(cells, [(0, 1, 2)], 50.0, seed)
    stand_in.update(surprise)
    off = stand_in.marginal((0, 1, 2)) - surprise.values
    assert math.sqrt(float((off**2).mean())) <= 2 * 50
    assert np.abs(stand_in.marginal((0, 1, 2)) - exact).max() <= 6 * 50
    for scope, table in marginals(cells, pairs).items():  # and what was known is not forgotten
        assert np.abs(stand_in.marginal(scope) - table).max() <= 6 * 25


def test_a_surprising_question_is_met_within_its_noise_at_once(seed: int) -> None:
    cells, pairs = parity(4), list(itertools.combinations(range(5), 2))
    stand_in = MixtureSurrogate(cells.shape, 50_000)
    stand_in.learn(measured(cells, pairs, 25.0, seed))
    low = np.array([True, True, False, False])
    for scope in [(0, 1, 2), (0, 1, 2, 4)]:
        product = Product(cells.shape, dict.fromkeys(scope, low))
        truth = float(cells.ravel() @ product.dense())
        stand_in.update(MeasuredProduct(product, truth + 20, 40.0**2))
        assert abs(stand_in.answer(product) - truth) <= 4 * 40
    weighted = Product(cells.shape, {0: low}, {1: np.arange(4.0), 2: np.arange(4.0) * 10})
    truth = float(cells.ravel() @ weighted.dense())
    stand_in.update(MeasuredProduct(weighted, truth, 400.0**2))
    assert abs(stand_in.answer(weighted) - truth) <= 4 * 400


def test_the_tests_above_would_notice_a_stand_in_that_learns_nothing_new(seed: int) -> None:
    cells, pairs = parity(4), list(itertools.combinations(range(5), 2))
    stand_in = MixtureSurrogate(cells.shape, 50_000)
    stand_in.learn(measured(cells, pairs, 25.0, seed))
    product = Product(cells.shape, dict.fromkeys((0, 1, 2), np.array([True, True, False, False])))
    assert abs(stand_in.answer(product) - float(cells.ravel() @ product.dense())) > 4 * 40


def test_a_universe_of_any_size_is_learnt_alike(seed: int) -> None:
    """Thirty attributes of ten codes, 1e30 cells; the last one is the first one again."""
    shape, draw = (10,) * 30, np.random.default_rng([seed, 26])
    parts = draw.dirichlet(np.ones(10), 30)
    parts[29] = parts[0]
    tables = [
        MeasuredMarginal(Marginal((a,)), 1e5 * parts[a] + draw.normal(0, 30, 10), 900.0)
        for a in range(30)
    ]
    tables.append(MeasuredMarginal(Marginal((0, 29)), 1e5 * np.diag(parts[0]), 900.0))
    stand_in = MixtureSurrogate(shape, 1e5, components=100)
    stand_in.learn(tables)
    component = 1e5 / 100  # what is exactly on a diagonal is met to within one of them
    assert np.abs(stand_in.marginal((0, 29)) - 1e5 * np.diag(parts[0])).max() <= component
    mask = np.arange(10) < 5
    asked = Product(shape, dict.fromkeys(range(20), mask))
    expected = 1e5 * math.prod(float(parts[a][:5].sum()) for a in range(20))
    assert stand_in.answer(asked) == pytest.approx(expected, rel=0.2, abs=1)
    with pytest.raises(ValueError, match="fewer attributes"):
        stand_in.marginal(tuple(range(12)))


# The total ----------------------------------------------------------------------------------------


def test_a_public_total_stays_and_an_unknown_one_is_learnt() -> None:
    public, unknown = MixtureSurrogate((2,), 90), MixtureSurrogate((2,), 0, math.inf)
    for stand_in in (public, unknown):
        stand_in.update(MeasuredProduct(Product((2,), {}), 120.0, 2.0))
        stand_in.update(MeasuredMarginal(Marginal((0,)), np.array([60.0, 30.0]), 1.0))
    assert public.total == 90
    assert unknown.total == pytest.approx(105)
    assert unknown.marginal((0,)).sum() == pytest.approx(105)


# The same bits again ------------------------------------------------------------------------------


def bits(stand_in: MixtureSurrogate) -> bytes:
    return stand_in.mixture.weights.tobytes() + stand_in.mixture.shares.tobytes()


def rebuilt(written: str) -> MixtureSurrogate:
    stand_in = MixtureSurrogate(SHAPE, 0, math.inf, **ROUGH)
    stand_in.learn([measurement_from_dict(one) for one in json.loads(written)])
    return stand_in


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_a_transcript_rebuilds_it_bit_for_bit_whenever_it_was_asked(seed: int) -> None:
    live = MixtureSurrogate(SHAPE, 0, math.inf, **ROUGH)
    for place, measurement in enumerate(transcript(seed)):
        live.update(measurement)
        if place in (2, 7):
            live.answers(every_question(seed))
    again = rebuilt(json.dumps([one.to_dict() for one in transcript(seed)]))
    assert again.total == live.total
    assert bits(again) == bits(live)
    assert again.marginal(EVERYTHING).tobytes() == live.marginal(EVERYTHING).tobytes()
    questions = every_question(seed)
    assert again.answers(questions).tobytes() == live.answers(questions).tobytes()


def test_the_test_above_would_notice_another_measurement(seed: int) -> None:
    written = [one.to_dict() for one in transcript(seed)]
    table = next(place for place, one in enumerate(written) if one["kind"] == "marginal")
    without = written[:table] + written[table + 1 :]
    one, other = rebuilt(json.dumps(written)), rebuilt(json.dumps(without))
    assert bits(one) != bits(other)


def test_a_longer_fit_is_one_that_was_asked_for_at_any_time(seed: int) -> None:
    usual, early, late = (MixtureSurrogate(SHAPE, TOTAL, **ROUGH) for _ in range(3))
    tables = measured(counts(seed), PAIRS, 20.0, seed)
    usual.learn(tables)
    early.learn(tables[:2], sweeps=20)
    early.learn(tables[2:], sweeps=1)
    late.learn(tables, sweeps=20)
    assert bits(early) == bits(late) != bits(usual)


@pytest.mark.parametrize(
    ("shape", "total", "components", "said"),
    [
        (SHAPE, math.nan, 5, "finite total"),
        (SHAPE, 5.0, 0, "one component"),
        ((3, 0), 5.0, 5, "at least one code"),
        ((), 5.0, 5, "at least one code"),
    ],
)
def test_settings_that_mean_nothing_are_refused(
    shape: tuple[int, ...], total: float, components: int, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        MixtureSurrogate(shape, total, components=components)
