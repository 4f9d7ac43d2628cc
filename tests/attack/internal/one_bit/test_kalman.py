"""The filters for noise of a known scale, of any scale, and of any symmetric law."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from attack.one_bit_streams import Streams, dense, errors, two_humps, world
from hypothesis import given
from hypothesis import strategies as st
from oracles.one_bit_play import play
from scipy import integrate, stats

from casemate.attack.one_bit import OneBitKalman, effective_scale, generic, near_basis, parse_law
from casemate.attack.one_bit.laws import Gaussian, Law, Uniform
from casemate.attack.one_bit.oracle import Floats, NoisyOracle
from casemate.attack.one_bit.scale_bank import DITHER_DEVIATIONS
from casemate.attack.one_bit.square_root import (
    TAIL_SERIES_DEVIATIONS,
    KnownScale,
    above_moments,
    bit_moments,
    cell_moments,
)
from casemate.attack.one_bit.streams import subsets

near = st.floats(-8, 8)
far = st.floats(-1e100, 1e100)


# Moments of a normal law that is cut --------------------------------------------------------------


def slow_moments(low: float, high: float) -> tuple[float, float, float]:
    """Mean, one minus the variance and log chance of a normal number in a cell, by integration."""
    peak = min(max(0.0, low), high)
    grid = np.linspace(max(low, peak - 12), min(high, peak + 12), 40_001)
    height = np.exp((peak * peak - grid**2) / 2)
    mass = float(integrate.simpson(height, x=grid))
    mean = float(integrate.simpson(grid * height, x=grid)) / mass
    variance = float(integrate.simpson((grid - mean) ** 2 * height, x=grid)) / mass
    return mean, 1 - variance, math.log(mass) - (peak * peak + math.log(2 * math.pi)) / 2


@given(near, st.booleans())
def test_a_bit_cuts_a_normal_law_as_integration_does(k: float, above: bool) -> None:
    low, high = (k, math.inf) if above else (-math.inf, k)
    assert bit_moments(k, above) == pytest.approx(slow_moments(low, high), rel=1e-6, abs=1e-7)


@given(near, st.floats(0.05, 8))
def test_a_cell_cuts_a_normal_law_as_integration_does(low: float, width: float) -> None:
    found = cell_moments(low, low + width)
    mean, shrink, chance = slow_moments(low, low + width)
    assert found == pytest.approx((mean, min(shrink, 0.999), chance), rel=1e-5, abs=1e-5)


def test_the_series_for_far_thresholds_joins_the_formula() -> None:
    joint = TAIL_SERIES_DEVIATIONS
    before, after = above_moments(joint), above_moments(joint + 1e-9)
    assert after == pytest.approx(before, rel=1e-4)
    assert after[2] == pytest.approx(stats.norm.logsf(joint), rel=1e-5)


@given(far, st.one_of(st.just(math.inf), st.floats(0, 1e100)), st.booleans())
def test_no_threshold_is_too_far_and_no_cell_too_narrow(
    low: float, width: float, turned: bool
) -> None:
    ends = (-low - width, -low) if turned else (low, low + width)
    mean, shrink, chance = cell_moments(*ends)
    assert math.isfinite(mean) and 0 <= shrink < 1 and not math.isnan(chance)
    assert chance <= 0 or width < math.inf


# A known scale ------------------------------------------------------------------------------------


Cut = Callable[[int, float, float], tuple[float, float]]
"""What a bit says of a query: its place, mean and deviation to (mean, 1 - variance) after it."""


def covariance_form(queries: Floats, cut: Cut, noise: float) -> tuple[Floats, Floats, bool]:
    """The same filter written with the covariance: both, and whether a variance fell below 0."""
    size = queries.shape[1]
    mean, covariance = np.full(size, 0.5), np.eye(size) / 12 + np.ones((size, size)) / 12
    for place, q in enumerate(queries):
        variance = float(q @ covariance @ q)
        if variance <= 0:
            return mean, covariance, variance < 0
        spread, gain = math.sqrt(noise**2 + variance), covariance @ q
        step, shrink = cut(place, float(mean @ q), spread)
        share = variance / spread**2
        lost = shrink * share * (1 - 0.3 * share)
        mean = mean + step / spread * gain
        covariance = covariance - lost / variance * np.outer(gain, gain)
    return mean, covariance, False


@given(st.integers(0, 2**32 - 1))
def test_it_is_the_filter_of_the_textbooks_cut_at_each_bit(seed: int) -> None:
    rng = np.random.default_rng(seed)
    queries, bits = rng.random((6, 3)), (rng.random(6) < 0.5).tolist()
    thresholds = 0.5 * queries.sum(axis=1) + rng.normal(size=6)
    learner = OneBitKalman(3, np.eye(3), 0.8)
    for q, t, above in zip(queries, thresholds, bits, strict=True):
        learner.learn(q, float(t), above)

    def cut(place: int, centre: float, spread: float) -> tuple[float, float]:
        k = (thresholds[place] - centre) / spread
        law = stats.truncnorm(k, np.inf) if bits[place] else stats.truncnorm(-np.inf, k)
        return float(law.mean()), 1 - float(law.var())

    mean, covariance, _ = covariance_form(queries, cut, 0.8)
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


@pytest.mark.parametrize("levels", [2, 3, 4, 8])
def test_an_answer_of_several_is_learned_from_alike_in_both_forms(levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = world(generic(rng, 12, 3, 400), Gaussian(1.5), rng)
    one, other, bit = (OneBitKalman(12, at.stream.basis, 1.5) for _ in range(3))
    slow, cells = [], []
    for q, y in zip(at.stream.queries, at.noisy, strict=True):
        slow.append(one.answer(q))
        thresholds = one.thresholds(q, levels)
        cells.append(int((y > thresholds).sum()))
        one.learn_level(q, thresholds, cells[-1])
    answers, fast_cells = other.follow_levels(at.stream.coordinates, at.noisy, levels)
    assert answers == pytest.approx(slow, abs=1e-9)
    assert fast_cells.tolist() == cells and set(cells) == set(range(levels))
    if levels == 2:  # that is one bit
        assert bit.follow(at.stream.coordinates, at.noisy).answers == pytest.approx(slow, abs=1e-9)


# Without noise ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dimensions", [1, 2, 8, 32])
def test_without_noise_a_query_a_dimension_gains_two_fifths_of_a_bit(
    dimensions: int, seed: int
) -> None:
    """The mean of so many streams is seven deviations above the bound or more, as measured."""
    rng, bits = np.random.default_rng(seed), []
    for _ in range(200 if dimensions <= 2 else 40):
        stream = generic(rng, 4 * dimensions, dimensions, 60 * dimensions + 100)
        at = world(stream, None, rng)
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
    at = world(subsets(rng, 8, 4, 6_000), None, rng)
    learner = OneBitKalman(8, at.stream.basis, scale, random=rng)
    off = errors(learner, at)
    assert np.isfinite(off).all() and np.isfinite(learner.vector).all()
    assert off[-100:].max() < 1e-7


def test_queries_that_repeat_break_the_form_with_the_covariance_and_not_the_root(seed: int) -> None:
    """About every second stream does, so that none of 40 does has a chance below 1e-9."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(40):
        queries, w = np.repeat(rng.random((3, 3)), 100, axis=0), rng.random(3)
        noise = 1e-12 * math.sqrt(3 / 12 + 3 / 12)  # as the filter assumes it
        broken += covariance_form(queries, lambda *_: (0.0, 2 / math.pi), noise)[2]
        learner = OneBitKalman(3, np.eye(3), 0.0)
        learner.follow(queries, queries @ w)
        assert np.abs(queries @ (learner.vector - w)).max() < 1e-9
    assert broken > 0


