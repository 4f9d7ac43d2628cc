import numpy as np
import pytest
from chance import assert_rate_at_most
from hypothesis import given
from hypothesis import strategies as st

from casemate.attack.one_bit.edge import LEAST_HIT_RATIO, MOST_HIT_RATIO, Guard, count_hit, odds
from casemate.attack.one_bit.oracle import Bits, Floats

chances = st.floats(1e-9, 0.5)
RUNS = 200
BELIEF = np.zeros(1), np.zeros((1, 1))


def count(guard: Guard, chance: float, hit: bool) -> bool:
    return bool(count_hit(BELIEF, guard.state, chance, hit))


@given(chances, st.floats(0, MOST_HIT_RATIO))
def test_the_bet_on_too_many_gains_nothing_while_there_are_not(chance: float, part: float) -> None:
    true = min(part * chance, 0.5 + 0.5 * chance)
    hit, miss = np.array(odds(chance, True)), np.array(odds(chance, False))
    assert ((true * hit + (1 - true) * miss)[:2] <= 1 + 1e-12).all()


@given(chances, st.floats(LEAST_HIT_RATIO, 1.5))
def test_the_bet_on_too_few_gains_nothing_while_there_are_not(chance: float, part: float) -> None:
    true = part * chance
    hit, miss = np.array(odds(chance, True)), np.array(odds(chance, False))
    assert ((true * hit + (1 - true) * miss)[2:] <= 1 + 1e-12).all()


def test_all_bets_together_start_with_one_purse() -> None:
    guard = Guard(0.5, *BELIEF)
    for _ in range(2**12):
        count(guard, 1e-12, hit=False)  # the bets stay what they were
    assert guard.counts[0] == 13
    assert guard.wealth.sum() == pytest.approx(1 - 1 / 14)


def test_the_best_bet_says_from_where_on_the_chances_were_wrong() -> None:
    guard = Guard(1e-6, *BELIEF)
    hits = [place % 10 == 0 for place in range(600)]
    assert not any(count(guard, 0.1, hit) for hit in hits)
    while not count(guard, 0.1, hit=False):
        pass
    assert int(np.argmax(guard.wealth.max(axis=1))) == 9  # opened at the 512th
    assert guard.counts[1] < 1_100


def test_refuses_a_rate_that_is_none() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Guard(0.0, *BELIEF)


def alarms(part: float, seed: int, alarm: float = 0.05, runs: int = RUNS) -> int:
    """In how many of the runs hits at this part of their falling chances raise the alarm."""
    random, chances = np.random.default_rng(seed), 3 / np.arange(12, 600)
    hits = random.random((runs, len(chances))) < part * chances
    return sum(_alarmed(chances, row, alarm) for row in hits)


def _alarmed(chances: Floats, hits: Bits, alarm: float) -> bool:
    guard = Guard(alarm, *BELIEF)
    return any(count(guard, *bit) for bit in zip(chances.tolist(), hits.tolist(), strict=True))


@pytest.mark.parametrize("part", [LEAST_HIT_RATIO, 1.0, MOST_HIT_RATIO])
def test_false_alarms_are_no_more_frequent_than_stated(part: float, seed: int) -> None:
    assert_rate_at_most(alarms(part, seed), RUNS, rate=0.05)


@pytest.mark.parametrize("part", [0.0, 6.0])
def test_and_a_wrong_law_is_found(part: float, seed: int) -> None:
    with pytest.raises(AssertionError, match="has probability"):
        assert_rate_at_most(alarms(part, seed), RUNS, rate=0.05)
