"""Noisy labels: the filter is as good as a batch fit of the same labels, and better with flips.

Angles are compared between two estimates from the same labels, so chance nearly cancels. The ratios
of the quick test have these means and deviations (40 draws each): noise 0.05, 1.01 and 0.055; 0.3,
1.00 and 0.022; 1, 0.99 and 0.022. The bounds lie seven deviations away.
"""

import math

import numpy as np
import pytest
from attack.small_classifiers import Asked
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import integrate, optimize, stats

from casemate.attack.extract.boundary import Boundary, CountedClassifier, Floats, PointBox
from casemate.attack.extract.lowd_meek import LowdMeek, NoisyLabels
from casemate.attack.extract.noisy import (
    LabelFilter,
    NoiseScale,
    OneBitFilter,
    Retraining,
    label_moments,
    logistic_regression,
    with_one,
)
from casemate.attack.one_bit.scale_bank import SEARCH_RHO


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


def test_retraining_is_the_regression_of_its_own_labels(seed: int) -> None:
    ours, theirs = angles(Retraining, Asked.drawn(5, seed, noise=0.2), 1500, seed)
    assert ours == pytest.approx(theirs, rel=0.5) and ours < 0.1


@given(st.floats(-6, 6), st.sampled_from([0.0, 0.05, 0.3]))
def test_moments_are_those_of_the_exact_posterior(height: float, flips: float) -> None:
    """Of a standard normal height whose label is seen through noise that is not there."""

    def weight(v: float, power: int) -> float:
        right = flips + (1 - 2 * flips) * (1.0 if v > -height else 0.0)
        return float(v**power * right * stats.norm.pdf(v))

    parts = [
        integrate.quad(weight, low, high, args=(power,))[0]
        for power in range(3)
        for low, high in [(-12, -height), (-height, 12)]
    ]
    mass, first, second = (parts[i] + parts[i + 1] for i in (0, 2, 4))
    pull, shrink = label_moments(height, flips)
    assert pull == pytest.approx(first / mass, abs=1e-7)
    exact = 1 - (second / mass - (first / mass) ** 2)
    assert shrink == pytest.approx(min(max(exact, 0.0), 0.999), abs=1e-6)


def test_the_root_form_is_the_plain_form_of_the_covariance(seed: int) -> None:
    random = np.random.default_rng(seed)
    learner, covariance = LabelFilter(np.zeros(4), np.eye(4)), np.eye(4)
    for _ in range(200):
        point, above = random.normal(size=4), bool(random.random() < 0.5)
        variance = float(point @ covariance @ point)
        total, side = 1 + variance, 1.0 if above else -1.0
        _, shrink = label_moments(side * float(point @ learner.mean) / math.sqrt(total), 0.0)
        shrink *= variance / total * (1 - (1 - SEARCH_RHO) * variance / total)
        gain = covariance @ point
        covariance = covariance - shrink / variance * np.outer(gain, gain)
        learner.learn(point, above)
        assert learner.root @ learner.root.T == pytest.approx(covariance, abs=1e-10)


@pytest.mark.parametrize(("scale", "flips"), [(0.01, 0.0), (1.0, 0.0), (0.1, 0.2)])
def test_scale_and_flips_are_read_off_labels(scale: float, flips: float, seed: int) -> None:
    random, noise = np.random.default_rng(seed), NoiseScale()
    distance = scale * random.uniform(-6, 6, 4000)
    above = (distance + scale * random.normal(size=4000) > 0) ^ (random.random(4000) < flips)
    for part in np.array_split(np.where(above, distance, -distance), 20):
        noise.learn(part, np.zeros(len(part)), 4000)
    found = noise.best()
    assert found[0] == pytest.approx(flips, abs=0.06)
    assert 0.6 < found[1] / scale < 1.7
    assert noise.better_by(found[1]) == 0 and noise.better_by(10 * scale) > 50


