"""What a run costs, and that every answer is within its stated error with the stated chance."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from noises import in_stock
from oracles.calibration import threshold_schedule, variance_share

from casemate.privacy.mechanisms import (
    AboveThreshold,
    Calibration,
    GapSparseVector,
    NumericSparse,
    Positive,
    accuracy_share,
    run_epsilon,
)
from casemate.privacy.noise import Noise, noise_bound, round_up, seeded_bits
from casemate.privacy.noise.law import SCALE_BITS
from casemate.privacy.noise.noise import silence

epsilons = st.fractions(Fraction(1, 10**4), 20) | st.floats(1e-4, 20).map(Fraction)
shares = st.fractions(Fraction(1, 100), Fraction(99, 100), max_denominator=1000)
scales = st.fractions(Fraction(1, 50), 1000, max_denominator=50)
betas = st.floats(1e-12, 0.5)


def tail(scale: Fraction, beyond: int) -> Decimal:
    """P(|X| > beyond) for a discrete Laplace X, to forty digits."""
    with localcontext() as context:
        context.prec = 40
        p = (-Decimal(scale.denominator) / scale.numerator).exp()
        return 2 * p ** (beyond + 1) / (1 + p)


# The cost is that of the scales in use --------------------------------------------------------


@given(epsilons, shares, st.integers(1, 50), st.integers(1, 1000), st.booleans())
def test_a_calibration_never_costs_more_than_asked_nor_much_less(
    epsilon: Fraction, share: Fraction, positives: int, sensitivity: int, monotone: bool
) -> None:
    calibration = Calibration.of(
        epsilon, share, positives=positives, sensitivity=sensitivity, monotone=monotone
    )
    assert epsilon * (1 - Fraction(1, 2**20)) <= calibration.epsilon <= epsilon


@given(st.fractions(Fraction(1, 10**6), 10**12) | st.floats(1e-6, 1e12).map(Fraction))
def test_a_rounded_scale_is_short_close_and_never_smaller(scale: Fraction) -> None:
    rounded = round_up(scale)
    assert scale <= rounded <= scale * (1 + Fraction(1, 2**20))
    whole = math.ceil(scale).bit_length()
    small = math.ceil(1 / scale).bit_length()
    assert rounded.denominator.bit_length() <= SCALE_BITS + small
    assert rounded.numerator.bit_length() <= SCALE_BITS + whole


@given(st.fractions(Fraction(1, 10**6), 10), st.integers(1, 10_000))
def test_the_epsilon_of_a_run_is_the_most_that_fits(rho: Fraction, runs: int) -> None:
    epsilon = run_epsilon(rho, runs)
    assert runs * epsilon**2 / 2 <= rho < runs * (epsilon + Fraction(1, 2**39)) ** 2 / 2


@pytest.mark.parametrize(
    ("runs", "epsilon"), [(10, 0.0698), (30, 0.0403), (100, 0.0221), (300, 0.0127), (1000, 0.0070)]
)
def test_concentrated_runs_get_these_epsilons_at_epsilon_1_and_delta_1e_6(
    runs: int, epsilon: float
) -> None:
    assert round(float(run_epsilon(Fraction(2436, 10**5), runs)), 4) == epsilon


# Error bounds are exact tails -----------------------------------------------------------------


@given(scales, st.integers(1, 10**6), betas)
def test_a_noise_bound_is_the_least_that_the_tail_allows(
    scale: Fraction, draws: int, beta: float
) -> None:
    bound = noise_bound(scale, draws, beta)
    assert draws * tail(scale, bound) <= Decimal(beta)
    if bound > 0:
        assert draws * tail(scale, bound - 1) > Decimal(beta) * Decimal("0.999999")


@given(scales, scales, st.integers(1, 1000), st.integers(1, 50), betas)
def test_an_error_bound_fails_with_at_most_beta(
    threshold: Fraction, query: Fraction, comparisons: int, runs: int, beta: float
) -> None:
    bound = Calibration(threshold, query).error_bound(comparisons, beta, runs)
    for_threshold = noise_bound(threshold, runs, beta / 2)
    failure = runs * tail(threshold, for_threshold)
    failure += comparisons * tail(query, bound - for_threshold)
    assert failure <= Decimal(beta)


@given(scales, scales, st.integers(1, 50), st.integers(1, 2), betas)
def test_the_schedule_fails_with_at_most_beta_over_all_questions_for_ever(
    threshold: Fraction, query: Fraction, runs: int, sides: int, beta: float
) -> None:
    calibration, first = Calibration(threshold, query), 50
    for_threshold = noise_bound(threshold, runs, beta / 6)
    failure = runs * tail(threshold, for_threshold)
    for question in range(1, first + 1):
        margin = calibration.error_bound_at(question, beta, runs, sides) - for_threshold
        failure += sides * tail(query, margin)
    later = Decimal(beta) / 2 / first  # the sum of beta / (2 i^2) beyond `first` is below this
    assert failure + later <= Decimal(beta)


# Splits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("runs", "positives"), [(1, 1), (30, 1), (1, 30)])
def test_the_accuracy_share_gives_the_least_error_bound(runs: int, positives: int) -> None:
    epsilon, comparisons, beta = Fraction(1, 10), 20_000, 0.05

    def bound(share: Fraction) -> int:
        calibration = Calibration.of(epsilon, share, positives=positives)
        return calibration.error_bound(comparisons, beta, runs)

    a = math.log(2 * runs / beta)
    b = 2 * positives * math.log(2 * comparisons / beta)
    closed_form = (math.sqrt(a) + math.sqrt(b)) ** 2 / float(epsilon)
    best = bound(accuracy_share(comparisons, beta, positives=positives, runs=runs))
    assert closed_form - 3 <= best <= closed_form + 1
    assert min(bound(Fraction(s, 200)) for s in range(1, 200)) >= best - 2


@pytest.mark.parametrize(("positives", "monotone"), [(1, False), (1, True), (8, False), (8, True)])
def test_the_variance_share_gives_the_least_variance(positives: int, monotone: bool) -> None:
    def variance(share: Fraction) -> float:
        made = Calibration.of(Fraction(1), share, positives=positives, monotone=monotone)
        return float(made.threshold**2 + made.query**2)

    best = variance(variance_share(positives=positives, monotone=monotone))
    assert best <= 1.0001 * min(variance(Fraction(s, 500)) for s in range(1, 500))


# True with a stated probability ----------------------------------------------------------------


ONE = Fraction(1)
Mechanism = AboveThreshold | GapSparseVector | NumericSparse
BETA, COMPARISONS, TRIALS = 0.1, 100, 150


def breaks(mechanism: Mechanism, alpha: int, positives: int) -> bool:
    """Whether any of the answers to the hardest values contradicts an error bound of `alpha`."""
    for position in range(1, COMPARISONS + 1):
        large = position % (COMPARISONS // positives) == 0  # the last one ends the last run
        value = 50 + alpha if large else 50 - alpha - 1
        answer = mechanism.ask(value, threshold=50)
        if (answer is not None) != large:
            return True
        reading = 50 + answer.gap if isinstance(answer, Positive) else answer
        if reading is not None and abs(reading - value) > alpha:
            return True
    return False


def failures(form: str, noise: Noise, stretch: Fraction = ONE) -> int:
    make, bound, positives = FORMS[form]
    alpha = math.floor(bound * stretch)
    return sum(breaks(make(noise), alpha, positives) for _ in range(TRIALS))


SHARE = accuracy_share(COMPARISONS, BETA, runs=5)
FIXED = Calibration.of(ONE, variance_share(positives=5), positives=5)
GAP = GapSparseVector(Calibration.of(Fraction(1, 5), SHARE), 5, silence)
NUMERIC = NumericSparse(5, ONE, silence)
FORMS: dict[str, tuple[Callable[[Noise], Mechanism], int, int]] = {
    "one run": (
        partial(AboveThreshold, Calibration.of(ONE)),
        Calibration.of(ONE).error_bound(COMPARISONS, BETA),
        1,
    ),
    "no resampling": (partial(AboveThreshold, FIXED), FIXED.error_bound(COMPARISONS, BETA), 5),
    "gaps": (
        partial(GapSparseVector, GAP.calibration, GAP.runs),
        GAP.error_bound(COMPARISONS, BETA),
        5,
    ),
    "numbers": (partial(NumericSparse, 5, ONE), NUMERIC.error_bound(COMPARISONS, BETA), 5),
}


@pytest.mark.theorem("003: AboveThreshold (accuracy)")
@pytest.mark.parametrize("form", FORMS)
def test_every_answer_is_within_the_error_bound(form: str, seed: int) -> None:
    noise = in_stock(seeded_bits(seed))
    assert_rate_at_most(failures(form, noise), TRIALS, BETA)
    assert failures(form, noise, stretch=Fraction(1, 3)) > 2 * BETA * TRIALS, "it says nothing"


@pytest.mark.parametrize("form", FORMS)
def test_the_test_above_would_notice_noise_that_is_too_large(form: str, seed: int) -> None:
    noise = in_stock(seeded_bits(seed), factor=Fraction(3))
    with pytest.raises(AssertionError):
        assert_rate_at_most(failures(form, noise), TRIALS, BETA)


@pytest.mark.theorem("003: NumericSparse (accuracy)")
@given(st.integers(1, 300), st.integers(2, 10**6), st.floats(1e-9, 0.5), st.floats(0.01, 2))
def test_the_derived_bound_is_below_the_one_of_theorem_3_28(
    positives: int, comparisons: int, beta: float, epsilon: float
) -> None:
    """Together with the test of chance above, which shows the derived bound."""
    theirs = 9 * positives * (math.log(comparisons) + math.log(4 * positives / beta)) / epsilon
    ours = NumericSparse(positives, Fraction(epsilon), silence).error_bound(comparisons, beta)
    assert ours <= theirs


@pytest.mark.parametrize("factor", [1, 3])
def test_growing_thresholds_hold_for_a_number_of_questions_nobody_knew(
    factor: int, seed: int
) -> None:
    calibration, noise = Calibration.of(ONE), in_stock(seeded_bits(seed), Fraction(factor))
    at = threshold_schedule(calibration, BETA, sides=1)
    margins = [calibration.error_bound_at(i, BETA, sides=1) for i in range(1, 301)]
    hardest = [(at(i) - margin - 1, at(i)) for i, margin in enumerate(margins, start=1)]

    def false_alarm() -> bool:
        run = AboveThreshold(calibration, noise)
        return any(run.ask(value, threshold) is not None for value, threshold in hardest)

    alarms = sum(false_alarm() for _ in range(200))
    if factor == 1:
        assert_rate_at_most(alarms, 200, BETA)
    else:
        with pytest.raises(AssertionError):
            assert_rate_at_most(alarms, 200, BETA)
