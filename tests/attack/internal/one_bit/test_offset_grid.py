import numpy as np
import pytest
from attack.kalman_runs import error, median_limit, world
from oracles.one_bit_play import play

from casemate.attack.one_bit import OneBitKalman, one_bit_limit
from casemate.attack.one_bit.laws import (
    Gaussian,
    Laplace,
    Law,
    MixtureLaw,
    Shifted,
)
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.one_bit.streams import generic

TWO_HUMPS = MixtureLaw((Shifted(Gaussian(1.2), -3.0), Shifted(Gaussian(1.2), 3.0)), (0.5, 0.5))


def settle(learner: OneBitKalman, law: Law, w: Floats, queries: Floats, seed: int) -> None:
    """Go on until the scale is found: nine times in ten within 11,000 queries, as measured."""
    rng = np.random.default_rng(seed)
    while not learner.settled:
        learner.follow_queries(queries, queries @ w + law.sample(rng, len(queries)))


def test_a_found_basis_may_grow_before_and_after_the_scale_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = generic(rng, 12, 3, 10_000), rng.random(12)
    learner = OneBitKalman(12, symmetric=True, random=rng)
    settle(learner, Gaussian(1.0), w, stream.queries[:500] * (np.arange(12) < 8), seed)
    assert len(learner.basis) == 2
    trail = play(learner, NoisyOracle(w, Gaussian(1.0), rng), stream.queries)
    assert len(learner.basis) == 3
    assert np.abs(trail.answers - stream.queries @ w)[-2_000:].mean() < 0.3


def test_only_an_unknown_scale_is_explored() -> None:
    with pytest.raises(ValueError, match="leave the scale out"):
        OneBitKalman(2, scale=1.0, symmetric=True)


def test_two_humps_are_asked_at_their_outer_slopes(seed: int) -> None:
    """The twin is the same filter at the median, which stays on the other side of the bound."""
    rng, errors, at_median, limits, offsets = np.random.default_rng(seed), [], [], [], []
    for _ in range(8):
        stream = generic(rng, 64, 4, 100_000)
        at = world(stream, TWO_HUMPS, rng, rng.random(64))
        learner = OneBitKalman(64, stream.basis, symmetric=True, random=rng)
        errors.append(error(learner, at))
        offsets.append(learner.offset)
        at_median.append(error(OneBitKalman(64, stream.basis, random=rng), at))
        limits.append(median_limit(stream, TWO_HUMPS))
    assert one_bit_limit(stream, TWO_HUMPS).kind == "supremum"
    assert 2 < np.median(offsets) < 5
    assert np.mean(errors) < 0.38 * np.mean(limits) < np.mean(at_median)


@pytest.mark.parametrize("law", [Gaussian(6.4), Laplace(6.4)])
def test_where_the_median_is_best_the_search_costs_little(law: Law, seed: int) -> None:
    rng, errors, limits = np.random.default_rng(seed), [], []
    for _ in range(10):
        stream = generic(rng, 64, 4, 50_000)
        at = world(stream, law, rng, rng.random(64))
        errors.append(error(OneBitKalman(64, stream.basis, symmetric=True, random=rng), at))
        limits.append(median_limit(stream, law))
    assert np.mean(errors) < 1.35 * np.mean(limits)
