"""The three database update algorithms: each against a slow version, and its number of updates."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers.slow_updates import SlowMedian, SlowPerceptron, SlowStandIn, SlowWeights

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Product
from casemate.papers.database_updates import (
    MedianMechanism,
    MultiplicativeWeights,
    Perceptron,
    Step,
    corrected_step,
    corrected_updates,
    every_database,
    fixed_step,
    literal_step,
    literal_updates,
    lower_median,
    perceptron_updates,
    relative_entropy,
    rows_needed,
    sure_drop,
    updates_of_databases,
)
from casemate.surrogate import Surrogate
from casemate.surrogate.dense import DenseSurrogate

SHAPE, CELLS, TOTAL, ALPHA = (2, 3), 6, 60, 0.125
NAMES = ("weights", "perceptron", "median")
Make = Callable[..., Surrogate]
STAND_INS: dict[str, Make] = {
    "weights": lambda shape, total, _: MultiplicativeWeights(shape, total, literal_step(ALPHA)),
    "perceptron": lambda shape, total, _: Perceptron(shape, total, alpha=ALPHA),
    "median": MedianMechanism,
}
SLOW_STAND_INS: dict[str, Callable[[int], SlowStandIn]] = {
    "weights": lambda _: SlowWeights(CELLS, TOTAL, ALPHA),
    "perceptron": lambda _: SlowPerceptron(CELLS, TOTAL, Fraction(ALPHA)),
    "median": lambda rows: SlowMedian(CELLS, TOTAL, rows),
}
masks = st.dictionaries(
    st.integers(0, 1), st.lists(st.booleans(), min_size=3, max_size=3), max_size=2
)
products = masks.map(
    lambda kept: Product(SHAPE, {a: np.array(mask[: SHAPE[a]]) for a, mask in kept.items()})
)
ties = st.sampled_from([0, 15, 20, 30, 40, 45, 60])  # what medians of few rows are
transcripts = st.lists(st.tuples(products, st.integers(-20, 80) | ties), max_size=8)


def truths(cells: int) -> st.SearchStrategy[Floats]:
    weights = st.lists(st.integers(0, 9), min_size=cells, max_size=cells).filter(any)
    return weights.map(lambda drawn: np.array(drawn) / sum(drawn))


def subset(chosen: Any) -> Product:
    """A question about the cells that a vector of zeros and ones marks."""
    return Product((len(chosen),), {0: np.asarray(chosen) > 0})


# Each of them ---------------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the perceptron (the algorithm)")
@pytest.mark.theorem("003: Database update by the median (the algorithm)")
@pytest.mark.parametrize("name", NAMES)
@given(transcripts, st.integers(1, 4))
def test_it_equals_a_slow_version(
    name: str, transcript: list[tuple[Product, int]], rows: int
) -> None:
    fast, slow = STAND_INS[name](SHAPE, TOTAL, rows), SLOW_STAND_INS[name](rows)
    for product, value in transcript:
        chosen = np.flatnonzero(product.dense()).tolist()
        believed = slow.answer(chosen)
        assert fast.answer(product) == pytest.approx(float(believed), abs=1e-9)
        if name != "median" and abs(believed - value) < Fraction(1, 10**6):
            continue  # the side of an exact tie is a matter of rounding
        fast.update(MeasuredProduct(product, value, 1.0))
        slow.update(chosen, value)
        expected = [float(slow.answer([cell])) for cell in range(CELLS)]
        assert fast.marginal((0, 1)).ravel() == pytest.approx(expected, abs=1e-9)
        if isinstance(fast, MedianMechanism) and isinstance(slow, SlowMedian):
            assert fast.left == len(slow.left), "a cut that would leave nothing is not made"


@pytest.mark.parametrize("name", NAMES)
@given(transcripts)
def test_a_marginal_holds_the_answers_of_its_cells(
    name: str, transcript: list[tuple[Product, int]]
) -> None:
    stand_in = STAND_INS[name](SHAPE, TOTAL, 3)
    for product, value in transcript:
        stand_in.update(MeasuredProduct(product, value, 1.0))
    cells = [Product(SHAPE, {0: np.arange(2) == code}) for code in range(2)]
    assert stand_in.marginal((0,)) == pytest.approx(stand_in.answers(cells))
    assert stand_in.total == TOTAL
    assert stand_in.marginal(()) == pytest.approx(stand_in.answer(Product(SHAPE, {})))


@pytest.mark.parametrize("name", NAMES)
def test_of_a_marginal_it_learns_the_cell_it_gets_most_wrong(name: str) -> None:
    whole, one = (STAND_INS[name](SHAPE, TOTAL, 4) for _ in range(2))
    whole.update(MeasuredMarginal(Marginal((1,)), np.array([25.0, 70, 23]), 1.0))
    one.update(MeasuredProduct(Product(SHAPE, {1: np.arange(3) == 1}), 70, 1.0))
    assert np.array_equal(whole.marginal((0, 1)), one.marginal((0, 1)))
    with pytest.raises(ValueError, match="shape"):
        whole.update(MeasuredMarginal(Marginal((1,)), np.ones(4), 1.0))


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda make=make: make((2,), 0, 1) for make in STAND_INS.values()),
        lambda: Perceptron((2,), 1, alpha=0),
        lambda: Perceptron((2,), 1).answer(Product((3,), {})),
        lambda: MedianMechanism((2,), 1, 1).answer(Product((3,), {})),
        lambda: MedianMechanism((64,), 1, 20),
        lambda: MedianMechanism((2,), 1, 0),
        lambda: rows_needed(0, 1),
        lambda: MultiplicativeWeights((3,), 12).update(
            MeasuredProduct(Product((3,), {}, {0: np.array([0.0, 1, 2])}), 3.0, 0.0)
        ),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need|too many|about|rescale"):
        wrong()


def updates_until_close(stand_in: Surrogate, truth: Floats, alpha: float, lie: float = 0) -> int:
    """Updates by the subset that is most off, each measured with an error of lie < alpha."""
    vectors = np.array(list(itertools.product([0.0, 1.0], repeat=len(truth))))[1:-1]
    asked = [subset(vector) for vector in vectors]
    for count in range(1000):
        off = vectors @ truth - stand_in.answers(asked) / TOTAL
        worst = int(np.argmax(np.abs(off)))
        if abs(off[worst]) < alpha:
            return count
        told = float(vectors[worst] @ truth) - math.copysign(lie, off[worst])
        stand_in.update(MeasuredProduct(asked[worst], TOTAL * told, 0))
    raise AssertionError("updates do not end")


# The perceptron -------------------------------------------------------------------------------


def squared_distance(stand_in: Perceptron, truth: Floats) -> float:
    return float(np.sum((stand_in.shares.ravel() - truth) ** 2))


@pytest.mark.theorem("003: Database update by the perceptron (T)")
@given(truths(6), st.lists(products, max_size=30), st.floats(-0.99, 0.99))
def test_every_needed_update_shortens_the_distance_as_stated(
    truth: Floats, asked: list[Product], lie: float
) -> None:
    stand_in = Perceptron(SHAPE, TOTAL, alpha=ALPHA)
    for product in asked:
        right = float(truth @ product.dense())
        off = right - stand_in.answer(product) / TOTAL
        if abs(off) < ALPHA:
            continue
        before = squared_distance(stand_in, truth)
        stand_in.update(MeasuredProduct(product, TOTAL * (right + lie * ALPHA), 1.0))
        assert squared_distance(stand_in, truth) <= before - ALPHA**2 / 6 + 1e-12


@given(truths(6), st.floats(0.1, 0.5))
def test_no_sequence_of_updates_is_longer_than_stated(truth: Floats, alpha: float) -> None:
    distance = float(np.sum(truth**2))
    assert distance <= 1
    found = updates_until_close(Perceptron((6,), TOTAL, alpha=alpha), truth, alpha)
    assert found <= perceptron_updates(alpha, 6, distance=distance) + 1e-6


def test_the_stated_fall_is_attained() -> None:
    """By a question about everybody that is off by exactly alpha: it cannot be stated larger."""
    alpha, truth, stand_in = 0.25, np.full(6, 1 / 6), Perceptron((6,), TOTAL, alpha=0.25)
    stand_in._shares[:] = (1 - alpha) / 6
    before = squared_distance(stand_in, truth)
    stand_in.update(MeasuredProduct(Product((6,), {}), TOTAL, 0))
    assert before - squared_distance(stand_in, truth) == pytest.approx(alpha**2 / 6)


def test_weights_enter_the_answer_and_the_step() -> None:
    weighted = Product(SHAPE, {0: np.array([True, False])}, {1: np.array([0.5, 0.25, 1.0])})
    stand_in = Perceptron(SHAPE, TOTAL, alpha=0.5)
    stand_in.update(MeasuredProduct(weighted, 21, 1.0))
    assert stand_in.shares.ravel() == pytest.approx(0.5 / 6 * weighted.dense())
    assert stand_in.answer(weighted) == pytest.approx(
        TOTAL * 0.5 / 6 * float(weighted.dense() @ weighted.dense())
    )


# The median mechanism -------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the median (T)")
@given(truths(4), st.floats(0.3, 0.5), st.floats(0, 0.99))
def test_with_every_database_of_the_needed_size_updates_end_within_the_bound(
    truth: Floats, alpha: float, lie: float
) -> None:
    rows = rows_needed(alpha, 14)
    found = updates_until_close(MedianMechanism((4,), TOTAL, rows), truth, alpha, lie * alpha)
    assert found <= updates_of_databases(4, rows)


@given(truths(4), st.floats(0.3, 0.5))
def test_some_database_of_the_needed_size_is_close_on_every_question(
    truth: Floats, alpha: float
) -> None:
    asked = np.array(list(itertools.product([0, 1], repeat=4)))[1:-1]
    rows = rows_needed(alpha, len(asked))
    shares = every_database(rows, 4) / rows
    assert np.abs((shares - truth) @ asked.T).max(axis=1).min() < alpha


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_half_are_on_either_side_of_a_lower_median(values: list[int]) -> None:
    middle = lower_median(np.array(values, np.float64))
    assert 2 * sum(v <= middle for v in values) >= len(values)
    assert 2 * sum(v >= middle for v in values) >= len(values)
    assert middle == sorted(values)[(len(values) - 1) // 2]


@given(st.integers(2, 6), st.integers(1, 5))
def test_all_databases_are_there_once(cells: int, rows: int) -> None:
    tables = every_database(rows, cells)
    assert len(np.unique(tables, axis=0)) == len(tables) == math.comb(cells + rows - 1, rows)
    assert (tables.sum(axis=1) == rows).all()
    assert updates_of_databases(cells, rows) == pytest.approx(math.log2(len(tables)))


# Multiplicative weights -----------------------------------------------------------------------


def tilt(shares: Floats, query: Floats, eta: float) -> Floats:
    raised: Floats = shares * np.exp(eta * query)
    raised /= raised.sum()
    return raised


@given(
    st.integers(0, 10**6),
    st.sampled_from([corrected_step, literal_step(0.1), fixed_step(0.1)]),
    st.booleans(),
)
def test_an_update_multiplies_by_the_exponential_of_the_query(
    seed: int, step: Step, weighted: bool
) -> None:
    draw = np.random.default_rng(seed)
    weights = {1: draw.random(3)} if weighted else {}
    product, wanted = Product(SHAPE, {0: draw.random(2) < 0.5}, weights), float(draw.random())
    stand_in = MultiplicativeWeights(SHAPE, 200, step, prior=draw.random(SHAPE) + 0.1)
    shares = stand_in.marginal((0, 1)).ravel() / 200
    gap = wanted - float(shares @ product.dense())
    stand_in.update(MeasuredProduct(product, 200 * wanted, 0.0))
    slow = tilt(shares, product.dense(), step(gap))
    assert stand_in.marginal((0, 1)).ravel() / 200 == pytest.approx(slow)


def drop_and_gap(seed: int, noise: float, step: Step = corrected_step) -> tuple[float, float]:
    """What one update takes off the potential, and the gap that it met."""
    draw = np.random.default_rng(seed)
    cells = int(draw.integers(2, 40))
    data, shares = draw.dirichlet(np.full(cells, draw.choice([0.05, 0.5, 5.0])), 2)
    shares = shares * 0.99 + 0.01 / cells
    query = draw.random(cells) if draw.random() < 0.5 else draw.integers(0, 2, cells).astype(float)
    gap = float((data - shares) @ query)
    after = tilt(shares, query, step(gap + noise))
    return relative_entropy(data, shares) - relative_entropy(data, after), gap


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
@given(st.integers(0, 10**9), st.floats(-0.5, 0.5))
def test_an_update_takes_off_at_least_twice_the_squared_gap_less_that_of_the_noise(
    seed: int, noise: float
) -> None:
    drop, gap = drop_and_gap(seed, noise)
    assert drop >= sure_drop(gap, noise) - 1e-12


def test_the_test_above_would_notice_a_step_twice_as_long(seed: int) -> None:
    worst = min(
        drop - sure_drop(gap)
        for drop, gap in (drop_and_gap(seed + k, 0.0, lambda gap: 8 * gap) for k in range(500))
    )
    assert worst < -1e-3


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
def test_the_number_of_updates_is_stated() -> None:
    """With eta = alpha / 2 at a gap of alpha, eta * gap - eta^2 is alpha^2 / 4, hence its T."""
    eta = literal_step(ALPHA)(ALPHA)
    assert eta * ALPHA - eta**2 == pytest.approx(ALPHA**2 / 4)
    assert sure_drop(ALPHA) == pytest.approx(8 * ALPHA**2 / 4)
    assert literal_step(ALPHA)(-1.0) == -eta
    assert literal_updates(10**6, 0.05) == pytest.approx(4 * math.log(10**6) / 0.0025)
    assert corrected_updates(10**6, 0.05) == pytest.approx(2763.1, abs=0.1)
    assert literal_updates(64, 0.1) == pytest.approx(8 * corrected_updates(64, 0.1))
    assert corrected_updates(64, 0.1, entropy=1.0) == pytest.approx(50)


def test_relative_entropy_is_infinite_where_the_stand_in_has_nothing() -> None:
    assert relative_entropy(np.array([1.0, 0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert relative_entropy(np.array([0.5, 0.5]), np.array([1.0, 0])) == math.inf


TOY, CLOSE = 64, 0.05


def updates_needed(stand_in: MultiplicativeWeights | DenseSurrogate, seed: int) -> int:
    """How many updates until no query of a toy is further off than alpha."""
    draw = np.random.default_rng([seed, 9])
    data, queries = draw.dirichlet(np.full(TOY, 0.1)), draw.random((2000, TOY)) < 0.5
    right = queries @ data
    for updates in range(3000):
        gaps = right - queries @ stand_in.marginal((0,))
        worst = int(np.argmax(np.abs(gaps)))
        if abs(gaps[worst]) <= CLOSE:
            return updates
        stand_in.update(MeasuredProduct(subset(queries[worst]), float(right[worst]), 0.0))
    raise AssertionError("it never came within alpha")


@pytest.mark.theorem("003: T(alpha) of multiplicative weights")
def test_the_documents_step_needs_many_times_the_updates(seed: int) -> None:
    for trial in range(seed, seed + 3):
        shape = (TOY,)
        literal = updates_needed(MultiplicativeWeights(shape, 1.0, literal_step(CLOSE)), trial)
        corrected = updates_needed(MultiplicativeWeights(shape, 1.0), trial)
        projected = updates_needed(DenseSurrogate(shape, 1.0), trial)
        assert projected <= 15 and 250 <= literal <= literal_updates(TOY, CLOSE)
        assert corrected <= corrected_updates(TOY, CLOSE) and 8 * corrected <= literal
