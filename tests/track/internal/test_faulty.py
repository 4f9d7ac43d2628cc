"""A bad network by a seed: how often, how late, and the same again."""

from random import Random

import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st
from oracles.bad_network import Faults, Faulty

from casemate.track.messages import Order, Report


def received(faults: Faults, seed: int, messages: int, steps_between: int = 1) -> list[int]:
    got: list[Report] = []
    transport = Faulty(faults, Random(seed))
    transport.serve(got.append)
    for number in range(messages):
        transport.report(Report("a", 0, 0, 0, 0, number))
        transport.step(steps_between)
    transport.step(faults.delay)
    return [report.count for report in got]


@given(st.integers(0, 50), st.integers(0, 5))
def test_without_faults_everything_arrives_in_order(messages: int, delay: int) -> None:
    assert received(Faults(delay=delay), 0, messages) == list(range(messages))


@given(st.integers(0, 2**32))
def test_the_same_seed_does_the_same(seed: int) -> None:
    faults = Faults(drop=0.3, duplicate=0.3, delay=4, reorder=True)
    assert received(faults, seed, 30) == received(faults, seed, 30)


def test_reordering_lets_messages_overtake_and_loses_none(seed: int) -> None:
    got = received(Faults(delay=10, reorder=True), seed, 200)
    assert got != sorted(got) and sorted(got) == list(range(200))


def test_a_delay_is_counted_in_steps() -> None:
    got: list[Order] = []
    transport = Faulty(Faults(delay=3), Random(0))
    transport.join("a", got.append)
    transport.order("a", Order(1, None, True))
    transport.step(2)
    assert got == []
    transport.step()
    assert got == [Order(1, None, True)]


# True with a stated probability


def test_messages_are_lost_and_repeated_as_often_as_stated(seed: int) -> None:
    lost = 5_000 - len(received(Faults(drop=0.05), seed, 5_000))
    assert_rate_at_most(lost, 5_000, 0.05)
    assert_rate_at_most(5_000 - lost, 5_000, 0.95)
    extra = len(received(Faults(duplicate=0.2), seed, 5_000)) - 5_000
    assert_rate_at_most(extra, 5_000, 0.2)
    assert_rate_at_most(5_000 - extra, 5_000, 0.8)


def test_the_test_above_would_notice_another_rate(seed: int) -> None:
    lost = 5_000 - len(received(Faults(drop=0.08), seed, 5_000))
    with pytest.raises(AssertionError):
        assert_rate_at_most(lost, 5_000, 0.05)
