import numpy as np
from attack.small_classifiers import Asked
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.extract.boundary import Boundary, CountedClassifier, LabelThreshold, PointBox
from casemate.attack.one_bit.oracle import ThresholdOracle

WEIGHTS, DIRECTION = np.array([0.6, -0.8]), np.array([1.0, -0.5])
UNIT = float(WEIGHTS @ DIRECTION)


def oracle() -> ThresholdOracle:
    target = Asked(Boundary(WEIGHTS, 0.1))
    asking = CountedClassifier(lambda points: target(points).astype(int), PointBox(2, -9, 9), 10**6)
    asking.ask(np.array([[-1.0, 1.0]]))  # the first label is the one below
    return LabelThreshold(asking, DIRECTION)


@given(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_a_label_says_whether_a_height_is_above_a_threshold(
    x: float, y: float, threshold: float
) -> None:
    """In the cube of a box from -9 to 9 a height is 9 times as large, but for the intercept."""
    height = (9 * float(WEIGHTS @ [x, y]) + 0.1) / (9 * UNIT)
    if abs(height - threshold) > 1e-9:
        assert oracle().above(np.array([x, y]), threshold) == (height > threshold)


def test_bisecting_thresholds_measures_a_height() -> None:
    asked, point, low, high = oracle(), np.array([0.2, 0.1]), -1.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if asked.above(point, middle) else (low, middle)
    assert abs(low - (9 * float(WEIGHTS @ point) + 0.1) / (9 * UNIT)) < 1e-10
