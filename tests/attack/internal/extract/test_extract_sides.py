import numpy as np
import pytest
from attack.small_classifiers import Asked, ball

from casemate.attack.extract.boundary import (
    CountedClassifier,
    PointBox,
    between,
    narrowed,
    two_sides,
)
from casemate.errors import Misconfigured


@pytest.mark.parametrize("dimension", [1, 2, 9, 60])
def test_a_point_on_either_side_is_found_and_brought_near(dimension: int, seed: int) -> None:
    target = Asked.drawn(dimension, seed)
    asking = CountedClassifier(target, PointBox(dimension), 10**4)
    below, above = two_sides(asking, np.random.default_rng(seed))
    assert target.truth.above(below[None])[0] != target.truth.above(above[None])[0]
    near = narrowed(asking, below, above, 20)
    assert np.linalg.norm(near[0] - near[1]) == pytest.approx(
        np.linalg.norm(below - above) / 2**20, rel=1e-6
    )
    assert abs(target.truth.heights((near[0] + near[1])[None] / 2)[0]) < 1e-4
    guess = between(*near)
    assert guess.heights((near[0] + near[1])[None] / 2) == pytest.approx(0, abs=1e-12)


def test_a_region_that_no_corner_is_in_is_found(seed: int) -> None:
    asking = CountedClassifier(ball, PointBox(2), 1000)
    below, above = two_sides(asking, np.random.default_rng(seed))
    assert ball(below[None])[0] != ball(above[None])[0]


def test_a_classifier_with_one_label_is_one_sentence(seed: int) -> None:
    asking = CountedClassifier(lambda points: ["no"] * len(points), PointBox(2, 0, 5), 300)
    with pytest.raises(Misconfigured, match="same label to all 300 points asked between 0 and 5"):
        two_sides(asking, np.random.default_rng(seed))
    assert asking.count == 300


def test_nothing_to_ask_is_one_sentence(seed: int) -> None:
    with pytest.raises(Misconfigured, match="raise --queries"):
        two_sides(CountedClassifier(ball, PointBox(2), 0), np.random.default_rng(seed))
