"""Lowd and Meek's attack: exact statements, since nothing in it is left to chance but its start."""

import numpy as np
import pytest
from attack.small_classifiers import Asked, trained
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from casemate.attack.extract.boundary import Boundary, CountedClassifier, Floats, PointBox
from casemate.attack.extract.lowd_meek import LowdMeek, NoisyLabels

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
    return asking.oriented(found[-1]), asking


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 30, 100])
def test_an_angle_of_1e_5_takes_less_than_21_queries_an_unknown(dimension: int, seed: int) -> None:
    for draw in range(5):
        target = Asked.drawn(dimension, seed + draw)
        asking = CountedClassifier(target, PointBox(dimension), 10**6)
        rounds = LowdMeek(np.random.default_rng(seed + draw)).rounds(asking)
        next(rounds)
        searched = asking.count - 2  # for a point on either side, more than the least there is
        *_, found = rounds
        found = asking.oriented(found)
        assert found.angle(target.truth) < 1e-5 and found.offset(target.truth) < 1.2e-5
        assert asking.count == target.count <= searched + 21 * (dimension + 1)


def test_a_trained_perceptron_is_copied(seed: int) -> None:
    truth = trained(6, np.random.default_rng(seed))
    found, _ = attacked(Asked(truth))
    fresh = np.random.default_rng(seed).uniform(-1, 1, (2000, 6))
    clear = np.abs(truth.unit().heights(fresh)) > 1e-4
    assert (found.above(fresh) == truth.above(fresh))[clear].all()


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


@pytest.mark.parametrize("precision", [1e-2, 1e-4, 1e-7, 1e-10])
def test_a_bit_more_of_precision_is_a_query_more_for_each_coordinate(
    precision: float, seed: int
) -> None:
    target = Asked.drawn(10, seed)
    found, asking = attacked(target, precision, seed)
    assert found.angle(target.truth) < precision
    assert asking.count < 11 * (4 + np.log2(1 / precision))


def test_rounds_get_better(seed: int) -> None:
    target = Asked.drawn(8, seed)
    asking = CountedClassifier(target, PointBox(8), 10**6)
    rounds = [
        each.angle(target.truth) for each in LowdMeek(np.random.default_rng(seed)).rounds(asking)
    ]
    assert rounds[-1] < 1e-5 < rounds[5] < 1 and len(rounds) > 15


@pytest.mark.parametrize("noise", [0.3, 3.0])
def test_noise_at_the_boundary_is_noticed_before_the_lines_are_searched(
    noise: float, seed: int
) -> None:
    caught = 0
    for draw in range(40):
        target = Asked.drawn(10, seed + draw, noise)
        try:
            attacked(target, seed=draw)
        except NoisyLabels:
            caught += 1
            assert target.count < 60
    assert caught >= 10


def test_without_repeats_it_believes_noisy_labels(seed: int) -> None:
    """The twin: bisection with noise is far off, which is why labels are asked again."""
    target = Asked.drawn(10, seed, noise=0.3)
    asking = CountedClassifier(target, PointBox(10), 10**6)
    found = list(LowdMeek(np.random.default_rng(seed), repeats=0).rounds(asking))[-1]
    assert found.angle(target.truth) > 0.05
