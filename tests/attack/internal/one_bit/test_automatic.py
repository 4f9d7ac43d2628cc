import numpy as np
import pytest
from chance import assert_rate_at_most

from casemate.attack.one_bit import AutomaticKalman
from casemate.attack.one_bit.laws import (
    Exponential,
    Gaussian,
    Laplace,
    Law,
    MixtureLaw,
    Shifted,
    Truncated,
    Uniform,
)
from casemate.attack.one_bit.limit import MEAN_ABSOLUTE, box_covariance, deviations
from casemate.attack.one_bit.oracle import Floats, NoisyOracle, play
from casemate.attack.one_bit.streams import Stream, generic, near_basis, subsets

SKEWED = MixtureLaw((Shifted(Uniform(0.8), -0.8), Shifted(Uniform(1.2), 1.2)), (0.5, 0.5))
CUT = Truncated(Gaussian(1.0), -1.3, 1.3)


def learner(stream: Stream, seed: int) -> AutomaticKalman:
    random = np.random.default_rng(seed)
    return AutomaticKalman(stream.basis.shape[1], stream.basis, random=random)


class Replay:
    """An oracle whose noisy answers are given."""

    def __init__(self, noisy: Floats) -> None:
        self._left = iter(noisy.tolist())

    def above(self, q: Floats, threshold: float) -> bool:  # noqa: ARG002 - as oracles have it
        found: float = next(self._left)
        return found > threshold


@pytest.mark.parametrize("law", [Uniform(2.0), Laplace(1.0), SKEWED, CUT], ids=str)
@pytest.mark.parametrize("kind", [near_basis, generic, subsets])
def test_the_compiled_stream_is_the_plain_one(law: Law, kind: object) -> None:
    assert callable(kind)
    random = np.random.default_rng(11)
    stream, w = kind(random, 6, 2, 5_000), random.random(6)
    noisy = stream.queries @ w + law.sample(random, len(stream))
    plain, compiled = learner(stream, 1), learner(stream, 1)
    slow = play(plain, Replay(noisy), stream.queries)
    fast = compiled.follow(stream.coordinates, noisy)
    assert fast.above.tolist() == slow.above.tolist()
    assert fast.answers == pytest.approx(slow.answers, rel=1e-9, abs=1e-9)
    assert fast.thresholds == pytest.approx(slow.thresholds, rel=1e-9, abs=1e-9)
    assert compiled.at_edge == plain.at_edge


def test_a_stream_may_come_in_parts() -> None:
    random = np.random.default_rng(3)
    stream, w = near_basis(random, 6, 2, 6_000), random.random(6)
    noisy = NoisyOracle(w, Uniform(2.0), random).noisy(stream.queries)
    whole = learner(stream, 5).follow(stream.coordinates, noisy)
    parts, found = learner(stream, 5), []
    for rows in np.array_split(np.arange(6_000), 7):
        found.append(parts.follow(stream.coordinates[rows], noisy[rows]).answers)
    assert np.concatenate(found).tolist() == whole.answers.tolist()
    assert parts.at_edge


def test_the_ends_of_the_noise_are_found() -> None:
    random = np.random.default_rng(4)
    stream, w = generic(random, 6, 2, 40_000), random.random(6)
    found = learner(stream, 6)
    found.follow(stream.coordinates, NoisyOracle(w, SKEWED, random).noisy(stream.queries))
    assert found.edges is not None
    assert found.edges.ends == pytest.approx((-1.6, 2.4), rel=0.01)


def test_refuses_a_basis_of_another_length() -> None:
    with pytest.raises(ValueError, match="vectors of length 3"):
        AutomaticKalman(3, np.eye(2))


# What is true with a stated probability ------------------------------------------------------


def ratios(law: Law, seed: int, runs: int = 12, queries: int = 60_000) -> list[float]:
    """Each run's average error over the limit of thresholds at the median."""
    return [_ratio(law, 1_000 * seed + run, queries) for run in range(runs)]


def _ratio(law: Law, seed: int, queries: int) -> float:
    random = np.random.default_rng(seed)
    stream, w = generic(random, 16, 2, queries), random.random(16)
    truth = stream.coordinates @ (stream.basis @ w)
    said = learner(stream, seed).follow(stream.coordinates, truth + law.sample(random, queries))
    information = 4 * law.density_at_median**2
    limit = deviations(stream.coordinates, box_covariance(stream.basis), information)
    return float(np.abs(said.answers - truth).mean() / (MEAN_ABSOLUTE * limit.mean()))


def test_with_even_noise_it_is_below_the_limit_of_the_median(seed: int) -> None:
    assert np.mean(ratios(Uniform(16.0), seed)) < 0.75


@pytest.mark.parametrize(
    "law", [Gaussian(8.0), Laplace(8.0), Exponential(8.0), Truncated(Gaussian(8.0), -16.0, 16.0)]
)
def test_with_other_noise_it_stays_near_that_limit(law: Law, seed: int) -> None:
    found = ratios(law, seed)
    assert_rate_at_most(sum(ratio > 3 for ratio in found), len(found), rate=0.05)
    assert 0.75 < np.mean(found) < 1.6  # the twin of the test above


def test_with_skewed_even_noise_it_is_not_misled(seed: int) -> None:
    law = MixtureLaw((Shifted(Uniform(6.4), -6.4), Shifted(Uniform(9.6), 9.6)), (0.5, 0.5))
    found = ratios(law, seed)
    assert_rate_at_most(sum(ratio > 3 for ratio in found), len(found), rate=0.05)