Filter = Callable[[Floats, Law], OneBitKalman]


def told(basis: Floats, law: Law) -> OneBitKalman:
    return OneBitKalman(basis.shape[1], basis, effective_scale(law))


def without_level_at_full_speed(basis: Floats, law: Law) -> OneBitKalman:
    learner, scale = told(basis, law), effective_scale(law)
    level, spread = basis.sum(axis=1), np.abs(basis).sum(axis=1)
    learner.stage = KnownScale(level / 2, np.diag(spread) / math.sqrt(12), scale, 1.0, 0)
    return learner


def stuck(filter_: Filter, streams: Streams, dimensions: int, runs: int, seed: int) -> int:
    """Of so many streams with little noise and a secret at a corner, its level anything: how many
    end with answers that are far beyond what the noise explains.
    """
    rng, found = np.random.default_rng(seed), 0
    for law in [Uniform(4e-6 * dimensions), Uniform(4e-3 * dimensions)] * runs:
        stream = streams(rng, 4 * dimensions, dimensions, 300 * dimensions)
        corner = (rng.random(4 * dimensions) < rng.random()).astype(float)
        off = errors(filter_(stream.basis, law), world(stream, law, rng, corner))
        found += bool(off[-100:].mean() > 30 * effective_scale(law))
    return found


@pytest.mark.parametrize(
    ("dimensions", "streams"), [(2, near_basis), (8, generic), (16, subsets), (16, near_basis)]
)
def test_corners_and_little_noise_leave_nobody_stuck(
    dimensions: int, streams: Streams, seed: int
) -> None:
    assert stuck(told, streams, dimensions, 5, seed) == 0


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [2, 8, 32])
@pytest.mark.parametrize("streams", [near_basis, generic, subsets])
def test_of_hundreds_nobody_is_stuck(streams: Streams, dimensions: int, seed: int) -> None:
    assert stuck(told, streams, dimensions, 25, seed) == 0


def test_without_the_level_and_at_full_speed_some_are_stuck(seed: int) -> None:
    """The test above would notice: this is what the level and the slower shrinking are for."""
    assert stuck(without_level_at_full_speed, generic, 16, 10, seed) > 0


