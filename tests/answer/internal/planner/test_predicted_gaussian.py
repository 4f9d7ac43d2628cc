import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from casemate.answer.planner.predicted import delta_of, exact_gaussian

epsilons, deltas = st.floats(0.01, 20), st.floats(1e-12, 0.1)


@given(epsilons, deltas)
def test_the_least_deviation_has_exactly_this_delta(epsilon: float, delta: float) -> None:
    deviation = exact_gaussian(epsilon, delta)
    assert delta_of(deviation, epsilon) == pytest.approx(delta, rel=1e-3)
    assert delta_of(0.999 * deviation, epsilon) > delta


@given(epsilons, st.floats(0.05, 50))
def test_delta_is_the_mass_by_which_one_law_exceeds_the_other(
    epsilon: float, deviation: float
) -> None:
    """The loss of N(1, s^2) against N(0, s^2) is normal: P(loss > e) - e^e Q(loss > e)."""
    edge = epsilon * deviation**2 + 0.5  # where the loss is epsilon
    above, below = stats.norm.sf(edge, 1, deviation), stats.norm.sf(edge, 0, deviation)
    expected = above - math.exp(epsilon) * below
    assert delta_of(deviation, epsilon) == pytest.approx(expected, abs=1e-12)


def test_it_takes_less_noise_than_the_concentrated_form() -> None:
    assert exact_gaussian(1.0, 1e-6) == pytest.approx(4.2247, abs=1e-4)
    assert exact_gaussian(1.0, 1e-6) < math.sqrt(1 / (2 * 0.02436)) < 4.54


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0.1), (1, 0), (1, 1), (-1, 0.5)])
def test_what_is_no_guarantee_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match="need epsilon > 0"):
        exact_gaussian(epsilon, delta)
