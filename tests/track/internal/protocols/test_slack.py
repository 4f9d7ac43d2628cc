import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.protocols.sampled.boundary import chernoff_slack, failure_probability
from casemate.track.protocols.sampled.design import LONGEST_EXACT, slack_for


@given(st.integers(1, 300), st.floats(0.0, 0.9), st.floats(1e-9, 0.3))
def test_it_is_the_least_slack_that_fails_so_seldom(
    reports: int, slope: float, failure: float
) -> None:
    slack = slack_for(reports, slope, failure)
    assert failure_probability(reports, slack, slope) <= failure
    assert failure_probability(reports, slack * (1 - 1e-5) - 1e-9, slope) >= failure * (1 - 1e-5)


def test_the_reference_rounds_need_the_slack_that_is_known() -> None:
    assert slack_for(2318, 0.01, 1.366e-4) == pytest.approx(170.2, abs=0.1)
    assert slack_for(11091, 0.01, 3.763e-4) == pytest.approx(292.0, abs=0.1)


def test_beyond_the_longest_exact_round_the_closed_bound_is_taken() -> None:
    reports = LONGEST_EXACT + 1
    slack = slack_for(reports, 0.01, 1e-3)
    assert slack == pytest.approx(chernoff_slack(reports, 0.01, 1e-3), rel=1e-6)


@pytest.mark.parametrize("wrong", [(0, 0.1, 0.1), (1, 1.0, 0.1), (1, 0.1, 0.0), (1, 0.1, 1.0)])
def test_a_round_that_cannot_be_is_refused(wrong: tuple[int, float, float]) -> None:
    with pytest.raises(ValueError, match="need reports >= 1"):
        slack_for(*wrong)
