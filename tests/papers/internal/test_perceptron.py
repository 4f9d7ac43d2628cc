"""The perceptron against a slow version, and how its distance to the truth falls."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Product
from casemate.papers.perceptron import (
    Perceptron,
    PerceptronStep,
    onto_simplex,
    perceptron_updates,
    squared_length,
)

SHAPE, TOTAL, ALPHA = (2, 3), 60, Fraction(1, 8)
CELLS = list(itertools.product(range(2), range(3)))
masks = st.dictionaries(
    st.integers(0, 1), st.lists(st.booleans(), min_size=3, max_size=3), max_size=2
)
products = masks.map(
    lambda kept: Product(SHAPE, {a: np.array(mask[: SHAPE[a]]) for a, mask in kept.items()})
)
transcripts = st.lists(st.tuples(products, st.integers(-20, 80)), max_size=8)
steps = st.sampled_from(list(PerceptronStep))


def truths(cells: int = 6) -> st.SearchStrategy[Floats]:
    weights = st.lists(st.integers(0, 9), min_size=cells, max_size=cells).filter(any)
    return weights.map(lambda drawn: np.array(drawn) / sum(drawn))


def slow_simplex(point: dict[Any, Fraction]) -> dict[Any, Fraction]:
    """Lower the level through every set of cells that could be the positive ones."""
    for size in range(len(point), 0, -1):
        kept = sorted(point, key=lambda cell: -point[cell])[:size]
        level = (sum(point[cell] for cell in kept) - 1) / Fraction(size)
        if point[kept[-1]] > level:
            return {cell: max(point[cell] - level, Fraction(0)) for cell in point}
    raise AssertionError("one cell is always positive")


class SlowPerceptron:
    """Shares in fractions, one cell after the other."""

    def __init__(self, step: PerceptronStep, simplex: bool) -> None:
        self.step, self.simplex = step, simplex
        self.shares = {cell: Fraction(int(simplex), 6) for cell in CELLS}

    def touched(self, product: Product) -> list[tuple[int, int]]:
        return [c for c in CELLS if all(product.masks[a][c[a]] for a in product.masks)]

    def answer(self, product: Product) -> Fraction:
        return TOTAL * sum((self.shares[c] for c in self.touched(product)), Fraction(0))

    def update(self, product: Product, value: int) -> None:
        missing, touched = Fraction(value) - self.answer(product), self.touched(product)
        if not touched:
            return
        if self.step is PerceptronStep.DOCUMENT:
            length = ALPHA / 6 * ((missing > 0) - (missing < 0))
        else:
            length = missing / TOTAL / len(touched)
        for cell in touched:
            self.shares[cell] += length
        if self.simplex:
            self.shares = slow_simplex(self.shares)


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the perceptron (the algorithm)")
@given(transcripts, steps, st.booleans())
def test_it_equals_a_slow_version(
    transcript: list[tuple[Product, int]], step: PerceptronStep, simplex: bool
) -> None:
    fast = Perceptron(SHAPE, TOTAL, alpha=float(ALPHA), step=step, simplex=simplex)
    slow = SlowPerceptron(step, simplex)
    for product, value in transcript:
        believed = slow.answer(product)
        assert fast.answer(product) == pytest.approx(float(believed), abs=1e-9)
        if step is PerceptronStep.DOCUMENT and abs(believed - value) < Fraction(1, 10**6):
            continue  # the side of an exact tie is a matter of rounding
        fast.update(MeasuredProduct(product, value, 1.0))
        slow.update(product, value)
        expected = [float(slow.shares[cell]) for cell in CELLS]
        assert fast.shares.ravel() == pytest.approx(expected, abs=1e-9)


def squared_distance(stand_in: Perceptron, truth: Floats) -> float:
    return float(np.sum((stand_in.shares.ravel() - truth) ** 2))


@pytest.mark.theorem("003: Database update by the perceptron (T)")
@given(truths(), st.lists(products, max_size=30), st.floats(-0.99, 0.99), steps, st.booleans())
def test_every_needed_update_shortens_the_distance_as_stated(
    truth: Floats, asked: list[Product], lie: float, step: PerceptronStep, simplex: bool
) -> None:
    alpha = float(ALPHA)
    stand_in = Perceptron(SHAPE, TOTAL, alpha=alpha, step=step, simplex=simplex)
    for product in asked:
        right = float(truth @ product.dense())
        off = right - stand_in.answer(product) / TOTAL
        if abs(off) < alpha:
            continue
        noise = lie * alpha
        before = squared_distance(stand_in, truth)
        stand_in.update(MeasuredProduct(product, TOTAL * (right + noise), 1.0))
        fall = alpha**2 / 6
        if step is PerceptronStep.NORMALISED:
            fall = (off**2 - noise**2) / squared_length(product)
        assert squared_distance(stand_in, truth) <= before - fall + 1e-12


def sequence(truth: Floats, alpha: float, step: PerceptronStep, simplex: bool) -> int:
    """Updates by the subset that is most off, until none is off by alpha."""
    vectors = np.array(list(itertools.product([0.0, 1.0], repeat=len(truth))))[1:-1]
    stand_in = Perceptron((len(truth),), TOTAL, alpha=alpha, step=step, simplex=simplex)
    for count in itertools.count():
        off = vectors @ (truth - stand_in.shares)
        worst = int(np.argmax(np.abs(off)))
        if abs(off[worst]) < alpha:
            return count
        product = Product((len(truth),), {0: vectors[worst] > 0})
        stand_in.update(MeasuredProduct(product, TOTAL * float(truth @ vectors[worst]), 0))
    raise AssertionError("the count goes on")


@given(truths(), st.floats(0.1, 0.5), steps, st.booleans())
def test_no_sequence_of_updates_is_longer_than_stated(
    truth: Floats, alpha: float, step: PerceptronStep, simplex: bool
) -> None:
    start = np.full(6, 1 / 6) if simplex else np.zeros(6)
    distance = float(np.sum((truth - start) ** 2))
    assert distance <= 1
    assert (
        sequence(truth, alpha, step, simplex)
        <= perceptron_updates(alpha, 6, distance=distance) + 1e-6
    )


def test_the_stated_fall_is_attained() -> None:
    """By a question about everybody that is off by exactly alpha: it cannot be stated larger."""
    alpha, truth, stand_in = 0.25, np.full(6, 1 / 6), Perceptron((6,), TOTAL, alpha=0.25)
    stand_in._shares[:] = (1 - alpha) / 6
    before = squared_distance(stand_in, truth)
    stand_in.update(MeasuredProduct(Product((6,), {}), TOTAL, 0))
    assert before - squared_distance(stand_in, truth) == pytest.approx(alpha**2 / 6)


@given(truths(), st.lists(st.floats(-2, 2), min_size=6, max_size=6))
def test_the_simplex_never_leads_away_from_the_truth(truth: Floats, point: list[float]) -> None:
    before, after = np.array(point), onto_simplex(np.array(point))
    assert after.sum() == pytest.approx(1) and (after >= 0).all()
    assert np.sum((after - truth) ** 2) <= np.sum((before - truth) ** 2) + 1e-12


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=5))
def test_the_projection_is_the_nearest_point_of_the_simplex(point: list[float]) -> None:
    """Against SciPy: nonnegative least squares with a heavy row that demands a sum of 1."""
    heavy = 1e6
    rows = np.vstack([np.eye(len(point)), np.full(len(point), heavy)])
    nearest, _ = optimize.nnls(rows, np.array([*point, heavy]))
    assert onto_simplex(np.array(point)) == pytest.approx(nearest, abs=1e-5)


# Marginals ----------------------------------------------------------------------------------------


@given(st.lists(st.integers(-5, 40), min_size=3, max_size=3), st.booleans())
def test_a_normalised_step_on_a_marginal_is_one_on_each_of_its_cells(
    counts: list[int], simplex: bool
) -> None:
    whole = Perceptron(SHAPE, TOTAL, step=PerceptronStep.NORMALISED, simplex=simplex)
    whole.update(MeasuredMarginal(Marginal((1,)), np.array(counts, float), 1.0))
    each = Perceptron(SHAPE, TOTAL, step=PerceptronStep.NORMALISED)
    each._shares[:] = 1 / 6 if simplex else 0
    for code, count in enumerate(counts):
        each.update(MeasuredProduct(Product(SHAPE, {1: np.arange(3) == code}), count, 1.0))
    expected = onto_simplex(each.shares.ravel()) if simplex else each.shares.ravel()
    assert whole.shares.ravel() == pytest.approx(expected, abs=1e-12)


def test_the_documents_step_on_a_marginal_is_one_on_the_cell_that_is_most_off() -> None:
    whole, one = Perceptron(SHAPE, TOTAL), Perceptron(SHAPE, TOTAL)
    whole.update(MeasuredMarginal(Marginal((1,)), np.array([5.0, -9, 3]), 1.0))
    one.update(MeasuredProduct(Product(SHAPE, {1: np.arange(3) == 1}), -9, 1.0))
    assert np.array_equal(whole.shares, one.shares)


@given(transcripts)
def test_a_marginal_holds_the_answers_of_its_cells(transcript: list[tuple[Product, int]]) -> None:
    stand_in = Perceptron(SHAPE, TOTAL, simplex=True)
    for product, value in transcript:
        stand_in.update(MeasuredProduct(product, value, 1.0))
    cells = [Product(SHAPE, {0: np.arange(2) == code}) for code in range(2)]
    assert stand_in.marginal((0,)) == pytest.approx(stand_in.answers(cells))
    assert stand_in.marginal(()) == pytest.approx(TOTAL) == stand_in.total


def test_weights_enter_the_answer_and_the_step() -> None:
    weighted = Product(SHAPE, {0: np.array([True, False])}, {1: np.array([0.5, 0.25, 1.0])})
    assert squared_length(weighted) == pytest.approx(float(weighted.dense() @ weighted.dense()))
    stand_in = Perceptron(SHAPE, TOTAL, step=PerceptronStep.NORMALISED)
    stand_in.update(MeasuredProduct(weighted, 21, 1.0))
    assert stand_in.answer(weighted) == pytest.approx(21)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Perceptron((2,), 0),
        lambda: Perceptron((2,), 1, alpha=0),
        lambda: Perceptron((2,), 1).answer(Product((3,), {})),
        lambda: perceptron_updates(0.1, 4, noise=0.1),
        *(
            lambda step=step: Perceptron((2,), 1, step=step).update(
                MeasuredMarginal(Marginal((0,)), np.ones(3), 1.0)
            )
            for step in PerceptronStep
        ),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need|about|shape"):
        wrong()
