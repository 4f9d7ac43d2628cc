import numpy as np
import pytest
from attack.small_classifiers import Asked, parabola

from casemate.attack.extract.boundary import Boundary, CountedClassifier, PointBox
from casemate.attack.extract.check import checked, close_points_agree
from casemate.attack.extract.noisy import OneBitFilter


def test_points_as_close_as_the_precision_agree_with_the_truth_and_with_nothing_else(
    seed: int,
) -> None:
    target, random = Asked.drawn(5, seed), np.random.default_rng(seed)
    asking = CountedClassifier(target, PointBox(5), 1000)
    asking.ask(-np.sign(target.truth.weights)[None])  # the first label is the one below
    assert close_points_agree(asking, target.truth, 1e-5, 40, random)
    turned = Boundary(target.truth.weights + 0.05 * random.normal(size=5), target.truth.intercept)
    assert not close_points_agree(asking, turned, 1e-5, 40, random)


def test_a_search_that_never_closed_is_not_believed_while_more_can_be_asked(seed: int) -> None:
    target, random = Asked.drawn(2, seed), np.random.default_rng(seed)
    assert not close_points_agree(
        CountedClassifier(target, PointBox(2), 100), target.truth, float("inf"), 9, random
    )
    assert close_points_agree(
        CountedClassifier(target, PointBox(2), 9), target.truth, float("inf"), 9, random
    )


@pytest.mark.parametrize(("noise", "flips"), [(0.2, 0.0), (0.0, 0.1), (0.1, 0.02)])
def test_noise_is_not_taken_for_a_curve(noise: float, flips: float, seed: int) -> None:
    target = Asked.drawn(3, seed, noise, flips)
    asking, learner = (
        CountedClassifier(target, PointBox(3), 2500),
        OneBitFilter(np.random.default_rng(seed)),
    )
    *_, found = learner.rounds(asking)
    asking.limit += 200
    said = checked(asking, found, learner.model, 200, np.random.default_rng(seed))
    assert said.linear and not said.repeats and asking.count <= 2700
    assert said.agreement == pytest.approx(said.expected, abs=0.2)


def test_a_curve_is_not_taken_for_noise(seed: int) -> None:
    asking = CountedClassifier(lambda points: parabola(points).astype(int), PointBox(2), 1500)
    learner = OneBitFilter(np.random.default_rng(seed))
    *_, found = learner.rounds(asking)
    asking.limit += 200
    said = checked(asking, found, learner.model, 200, np.random.default_rng(seed))
    assert said.repeats and not said.linear
