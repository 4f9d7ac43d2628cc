"""Noisy labels: the filter is as good as a batch fit of the same labels, and better with flips.

Angles are compared between two estimates from the same labels, so chance nearly cancels. The ratios
of the quick test have these means and deviations (40 draws each): noise 0.05, 1.01 and 0.055; 0.3,
1.00 and 0.022; 1, 0.99 and 0.022. The bounds lie seven deviations away.
"""

import numpy as np
import pytest
from attack.small_classifiers import Asked

from casemate.attack.extract.boundary import Boundary, CountedClassifier, PointBox
from casemate.attack.extract.noisy import LabelFilter, OneBitFilter, Retraining


def angles(
    kind: type[OneBitFilter] | type[Retraining], target: Asked, limit: int, seed: int
) -> tuple[float, float]:
    """The learner's angle, and that of a regression on the same labels."""
    asking = CountedClassifier(target, PointBox(len(target.truth.weights)), limit)
    *_, found = kind(np.random.default_rng(seed)).rounds(asking)
    assert asking.count == target.count == limit
    return found.angle(target.truth), target.regression()


def ratio(noise: float, dimension: int, runs: int, seed: int, each: int = 300) -> float:
    pairs = [
        angles(OneBitFilter, Asked.drawn(dimension, seed + i, noise), each * (dimension + 1), i)
        for i in range(runs)
    ]
    ours, theirs = np.mean(pairs, axis=0)
    return float(ours / theirs)


@pytest.mark.parametrize(("noise", "most"), [(0.05, 1.4), (0.3, 1.15), (1.0, 1.15)])
def test_the_filter_is_as_good_as_regression_on_the_same_labels(
    noise: float, most: float, seed: int
) -> None:
    assert ratio(noise, 6, 5, seed) < most


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.003, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("dimension", [20, 50])
def test_the_filter_is_as_good_in_many_dimensions(dimension: int, noise: float, seed: int) -> None:
    assert ratio(noise, dimension, 5, seed, each=500) < 1.15


def test_a_filter_that_is_wrong_about_the_noise_is_not(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: take every label for ten times as certain, and never look at the noise."""

    def certain(self: OneBitFilter, learner: LabelFilter) -> None:
        learner.mean *= 10 / float(np.linalg.norm(learner.mean)) / 0.3

    monkeypatch.setattr(OneBitFilter, "_rescale", certain)
    assert ratio(0.3, 6, 5, seed) > 1.3


def test_flips_anywhere_do_not_blur_the_boundary(seed: int) -> None:
    """Where labels are flipped wherever the point is, the boundary stays as sharp as it was."""
    pairs = [angles(OneBitFilter, Asked.drawn(5, seed + i, 0.0, 0.05), 3000, i) for i in range(5)]
    ours, theirs = np.median(pairs, axis=0)
    assert ours < theirs / 10


def test_the_noise_is_estimated_as_a_distance(seed: int) -> None:
    target = Asked.drawn(4, seed, noise=0.2)
    learner = OneBitFilter(np.random.default_rng(seed))
    list(learner.rounds(CountedClassifier(target, PointBox(4), 4000)))
    assert learner.model is not None and 0.14 < learner.model.scale < 0.28


def test_retraining_is_the_regression_of_its_own_labels(seed: int) -> None:
    ours, theirs = angles(Retraining, Asked.drawn(5, seed, noise=0.2), 1500, seed)
    assert ours == pytest.approx(theirs, rel=0.5) and ours < 0.1


@pytest.mark.parametrize("kind", [OneBitFilter, Retraining])
@pytest.mark.parametrize("limit", [8, 30, 100])
def test_few_queries_are_enough_for_a_guess(
    kind: type[OneBitFilter] | type[Retraining], limit: int, seed: int
) -> None:
    target = Asked.drawn(3, seed, noise=0.1)
    asking = CountedClassifier(target, PointBox(3), limit)
    found: list[Boundary] = list(kind(np.random.default_rng(seed)).rounds(asking))
    assert np.isfinite(found[-1].weights).all() and asking.count == limit