def test_it_is_the_minimum_that_scipy_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    points = with_one(random.normal(size=(400, 4)))
    true = random.normal(size=5)
    above = random.random(400) < 1 / (1 + np.exp(-points @ true))
    signs = np.where(above, 1.0, -1.0)

    def loss(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        return float(np.logaddexp(0, -signs * (points @ vector)).sum() + 0.05 * vector @ vector)

    expected = optimize.minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    found = logistic_regression(points, above, ridge=0.1)
    assert found.vector == pytest.approx(expected.x, abs=1e-5)
    aside = 1e-3 * np.eye(5)
    for i, j in [(0, 0), (1, 3), (4, 4)]:
        corners = [
            loss(found.vector + s * aside[i] + t * aside[j]) for s in (1, -1) for t in (1, -1)
        ]
        bend = (corners[0] - corners[1] - corners[2] + corners[3]) / 4e-6
        assert found.curvature[i, j] == pytest.approx(bend, abs=1e-3 * (1 + abs(bend)))


def test_separable_points_have_a_finite_fit() -> None:
    points = with_one(np.array([[-1.0], [-0.5], [0.5], [1.0]]))
    found = logistic_regression(points, points[:, 0] > 0, ridge=1e-6)
    assert np.isfinite(found.vector).all() and found.vector[0] > 5
    assert found.vector[1] == pytest.approx(0, abs=1e-6)


weights = st.integers(1, 12).flatmap(
    lambda n: arrays.arrays(
        np.float64, n, elements=st.floats(-1, 1).map(lambda x: 0.0 if abs(x) < 1e-3 else x)
    )
)


def attacked(
    target: Asked, precision: float = 1e-5, seed: int = 0
) -> tuple[Boundary, CountedClassifier]:
    asking = CountedClassifier(target, PointBox(len(target.truth.weights)), 10**6)
    found = list(LowdMeek(np.random.default_rng(seed), precision).rounds(asking))
    return asking.orient(found[-1]), asking


@given(weights.filter(lambda w: bool(np.any(w))), st.floats(-0.8, 0.8), st.integers(0, 2**32))
def test_any_boundary_that_crosses_the_cube_is_found(
    given_: Floats, level: float, seed: int
) -> None:
    """Zeros, one weight that dominates, and boundaries far from the middle among them."""
    truth = Boundary(given_, level * float(np.abs(given_).sum()))
    fresh = np.random.default_rng(seed).choice([-1.0, 1.0], (2000, len(given_)))
    if truth.above(fresh).mean() in (0, 1):
        return  # cut off a corner that nobody finds
    found, _ = attacked(Asked(truth), seed=seed)
    assert found.angle(truth) < 3e-5


@pytest.mark.parametrize("precision", [1e-2, 1e-10])
def test_a_bit_more_of_precision_is_a_query_more_for_each_coordinate(
    precision: float, seed: int
) -> None:
    target = Asked.drawn(10, seed)
    found, asking = attacked(target, precision, seed)
    assert found.angle(target.truth) < precision
    assert asking.count < 11 * (4 + np.log2(1 / precision))


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_noise_at_the_boundary_is_noticed_before_the_lines_are_searched(
    noise: float, seed: int
) -> None:
    caught = 0
    for draw in range(20):
        target = Asked.drawn(10, seed + draw, noise)
        try:
            attacked(target, seed=draw)
        except NoisyLabels:
            caught += 1
            assert target.count < 60
    assert caught >= 5


def test_without_repeats_it_believes_noisy_labels(seed: int) -> None:
    """The twin: bisection with noise is far off, which is why labels are asked again."""
    target = Asked.drawn(10, seed, noise=0.3)
    asking = CountedClassifier(target, PointBox(10), 10**6)
    found = list(LowdMeek(np.random.default_rng(seed), repeats=0).rounds(asking))[-1]
    assert found.angle(target.truth) > 0.05
