"""What every stand-in promises; a new one joins by being listed."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from casemate.grid import Floats, Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.papers.database_updates import (
    MedianMechanism,
    MultiplicativeWeights,
    Perceptron,
    literal_step,
)
from casemate.surrogate import Surrogate
from casemate.surrogate.mixture import MixtureSurrogate
from casemate.surrogate.replay import DenseSurrogate

SHAPE, TOTAL = (2, 3, 2), 1_000.0
MAKERS: dict[str, Callable[[], Surrogate]] = {
    "projection": lambda: DenseSurrogate(SHAPE, TOTAL),
    "weights": lambda: MultiplicativeWeights(SHAPE, TOTAL),
    "literal weights": lambda: MultiplicativeWeights(SHAPE, TOTAL, literal_step(0.1)),
    "perceptron": lambda: Perceptron(SHAPE, TOTAL),
    "mixture": lambda: MixtureSurrogate(SHAPE, TOTAL),
    "median": lambda: MedianMechanism(SHAPE, TOTAL, rows=5),
}
QUESTIONS = [
    Product(SHAPE, {1: np.array([True, False, False])}),
    Product(SHAPE, {0: np.array([True, False]), 2: np.array([False, True])}),
    Product(SHAPE, {1: np.array([True, False, True])}),
]


@pytest.fixture(params=MAKERS.values(), ids=list(MAKERS))
def make(request: pytest.FixtureRequest) -> Callable[[], Surrogate]:
    maker: Callable[[], Surrogate] = request.param
    return maker


def taught(make: Callable[[], Surrogate]) -> Surrogate:
    stand_in = make()
    for value, question in zip([800.0, 100.0, 900.0], QUESTIONS, strict=True):
        stand_in.update(MeasuredProduct(question, value, 0.0))
    stand_in.update(MeasuredMarginal(Marginal((0, 2)), np.array([[500.0, 200], [200, 100]]), 4.0))
    return stand_in


def everything(stand_in: Surrogate) -> Floats:
    return stand_in.marginal((0, 1, 2))


def test_answers_are_in_counts(make: Callable[[], Surrogate]) -> None:
    stand_in = make()
    assert stand_in.total == TOTAL
    assert stand_in.marginal((0, 1)).shape == (2, 3)
    assert all(0 <= stand_in.answer(question) <= TOTAL for question in QUESTIONS)


def test_many_answers_are_the_single_ones(make: Callable[[], Surrogate]) -> None:
    stand_in = taught(make)
    assert stand_in.answers(QUESTIONS).tolist() == [stand_in.answer(q) for q in QUESTIONS]
    assert stand_in.answers([]).shape == (0,)


def test_an_update_brings_the_answer_closer(make: Callable[[], Surrogate]) -> None:
    stand_in, question = make(), QUESTIONS[0]
    before = stand_in.answer(question)
    stand_in.update(MeasuredProduct(question, 800.0, 0.0))
    assert abs(stand_in.answer(question) - 800) < abs(before - 800)


def test_the_same_measurements_give_the_same_bits(make: Callable[[], Surrogate]) -> None:
    one, other = taught(make), taught(make)
    assert everything(one).tobytes() == everything(other).tobytes()
    assert one.answers(QUESTIONS).tobytes() == other.answers(QUESTIONS).tobytes()


def test_asking_changes_nothing(make: Callable[[], Surrogate]) -> None:
    stand_in = taught(make)
    first = everything(stand_in).tobytes()
    stand_in.answers(QUESTIONS)
    stand_in.marginal((1,))
    assert everything(stand_in).tobytes() == first


DAILY = pytest.mark.parametrize("daily", [DenseSurrogate, MixtureSurrogate])
Daily = type[DenseSurrogate] | type[MixtureSurrogate]


@DAILY
def test_a_total_is_public_or_the_mean_of_what_was_measured_each_by_its_variance(
    daily: Daily,
) -> None:
    public, unknown = daily((2,), 90), daily((2,), 0, math.inf)
    for stand_in in (public, unknown):
        stand_in.update(MeasuredProduct(Product((2,), {}), -30.0, 2.0))
    assert unknown.total == 1, "there is somebody"
    for stand_in in (public, unknown):
        stand_in.update(MeasuredProduct(Product((2,), {0: np.array([True, False])}), 9.0, 1.0))
        stand_in.update(MeasuredMarginal(Marginal((0,)), np.array([60.0, 60.0]), 2.0))
    assert public.total == 90
    assert unknown.total == pytest.approx((-30 / 2 + 120 / 4) / (1 / 2 + 1 / 4))
    assert unknown.marginal((0,)).sum() == pytest.approx(unknown.total)


@DAILY
def test_what_is_about_another_grid_is_refused_before_anything_changes(
    daily: Daily,
) -> None:
    stand_in = daily(SHAPE, 0, math.inf)
    good = MeasuredMarginal(Marginal((0, 1)), np.ones((2, 3)), 1.0)
    bad: list[Measurement] = [
        MeasuredProduct(Product((3, 4), {}), 3.0, 1.0),
        MeasuredMarginal(Marginal((0, 1)), np.ones((3, 2)), 1.0),
        MeasuredMarginal(Marginal((7,)), np.ones(3), 1.0),
    ]
    for wrong in bad:
        with pytest.raises(ValueError, match="not about the grid"):
            stand_in.learn([good, wrong])
    with pytest.raises(ValueError, match="about the grid"):
        stand_in.answer(Product((2, 2), {}))
    assert stand_in.total == 1
    assert np.ptp(stand_in.marginal((0, 1, 2))) <= 1e-12
    with pytest.raises(ValueError, match="finite total"):
        daily(SHAPE, math.nan)
