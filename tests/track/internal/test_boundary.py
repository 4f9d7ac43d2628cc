"""How likely a sampled round is to leave its boundaries."""

from fractions import Fraction

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import example, given, settings
from hypothesis import strategies as st
from track.sampled.slow_rounds import (
    failure_check_by_check,
    failure_item_by_item,
    violated_rounds,
)

from casemate.track.protocols.boundary import (
    brownian_failure,
    chernoff_failure,
    chernoff_slack,
    failure_probability,
    failures,
)

slacks = st.floats(0.5, 12.0)
slopes = st.floats(0.0, 0.6)
probabilities = st.just(0.0) | st.floats(1e-9, 0.95)

# Exactly true


@given(
    st.integers(1, 6),
    st.fractions(Fraction(1, 2), 4, max_denominator=50),
    st.fractions(0, Fraction(1, 2), max_denominator=50),
    st.fractions(Fraction(1, 8), Fraction(9, 10), max_denominator=20),
)
def test_it_is_the_probability_found_item_by_item(
    reports: int, slack: Fraction, slope: Fraction, probability: Fraction
) -> None:
    """Where an item lies on a boundary, floats count it outside: as if slack were a hair less."""
    quick = failure_probability(reports, float(slack), float(slope), float(probability))
    exact = failure_item_by_item(reports, slack, slope, probability)
    narrow = failure_item_by_item(reports, slack * (1 - Fraction(1, 10**9)), slope, probability)
    assert float(exact) <= quick <= float(narrow) * (1 + 1e-8) + 1e-15


@settings(max_examples=12)
@given(st.integers(1, 30), slacks, slopes)
@example(700, 110.3, 0.01)
@example(400, 100.1, 0.4)
def test_in_the_limit_of_small_p_it_is_that_of_a_poisson_process(
    reports: int, slack: float, slope: float
) -> None:
    expected = failure_check_by_check(reports, slack, slope)
    found = failure_probability(reports, slack, slope)
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-14)
    if reports >= 400:
        less = failure_probability(reports, slack * 0.99, slope)
        assert less > 1.01 * expected, "one in a hundred less slack is told apart"


@given(st.integers(0, 60), slacks, slopes, probabilities)
def test_more_reports_fail_more_often_and_more_slack_or_slope_less(
    reports: int, slack: float, slope: float, probability: float
) -> None:
    chances = failures(reports, slack, slope, probability)
    assert chances[0] == 0 and (np.diff(chances) >= 0).all() and chances[-1] <= 1
    wider = failures(reports, slack * 1.1, slope, probability)
    steeper = failures(reports, slack, slope * 1.1, probability)
    assert (wider <= chances + 1e-12).all() and (steeper <= chances + 1e-12).all()


@given(st.integers(1, 60), slacks, slopes, probabilities, st.floats(1e-6, 0.5))
def test_a_walk_that_stops_early_says_the_same_until_then(
    reports: int, slack: float, slope: float, probability: float, stop: float
) -> None:
    whole = failures(reports, slack, slope, probability)
    stopped = failures(reports, slack, slope, probability, stop)
    known = np.isfinite(stopped)
    assert np.allclose(stopped[known], whole[known], rtol=1e-9, atol=0)
    assert (whole[~known] > stop).all()


def test_a_long_step_between_checks_loses_nothing() -> None:
    """With a slope near 1 the last checks are thousands of reports apart."""
    assert failure_probability(2, 1.0, 0.999) < 1e-11
    assert failure_probability(2, 1.0, 0.999, 0.01) < 1e-11


def test_the_reference_rounds_fail_as_often_as_known() -> None:
    assert failure_probability(2318, 170.2, 0.01) == pytest.approx(1.366e-4, rel=1e-3)
    assert failure_probability(11091, 292.0, 0.01) == pytest.approx(3.763e-4, rel=1e-3)


@pytest.mark.parametrize(
    ("reports", "slack", "slope"),
    [(20, 11.0, 0.1), (34, 24.0, 0.05), (200, 50.0, 0.02), (579, 84.0, 0.02), (300, 26.0, 0.2)],
)
def test_of_all_p_on_a_grid_the_limit_fails_most(reports: int, slack: float, slope: float) -> None:
    """Computed, not proved: and so every round's own p is used, and nothing rests on this."""
    grid = np.geomspace(1e-4, 0.9, 15)
    chances = [failure_probability(reports, slack, slope, float(p)) for p in grid]
    assert max(chances) <= failure_probability(reports, slack, slope)


# Closed forms


@given(st.integers(0, 200), st.floats(0.5, 60.0), st.floats(0.0, 0.9), probabilities)
def test_chernoffs_bound_is_one_for_every_p(
    reports: int, slack: float, slope: float, probability: float
) -> None:
    exact = failure_probability(reports, slack, slope, probability)
    assert exact <= chernoff_failure(reports, slack, slope) * (1 + 1e-8) + 1e-11


@given(st.integers(1, 10_000), st.floats(0.0, 0.9), st.floats(1e-12, 0.5))
def test_chernoffs_slack_is_the_least_that_does(reports: int, slope: float, failure: float) -> None:
    slack = chernoff_slack(reports, slope, failure)
    assert chernoff_failure(reports, slack, slope) <= failure
    assert chernoff_failure(reports, slack * (1 - 1e-6), slope) >= failure * (1 - 1e-6)


def test_the_brownian_formula_is_close_for_long_rounds_and_too_small_for_short_ones() -> None:
    def ratio(reports: int, slack: float, slope: float) -> float:
        return failure_probability(reports, slack, slope) / brownian_failure(reports, slack, slope)

    assert ratio(2318, 170.2, 0.01) == pytest.approx(1.0, abs=0.03)
    assert ratio(11091, 292.0, 0.01) == pytest.approx(1.0, abs=0.02)
    assert ratio(486, 84.0, 0.01) > 1.2
    assert ratio(34, 24.0, 0.05) > 3


# True with a stated probability

SHAPES = [(60, 16.5, 0.02, 0.02), (150, 26.8, 0.01, 0.3), (34, 12.5, 0.05, 0.6)]


@pytest.mark.parametrize("shape", SHAPES)
def test_simulated_rounds_fail_as_often_as_computed(
    shape: tuple[int, float, float, float], seed: int
) -> None:
    """And rounds with a tenth less slack are found out."""
    rounds, rng, chance = 40_000, np.random.default_rng(seed), failure_probability(*shape)
    violated = int(violated_rounds(rounds, shape, rng).sum())
    assert_rate_at_most(violated, rounds, chance)
    assert_rate_at_most(rounds - violated, rounds, 1 - chance)
    reports, slack, slope, probability = shape
    narrower = int(violated_rounds(rounds, (reports, 0.9 * slack, slope, probability), rng).sum())
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(narrower, rounds, chance)
