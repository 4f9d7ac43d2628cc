import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import (
    Floats,
    GridQuestion,
    LinearCells,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate import TypicalErrors
from casemate.surrogate import typical_error as replicates
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.histogram import Histogram
from casemate.surrogate.projection import project_on_distributions, reconcile, to_marginal
from casemate.surrogate.typical_error import (
    LOCAL_FIT_SWEEPS,
    BootstrapReplicates,
    Deviations,
    LocalFit,
)

SHAPE = (4, 3, 5)
PAIRS = list(combinations(range(3), 2))
NOISE = 30.0
seeds = st.integers(0, 2**32)


def people(seed: int, shape: tuple[int, ...] = SHAPE) -> Floats:
    """Some ten thousand, drawn from a law whose attributes depend on each other in pairs."""
    draw = np.random.default_rng(seed)
    logs = np.zeros(shape)
    for pair in combinations(range(len(shape)), 2):
        table = 0.7 * draw.normal(size=[shape[a] for a in pair])
        logs = logs + np.expand_dims(table, [a for a in range(len(shape)) if a not in pair])
    shares = np.exp(logs)
    return np.asarray(draw.poisson(10_000 * shares / shares.sum()), np.float64)


def parity(width: int = 4, each: int = 150) -> Floats:
    """The third attribute is the sum of the others: all tables of two are flat."""
    table = np.zeros((width,) * 3)
    for a, b in np.ndindex(width, width):
        table[a, b, (a + b) % width] = each
    return table


def measured(table: Floats, scope: Scope, draw: np.random.Generator, noise: float) -> Measurement:
    exact = table.sum(axis=tuple(a for a in range(table.ndim) if a not in scope))
    noised = exact + np.rint(draw.normal(0, noise, exact.shape))
    return MeasuredMarginal(Marginal(scope), noised, noise**2)


def learnt(
    table: Floats, seed: int, noise: float = NOISE, more: Sequence[Measurement] = ()
) -> tuple[DenseSurrogate, list[Measurement], float]:
    """A stand-in that knows all pairs, the total and some more, and all that it knows."""
    draw = np.random.default_rng(seed)
    pairs = [measured(table, pair, draw, noise) for pair in combinations(range(table.ndim), 2)]
    total = float(table.sum() + np.rint(draw.normal(0, noise)))
    stand_in = DenseSurrogate(table.shape, total, noise**2)
    stand_in.learn([*pairs, *more])
    return stand_in, [*pairs, *more], noise**2


@cache
def usual() -> tuple[DenseSurrogate, list[Measurement], float]:
    return learnt(people(1), 2)


def asked(*products: Product) -> GridQuestion:
    return GridQuestion((LinearCells(tuple((product,) for product in products)),))


def ranged(draw: np.random.Generator, shape: tuple[int, ...] = SHAPE, ways: int = 3) -> Product:
    masks = {}
    for a in draw.choice(len(shape), ways, replace=False):
        first, end = sorted(draw.choice(shape[a] + 1, 2, replace=False))
        masks[int(a)] = (np.arange(shape[a]) >= first) & (np.arange(shape[a]) < end)
    return Product(shape, masks)


def cells(shape: tuple[int, ...]) -> list[Product]:
    return [
        Product(shape, {a: np.arange(shape[a]) == code for a, code in enumerate(place)})
        for place in np.ndindex(*shape)
    ]


# Exactly true: each step is the stand-in's own, in all worlds at once -----------------------------


@given(seeds)
def test_tables_agree_in_every_world_as_the_stand_in_makes_them_agree(seed: int) -> None:
    draw = np.random.default_rng(seed)
    scopes: list[Scope] = [(0, 1), (1, 2), (2,), (0, 2)]
    variances = [1.0, 4.0, 2.0, 0.0]
    values = [draw.normal(100, 30, [*(SHAPE[a] for a in scope), 3]) for scope in scopes]
    totals = draw.normal(1000, 50, 3)
    tables = [
        MeasuredMarginal(Marginal(scope), each[..., 0], variance)
        for scope, each, variance in zip(scopes, values, variances, strict=True)
    ]
    found = reconcile(tables, values, totals)
    for world in range(3):
        one = reconcile(tables, [each[..., [world]] for each in values], totals[[world]])
        for moved, alone in zip(found, one, strict=True):
            np.testing.assert_allclose(moved[..., [world]], alone, rtol=1e-9, atol=1e-9)


@given(seeds)
def test_tables_become_distributions_as_the_stand_in_makes_them(seed: int) -> None:
    shares = np.random.default_rng(seed).normal(0.05, 0.1, (20, 3))
    for world in range(3):
        wanted = to_marginal(np.ones(20), shares[:, world])
        np.testing.assert_allclose(project_on_distributions(shares)[:, world], wanted, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_scope_of_all_attributes_is_fitted_as_the_stand_in_fits(seed: int) -> None:
    table = people(seed)
    stand_in, known, _ = learnt(table, seed)
    worlds = BootstrapReplicates(stand_in, known, 0.0, 4)
    counts = stand_in.marginal((0, 1, 2))
    again = DenseSurrogate(SHAPE, stand_in.total)
    again._histogram = Histogram(SHAPE, counts)
    again.learn(known, sweeps=LOCAL_FIT_SWEEPS)
    found = LocalFit(worlds, (0, 1, 2), counts, 4).deviations()[..., 0]
    np.testing.assert_allclose(found, again.marginal((0, 1, 2)) - counts, atol=1e-6)


def test_a_replay_gives_the_same_bits_in_whatever_order_questions_come() -> None:
    stand_in, known, variance = usual()
    draw = np.random.default_rng(5)
    questions = [ranged(draw, ways=ways) for ways in (1, 2, 3, 3, 1)]
    one, other = (TypicalErrors(stand_in, known, variance) for _ in range(2))
    found = [one.errors(asked(question))[0][0] for question in questions]
    again = [other.errors(asked(question))[0][0] for question in reversed(questions)]
    assert found == again[::-1]


@given(seeds)
def test_ranges_are_looked_up_one_by_one_or_together_and_as_they_are_summed(seed: int) -> None:
    draw = np.random.default_rng(seed)
    table = draw.normal(size=(*SHAPE, 5))
    deviations = Deviations((0, 1, 2), table)
    questions = [ranged(draw, ways=int(draw.integers(0, 4))) for _ in range(4)]
    summed = [
        np.tensordot(question.over((0, 1, 2)).reshape(SHAPE), table, axes=3)
        for question in questions
    ]
    np.testing.assert_allclose(deviations.of(questions), summed, atol=1e-9)
    for question, wanted in zip(questions, summed, strict=True):
        np.testing.assert_allclose(deviations.of([question])[0], wanted, atol=1e-9)


def test_a_cell_cut_into_products_has_the_error_of_the_whole() -> None:
    first, low = {0: np.arange(4) < 3}, np.arange(5) < 2
    apart = tuple(Product(SHAPE, {**first, 2: mask}) for mask in (low, ~low))
    whole = (Product(SHAPE, first),)
    found = TypicalErrors(*usual()).errors(GridQuestion((LinearCells((apart, whole)),)))[0]
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_exact_tables_leave_only_what_no_table_of_two_tells() -> None:
    table = people(3)
    stand_in, known, _ = learnt(table, 4, noise=0.0)
    errors = TypicalErrors(stand_in, known, 0.0)
    two = errors.errors(asked(Product(SHAPE, {0: np.arange(4) < 2, 1: np.arange(3) < 1})))[0][0]
    three = errors.errors(asked(*cells(SHAPE)))[0]
    assert two < 1
    assert np.median(three) > 3


def test_what_was_measured_better_has_a_smaller_error() -> None:
    table = people(6)
    question = Product(SHAPE, {0: np.arange(4) < 2, 1: np.arange(3) > 0, 2: np.arange(5) < 2})
    exact = float((question.dense() * table.ravel()).sum())
    before = TypicalErrors(*learnt(table, 7)).errors(asked(question))[0][0]
    one = MeasuredProduct(question, exact, 1.0)
    after = TypicalErrors(*learnt(table, 7, more=[one])).errors(asked(question))[0][0]
    assert after < before / 5


def test_a_measured_wide_table_lessens_the_errors_of_its_cells() -> None:
    table, draw = people(8), np.random.default_rng(9)
    everything = asked(*cells(SHAPE))
    before = TypicalErrors(*learnt(table, 10, noise=1.0)).errors(everything)[0]
    wide = measured(table, (0, 1, 2), draw, 1.0)
    after = TypicalErrors(*learnt(table, 10, noise=1.0, more=[wide])).errors(everything)[0]
    assert after.mean() < before.mean() / 2


def test_the_total_errs_by_what_is_known_of_it() -> None:
    """One that was measured, one that tables sharpen, one that is public, one nobody knows."""
    whole = asked(Product(SHAPE, {}))
    found = []
    for variance in (0.0, 100.0, math.inf):
        stand_in = DenseSurrogate(SHAPE, 5000.0, variance)
        found.append(float(TypicalErrors(stand_in, [], variance).errors(whole)[0][0]))
    assert found[0] == 0
    assert 5 < found[1] < 20
    assert found[2] > 1000
    assert NOISE / 2 < TypicalErrors(*usual()).errors(whole)[0][0] < 2 * NOISE


# Large scopes -------------------------------------------------------------------------------------


def test_scopes_too_large_to_fit_again_are_judged_by_their_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = (4, 3, 5, 4)
    stand_in, known, variance = learnt(people(13, shape), 14)
    draw = np.random.default_rng(15)
    questions = [ranged(draw, shape, ways=3) for _ in range(30)]
    near = TypicalErrors(stand_in, known, variance).errors(asked(*questions))[0]
    monkeypatch.setattr(replicates, "MAX_REFITTED_CELLS", 20)
    far = TypicalErrors(stand_in, known, variance).errors(asked(*questions))[0]
    assert 0.3 < float(np.median(far / near)) < 3
    sums = LinearCells(
        ((Product(shape, {}, {a: np.arange(-1.0, shape[a] - 1) for a in range(3)}),),)
    )
    assert TypicalErrors(stand_in, known, variance).errors(GridQuestion((sums,)))[0][0] > 0


def test_memory_is_bounded_and_what_was_dropped_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    errors = TypicalErrors(*usual())
    question = ranged(np.random.default_rng(3))
    before = errors.errors(asked(question))[0][0]
    monkeypatch.setattr(replicates, "MAX_CACHED_NUMBERS", 1)
    errors.errors(asked(Product(SHAPE, {})))
    assert len(errors._scopes) == 1
    assert errors.errors(asked(question))[0][0] == before


# True with a stated probability -------------------------------------------------------------------


TRIALS = 300


@cache
def ratios(seed: int) -> Floats:
    """Errors of random questions over their typical errors, the noise drawn afresh for each."""
    table, found = people(20), []
    for trial in range(TRIALS):
        draw = np.random.default_rng([seed, trial])
        stand_in, known, variance = learnt(table, int(draw.integers(2**62)))
        question = ranged(draw, ways=int(draw.integers(1, 4)))
        error = TypicalErrors(stand_in, known, variance).errors(asked(question))[0][0]
        truth = float((question.dense() * table.ravel()).sum())
        found.append(abs(stand_in.answer(question) - truth) / error)
    return np.array(found)


def outside(seed: int, errors: float) -> int:
    return int(np.count_nonzero(ratios(seed) > errors))


def test_answers_are_within_twice_their_typical_error_most_of_the_time(seed: int) -> None:
    assert_rate_at_most(outside(seed, 1.96), TRIALS, rate=0.1)
    with pytest.raises(AssertionError):  # the twin: a third of the error
        assert_rate_at_most(outside(seed, 1.96 / 3), TRIALS, rate=0.1)


def test_typical_errors_are_not_wide_either(seed: int) -> None:
    assert_rate_at_most(TRIALS - outside(seed, 0.4), TRIALS, rate=0.45)
    with pytest.raises(AssertionError):  # the twin: four times the error
        assert_rate_at_most(TRIALS - outside(seed, 4 * 0.4), TRIALS, rate=0.45)


def test_no_estimate_from_tables_of_two_sees_parity() -> None:
    """The estimate promises a few dozen people, and every cell is off by more."""
    table = parity()
    stand_in, known, variance = learnt(table, 21)
    errors = TypicalErrors(stand_in, known, variance).errors(asked(*cells(table.shape)))[0]
    off = np.abs(stand_in.marginal((0, 1, 2)) - table).ravel()
    assert np.mean(off <= 1.96 * errors) < 0.5
    assert np.mean(off[table.ravel() > 0] <= 1.96 * errors[table.ravel() > 0]) == 0
