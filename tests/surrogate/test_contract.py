"""What every stand-in promises; a new one joins by being listed."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from surrogate.small_tables import (
    EVERYTHING,
    SCOPES,
    TOTAL,
    counts,
    every_question,
    measured,
    transcript,
)
from surrogate.small_tables import SHAPE as DAILY_SHAPE

from casemate.grid import Marginal, MeasuredMarginal, MeasuredProduct, Measurement, Product
from casemate.papers.database_updates import (
    MedianMechanism,
    MultiplicativeWeights,
    Perceptron,
    literal_step,
)
from casemate.surrogate import Surrogate
from casemate.surrogate.dense import DenseSurrogate
from casemate.surrogate.histogram import marginals
from casemate.surrogate.mixture import MixtureSurrogate
from casemate.surrogate.stand_in import DailyStandIn

SHAPE, PEOPLE = (2, 3, 2), 1_000.0
MAKERS: dict[str, Callable[[], Surrogate]] = {
    "projection": lambda: DenseSurrogate(SHAPE, PEOPLE),
    "weights": lambda: MultiplicativeWeights(SHAPE, PEOPLE),
    "literal weights": lambda: MultiplicativeWeights(SHAPE, PEOPLE, literal_step(0.1)),
    "perceptron": lambda: Perceptron(SHAPE, PEOPLE),
    "mixture": lambda: MixtureSurrogate(SHAPE, PEOPLE),
    "median": lambda: MedianMechanism(SHAPE, PEOPLE, rows=5),
}
EVERY_KIND = pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
QUESTIONS = [
    Product(SHAPE, {1: np.array([True, False, False])}),
    Product(SHAPE, {0: np.array([True, False]), 2: np.array([False, True])}),
    Product(SHAPE, {1: np.array([True, False, True])}),
]


def everything(stand_in: Surrogate) -> bytes:
    return stand_in.marginal((0, 1, 2)).tobytes() + stand_in.answers(QUESTIONS).tobytes()


@EVERY_KIND
def test_answers_are_in_counts_and_an_update_brings_them_closer(
    make: Callable[[], Surrogate],
) -> None:
    stand_in, question = make(), QUESTIONS[0]
    assert stand_in.total == PEOPLE
    assert stand_in.marginal((0, 1)).shape == (2, 3)
    before = stand_in.answers(QUESTIONS)
    assert all(0 <= value <= PEOPLE for value in before)
    stand_in.update(MeasuredProduct(question, 800.0, 0.0))
    assert abs(stand_in.answer(question) - 800) < abs(before[0] - 800)


@EVERY_KIND
def test_the_same_measurements_give_the_same_bits_whenever_it_was_asked(
    make: Callable[[], Surrogate],
) -> None:
    several: list[Measurement] = [
        MeasuredProduct(question, value, 0.0)
        for value, question in zip([800.0, 100.0, 900.0], QUESTIONS, strict=True)
    ]
    several.append(MeasuredMarginal(Marginal((0, 2)), np.array([[500.0, 200], [200, 100]]), 4.0))
    asked, silent = make(), make()
    for measurement in several:
        asked.marginal((1,))
        everything(asked)
        for stand_in in (asked, silent):
            stand_in.update(measurement)
    assert everything(asked) == everything(silent) == everything(asked)
    assert asked.answers(QUESTIONS).tolist() == [asked.answer(each) for each in QUESTIONS]
    assert asked.answers([]).shape == (0,)


# Stand-ins for daily use: they fit everything that was published together ----------------------

Make = Callable[..., DailyStandIn]
DAILY: dict[str, Make] = {
    "dense": DenseSurrogate,
    "mixture": partial(MixtureSurrogate, components=9, steps=6),  # fitted roughly
}
EVERY_DAILY = pytest.mark.parametrize("daily", DAILY.values(), ids=list(DAILY))


def rebuilt(daily: Make, measurements: Sequence[Measurement]) -> DailyStandIn:
    stand_in = daily(DAILY_SHAPE, 0, math.inf)
    for one in measurements:
        stand_in.update(one)
    return stand_in


@EVERY_DAILY
@settings(max_examples=10)
@given(st.integers(0, 10**6))
@example(4559)  # a cell loses all its mass on the way
def test_a_transcript_rebuilds_it_bit_for_bit_and_it_is_one_distribution(
    daily: Make, seed: int
) -> None:
    live, questions = daily(DAILY_SHAPE, 0, math.inf), every_question(seed)
    for place, measurement in enumerate(transcript(seed)):
        if place in (3, 8):
            live.answers(questions)  # answering in between must not matter
            live.marginal((0, 2))
        live.update(measurement)
    again = rebuilt(daily, transcript(seed))
    assert again.total == live.total
    assert again.marginal(EVERYTHING).tobytes() == live.marginal(EVERYTHING).tobytes()
    assert again.answers(questions).tobytes() == live.answers(questions).tobytes()
    require_one_distribution(live, questions)


def require_one_distribution(stand_in: DailyStandIn, questions: Sequence[Product]) -> None:
    """Nothing is negative, everything sums to the total, and all answers follow from the cells."""
    cells, tables = stand_in.marginal(EVERYTHING), stand_in.marginals(SCOPES)
    assert np.isfinite(cells).all() and (cells >= 0).all()
    assert cells.sum() == pytest.approx(stand_in.total)
    assert stand_in.answer(Product(DAILY_SHAPE, {})) == pytest.approx(stand_in.total, rel=1e-12)
    for scope, table in tables.items():
        others = tuple(set(EVERYTHING) - set(scope))
        assert table == pytest.approx(cells.sum(axis=others), abs=1e-8)
        assert np.array_equal(table, stand_in.marginal(scope))
    expected = [float(cells.ravel() @ product.dense()) for product in questions]
    assert stand_in.answers(questions) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@EVERY_DAILY
def test_the_test_above_would_notice_a_measurement_that_is_missing(daily: Make, seed: int) -> None:
    several = transcript(seed)
    table = next(i for i, one in enumerate(several) if isinstance(one, MeasuredMarginal))
    one, other = rebuilt(daily, several), rebuilt(daily, several[:table] + several[table + 1 :])
    assert one.marginal(EVERYTHING).tobytes() != other.marginal(EVERYTHING).tobytes()


@EVERY_DAILY
def test_before_anything_is_measured_all_cells_are_equal(daily: Make) -> None:
    found = daily(DAILY_SHAPE, TOTAL).marginal(EVERYTHING)
    assert found == pytest.approx(np.full(DAILY_SHAPE, TOTAL / 72))


@pytest.mark.parametrize("daily", [DenseSurrogate, MixtureSurrogate])
def test_attributes_that_were_measured_alone_are_independent(daily: Make, seed: int) -> None:
    cells, singles = counts(seed), [(0,), (1,), (3,)]
    stand_in = daily(DAILY_SHAPE, TOTAL)
    stand_in.learn(measured(cells, [*singles]))
    parts = marginals(cells, singles)
    expected = np.einsum("a,b,c->abc", *(parts[s] for s in singles)) / TOTAL**2
    assert stand_in.marginal((0, 1, 3)) == pytest.approx(expected, abs=2)


@EVERY_DAILY
def test_a_total_is_public_or_the_mean_of_what_was_measured_each_by_its_variance(
    daily: Make,
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


@EVERY_DAILY
def test_what_is_about_another_grid_is_refused_before_anything_changes(daily: Make) -> None:
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
