from typing import Any

import numpy as np
import pytest

from casemate.attack.extract.boundary import (
    Boundary,
    CountedClassifier,
    Floats,
    Label,
    OutOfQueries,
    PointBox,
    read_labels,
)
from casemate.errors import Misconfigured

POINTS = np.array([[-1.0], [1.0], [0.5]])


def asking(low: Label, high: Label, limit: int = 100) -> CountedClassifier:
    return CountedClassifier(
        lambda points: [high if x > 0 else low for (x,) in points], PointBox(1), limit
    )


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (-1, 1), (0.5, 2.5), ("ham", "spam"), (False, True), (1, 2), (0, "yes")],
)
def test_any_two_labels_are_sides(low: Label, high: Label) -> None:
    asked = asking(low, high)
    assert asked.ask(POINTS).tolist() == [False, True, True]
    assert asked.sides() == (low, high) and asked.count == 3


def test_the_larger_label_is_above_whichever_comes_first() -> None:
    asked, found = asking(0, 1), Boundary(np.array([-2.0]), 0.0)
    assert asked.ask(-POINTS).tolist() == [False, True, True]
    assert asked.sides() == (0, 1)
    assert asked.oriented(found).above(POINTS).tolist() == [False, True, True]


def test_every_point_is_counted_and_none_is_asked_beyond_the_limit() -> None:
    calls: list[Floats] = []

    def predict(points: Floats) -> list[int]:
        calls.append(points)
        return [0] * len(points)

    asked = CountedClassifier(predict, PointBox(1), 4)
    asked.ask(POINTS)
    with pytest.raises(OutOfQueries):
        asked.ask(POINTS)
    asked.ask(POINTS[:0])
    assert (asked.count, asked.left, len(calls)) == (3, 1, 1)


def test_points_are_asked_inside_the_bounds() -> None:
    calls: list[Floats] = []

    def predict(points: Floats) -> list[int]:
        calls.append(points)
        return [0] * len(points)

    CountedClassifier(predict, PointBox(1, 10, 30), 9).ask(POINTS)
    assert calls[0].ravel().tolist() == [10, 30, 25]


@pytest.mark.parametrize(
    "answer", [[1, 0], np.array([1, 0]), np.array([[1], [0]]), np.array(["b", "a"]), (1, 0)]
)
def test_answers_of_every_form_are_read(answer: Any) -> None:
    assert len(read_labels(answer, 2)) == 2


def test_numbers_of_numpy_become_plain() -> None:
    assert [type(each) for each in read_labels([np.int64(1), np.float32(0.5)], 2)] == [int, float]
    assert read_labels([b"spam", np.str_("ham")], 2) == ["spam", "ham"]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([1], "asked for 2 labels and answered with 1;"),
        (np.zeros((2, 2)), "answered with 2 x 2"),
        (1, "answered with no list"),
        (None, "answered with no list"),
        ([1, None], "answered with a NoneType"),
        ([1, float("nan")], "not finite"),
        ([[1], [1, 2]], "answered with a list"),
    ],
)
def test_a_wrong_answer_is_one_sentence(answer: Any, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        read_labels(answer, 2)


def test_a_probability_is_no_label() -> None:
    with pytest.raises(Misconfigured, match="more than two labels"):
        CountedClassifier(lambda points: points[:, 0] / 7, PointBox(1), 9).ask(POINTS)