# With noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 1.6])
def test_a_shift_of_the_noise_is_told_from_the_answers_if_it_is_looked_for(
    shift: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    at = world(generic(rng, 16, 2, 20_000), parse_law("gaussian:1"), rng)
    learner, other = (OneBitKalman(16, at.stream.basis, 1.0, shift=wide) for wide in (3.2, 0.0))
    off, ruined = (
        np.abs(each.follow(at.stream.coordinates, at.noisy + shift).answers - at.truth)[10_000:]
        for each in (learner, other)
    )
    assert off.mean() < 0.1
    assert learner.shift == pytest.approx(shift, abs=0.15)
    assert ruined.mean() > 0.5 or not shift


def test_queries_beside_the_space_need_the_full_dimension(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stream, w = generic(rng, 32, 3, 20_000), rng.random(32)
    queries = np.clip(stream.queries * (1 + 0.3 * rng.normal(size=(20_000, 32))), 0, 1)
    truth = queries @ w
    noisy = truth + rng.normal(0, 1.0, 20_000)
    flat, full = OneBitKalman(32, stream.basis, 1.0), OneBitKalman(32, np.eye(32), 1.0)
    off = [
        np.abs(learner.follow_queries(queries, noisy).answers - truth)[10_000:].mean()
        for learner in (flat, full)
    ]
    assert off[1] < 0.6 * off[0]


def test_the_final_belief_answers_fresh_queries_near_the_limit(seed: int) -> None:
    rng, law, ratios = np.random.default_rng(seed), Gaussian(6.4), []
    for _ in range(30):
        at = world(generic(rng, 64, 4, 5_000), law, rng)
        learner = told(at.stream.basis, law)
        learner.follow(at.stream.coordinates, at.noisy)
        fresh = generic(rng, 64, 4, 500)
        off = np.abs(fresh.queries @ (learner.vector - at.w)).mean()
        deviations = [learner.deviation(q) for q in fresh.queries[:50]]
        ratios.append(off / (math.sqrt(2 / math.pi) * np.mean(deviations)))
    assert 0.75 < np.mean(ratios) < 1.3


# An unknown scale ---------------------------------------------------------------------------------

SHAPES = (
    *("uniform:{}", "gaussian:{}", "laplace:{}", "cauchy:{}"),
    *("logistic:{}", "student:3:{}", "triangular:{}", "exponential:{}"),
)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_scale_that_is_looked_for_is_the_slope_of_the_cdf_at_0(shape: str) -> None:
    """The rise over .3 deviations to each side, which a filter with the fitted scale divides by."""
    law = parse_law(shape.format(1))
    wide = DITHER_DEVIATIONS * effective_scale(law)
    slope = float(law.cdf(wide) - law.cdf(-wide)) / (2 * wide)
    assert 0.85 < slope / law.density_at_median <= 1.01


@pytest.mark.parametrize("factor", [30.0, 1e-3])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_scale_is_found_over_five_decades(shape: str, factor: float, seed: int) -> None:
    rng, law = np.random.default_rng(seed), parse_law(shape.format(factor))
    at = world(generic(rng, 32, 4, 20_000), law, rng)
    learner = OneBitKalman(32, at.stream.basis, random=rng)
    assert np.isfinite(errors(learner, at)).all()
    assert learner.settled
    assert 0.6 < learner.scale / effective_scale(law) < 1.7


@pytest.mark.parametrize("width", [1e-7, 1e3])
def test_scales_beyond_the_last_member_are_reached(width: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    at = world(generic(rng, 8, 2, 20_000), Gaussian(width), rng)
    learner = OneBitKalman(8, at.stream.basis, random=rng)
    learner.follow(at.stream.coordinates, at.noisy)
    assert 0.3 < learner.scale / width < 3


# Symmetric noise ----------------------------------------------------------------------------------


def test_a_found_basis_may_grow_before_and_after_the_scale_is_found(seed: int) -> None:
    """The scale is found within 11,000 queries nine times in ten, as measured."""
    rng, law = np.random.default_rng(seed), Gaussian(1.0)
    stream, w = generic(rng, 12, 3, 10_000), rng.random(12)
    learner = OneBitKalman(12, symmetric=True, random=rng)
    few = stream.queries[:500] * (np.arange(12) < 8)
    while not learner.settled:
        learner.follow_queries(few, few @ w + law.sample(rng, len(few)))
    assert len(learner.basis) == 2
    trail = play(learner, NoisyOracle(w, law, rng), stream.queries)
    assert len(learner.basis) == 3
    assert np.abs(trail.answers - stream.queries @ w)[-2_000:].mean() < 0.3


def test_two_humps_are_asked_at_their_outer_slopes(seed: int) -> None:
    rng, offsets = np.random.default_rng(seed), []
    for _ in range(8):
        at = world(generic(rng, 64, 4, 100_000), two_humps(Gaussian(1.2), 3.0), rng)
        learner = OneBitKalman(64, at.stream.basis, symmetric=True, random=rng)
        learner.follow(at.stream.coordinates, at.noisy)
        offsets.append(learner.offset)
    assert 2 < np.median(offsets) < 5
