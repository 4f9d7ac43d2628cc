import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from casemate.attack.extract.noisy import DAMPING, LabelFilter, NoiseScale, moments


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
    pull, shrink = moments(height, flips)
    assert pull == pytest.approx(first / mass, abs=1e-7)
    exact = 1 - (second / mass - (first / mass) ** 2)
    assert shrink == pytest.approx(min(max(exact, 0.0), 0.999), abs=1e-6)


def test_surprises_without_end_stay_finite() -> None:
    assert all(map(math.isfinite, moments(-1e9, 0.0)))
    assert moments(-1e9, 0.1)[0] == pytest.approx(0, abs=1e-9)


def test_the_root_form_is_the_plain_form_of_the_covariance(seed: int) -> None:
    random = np.random.default_rng(seed)
    learner, covariance = LabelFilter(np.zeros(4), np.eye(4)), np.eye(4)
    for _ in range(200):
        point, above = random.normal(size=4), bool(random.random() < 0.5)
        variance = float(point @ covariance @ point)
        total, side = 1 + variance, 1.0 if above else -1.0
        _, shrink = moments(side * float(point @ learner.mean) / math.sqrt(total), 0.0)
        shrink *= variance / total * (1 - (1 - DAMPING) * variance / total)
        gain = covariance @ point
        covariance = covariance - shrink / variance * np.outer(gain, gain)
        learner.learn(point, above)
        assert learner.root @ learner.root.T == pytest.approx(covariance, abs=1e-10)


def test_a_point_that_is_certain_teaches_nothing() -> None:
    learner = LabelFilter(np.ones(2), np.zeros((2, 2)))
    learner.learn(np.array([1.0, 1.0]), above=False)
    assert learner.mean.tolist() == [1, 1] and learner.scale == 1


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
