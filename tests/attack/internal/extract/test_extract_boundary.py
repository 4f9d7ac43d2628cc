import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from casemate.attack.extract.boundary import Boundary, Floats, PointBox, corners, slid

numbers = st.floats(-5, 5).filter(lambda x: x == 0 or abs(x) > 1e-3)
vectors = arrays.arrays(np.float64, 4, elements=numbers).filter(lambda v: bool(np.any(v)))
points_in_cube = arrays.arrays(np.float64, (3, 4), elements=st.floats(-1, 1))


def test_a_tiny_angle_keeps_its_digits() -> None:
    one, other = Boundary(np.array([1.0, 0.0]), 0), Boundary(np.array([1.0, 3e-12]), 0)
    assert one.angle(other) == pytest.approx(3e-12, rel=1e-9)


def test_a_right_angle_is_the_largest() -> None:
    one = Boundary(np.array([1.0, 0.0]), 0)
    assert one.angle(Boundary(np.array([0.0, -2.0]), 5)) == pytest.approx(math.pi / 2)
    assert one.angle(Boundary(np.array([-1.0, -1.0]), 5)) == pytest.approx(math.pi / 4)


@given(vectors, st.floats(0.01, 100))
def test_length_and_direction_of_the_normal_do_not_count(weights: Floats, factor: float) -> None:
    one = Boundary(weights, 0.5)
    for other in (Boundary(factor * weights, 0.5 * factor), one.turned()):
        assert one.angle(other) == pytest.approx(0, abs=1e-12)
        assert one.offset(other) == pytest.approx(0, abs=1e-12)


@given(vectors, st.floats(-3, 3), st.floats(-9, 9), st.floats(0.1, 9), points_in_cube)
def test_a_box_and_its_cube_see_the_same_sides(
    weights: Floats, intercept: float, low: float, width: float, points: Floats
) -> None:
    box, inner = PointBox(4, low, low + width), Boundary(weights, intercept)
    outer, heights = box.outside(inner), inner.heights(points)
    clear = np.abs(heights) > 1e-6
    assert (outer.above(box.real(points)) == (heights > 0))[clear].all()
    back = box.inside(outer)
    assert back.angle(inner) == pytest.approx(0, abs=1e-9)
    assert back.offset(inner) == pytest.approx(0, abs=1e-6)


@given(vectors, st.floats(-2, 2), st.floats(-1, 1), points_in_cube)
def test_a_point_slides_to_its_height_within_the_cube(
    weights: Floats, intercept: float, height: float, points: Floats
) -> None:
    boundary = Boundary(weights, intercept)
    found = slid(points, boundary, height)
    assert (np.abs(found) <= 1 + 1e-12).all()
    reach = float(np.abs(weights).sum())
    if abs(height - intercept) <= reach:
        assert boundary.heights(found) == pytest.approx(height, abs=1e-9 * (1 + reach))


def test_corners_are_corners(seed: int) -> None:
    assert set(np.unique(corners(np.random.default_rng(seed), 50, 3))) == {-1.0, 1.0}


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_box_without_room_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="low < high"):
        PointBox(2, *ends)


def test_a_point_has_a_coordinate() -> None:
    with pytest.raises(ValueError, match="at least 1 coordinate"):
        PointBox(0)
