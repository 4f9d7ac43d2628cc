import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.protocols.sampled.design import Allowance

deltas = st.floats(1e-12, 0.9)


def allowance(
    delta: float, share: float = 0.02, first: float = 9.0, span: float = 9.0
) -> Allowance:
    return Allowance(delta, share * delta, first, first + span)


@given(deltas, st.floats(1e-4, 0.9), st.lists(st.floats(0.0, 700.0), max_size=60))
def test_however_many_rounds_there_are_they_take_delta_at_most(
    delta: float, share: float, logs: list[float]
) -> None:
    """In any order of counts: rounds that are called out of turn are among them."""
    spread, spent = allowance(delta, share), 0.0
    for log in logs:
        spent += spread.for_round(math.exp(log), spent)
    assert spent <= delta * (1 + 1e-12)


@given(deltas, st.floats(1e-4, 0.9), st.floats(0.0, 700.0), st.floats(0.0, 700.0))
def test_it_increases_and_stays_below_delta(
    delta: float, share: float, one: float, other: float
) -> None:
    spread = allowance(delta, share)
    low, high = sorted((one, other))
    assert 0 < spread.until(math.exp(low)) <= spread.until(math.exp(high)) * (1 + 1e-12)
    assert spread.until(math.exp(high)) <= delta * (1 + 1e-12)


def test_nearly_all_of_delta_is_for_the_time_up_to_the_horizon() -> None:
    spread = allowance(0.01)
    assert spread.until(math.exp(18.0)) == pytest.approx(0.0099)
    assert 0.0099 < spread.until(1e300) < 0.01


def test_a_round_may_take_what_was_earned_since_the_last_one() -> None:
    spread = allowance(0.01, share=0.02)
    first = spread.for_round(math.exp(9.0), 0.0)
    second = spread.for_round(math.exp(9.5), first)
    assert first == pytest.approx(0.0002)
    assert second == pytest.approx((0.0099 - 0.0002) * 0.5 / 9)


def test_a_round_that_nothing_was_earned_for_takes_a_part_of_what_is_left() -> None:
    spread, spent = allowance(0.01), 0.0
    taken = []
    for _ in range(1000):
        taken.append(spread.for_round(math.exp(9.0), spent))
        spent += taken[-1]
    assert min(taken) > 0 and spent < 0.01
