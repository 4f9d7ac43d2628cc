import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.score.rule import Rule
from casemate.exact import Floats

WHOLE, NUMBER = Rule(np.array([True]), 0.0), Rule(np.array([False]), 0.5)
BOTH = Rule(np.array([True, False]), 0.5)


def column(values: list[float]) -> Floats:
    return np.array(values, np.float64).reshape(-1, 1)


columns = st.lists(st.integers(-6, 6).map(lambda each: each / 4), min_size=1, max_size=12)
pairs = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-6, 6).map(lambda each: each / 4)),
    min_size=1,
    max_size=12,
)


def test_whole_numbers_are_right_after_rounding_and_others_within_the_tolerance() -> None:
    guesses, truth = column([1.4, 1.6, 1.0]), column([1.0, 1.0, 1.5])
    assert WHOLE.right(guesses, truth).tolist() == [True, False, False]
    assert NUMBER.right(guesses, truth).tolist() == [True, False, True]


def test_a_secret_of_several_numbers_is_right_when_all_of_them_are() -> None:
    truth = np.array([[1.0, 2.0]] * 3)
    guesses = np.array([[1.2, 2.4], [0.0, 2.0], [1.0, 2.6]])
    assert BOTH.right(guesses, truth).tolist() == [True, False, False]


def test_no_guess_is_never_right() -> None:
    assert not NUMBER.right(column([np.nan]), column([0.0])).any()


@given(st.sampled_from([WHOLE, NUMBER]), columns)
def test_the_frequency_of_a_value_is_for_how_many_it_is_right(
    rule: Rule, values: list[float]
) -> None:
    each = column(values)
    slow = [int(rule.right(np.full_like(each, value), each).sum()) for value in values]
    if rule is WHOLE:
        slow = [sum(np.rint(value) == np.rint(other) for other in values) for value in values]
    assert rule.frequency(each).tolist() == slow


@given(pairs)
def test_the_frequency_of_several_numbers_counts_those_that_agree_in_all(
    values: list[tuple[int, float]],
) -> None:
    each = np.array(values, np.float64)
    slow = [int(BOTH.right(np.broadcast_to(one, each.shape), each).sum()) for one in each]
    assert BOTH.frequency(each).tolist() == slow


@given(st.sampled_from([WHOLE, NUMBER]), columns)
def test_the_first_guess_is_right_as_often_as_any(rule: Rule, values: list[float]) -> None:
    each = column(values)
    guesses, _ = rule.guesses(each, 1)
    mine = int(rule.right(np.broadcast_to(guesses, each.shape), each).sum())
    grid = np.arange(-2, 2.01, 1 / 8)  # some best window has its middle here
    assert mine == max(int(rule.right(np.full_like(each, g), each).sum()) for g in grid)


@given(st.sampled_from([WHOLE, NUMBER, BOTH]), pairs, st.integers(1, 5))
def test_a_value_is_counted_for_a_guess_that_is_right_for_it(
    rule: Rule, values: list[tuple[int, float]], most: int
) -> None:
    each = np.array(values, np.float64)[:, -len(rule.whole) :]
    guesses, classes = rule.guesses(each, most)
    assert len(guesses) <= most
    held = classes < len(guesses)
    assert rule.right(guesses[classes[held]], each[held]).all()
    assert held.all() or len(guesses) == most


@pytest.mark.parametrize("tolerance", [-1.0, np.nan, np.inf])
def test_a_tolerance_is_a_number_from_0_on(tolerance: float) -> None:
    with pytest.raises(ValueError, match="0 or above"):
        Rule(np.array([False]), tolerance)


def test_two_numbers_that_are_not_whole_cannot_be_judged_together() -> None:
    with pytest.raises(ValueError, match="several numbers"):
        Rule(np.array([False, False]), 1.0)
