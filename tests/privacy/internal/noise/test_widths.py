import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

from casemate.answer.budget_plan import Means, plan_of
from casemate.grid import Relation
from casemate.privacy import Currency
from casemate.privacy.noise import (
    GaussianLaw,
    LaplaceLaw,
    Law,
    discrete_gaussian,
    discrete_laplace,
    half_width,
    seeded_bits,
)
from casemate.privacy.noise.widths import (
    _chernoff,
    _many,
    excess_of_integers,
    gaussian_width,
    laplace_width,
    magnitudes,
)
from casemate.table import Answering

SCALES = [Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(5, 3), Fraction(4), Fraction(25)]
MIXED = [[1, 1], [2, -1], [1, 5], [1] * 7, [6, 10, 15], [1, 2, 3, 4], [-9, 1, 1]]
scales = st.sampled_from(SCALES)
confidences = st.sampled_from([0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
LAWS = [GaussianLaw, LaplaceLaw]


def chances(law: Law) -> Any:
    """P(X = x) for x from -r to r, beyond which nothing is left that a float could hold."""
    scale = float(law.scale)
    reach = int((13 if isinstance(law, GaussianLaw) else 45) * scale) + 45
    x = np.arange(-reach, reach + 1)
    heights = np.exp(-(x**2) / (2 * scale**2) if law.name == "gaussian" else -np.abs(x) / scale)
    return heights / heights.sum()


@cache
def beyond(law: Law, weights: tuple[int, ...]) -> Any:
    """P(|sum| > w) for w = 0, 1, 2, ..., by convolution of what each draw adds."""
    whole, one = np.ones(1), chances(law)
    for weight in weights:
        spread = np.zeros((one.size - 1) * abs(weight) + 1)
        spread[:: abs(weight)] = one
        whole = signal.fftconvolve(whole, spread)
    return 2 * np.cumsum(whole[whole.size // 2 + 1 :][::-1])[::-1]


def least(law: Law, weights: Sequence[int], confidence: float) -> int:
    return int(np.count_nonzero(beyond(law, tuple(weights)) > 1 - confidence))


# Exactly true -------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@given(scales, confidences, st.integers(1, 9))
def test_one_draw_has_the_least_width_or_one_more(
    law: Callable[[Fraction], Law], scale: Fraction, confidence: float, weight: int
) -> None:
    wanted = weight * least(law(scale), [1], confidence)
    found = half_width(law(scale), [weight], confidence)
    assert wanted <= found <= wanted + weight * (law is GaussianLaw)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("weights", MIXED)
@given(scale=scales, confidence=confidences)
def test_no_sum_is_outside_its_width_more_often_than_stated(
    law: Callable[[Fraction], Law], weights: list[int], scale: Fraction, confidence: float
) -> None:
    assert half_width(law(scale), weights, confidence) >= least(law(scale), weights, confidence)


@pytest.mark.parametrize("law", LAWS)
def test_a_width_made_for_less_noise_is_too_small(law: Callable[[Fraction], Law]) -> None:
    """The twin of the test above: what it compares with is not always smaller."""
    found = half_width(law(Fraction(24)), [1] * 7, 0.95)
    assert found < least(law(Fraction(25)), [1] * 7, 0.95)


@pytest.mark.parametrize("weights", MIXED)
def test_sums_of_laplace_noise_have_the_least_width(weights: list[int]) -> None:
    for scale in SCALES:
        law = LaplaceLaw(scale)
        assert half_width(law, weights, 0.95) == least(law, weights, 0.95)


def test_sums_of_gaussian_noise_waste_at_most_the_largest_weight() -> None:
    for weights in MIXED:
        law = GaussianLaw(Fraction(25))
        wasted = half_width(law, weights, 0.95) - least(law, weights, 0.95)
        assert wasted <= max(abs(weight) for weight in weights)


@given(scales, st.floats(-1, 1))
def test_shifted_gaussian_sums_are_largest_unshifted(scale: Fraction, shift: float) -> None:
    """The sum over the integers of exp(-(x - shift)^2 / 2s^2), and what it is at most."""
    s, x = float(scale), np.arange(-400, 401)
    unshifted = np.exp(-(x**2) / (2 * s**2)).sum()
    assert np.exp(-((x - shift) ** 2) / (2 * s**2)).sum() <= unshifted * (1 + 1e-12)
    integral = s * math.sqrt(2 * math.pi)
    assert (
        integral * (1 - 1e-12)
        <= unshifted
        <= integral * (1 + excess_of_integers(s**2)) * (1 + 1e-12)
    )


@given(scales)
def test_a_draw_and_a_normal_variable_are_one_apart_at_most(scale: Fraction) -> None:
    law = GaussianLaw(scale)
    one = chances(law)
    values = np.arange(-(one.size // 2), one.size // 2 + 1)
    above = np.cumsum(one[::-1])[::-1]  # P(X >= value)
    allowed = stats.norm.sf((values - 1) / float(scale)) + excess_of_integers(float(scale) ** 2)
    assert (above <= allowed + 1e-12).all()


@pytest.mark.parametrize("smooth", [0.4, 0.8, 1.2])
def test_added_normal_noise_makes_a_draw_as_normal_as_stated(smooth: float) -> None:
    scale, one = 3.0, chances(GaussianLaw(Fraction(3)))
    values, at = np.arange(-(one.size // 2), one.size // 2 + 1), np.linspace(-9, 9, 2001)
    density = stats.norm.pdf(at[:, None], loc=values, scale=smooth) @ one
    together = math.hypot(scale, smooth)
    ratio = density / stats.norm.pdf(at, scale=together)
    stated = 1 + excess_of_integers((scale * smooth / together) ** 2)
    assert ratio.max() <= stated * (1 + 1e-9)
    assert ratio.max() >= 1 + 0.5 * (stated - 1) - 1e-12, "the bound is true but says nothing"


def test_where_noise_is_small_the_tail_bound_steps_in() -> None:
    """With a scale of 1/5 nothing is smooth: the second bound proves nothing, or too little."""
    sizes = ((1, 50),)
    tail = math.ceil(0.2 * math.sqrt(50) * math.sqrt(2 * math.log(40))) - 1
    assert gaussian_width(0.2, sizes, 0.95) == tail
    assert all(each > tail for each in _many(0.2, math.sqrt(50), sizes, 0.025))


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=12), st.integers(1, 1000))
def test_a_width_depends_on_magnitudes_and_grows_with_a_common_factor(
    weights: list[int], factor: int
) -> None:
    law = GaussianLaw(Fraction(7))
    width = half_width(law, weights, 0.95)
    shuffled = sorted((-weight for weight in weights), key=abs)
    assert half_width(law, shuffled, 0.95) == width
    assert half_width(law, np.array(weights) * factor, 0.95) == factor * width


@pytest.mark.parametrize("law", LAWS)
def test_nothing_added_is_nothing_wide(law: Callable[[Fraction], Law]) -> None:
    assert half_width(law(Fraction(9)), [], 0.95) == half_width(law(Fraction(9)), [0, 0], 0.95) == 0
    assert magnitudes(np.array([0, -3, 3, 1])) == ((3, 2), (1, 1))
    assert magnitudes(np.array([0.0, -3.0, 3.0, 1.0])) == ((3, 2), (1, 1))
    assert magnitudes(np.array([True, False, True])) == ((1, 2),)


@pytest.mark.parametrize("scale", SCALES)
def test_chernoffs_bound_is_true_and_takes_over_where_the_transform_ends(scale: Fraction) -> None:
    law, sizes = LaplaceLaw(scale), ((3, 1), (1, 4))
    wanted = least(law, [3, 1, 1, 1, 1], 0.95)
    assert wanted <= _chernoff(float(scale), sizes, 0.05) <= 2 * wanted + 3
    sure = 1 - 1e-7
    assert laplace_width(scale, sizes, sure) == _chernoff(
        float(scale), sizes, (1 - sure) * (1 - 1e-9)
    )
    assert half_width(law, [10**9, 1], 0.95) >= 10**9 * least(law, [1], 0.95)


# True with a stated probability -------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_drawn_sums_are_within_their_width(law: Callable[[Fraction], Law], rng: Random) -> None:
    weights, trials = np.array([3, 1, 1, -2]), 5_000
    used = law(Fraction(37, 4))
    drawn = _drawn(used, weights, trials, rng)
    outside = int(np.count_nonzero(np.abs(drawn) > half_width(used, weights, 0.9)))
    assert_rate_at_most(outside, trials, rate=0.1)


@pytest.mark.parametrize("law", LAWS)
def test_the_test_above_would_notice_a_width_for_independent_signs_only(
    law: Callable[[Fraction], Law], rng: Random
) -> None:
    weights, trials = np.array([3, 1, 1, -2]), 5_000
    used = law(Fraction(37, 4))
    outside = np.abs(_drawn(used, weights, trials, rng)) > half_width(used, [3], 0.9)
    with pytest.raises(AssertionError):
        assert_rate_at_most(int(np.count_nonzero(outside)), trials, rate=0.1)


def _drawn(law: Law, weights: Any, trials: int, rng: Random) -> Any:
    noise = discrete_gaussian if isinstance(law, GaussianLaw) else discrete_laplace
    bits = seeded_bits(rng.getrandbits(63))
    return noise(law.scale, trials * weights.size, bits).reshape(trials, -1) @ weights


PLAN = plan_of(Means(Fraction(1, 40), Currency.RHO, Relation()), (4, 4), Answering())


def fired(rng: Random, trials: int) -> tuple[Any, Any]:
    """Errors, in people, of two readings of deviations that made the default gate fire.

    The deviation is half of the threshold. One reading is the gap, the other a fresh measurement.
    """
    assert PLAN.gate is not None and PLAN.surprise_law is not None
    threshold, used = PLAN.gate.threshold(1000), PLAN.gate.calibration
    bits = seeded_bits(rng.getrandbits(63))
    above = discrete_laplace(used.threshold, trials, bits)
    noise = discrete_laplace(used.query, trials, bits)
    hard = threshold // 2 + noise >= threshold + above
    fresh = discrete_gaussian(PLAN.surprise_law.scale, int(hard.sum()), bits)
    return (noise - above)[hard], fresh


def test_a_fresh_measurement_is_within_its_width_also_when_the_gate_fired(rng: Random) -> None:
    assert PLAN.surprise_law is not None
    _, fresh = fired(rng, 200_000)
    assert fresh.size > 500
    outside = int(np.count_nonzero(np.abs(fresh) > half_width(PLAN.surprise_law, [1], 0.95)))
    assert_rate_at_most(outside, fresh.size, rate=0.05)


def test_the_gap_of_a_surprise_is_outside_the_interval_of_its_noise(rng: Random) -> None:
    """Why it is not used for an interval: that the gate fired says that the noise was large."""
    assert PLAN.gate is not None
    used = PLAN.gate.calibration
    bits = seeded_bits(rng.getrandbits(63))
    unconditional = np.abs(
        discrete_laplace(used.query, 200_000, bits)
        - discrete_laplace(used.threshold, 200_000, bits)
    )
    width = np.quantile(unconditional, 0.95)
    gaps, _ = fired(rng, 200_000)
    assert gaps.size > 500
    assert np.count_nonzero(np.abs(gaps) <= width) == 0
    with pytest.raises(AssertionError):
        assert_rate_at_most(int((np.abs(gaps) > width).sum()), gaps.size, rate=0.05)
