from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from casemate.attack.features import Features, Places
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.score.predictor import (
    RIDGE_PENALTY,
    CellPredictor,
    Decision,
    GuessForecast,
    LearningTask,
    NearestRecords,
    Predictor,
    PredictorMark,
    PriorMean,
    PublicDesign,
    Ridge,
    Rule,
    Split,
    majority,
    marginal,
    marks,
    nearest,
    prior_mean,
)
from casemate.attack.subjects import Subjects
from casemate.exact import Floats

COUNT = 60


def case(seed: int) -> tuple[LearningTask, Floats, Split]:
    """A lesson of three guesses, a design, and which records are learned from and asked about."""
    rng = np.random.default_rng(seed)
    lesson = LearningTask(rng.integers(0, 4, COUNT), 3, rng.normal(size=COUNT))
    learn = rng.random(COUNT) < 0.7
    return lesson, rng.normal(size=(COUNT, 3)), Split.of(learn, np.flatnonzero(~learn))


def shares(lesson: LearningTask, places: list[int]) -> list[float]:
    return [sum(lesson.classes[p] == guess for p in places) for guess in range(lesson.count)]


def test_a_cell_is_its_own_records_and_one_like_the_average(seed: int) -> None:
    lesson, design, split = case(seed)
    codes = (design[:, 0] > 0).astype(np.int64)
    found = CellPredictor(codes, 1.0).predict(lesson, split)
    everybody = split.held.tolist()
    for row, place in enumerate(split.asked.tolist()):
        own = [each for each in everybody if codes[each] == codes[place]]
        average = np.array(shares(lesson, everybody)) / len(everybody)
        slow = (np.array(shares(lesson, own)) + average) / (len(own) + 1)
        np.testing.assert_allclose(found.shares[row], slow)
        mean = lesson.numbers[own].sum() + lesson.numbers[everybody].mean()
        assert found.means[row] == pytest.approx(mean / (len(own) + 1))


def test_neighbours_are_the_nearest_that_may_be_learned_from(seed: int) -> None:
    lesson, design, split = case(seed)
    near = nearest(design, np.arange(COUNT))
    found = NearestRecords(near, 5).predict(lesson, split)
    for row, place in enumerate(split.asked.tolist()):
        apart = {each: float(np.sum((design[each] - design[place]) ** 2)) for each in split.held}
        own = sorted(apart, key=lambda each: apart[each])[:5]
        np.testing.assert_allclose(found.shares[row], np.array(shares(lesson, own)) / 5, atol=1e-5)
        assert found.means[row] == pytest.approx(lesson.numbers[own].mean(), abs=1e-5)


def test_a_linear_form_is_ridge_regression(seed: int) -> None:
    lesson, design, split = case(seed)
    found = Ridge(design).predict(lesson, split)
    learned = design[split.held]
    for guess, mine in [*enumerate(found.shares.T), (-1, found.means)]:
        target = lesson.numbers if guess < 0 else (lesson.classes == guess).astype(np.float64)
        level = target[split.held].mean()
        squares = learned.T @ learned + RIDGE_PENALTY * len(learned) * np.eye(3)
        slopes = np.linalg.solve(squares, learned.T @ (target[split.held] - level))
        np.testing.assert_allclose(mine, level + design[split.asked] @ slopes, atol=1e-9)


def same(one: GuessForecast, other: GuessForecast) -> bool:
    return bool((one.shares == other.shares).all() and (one.means == other.means).all())


@pytest.mark.parametrize("which", range(3))
def test_what_is_not_learned_from_changes_nothing(which: int, seed: int) -> None:
    lesson, design, split = case(seed)
    codes, near = (design[:, 0] > 0).astype(np.int64), nearest(design, np.arange(COUNT))
    ways: list[Predictor] = [CellPredictor(codes), Ridge(design), NearestRecords(near, 3)]
    way = ways[which]
    classes, numbers = lesson.classes.copy(), lesson.numbers.copy()
    classes[split.asked], numbers[split.asked] = 2, 1e9
    other = LearningTask(classes, lesson.count, numbers)
    assert same(way.predict(lesson, split), way.predict(other, split))
    classes[split.held[0]] = (classes[split.held[0]] + 1) % 3
    numbers[split.held[0]] += 1
    everybody = Split.of(split.learn, np.arange(COUNT))
    assert not same(way.predict(lesson, everybody), way.predict(other, everybody))


# The best way to predict ------------------------------------------------------------------------

MANY = 400


def best(
    public: dict[str, NDArray[Any]], classes: Places, people: Places | None = None
) -> PredictorMark:
    """The way that is right most often about 400 records, each of a person of its own if none."""
    persons = np.arange(MANY) if people is None else people
    taught = PublicDesign(Features.from_arrays(public), np.arange(MANY), persons, persons % 5)
    lesson = LearningTask(classes, int(classes.max()) + 1, classes.astype(np.float64))

    def likeliest(forecast: GuessForecast) -> Floats:
        return np.asarray(np.argmax(forecast.shares, axis=1), np.float64)

    def judge(forecast: GuessForecast) -> tuple[float, Decision]:
        return float((likeliest(forecast) == classes).mean()), likeliest

    everybody = np.ones(MANY, np.bool_)
    return max(marks(taught, lesson, everybody, judge), key=lambda mark: mark.fraction)


