import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.protocols.sampled.boundary import (
    brownian_failure,
    chernoff_failure,
    chernoff_slack,
    failure_probability,
)

probabilities = st.just(0.0) | st.floats(1e-9, 0.95)


@given(st.integers(0, 200), st.floats(0.5, 60.0), st.floats(0.0, 0.9), probabilities)
def test_chernoffs_bound_is_one_for_every_p(
    reports: int, slack: float, slope: float, probability: float
) -> None:
    exact = failure_probability(reports, slack, slope, probability)
    assert exact <= chernoff_failure(reports, slack, slope) * (1 + 1e-8) + 1e-11


def test_chernoffs_bound_needs_little_more_slack_than_the_exact_one() -> None:
    for reports, slack, slope in [(2318, 170.2, 0.01), (579, 84.0, 0.02), (100, 30.0, 0.05)]:
        failure = failure_probability(reports, slack, slope)
        assert slack < chernoff_slack(reports, slope, failure) < 1.2 * slack


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
