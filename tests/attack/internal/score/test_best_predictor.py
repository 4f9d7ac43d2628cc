from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.score.predictor import (
    Decision,
    GuessForecast,
    Lesson,
    PredictorMark,
    School,
    crossed,
    marks,
)
from casemate.attack.subjects import Features, Places
from casemate.exact import Floats

COUNT = 400
EVERYBODY = np.ones(COUNT, np.bool_)


def school(columns: dict[str, NDArray[Any]], people: Places | None = None) -> School:
    persons = np.arange(COUNT) if people is None else people
    return School(Features.given(columns), np.arange(COUNT), persons, persons % 5)


def best(taught: School, classes: Places) -> PredictorMark:
    lesson = Lesson(classes, int(classes.max()) + 1, classes.astype(np.float64))

    def likeliest(forecast: GuessForecast) -> Floats:
        return np.asarray(np.argmax(forecast.shares, axis=1), np.float64)

    def judge(forecast: GuessForecast) -> tuple[float, Decision]:
        return float((likeliest(forecast) == classes).mean()), likeliest

    return max(marks(taught, lesson, EVERYBODY, judge), key=lambda mark: mark.fraction)


def columns(seed: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, 4, COUNT) for name in ("a", "b", "c", "d")}


def test_a_secret_that_follows_from_one_column_is_found_there(seed: int) -> None:
    public = columns(seed)
    found = best(school(public), np.array([2, 0, 1, 0])[public["c"].astype(np.int64)])
    assert (found.fraction, found.predictor.name) == (1.0, "c")


def test_a_secret_that_no_single_column_tells_is_found_in_a_pair(seed: int) -> None:
    public = columns(seed)
    secret = (public["a"] % 2) ^ (public["d"] % 2)
    found = best(school(public), secret)
    assert (found.fraction, found.predictor.name) == (1.0, "a x d")


def test_a_secret_along_a_line_is_found_by_a_linear_form_or_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, COUNT))
    found = best(school({"x": x, "y": y}), (x + y > 0).astype(np.int64))
    assert found.predictor.name in ("ridge", "neighbours")
    assert found.fraction > 0.9


def test_without_public_columns_there_is_everybody(seed: int) -> None:
    taught = School(Features(COUNT), np.arange(COUNT), np.arange(COUNT), np.arange(COUNT) % 5)
    secret = (np.arange(COUNT) % 4 == 0).astype(np.int64)
    found = best(taught, secret)
    assert (found.fraction, found.predictor.name) == (0.75, "everybody")


def test_nobody_is_predicted_from_the_own_rows(seed: int) -> None:
    """Everybody's two rows have the same secret and the same public value, shared by nobody."""
    rng = np.random.default_rng(seed)
    people = np.arange(COUNT) // 2
    secret = rng.integers(0, 2, COUNT // 2)[people]
    public: dict[str, NDArray[Any]] = {"face": people}
    assert best(school(public, people), secret).fraction < 0.7
    assert best(school(public), secret).fraction == 1.0, "rows of one person counted as two people"


def test_every_record_is_predicted_once_from_other_folds() -> None:
    taught = school(columns(0))
    splits = taught.splits(EVERYBODY)
    assert sorted(np.concatenate([each.asked for each in splits]).tolist()) == list(range(COUNT))
    for split in splits:
        assert not split.learn[split.asked].any()
    lesson = Lesson(np.zeros(COUNT, np.int64), 1, np.ones(COUNT))
    found = crossed(taught.cells(()), lesson, splits)
    np.testing.assert_allclose(found.shares, 1.0)
    np.testing.assert_allclose(found.means, 1.0)
