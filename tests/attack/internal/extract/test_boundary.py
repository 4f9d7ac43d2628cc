import math

import numpy as np
import pytest
from attack.small_classifiers import Asked, ball
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from casemate.attack.extract.boundary import (
    Boundary,
    CountedClassifier,
    Floats,
    OutOfQueries,
    PointBox,
    Predict,
    bisect_segment,
    find_two_sides,
    perpendicular_bisector,
    read_labels,
    slide_to_height,
)
from casemate.errors import Misconfigured

numbers = st.floats(-5, 5).filter(lambda x: x == 0 or abs(x) > 1e-3)
vectors = arrays.arrays(np.float64, 4, elements=numbers).filter(lambda v: bool(np.any(v)))
points_in_cube = arrays.arrays(np.float64, (3, 4), elements=st.floats(-1, 1))


def test_a_tiny_angle_keeps_its_digits() -> None:
    one, other = Boundary(np.array([1.0, 0.0]), 0), Boundary(np.array([1.0, 3e-12]), 0)
    assert one.angle(other) == pytest.approx(3e-12, rel=1e-9)


@given(vectors, st.floats(0.01, 100))
def test_length_and_direction_of_the_normal_do_not_count(weights: Floats, factor: float) -> None:
    one = Boundary(weights, 0.5)
    for other in (Boundary(factor * weights, 0.5 * factor), one.opposite()):
        assert one.angle(other) == pytest.approx(0, abs=1e-12)
        assert one.offset(other) == pytest.approx(0, abs=1e-12)


@given(vectors, st.floats(-3, 3), st.floats(-9, 9), st.floats(0.1, 9), points_in_cube)
def test_a_box_and_its_cube_see_the_same_sides(
    weights: Floats, intercept: float, low: float, width: float, points: Floats
) -> None:
    box, inner = PointBox(4, low, low + width), Boundary(weights, intercept)
    outer, heights = box.boundary_from_cube(inner), inner.heights(points)
    clear = np.abs(heights) > 1e-6
    assert (outer.above(box.from_cube(points)) == (heights > 0))[clear].all()
    back = box.boundary_to_cube(outer)
    assert back.angle(inner) == pytest.approx(0, abs=1e-9)
    assert back.offset(inner) == pytest.approx(0, abs=1e-6)


@given(vectors, st.floats(-2, 2), st.floats(-1, 1), points_in_cube)
def test_a_point_slides_to_its_height_within_the_cube(
    weights: Floats, intercept: float, height: float, points: Floats
) -> None:
    boundary = Boundary(weights, intercept)
    found = slide_to_height(points, boundary, height)
    assert (np.abs(found) <= 1 + 1e-12).all()
    reach = float(np.abs(weights).sum())
    if abs(height - intercept) <= reach:
        assert boundary.heights(found) == pytest.approx(height, abs=1e-9 * (1 + reach))


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_box_without_room_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="low < high"):
        PointBox(2, *ends)


POINTS = np.array([[-1.0], [1.0], [0.5]])


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
    assert (asked.count, asked.remaining, len(calls)) == (3, 1, 1)


def test_a_probability_is_no_label() -> None:
    with pytest.raises(Misconfigured, match="more than two labels"):
        CountedClassifier(lambda points: points[:, 0] / 7, PointBox(1), 9).ask(POINTS)


def test_numbers_of_numpy_become_plain() -> None:
    assert [type(each) for each in read_labels([np.int64(1), np.float32(0.5)], 2)] == [int, float]
    assert read_labels([b"spam", np.str_("ham")], 2) == ["spam", "ham"]


@pytest.mark.parametrize("dimension", [1, 2, 9, 60])
def test_a_point_on_either_side_is_found_and_brought_near(dimension: int, seed: int) -> None:
    target = Asked.drawn(dimension, seed)
    asking = CountedClassifier(target, PointBox(dimension), 10**4)
    below, above = find_two_sides(asking, np.random.default_rng(seed))
    assert target.truth.above(below[None])[0] != target.truth.above(above[None])[0]
    near = bisect_segment(asking, below, above, 20)
    assert np.linalg.norm(near[0] - near[1]) == pytest.approx(
        np.linalg.norm(below - above) / 2**20, rel=1e-6
    )
    assert abs(target.truth.heights((near[0] + near[1])[None] / 2)[0]) < 1e-4
    guess = perpendicular_bisector(*near)
    assert guess.heights((near[0] + near[1])[None] / 2) == pytest.approx(0, abs=1e-12)


def test_a_region_that_no_corner_is_in_is_found(seed: int) -> None:
    asking = CountedClassifier(ball, PointBox(2), 1000)
    below, above = find_two_sides(asking, np.random.default_rng(seed))
    assert ball(below[None])[0] != ball(above[None])[0]


@pytest.mark.parametrize(
    ("predict", "sentence"),
    [
        (lambda _: [1], "asked for 2 labels and answered with 1;"),
        (lambda _: np.zeros((2, 2)), "answered with 2 x 2"),
        (lambda _: 1, "answered with no list"),
        (lambda _: None, "answered with no list"),
        (lambda _: [1, None], "answered with a NoneType"),
        (lambda _: [1, float("nan")], "not finite"),
        (lambda _: [[1], [1, 2]], "answered with a list"),
        (lambda points: ["no"] * len(points), "same label to all 300 points asked between 0 and 5"),
    ],
)
def test_a_classifier_that_has_no_two_labels_is_one_sentence(
    predict: Predict, sentence: str, seed: int
) -> None:
    asking = CountedClassifier(predict, PointBox(2, 0, 5), 300)
    with pytest.raises(Misconfigured, match=sentence):
        find_two_sides(asking, np.random.default_rng(seed))