def test_a_secret_is_found_in_the_column_the_pair_or_the_line_that_tells_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    public: dict[str, NDArray[Any]] = {name: rng.integers(0, 4, MANY) for name in "abcd"}
    found = best(public, np.array([2, 0, 1, 0])[public["c"]])
    assert (found.fraction, found.predictor.name) == (1.0, "c")
    found = best(public, (public["a"] % 2) ^ (public["d"] % 2))
    assert (found.fraction, found.predictor.name) == (1.0, "a x d")
    x, y = rng.normal(size=(2, MANY))
    found = best({"x": x, "y": y}, (x + y > 0).astype(np.int64))
    assert found.predictor.name in ("ridge", "neighbours") and found.fraction > 0.9


@pytest.mark.parametrize("kind", [np.float64, np.str_], ids=["neighbours", "cells"])
def test_nobody_is_predicted_from_the_own_rows(kind: type, seed: int) -> None:
    """Everybody's two rows have the same secret and the same public value, shared by nobody."""
    rng = np.random.default_rng(seed)
    people = np.arange(MANY) // 2
    secret = rng.integers(0, 2, MANY // 2)[people]
    public: dict[str, NDArray[Any]] = {"face": people.astype(kind)}
    assert best(public, secret, people).fraction < 0.7
    assert best(public, secret).fraction == 1.0, "rows of one person counted as two people"


# When a guess is right, and guesses that need no release ----------------------------------------

WHOLE, NEARLY = Rule(np.array([True]), 0.0), Rule(np.array([False]), 0.3)
NUMBER, BOTH = Rule(np.array([False]), 0.5), Rule(np.array([True, False]), 0.5)


@pytest.mark.parametrize(
    ("prior", "rule", "expected"),
    [
        (Prior(low=0.0, high=2.0), WHOLE, (0.5, PriorMean.RANGE)),
        (Prior(low=0.0, high=5.0), NEARLY, (0.0, PriorMean.RANGE)),
        (Prior(low=0.0, high=1.0), WHOLE, (0.375, PriorMean.RANGE)),  # 0 is right once, 1 twice
        (Prior(low=0.0, total=4.0), WHOLE, (0.5, PriorMean.TOTAL)),
        (Prior(low=0.0), WHOLE, (None, None)),
    ],
)
def test_the_prior_mean_is_the_share_of_a_total_or_the_middle_of_the_range(
    prior: Prior, rule: Rule, expected: tuple[float | None, PriorMean | None]
) -> None:
    """A middle between two whole numbers is taken for either."""
    truth = np.array([0.0, 1.0, 1.0, 2.0])
    problem = Problem.of(np.ones((1, 4)), [truth.sum()], prior)
    assert prior_mean(problem, truth, Subjects.alone(4), rule, np.ones(4, np.bool_)) == expected


def test_the_majority_of_numbers_is_the_window_that_holds_most() -> None:
    values = np.array([[0.0], [0.5], [0.6], [3.0]])
    assert majority(values, NEARLY) == 0.75
    assert majority(values, Rule(np.array([False]), 0.1)) == 0.5


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_the_marginal_is_the_chance_that_two_draws_agree(values: list[int]) -> None:
    truth = np.array(values, np.float64)[:, None]
    agree = [one == other for one in values for other in values]
    assert marginal(truth, WHOLE) == pytest.approx(np.mean(agree))
    assert marginal(truth, WHOLE) <= majority(truth, WHOLE) + 1e-12


def column(values: list[float]) -> Floats:
    return np.array(values, np.float64).reshape(-1, 1)


columns = st.lists(st.integers(-6, 6).map(lambda each: each / 4), min_size=1, max_size=12)
pairs = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-6, 6).map(lambda each: each / 4)),
    min_size=1,
    max_size=12,
)


def test_whole_numbers_are_right_after_rounding_and_others_within_the_tolerance() -> None:
    """A secret of several numbers is right when all of them are."""
    guesses, truth = column([1.4, 1.6, 1.0]), column([1.0, 1.0, 1.5])
    assert WHOLE.right(guesses, truth).tolist() == [True, False, False]
    assert NUMBER.right(guesses, truth).tolist() == [True, False, True]
    pairs = np.array([[1.2, 2.4], [0.0, 2.0], [1.0, 2.6]])
    assert BOTH.right(pairs, np.array([[1.0, 2.0]] * 3)).tolist() == [True, False, False]


@given(st.sampled_from([WHOLE, NUMBER]), columns)
def test_the_frequency_of_a_value_is_for_how_many_it_is_right(
    rule: Rule, values: list[float]
) -> None:
    each = column(values)
    slow = [int(rule.right(np.full_like(each, value), each).sum()) for value in values]
    if rule is WHOLE:
        slow = [sum(np.rint(value) == np.rint(other) for other in values) for value in values]
    assert rule.frequency(each).tolist() == slow


@given(st.sampled_from([WHOLE, NUMBER]), columns)
def test_the_first_guess_is_right_as_often_as_any(rule: Rule, values: list[float]) -> None:
    each = column(values)
    guesses, _ = rule.guesses(each, 1)
    mine = int(rule.right(np.broadcast_to(guesses, each.shape), each).sum())
    grid = np.arange(-2, 2.01, 1 / 8)  # some best window has its middle here
    assert mine == max(int(rule.right(np.full_like(each, g), each).sum()) for g in grid)


@given(st.sampled_from([WHOLE, NUMBER, BOTH]), pairs, st.integers(1, 5))
def test_a_value_is_counted_for_a_guess_that_is_right_for_it(
    rule: Rule, values: list[tuple[int, float]], most: int
) -> None:
    each = np.array(values, np.float64)[:, -len(rule.whole) :]
    guesses, classes = rule.guesses(each, most)
    assert len(guesses) <= most
    held = classes < len(guesses)
    assert rule.right(guesses[classes[held]], each[held]).all()
    assert held.all() or len(guesses) == most
