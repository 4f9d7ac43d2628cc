"""The perceptron against a slow version, and how its distance to the truth falls."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Product
from casemate.papers.database_updates import Perceptron, perceptron_updates

SHAPE, TOTAL, ALPHA = (2, 3), 60, Fraction(1, 8)
CELLS = list(itertools.product(range(2), range(3)))
masks = st.dictionaries(
    st.integers(0, 1), st.lists(st.booleans(), min_size=3, max_size=3), max_size=2
)
products = masks.map(
    lambda kept: Product(SHAPE, {a: np.array(mask[: SHAPE[a]]) for a, mask in kept.items()})
)
transcripts = st.lists(st.tuples(products, st.integers(-20, 80)), max_size=8)


def truths(cells: int = 6) -> st.SearchStrategy[Floats]:
    weights = st.lists(st.integers(0, 9), min_size=cells, max_size=cells).filter(any)
    return weights.map(lambda drawn: np.array(drawn) / sum(drawn))


class SlowPerceptron:
    """Shares in fractions, one cell after the other."""

    def __init__(self) -> None:
        self.shares = dict.fromkeys(CELLS, Fraction(0))

    def touched(self, product: Product) -> list[tuple[int, int]]:
        return [c for c in CELLS if all(product.masks[a][c[a]] for a in product.masks)]

    def answer(self, product: Product) -> Fraction:
        return TOTAL * sum((self.shares[c] for c in self.touched(product)), Fraction(0))

    def update(self, product: Product, value: int) -> None:
        missing, touched = Fraction(value) - self.answer(product), self.touched(product)
        for cell in touched:
            self.shares[cell] += ALPHA / 6 * ((missing > 0) - (missing < 0))


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.theorem("003: Database update by the perceptron (the algorithm)")
@given(transcripts)
def test_it_equals_a_slow_version(transcript: list[tuple[Product, int]]) -> None:
    fast, slow = Perceptron(SHAPE, TOTAL, alpha=float(ALPHA)), SlowPerceptron()
    for product, value in transcript:
        believed = slow.answer(product)
        assert fast.answer(product) == pytest.approx(float(believed), abs=1e-9)
        if abs(believed - value) < Fraction(1, 10**6):
            continue  # the side of an exact tie is a matter of rounding
        fast.update(MeasuredProduct(product, value, 1.0))
        slow.update(product, value)
        expected = [float(slow.shares[cell]) for cell in CELLS]
        assert fast.shares.ravel() == pytest.approx(expected, abs=1e-9)


def squared_distance(stand_in: Perceptron, truth: Floats) -> float:
    return float(np.sum((stand_in.shares.ravel() - truth) ** 2))


@pytest.mark.theorem("003: Database update by the perceptron (T)")
@given(truths(), st.lists(products, max_size=30), st.floats(-0.99, 0.99))
def test_every_needed_update_shortens_the_distance_as_stated(
    truth: Floats, asked: list[Product], lie: float
) -> None:
    alpha = float(ALPHA)
    stand_in = Perceptron(SHAPE, TOTAL, alpha=alpha)
    for product in asked:
        right = float(truth @ product.dense())
        off = right - stand_in.answer(product) / TOTAL
        if abs(off) < alpha:
            continue
        noise = lie * alpha
        before = squared_distance(stand_in, truth)
        stand_in.update(MeasuredProduct(product, TOTAL * (right + noise), 1.0))
        assert squared_distance(stand_in, truth) <= before - alpha**2 / 6 + 1e-12


def sequence(truth: Floats, alpha: float) -> int:
    """Updates by the subset that is most off, until none is off by alpha."""
    vectors = np.array(list(itertools.product([0.0, 1.0], repeat=len(truth))))[1:-1]
    stand_in = Perceptron((len(truth),), TOTAL, alpha=alpha)
    for count in itertools.count():
        off = vectors @ (truth - stand_in.shares)
        worst = int(np.argmax(np.abs(off)))
        if abs(off[worst]) < alpha:
            return count
        product = Product((len(truth),), {0: vectors[worst] > 0})
        stand_in.update(MeasuredProduct(product, TOTAL * float(truth @ vectors[worst]), 0))
    raise AssertionError("the count goes on")


@given(truths(), st.floats(0.1, 0.5))
def test_no_sequence_of_updates_is_longer_than_stated(truth: Floats, alpha: float) -> None:
    distance = float(np.sum(truth**2))
    assert distance <= 1
    assert sequence(truth, alpha) <= perceptron_updates(alpha, 6, distance=distance) + 1e-6


def test_the_stated_fall_is_attained() -> None:
    """By a question about everybody that is off by exactly alpha: it cannot be stated larger."""
    alpha, truth, stand_in = 0.25, np.full(6, 1 / 6), Perceptron((6,), TOTAL, alpha=0.25)
    stand_in._shares[:] = (1 - alpha) / 6
    before = squared_distance(stand_in, truth)
    stand_in.update(MeasuredProduct(Product((6,), {}), TOTAL, 0))
    assert before - squared_distance(stand_in, truth) == pytest.approx(alpha**2 / 6)


# Marginals ----------------------------------------------------------------------------------------


def test_the_documents_step_on_a_marginal_is_one_on_the_cell_that_is_most_off() -> None:
    whole, one = Perceptron(SHAPE, TOTAL), Perceptron(SHAPE, TOTAL)
    whole.update(MeasuredMarginal(Marginal((1,)), np.array([5.0, -9, 3]), 1.0))
    one.update(MeasuredProduct(Product(SHAPE, {1: np.arange(3) == 1}), -9, 1.0))
    assert np.array_equal(whole.shares, one.shares)


@given(transcripts)
def test_a_marginal_holds_the_answers_of_its_cells(transcript: list[tuple[Product, int]]) -> None:
    stand_in = Perceptron(SHAPE, TOTAL)
    for product, value in transcript:
        stand_in.update(MeasuredProduct(product, value, 1.0))
    cells = [Product(SHAPE, {0: np.arange(2) == code}) for code in range(2)]
    assert stand_in.marginal((0,)) == pytest.approx(stand_in.answers(cells))


def test_weights_enter_the_answer_and_the_step() -> None:
    weighted = Product(SHAPE, {0: np.array([True, False])}, {1: np.array([0.5, 0.25, 1.0])})
    stand_in = Perceptron(SHAPE, TOTAL, alpha=0.5)
    stand_in.update(MeasuredProduct(weighted, 21, 1.0))
    assert stand_in.shares.ravel() == pytest.approx(0.5 / 6 * weighted.dense())
    assert stand_in.answer(weighted) == pytest.approx(
        TOTAL * 0.5 / 6 * float(weighted.dense() @ weighted.dense())
    )


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Perceptron((2,), 0),
        lambda: Perceptron((2,), 1, alpha=0),
        lambda: Perceptron((2,), 1).answer(Product((3,), {})),
        lambda: Perceptron((2,), 1).update(MeasuredMarginal(Marginal((0,)), np.ones(3), 1.0)),
    ],
)
def test_a_wrong_argument_is_a_value_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"need|about|shape"):
        wrong()
