import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.calibration import variance_share

from casemate.privacy.mechanisms import Calibration, accuracy_share, run_epsilon
from casemate.privacy.noise import noise_bound, round_up
from casemate.privacy.noise.law import SCALE_BITS

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
