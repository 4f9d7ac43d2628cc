import math

import numpy as np
import pytest
from attack.kalman_runs import (
    Streams,
    World,
    dense,
    error,
    median_limit,
    stuck,
    world,
    worlds,
)
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from oracles.one_bit_play import play

from casemate.attack.one_bit import OneBitKalman
from casemate.attack.one_bit.laws import Cauchy, Gaussian, Laplace, Law, Uniform, effective_scale
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.one_bit.square_root import KnownScale
from casemate.attack.one_bit.streams import generic, near_basis, subsets

seeds = st.integers(0, 2**32 - 1)


def known(law: Law, basis: Floats, rho: float = 0.7) -> OneBitKalman:
    return OneBitKalman(basis.shape[1], basis, effective_scale(law), rho=rho)


# Exactly true -----------------------------------------------------------------------------------


def covariance_form(
    queries: Floats, bits: list[bool], thresholds: Floats, scale: float
) -> tuple[Floats, Floats]:
    """The same filter written with the covariance, in the full space: mean and covariance."""
    from scipy import stats

    size = queries.shape[1]
    mean, covariance = np.full(size, 0.5), np.eye(size) / 12 + np.ones((size, size)) / 12
    for q, t, above in zip(queries, thresholds, bits, strict=True):
        variance = float(q @ covariance @ q)
        total = scale**2 + variance
        share, k = variance / total, (t - float(mean @ q)) / math.sqrt(total)
        law = stats.truncnorm(k, np.inf) if above else stats.truncnorm(-np.inf, k)
        lost = (1 - float(law.var())) * share * (1 - 0.3 * share)
        gain = covariance @ q
        mean = mean + float(law.mean()) / math.sqrt(total) * gain
        covariance = covariance - lost / variance * np.outer(gain, gain)
    return mean, covariance


@given(seeds)
def test_it_is_the_filter_of_the_textbooks_cut_at_each_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, bits = rng.random((6, 3)), (rng.random(6) < 0.5).tolist()
    thresholds = 0.5 * queries.sum(axis=1) + rng.normal(size=6)
    learner = OneBitKalman(3, np.eye(3), 0.8)
    for q, t, above in zip(queries, thresholds, bits, strict=True):
        learner.learn(q, float(t), above)
    mean, covariance = covariance_form(queries, bits, thresholds, 0.8)
    assert learner.vector == pytest.approx(mean, rel=1e-6)
    for q in queries:
        assert learner.deviation(q) == pytest.approx(math.sqrt(q @ covariance @ q), rel=1e-6)


def test_a_basis_that_is_found_answers_as_the_same_one_given(seed: int) -> None:
    """The level as a column and the level in the prior are one model."""
    rng = np.random.default_rng(seed)
    stream = generic(rng, 30, 4, 400)
    queries = np.concatenate([stream.basis, stream.queries])  # in this order it is found
    noisy = queries @ rng.random(30) + rng.normal(size=404)
    found, given_one = OneBitKalman(30, None, 1.0), OneBitKalman(30, stream.basis, 1.0)
    here, there = (learner.follow_queries(queries, noisy) for learner in (found, given_one))
    assert found.basis == pytest.approx(stream.basis, abs=1e-12)
    assert here.answers == pytest.approx(there.answers, abs=1e-9)
    assert found.vector == pytest.approx(given_one.vector, abs=1e-9)


