import numpy as np
import pytest

from casemate.attack.score.predictor import (
    PENALTY,
    CellPredictor,
    GuessForecast,
    Lesson,
    NearestRecords,
    Predictor,
    Ridge,
    Split,
    nearest,
)
from casemate.exact import Floats

COUNT = 60


def case(seed: int) -> tuple[Lesson, Floats, Split]:
    """A lesson of three guesses, a design, and which records are learned from and asked about."""
    rng = np.random.default_rng(seed)
    lesson = Lesson(rng.integers(0, 4, COUNT), 3, rng.normal(size=COUNT))
    learn = rng.random(COUNT) < 0.7
    return lesson, rng.normal(size=(COUNT, 3)), Split.of(learn, np.flatnonzero(~learn))


def shares(lesson: Lesson, places: list[int]) -> list[float]:
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


def test_nobody_is_a_neighbour_of_the_own_person(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = np.arange(600) // 3
    near = nearest(rng.normal(size=(600, 2)), people)
    assert near.shape == (600, 48)
    assert (people[near] != people[:, None]).all()


def test_a_linear_form_is_ridge_regression(seed: int) -> None:
    lesson, design, split = case(seed)
    found = Ridge(design).predict(lesson, split)
    learned = design[split.held]
    for guess, mine in [*enumerate(found.shares.T), (-1, found.means)]:
        target = lesson.numbers if guess < 0 else (lesson.classes == guess).astype(np.float64)
        level = target[split.held].mean()
        squares = learned.T @ learned + PENALTY * len(learned) * np.eye(3)
        slopes = np.linalg.solve(squares, learned.T @ (target[split.held] - level))
        np.testing.assert_allclose(mine, level + design[split.asked] @ slopes, atol=1e-9)


def ways(design: Floats) -> list[Predictor]:
    codes = (design[:, 0] > 0).astype(np.int64)
    near = nearest(design, np.arange(len(design)))
    return [CellPredictor(codes), Ridge(design), NearestRecords(near, 3)]


def same(one: GuessForecast, other: GuessForecast) -> bool:
    return bool((one.shares == other.shares).all() and (one.means == other.means).all())


@pytest.mark.parametrize("which", range(3))
def test_what_is_not_learned_from_changes_nothing(which: int, seed: int) -> None:
    lesson, design, split = case(seed)
    way = ways(design)[which]
    classes, numbers = lesson.classes.copy(), lesson.numbers.copy()
    classes[split.asked], numbers[split.asked] = 2, 1e9
    other = Lesson(classes, lesson.count, numbers)
    assert same(way.predict(lesson, split), way.predict(other, split))
    classes[split.held[0]] = (classes[split.held[0]] + 1) % 3
    numbers[split.held[0]] += 1
    assert not same(way.predict(lesson, Split.of(split.learn, np.arange(COUNT))),
                    way.predict(other, Split.of(split.learn, np.arange(COUNT))))  # fmt: skip


@pytest.mark.parametrize("which", range(3))
def test_learning_from_nobody_gives_numbers_all_the_same(which: int, seed: int) -> None:
    lesson, design, _ = case(seed)
    found = ways(design)[which].predict(lesson, Split.of(np.zeros(COUNT, bool), np.arange(COUNT)))
    assert np.isfinite(found.shares).all()
    assert np.isfinite(found.means).all()
