"""The predicted noise of tables, beside the least-squares estimate that it claims to be."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from scipy import stats

from casemate.answer.planner.predicted import (
    HARD_FIT_ERROR_RATIO,
    LAPLACE,
    NORMAL,
    SOFT_FIT_ERROR_RATIO,
    NoisyTables,
    delta_of,
    exact_gaussian,
    largest,
)
from casemate.grid import Floats, Marginal, MeasuredMarginal, Product, Scope
from casemate.surrogate.dense import DenseSurrogate

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def all_tables(shape: tuple[int, ...], order: int) -> tuple[Scope, ...]:
    return tuple(itertools.combinations(range(len(shape)), order))


@st.composite
def products(draw: st.DrawFn, shape: tuple[int, ...]) -> Product:
    weights = {
        a: np.array(draw(st.lists(st.integers(-2, 3), min_size=width, max_size=width)), np.float64)
        for a, width in enumerate(shape)
        if draw(st.booleans())
    }
    return Product(shape, {}, weights)


def least_squares(tables: NoisyTables, cell: list[Product]) -> float:
    """The deviation of the best linear estimate of the part that the tables determine."""
    shape, cells = tables.shape, math.prod(tables.shape)
    rows = []
    for scope in tables.scopes:
        axes = tuple(a for a in range(len(shape)) if a not in scope)
        summed = np.eye(cells).reshape(*shape, cells).sum(axis=axes).reshape(-1, cells)
        rows.append(summed / math.sqrt(tables.variance))
    exact = tables.total_variance or 1e-9
    rows.append(np.ones((1, cells)) / math.sqrt(exact))
    design: Floats = np.vstack(rows)
    wanted = sum(each.dense() for each in cell)
    determined = np.linalg.pinv(design) @ design @ wanted
    return math.sqrt(max(0.0, float(determined @ np.linalg.pinv(design.T @ design) @ determined)))


def about(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[tuple[int, ...], list[Product]]]:
    return st.tuples(st.just(shape), st.lists(products(shape), min_size=1, max_size=3))


@given(shapes.flatmap(about), st.integers(1, 4), st.sampled_from([0.0, 4.0]))
def test_the_prediction_is_the_deviation_of_the_best_linear_estimate(
    asked: tuple[tuple[int, ...], list[Product]], order: int, total: float
) -> None:
    shape, cell = asked
    tables = NoisyTables(shape, all_tables(shape, min(order, len(shape))), 4.0, total)
    assert tables.deviation(cell) == pytest.approx(least_squares(tables, cell), abs=1e-3)


def test_a_question_read_off_one_table_adds_up_its_noise() -> None:
    shape = (4, 5, 6)
    question = Product(shape, {0: np.arange(4) < 2, 1: np.arange(5) < 3})
    tables = NoisyTables(shape, all_tables(shape, 2), variance=9.0)
    assert tables.reading([question]) == pytest.approx(3 * math.sqrt(2 * 3))
    alone = Product(shape, {0: np.arange(4) < 2})
    assert tables.reading([alone]) == pytest.approx(3 * math.sqrt(2 * 5))  # the narrower table


def test_a_question_in_no_table_cannot_be_read_and_is_not_held() -> None:
    shape = (2, 2, 2)
    question = Product(shape, {a: np.array([True, False]) for a in range(3)})
    tables = NoisyTables(shape, all_tables(shape, 2), variance=9.0)
    assert tables.reading([question]) is None
    assert not tables.holds(question.scope)
    assert tables.deviation([question]) > 0  # of the part that the tables do determine


# What a stand-in does ------------------------------------------------------------------------


def measured_ratio(shape: tuple[int, ...], order: int, seed: int) -> float:
    """The root mean square error of a fitted stand-in, over the formula."""
    random = Generator(Philox(seed))
    truth = 20_000 * random.dirichlet(np.full(math.prod(shape), 5.0)).reshape(shape)
    scopes, deviation = all_tables(shape, order), 20.0
    stand_in = DenseSurrogate(shape, float(truth.sum()))
    learnt = []
    for scope in scopes:
        axes = tuple(a for a in range(len(shape)) if a not in scope)
        exact = truth.sum(axis=axes)
        noised = exact + random.normal(0, deviation, exact.shape)
        learnt.append(MeasuredMarginal(Marginal(scope), noised, deviation**2))
    stand_in.learn(learnt)
    tables = NoisyTables(shape, scopes, deviation**2)
    off, predicted = [], []
    for _ in range(120):
        chosen = random.choice(len(shape), order, replace=False)
        masks = {int(a): random.random(shape[a]) < 0.5 for a in chosen}
        question = Product(shape, masks)
        exact = float((truth.ravel() * question.dense()).sum())
        off.append(stand_in.answer(question) - exact)
        predicted.append(tables.deviation([question]))
    return math.sqrt(float(np.square(off).sum() / np.square(predicted).sum()))


@pytest.mark.parametrize(
    ("shape", "order", "within"),
    [
        ((6, 5, 4, 3), 1, HARD_FIT_ERROR_RATIO),
        ((6, 5, 4, 3), 2, HARD_FIT_ERROR_RATIO),
        ((6, 5, 4, 3), 3, SOFT_FIT_ERROR_RATIO),
    ],
)
def test_the_errors_of_a_stand_in_are_about_as_large_as_the_formula_and_its_factor(
    shape: tuple[int, ...], order: int, within: float, seed: int
) -> None:
    ratio = np.median([measured_ratio(shape, order, seed + i) for i in range(3)])
    assert 0.6 <= ratio <= 1.25 * within


SHAPES = {"normal": (NORMAL, stats.norm), "laplace": (LAPLACE, stats.laplace)}
confidences = st.floats(0.01, 0.999999)


@pytest.mark.parametrize("name", SHAPES)
def test_the_mean_the_tail_and_the_quantile_are_those_of_the_law(name: str) -> None:
    shape, law = SHAPES[name]
    assert shape.mean == pytest.approx(law.expect(abs))
    for x in (0.0, 0.3, 1.0, 4.0):
        assert shape.tail(x) == pytest.approx(2 * law.sf(x))


@pytest.mark.parametrize(("name", "draws"), [(n, k) for n in SHAPES for k in (100, 10**4)])
def test_the_largest_of_many_draws_is_about_as_large_as_predicted(
    name: str, draws: int, seed: int
) -> None:
    shape, law = SHAPES[name]
    random = Generator(Philox(seed))
    maxima = [np.abs(law.rvs(size=draws, random_state=random)).max() for _ in range(300)]
    mean = float(np.mean(maxima))  # its own error is below .015 of it
    assert largest(shape, np.ones(1), draws) == pytest.approx(mean, rel=0.1)
    other = NORMAL if shape is LAPLACE else LAPLACE
    assert largest(other, np.ones(1), draws) != pytest.approx(mean, rel=0.1)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20), st.floats(1.0, 1e6))
def test_more_questions_and_larger_noise_never_make_the_largest_error_smaller(
    scales: list[float], times: float
) -> None:
    sizes = np.array(scales)
    found = largest(NORMAL, sizes, times)
    assert found >= 0.5 * NORMAL.mean * sizes.max()
    assert largest(NORMAL, sizes, 2 * times) >= found * (1 - 1e-5)
    assert largest(NORMAL, 3 * sizes, times) == pytest.approx(3 * found, rel=2e-3)


epsilons, deltas = st.floats(0.01, 20), st.floats(1e-12, 0.1)


@given(epsilons, deltas)
def test_the_least_deviation_has_exactly_this_delta(epsilon: float, delta: float) -> None:
    deviation = exact_gaussian(epsilon, delta)
    assert delta_of(deviation, epsilon) == pytest.approx(delta, rel=1e-3)
    assert delta_of(0.999 * deviation, epsilon) > delta


@given(epsilons, st.floats(0.05, 50))
def test_delta_is_the_mass_by_which_one_law_exceeds_the_other(
    epsilon: float, deviation: float
) -> None:
    """The loss of N(1, s^2) against N(0, s^2) is normal: P(loss > e) - e^e Q(loss > e)."""
    edge = epsilon * deviation**2 + 0.5  # where the loss is epsilon
    above, below = stats.norm.sf(edge, 1, deviation), stats.norm.sf(edge, 0, deviation)
    expected = above - math.exp(epsilon) * below
    assert delta_of(deviation, epsilon) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (1, 0), (1, 1), (-1, 0.5)])
def test_what_is_no_guarantee_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="need epsilon > 0"):
        exact_gaussian(epsilon, delta)
