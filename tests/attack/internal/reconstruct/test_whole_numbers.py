import math

import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.reconstruct.error_law import ErrorLaw
from casemate.attack.reconstruct.intervals import EstimateWithLaw, whole_numbers
from casemate.attack.reconstruct.noise import Kind, NoiseLaw
from casemate.exact import Floats

MANY = 20_000


def estimates(
    centre: Floats, deviation: float, low: float, high: float, kind: Kind = "gaussian"
) -> EstimateWithLaw:
    many = len(centre)
    law = ErrorLaw.of(kind, np.ones(many))
    ends = np.full(many, low), np.full(many, high)
    return EstimateWithLaw(centre, np.full(many, deviation), law, *ends)


@given(st.floats(-3, 13), st.floats(0.05, 7.9), st.integers(0, 10))
def test_the_probability_of_a_number_is_its_share_of_the_density(
    centre: float, deviation: float, value: int
) -> None:
    weights = [math.exp(-(((centre - k) / deviation) ** 2) / 2) for k in range(11)]
    found = whole_numbers(
        estimates(np.array([centre]), deviation, 0, 10), np.array([float(value)]), 0.9
    )
    if sum(weights) > 1e-100:
        assert found[2][0] == pytest.approx(weights[value] / sum(weights), abs=1e-6)


@given(st.floats(-3, 13), st.floats(0.05, 30), st.floats(0.5, 0.99))
def test_the_numbers_that_are_kept_are_whole_and_in_the_range(
    centre: float, deviation: float, level: float
) -> None:
    some = estimates(np.array([centre]), deviation, 0, 10)
    low, high, probability = whole_numbers(some, np.clip(np.round(some.centre), 0, 10), level)
    assert 0 <= low[0] <= high[0] <= 10
    assert low[0] == round(low[0]) and high[0] == round(high[0])
    assert 0 <= probability[0] <= 1


def test_the_nearest_number_is_certain_where_the_estimate_hardly_errs() -> None:
    low, high, probability = whole_numbers(
        estimates(np.array([3.0000001, 7.4, -80.0]), 1e-5, 0, 10, "laplace"),
        np.array([3.0, 7.0, 0.0]),
        0.9,
    )
    assert low.tolist() == high.tolist() == [3, 7, 0]
    assert probability == pytest.approx([1, 1, 1])


def test_counting_and_integrating_agree_where_one_gives_way_to_the_other() -> None:
    centre, value = np.array([20.3]), np.array([21.0])
    just_below, just_above = (
        whole_numbers(estimates(centre, deviation, -np.inf, np.inf), value, 0.9)
        for deviation in (7.999, 8.001)
    )
    assert just_below[2] == pytest.approx(just_above[2], rel=1e-3)
    assert abs(just_below[0] - just_above[0])[0] <= 1
    assert abs(just_below[1] - just_above[1])[0] <= 1


# True with a stated probability -----------------------------------------------------------------


def experiment(
    kind: Kind, deviation: float, most: int, seed: int, claimed: float = 1.0
) -> tuple[int, float, int]:
    """How many rounded values are right, how many were expected to be, and how many are missed."""
    random = np.random.default_rng([seed, most, round(10 * deviation)])
    truth = random.integers(0, most + 1, MANY).astype(np.float64)
    law = NoiseLaw(kind, 1.0)
    noise = law.laid_over(np.zeros(MANY), random) / law.deviation * deviation
    some = estimates(truth + noise, claimed * deviation, 0, most, kind)
    values = np.clip(np.round(some.centre), 0, most)
    low, high, probability = whole_numbers(some, values, 0.9)
    missed = int(((truth < low) | (truth > high)).sum())
    return int((values == truth).sum()), float(probability.sum()), missed


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize(("deviation", "most"), [(0.3, 1), (0.6, 1), (1.2, 9), (12.0, 60)])
def test_as_many_values_are_right_as_probabilities_say(
    kind: Kind, deviation: float, most: int, seed: int
) -> None:
    right, expected, missed = experiment(kind, deviation, most, seed)
    # Hoeffding: right - expected is a sum of independent numbers of mean 0 and range 1
    assert abs(right - expected) <= math.sqrt(MANY * math.log(2 / 1e-9) / 2)
    assert_rate_at_most(missed, MANY, 0.1)


def test_the_test_above_would_notice_deviations_understated_by_30_percent(seed: int) -> None:
    right, expected, _ = experiment("gaussian", 0.6, 1, seed, claimed=0.7)
    assert abs(right - expected) > math.sqrt(MANY * math.log(2 / 1e-9) / 2)


@pytest.mark.parametrize("prevalence", [0.02, 0.5, 0.8])
def test_for_yes_or_no_probabilities_are_right_at_every_prevalence(
    prevalence: float, seed: int
) -> None:
    random = np.random.default_rng([seed, round(100 * prevalence)])
    truth = (random.random(MANY) < prevalence).astype(np.float64)
    some = estimates(truth + 0.5 * random.normal(size=MANY), 0.5, 0, 1)
    values = np.clip(np.round(some.centre), 0, 1)
    expected = whole_numbers(some, values, 0.9)[2].sum()
    bound = math.sqrt(MANY * math.log(2 / 1e-9) / 2) + math.sqrt(MANY * math.log(2 / 1e-9) / 8)
    assert abs((values == truth).sum() - expected) <= bound
