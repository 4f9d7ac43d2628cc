import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.score.predictor import PriorMean, majority, marginal, prior_mean
from casemate.attack.score.rule import Rule
from casemate.attack.subjects import Subjects

WHOLE, NUMBER = Rule(np.array([True]), 0.0), Rule(np.array([False]), 0.3)
TRUTH = np.array([0.0, 1.0, 1.0, 2.0])
EVERYBODY = np.ones(4, np.bool_)


def guess(prior: Prior, rule: Rule = WHOLE) -> tuple[float | None, PriorMean | None]:
    problem = Problem.of(np.ones((1, 4)), [TRUTH.sum()], prior)
    return prior_mean(problem, TRUTH, Subjects.alone(4), rule, EVERYBODY)


def test_the_prior_mean_is_the_middle_of_the_range() -> None:
    assert guess(Prior(low=0.0, high=2.0)) == (0.5, PriorMean.RANGE)
    assert guess(Prior(low=0.0, high=5.0), NUMBER) == (0.0, PriorMean.RANGE)


def test_a_public_total_is_better_than_the_range() -> None:
    assert guess(Prior(low=0.0, high=9.0, total=4.0)) == (0.5, PriorMean.TOTAL)


def test_where_nothing_is_known_there_is_no_prior_mean() -> None:
    assert guess(Prior(low=0.0)) == (None, None)


def test_a_middle_between_two_whole_numbers_is_taken_for_either() -> None:
    """0 is right once and 1 twice, of four."""
    assert guess(Prior(low=0.0, high=1.0)) == (0.375, PriorMean.RANGE)


def test_only_those_that_are_judged_count() -> None:
    problem = Problem.of(np.ones((1, 4)), [4.0], Prior(low=0.0, high=2.0))
    some = np.array([True, True, False, False])
    assert prior_mean(problem, TRUTH, Subjects.alone(4), WHOLE, some)[0] == 0.5


def test_the_majority_of_numbers_is_the_window_that_holds_most() -> None:
    values = np.array([[0.0], [0.5], [0.6], [3.0]])
    assert majority(values, NUMBER) == 0.75
    assert majority(values, Rule(np.array([False]), 0.1)) == 0.5


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_the_marginal_is_the_chance_that_two_draws_agree(values: list[int]) -> None:
    truth = np.array(values, np.float64)[:, None]
    agree = [rule_right(a, b) for a in values for b in values]
    assert marginal(truth, WHOLE) == pytest.approx(np.mean(agree))
    assert marginal(truth, WHOLE) <= majority(truth, WHOLE) + 1e-12


def rule_right(one: float, other: float) -> bool:
    return one == other