@pytest.mark.parametrize("make", [near_basis, generic, subsets, dense])
def test_exactly_the_directions_of_the_queries_are_found(make: Streams, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = make(rng, 200, 5, 300)
    learner = OneBitKalman(200, None, 1.0)
    learner.follow_queries(stream.queries, rng.normal(size=300))
    assert learner.basis @ learner.basis.T == pytest.approx(np.eye(5), abs=1e-9)
    assert stream.basis @ learner.basis.T @ learner.basis == pytest.approx(stream.basis, abs=1e-6)
    q = stream.queries[7]
    assert learner.vector @ q == pytest.approx(learner.answer(q), abs=1e-9)


def test_a_found_basis_is_the_same_one_query_at_a_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = subsets(rng, 20, 3, 300), rng.random(20)
    one, other = (OneBitKalman(20, shift=1.0, random=np.random.default_rng(5)) for _ in range(2))
    slow = play(one, NoisyOracle(w, Gaussian(1.0), np.random.default_rng(3)), stream.queries)
    noisy = NoisyOracle(w, Gaussian(1.0), np.random.default_rng(3)).noisy(stream.queries)
    assert other.follow_queries(stream.queries, noisy).answers == pytest.approx(
        slow.answers, abs=1e-9
    )


def test_to_answer_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for learner in (OneBitKalman(5, None, 1.0), OneBitKalman(5, random=rng)):
        queries = rng.random((20, 5))
        for q in queries:
            learner.learn(q, learner.threshold(q), bool(rng.random() < 0.5))
        before = [learner.answer(q) for q in queries]
        for q in rng.random((20, 5)):
            learner.answer(q), learner.threshold(q), learner.deviation(q)
        assert [learner.answer(q) for q in queries] == before


@pytest.mark.parametrize("levels", [2, 3, 4, 8])
def test_an_answer_of_several_is_learned_from_alike_in_both_forms(levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = generic(rng, 12, 3, 400), rng.random(12)
    one, other = (OneBitKalman(12, stream.basis, 1.5) for _ in range(2))
    noisy = NoisyOracle(w, Gaussian(1.5), rng).noisy(stream.queries)
    slow, cells = [], []
    for q, y in zip(stream.queries, noisy, strict=True):
        slow.append(one.answer(q))
        thresholds = one.thresholds(q, levels)
        cells.append(int((y > thresholds).sum()))
        one.learn_level(q, thresholds, cells[-1])
    answers, fast_cells = other.follow_levels(stream.coordinates, noisy, levels)
    assert answers == pytest.approx(slow, abs=1e-9)
    assert fast_cells.tolist() == cells and set(cells) == set(range(levels))


def test_two_answers_are_one_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = generic(rng, 12, 3, 400)
    noisy = rng.normal(6, 2, 400)
    one, other = (OneBitKalman(12, stream.basis, 1.5) for _ in range(2))
    answers, _ = one.follow_levels(stream.coordinates, noisy, 2)
    assert answers == pytest.approx(other.follow(stream.coordinates, noisy).answers, abs=1e-9)


def test_what_it_cannot_work_with_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one dimension, got 0"):
        OneBitKalman(0)
    with pytest.raises(ValueError, match="vectors of length 3"):
        OneBitKalman(3, np.eye(2))
    with pytest.raises(ValueError, match="orthonormal"):
        OneBitKalman(2, np.ones((2, 2)))
    with pytest.raises(ValueError, match="scale of the noise that is not negative"):
        OneBitKalman(2, scale=-1.0)
    with pytest.raises(ValueError, match=r"rho in \(0, 1\]"):
        OneBitKalman(2, rho=0.0)
    with pytest.raises(ValueError, match="a query of length 2"):
        OneBitKalman(2).answer(np.ones(3))
    with pytest.raises(ValueError, match="follow_queries"):
        OneBitKalman(2).follow(np.ones((1, 2)), np.ones(1))
    with pytest.raises(ValueError, match="needs the scale"):
        OneBitKalman(2).thresholds(np.ones(2), 3)


# Without noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 8, 32])
def test_without_noise_a_query_a_dimension_gains_two_fifths_of_a_bit(
    dimensions: int, seed: int
) -> None:
    """The mean of so many streams is seven deviations above the bound or more, as measured."""
    rng, bits = np.random.default_rng(seed), []
    for _ in range(200 if dimensions <= 2 else 40):
        stream = generic(rng, 4 * dimensions, dimensions, 60 * dimensions + 100)
        at = world(stream, None, rng, rng.random(4 * dimensions))
        learner = OneBitKalman(4 * dimensions, stream.basis, 0.0)
        learner.follow(stream.coordinates[:-100], at.noisy[:-100])
        left = np.abs(stream.queries[-100:] @ learner.vector - at.truth[-100:]).mean()
        half = np.abs(stream.queries.sum(axis=1) / 2 - at.truth).mean()
        bits.append(math.log2(half / left) / 60)
        assert left < 1e-7 * stream.queries.sum(axis=1).mean()  # the size of answers
    assert np.mean(bits) >= 0.40


@pytest.mark.parametrize("scale", [0.0, None])
def test_without_noise_nothing_ever_breaks(scale: float | None, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = subsets(rng, 8, 4, 6_000)
    learner = OneBitKalman(8, stream.basis, scale, random=rng)
    at = world(stream, None, rng, rng.random(8))
    said = learner.follow(stream.coordinates, at.noisy).answers
    assert np.isfinite(said).all() and np.isfinite(learner.vector).all()
    assert np.abs(said - at.truth)[-100:].max() < 1e-7


def has_negative_variance(queries: Floats) -> bool:
    """Whether the form with the covariance, the same noise assumed, meets a variance below 0."""
    size = queries.shape[1]
    covariance = np.eye(size) / 12 + 1 / 12
    noise = (1e-12 * math.sqrt(np.trace(covariance))) ** 2
    for q in queries:
        variance = float(q @ covariance @ q)
        if variance < 0:
            return True
        share = variance / (noise + variance)
        gain = covariance @ q
        lost = 2 / math.pi * share * (1 - 0.3 * share)
        covariance = covariance - lost / variance * np.outer(gain, gain)
    return False


def test_queries_that_repeat_break_the_form_with_the_covariance_and_not_the_root(seed: int) -> None:
    """About every second stream does, so that none of 40 does has a chance below 1e-9."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(40):
        queries, w = np.repeat(rng.random((3, 3)), 100, axis=0), rng.random(3)
        broken += has_negative_variance(queries)
        learner = OneBitKalman(3, np.eye(3), 0.0)
        learner.follow(queries, queries @ w)
        assert np.abs(queries @ (learner.vector - w)).max() < 1e-9
    assert broken > 0


def corner(make: Streams, dimensions: int, law: Law, rng: np.random.Generator) -> World:
    """A stream about a secret at a corner of the cube, its level anything."""
    stream = make(rng, 4 * dimensions, dimensions, 300 * dimensions)
    return world(stream, law, rng, (rng.random(4 * dimensions) < rng.random()).astype(float))


STRESS = [(2, near_basis), (8, generic), (16, subsets), (16, near_basis)]


def test_corners_and_little_noise_leave_nobody_stuck(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for dimensions, make in STRESS:
        for law in [Uniform(4e-6 * dimensions), Uniform(4e-3 * dimensions)]:
            for _ in range(5):
                at = corner(make, dimensions, law, rng)
                assert not stuck(known(law, at.stream.basis), at, effective_scale(law))


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [2, 8, 32])
@pytest.mark.parametrize("make", [near_basis, generic, subsets])
def test_of_hundreds_nobody_is_stuck(make: Streams, dimensions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for law in [Uniform(4e-6 * dimensions), Uniform(4e-3 * dimensions)]:
        for _ in range(25):
            at = corner(make, dimensions, law, rng)
            assert not stuck(known(law, at.stream.basis), at, effective_scale(law))


def test_without_the_level_and_at_full_speed_some_are_stuck(seed: int) -> None:
    """The test above would notice: this is what the level and the slower shrinking are for."""
    rng, law, hits = np.random.default_rng(seed), Uniform(1e-4), 0
    for _ in range(10):
        stream = generic(rng, 64, 16, 4_800)
        at = world(stream, law, rng, np.ones(64))
        level, spread = stream.basis.sum(axis=1), np.abs(stream.basis).sum(axis=1)
        bare = OneBitKalman(64, stream.basis, 1e-4)
        bare.stage = KnownScale(level / 2, np.diag(spread) / math.sqrt(12), 1e-4, 1.0, 0)
        hits += stuck(bare, at, effective_scale(law))
    assert hits > 0


# With noise -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "law"),
    [
        *((generic, law) for law in (Uniform(6.4), Gaussian(6.4), Laplace(6.4), Cauchy(6.4))),
        *((make, Gaussian(6.4)) for make in (near_basis, subsets)),
    ],
)
def test_the_error_is_near_the_limit(law: Law, make: Streams, seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = worlds(make, (64, 4), law, rng, 60)
    limit = np.array([median_limit(at.stream, law) for at in runs])
    own = np.array([error(known(law, at.stream.basis), at) for at in runs])
    wrong = np.array([error(OneBitKalman(64, at.stream.basis, 100.0), at) for at in runs])
    assert_rate_at_most(int((own > 1.8 * limit).sum()), 60, 0.1)
    assert 0.8 < own.mean() / limit.mean() < 1.3
    assert wrong.mean() / limit.mean() > 1.3, "the test would not notice a wrong scale"


@pytest.mark.parametrize("shift", [0.0, 1.6])
def test_a_shift_of_the_noise_is_told_from_the_answers(shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = generic(rng, 16, 2, 20_000), rng.random(16)
    at = world(stream, Gaussian(1.0), rng, w)
    learner = OneBitKalman(16, stream.basis, 1.0, shift=3.2)
    said = learner.follow(stream.coordinates, at.noisy + shift).answers
    assert np.abs(said - at.truth)[10_000:].mean() < 0.1
    assert learner.shift == pytest.approx(shift, abs=0.15)


def test_a_shift_that_is_not_looked_for_ruins_the_answers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream = generic(rng, 16, 2, 20_000)
    at = world(stream, Gaussian(1.0), rng, rng.random(16))
    said = OneBitKalman(16, stream.basis, 1.0).follow(stream.coordinates, at.noisy + 1.6).answers
    assert np.abs(said - at.truth)[10_000:].mean() > 0.5


def test_queries_beside_the_space_need_the_full_dimension(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = generic(rng, 32, 3, 20_000), rng.random(32)
    queries = np.clip(stream.queries * (1 + 0.3 * rng.normal(size=(20_000, 32))), 0, 1)
    truth = queries @ w
    noisy = truth + rng.normal(0, 1.0, 20_000)
    flat, full = OneBitKalman(32, stream.basis, 1.0), OneBitKalman(32, np.eye(32), 1.0)
    errors = [
        np.abs(learner.follow_queries(queries, noisy).answers - truth)[10_000:].mean()
        for learner in (flat, full)
    ]
    assert errors[1] < 0.6 * errors[0]


def test_the_final_belief_answers_fresh_queries_near_the_limit(seed: int) -> None:
    rng, law, ratios = np.random.default_rng(seed), Gaussian(6.4), []
    for at in worlds(generic, (64, 4), law, rng, 30):
        learner = known(law, at.stream.basis)
        learner.follow(at.stream.coordinates, at.noisy)
        fresh = generic(rng, 64, 4, 500)
        off = np.abs(fresh.queries @ (learner.vector - at.w)).mean()
        deviations = [learner.deviation(q) for q in fresh.queries[:50]]
        ratios.append(off / (math.sqrt(2 / math.pi) * np.mean(deviations)))
    assert 0.75 < np.mean(ratios) < 1.3


def test_behind_laplace_noise_a_bit_is_worth_the_whole_answer(seed: int) -> None:
    """Least squares on every noisy answer knows no more than 1 / b^2 of each, nor does the bit."""
    rng, law = np.random.default_rng(seed), Laplace(6.4)
    runs = worlds(generic, (64, 4), law, rng, 30)
    bits = np.mean([error(known(law, at.stream.basis), at) for at in runs])
    full = np.mean([median_limit(at.stream, law) for at in runs])
    assert 4 * law.density_at_median**2 == pytest.approx(1 / law.scale**2)
    assert bits < 1.3 * full
