import numpy as np
import pytest
from attack.kalman_runs import median_limit
from chance import assert_rate_at_most

from casemate.attack.one_bit import AutomaticKalman
from casemate.attack.one_bit.edge import EdgeFilter
from casemate.attack.one_bit.laws import (
    Exponential,
    Gaussian,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.oracle import NoisyOracle
from casemate.attack.one_bit.streams import Stream, generic

SKEWED = MixtureLaw((Shifted(Uniform(0.8), -0.8), Shifted(Uniform(1.2), 1.2)), (0.5, 0.5))


def learner(stream: Stream, seed: int) -> AutomaticKalman:
    random = np.random.default_rng(seed)
    return AutomaticKalman(stream.basis.shape[1], stream.basis, random=random)


def test_the_ends_of_the_noise_are_found() -> None:
    random = np.random.default_rng(4)
    stream, w = generic(random, 6, 2, 40_000), random.random(6)
    found = learner(stream, 6)
    found.follow(stream.coordinates, NoisyOracle(w, SKEWED, random).noisy(stream.queries))
    assert isinstance(found.stage, EdgeFilter)
    assert found.stage.edges == pytest.approx((-1.6, 2.4), rel=0.01)


def test_ends_that_move_raise_the_alarm_and_it_goes_back_to_the_median() -> None:
    random = np.random.default_rng(3)
    stream, w = generic(random, 6, 2, 30_000), random.random(6)
    found, truth = learner(stream, 5), stream.queries @ w
    found.follow(stream.coordinates[:6_000], truth[:6_000] + random.uniform(-2, 2, 6_000))
    reached = found.at_edge
    said = found.follow(stream.coordinates[6_000:], truth[6_000:] + random.uniform(-4, 4, 24_000))
    assert (reached, found.at_edge) == (True, False)
    assert np.abs(said.answers - truth[6_000:])[-5_000:].mean() < 0.2


# What is true with a stated probability ------------------------------------------------------


def ratios(law: Law, seed: int, runs: int = 8, queries: int = 60_000) -> list[float]:
    """Each run's average error over the limit of thresholds at the median."""
    return [_ratio(law, 1_000 * seed + run, queries) for run in range(runs)]


def _ratio(law: Law, seed: int, queries: int) -> float:
    random = np.random.default_rng(seed)
    stream, w = generic(random, 16, 2, queries), random.random(16)
    truth = stream.coordinates @ (stream.basis @ w)
    said = learner(stream, seed).follow(stream.coordinates, truth + law.sample(random, queries))
    return float(np.abs(said.answers - truth).mean() / median_limit(stream, law))


def test_with_even_noise_it_is_below_the_limit_of_the_median(seed: int) -> None:
    assert np.mean(ratios(Uniform(16.0), seed)) < 0.75


@pytest.mark.parametrize(
    "law", [Gaussian(8.0), Exponential(8.0), Truncated(Gaussian(8.0), -16.0, 16.0)]
)
def test_with_other_noise_it_stays_near_that_limit(law: Law, seed: int) -> None:
    found = ratios(law, seed)
    assert_rate_at_most(sum(ratio > 3 for ratio in found), len(found), rate=0.05)
    assert 0.75 < np.mean(found) < 1.6  # the twin of the test above


def test_with_skewed_even_noise_it_is_not_misled(seed: int) -> None:
    law = MixtureLaw((Shifted(Uniform(6.4), -6.4), Shifted(Uniform(9.6), 9.6)), (0.5, 0.5))
    found = ratios(law, seed)
    assert_rate_at_most(sum(ratio > 3 for ratio in found), len(found), rate=0.05)
