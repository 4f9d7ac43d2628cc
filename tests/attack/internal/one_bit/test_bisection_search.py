import math

import numpy as np
import pytest

from casemate.attack.one_bit.bisection import (
    FIRST_HORIZON,
    TIGHT,
    BisectionConstants,
    BisectionSearch,
    Errata,
)
from casemate.attack.one_bit.laws import Uniform
from casemate.attack.one_bit.oracle import Floats
from casemate.attack.one_bit.streams import printed_angle

E1, E2 = np.eye(2)


def told(search: BisectionSearch, x: Floats, secret: Floats, times: int) -> None:
    """The same query so many times, before an oracle without noise."""
    for _ in range(times):
        search.learn(x, bool(secret @ x > search.threshold(x)))


# Algorithm 1 --------------------------------------------------------------------------------------


@pytest.mark.theorem("000: Algorithm 1")
def test_without_noise_it_is_a_binary_search_in_three_quarters() -> None:
    search, secret = BisectionSearch(4, 2, None, horizon=100), np.array([1.3, 0.2])
    needed = int(search.critical_counts[0])
    assert needed == math.ceil(30 * math.log(100))
    for _ in range(6):
        told(search, E1, secret, needed)
        told(search, E2, secret, needed)
    assert search.shrinks == 6
    assert search.side == pytest.approx(4 * 0.75**6)
    assert search.box.holds(secret)


def test_all_directions_wait_for_the_slowest_whose_counts_run_over() -> None:
    """|I_1| stands for every side only because nothing shrinks before all are ready."""
    search, secret = BisectionSearch(4, 2, None, horizon=100), np.array([1.3, 0.2])
    needed = int(search.critical_counts[0])
    told(search, E1, secret, 5 * needed)
    assert search.shrinks == 0
    assert search.box.seen.tolist() == [5 * needed, 0]
    told(search, E2, secret, needed)
    assert search.box.sides.tolist() == [3.0, 3.0]
    assert search.box.seen.tolist() == [0, 0]


def test_a_direction_may_shrink_on_its_own() -> None:
    alone = BisectionConstants(shrink_together=False)
    search, secret = BisectionSearch(4, 2, None, horizon=100, constants=alone), np.array([1.3, 0.2])
    told(search, E1, secret, 3 * int(search.critical_counts[0]))
    assert search.shrinks == 3
    assert search.box.sides.tolist() == [4 * 0.75**3, 4.0]
    assert search.box.holds(secret)


def test_a_direction_on_its_own_stops_where_the_others_hide_it_and_goes_on_when_they_do_not() -> (
    None
):
    """Beside a side 15 times as long, the part of a query across may outweigh the one along."""
    alone = BisectionConstants(shrink_together=False, angle=0.05, exact_gap=True)
    search, secret = (
        BisectionSearch(4, 2, None, horizon=10**6, constants=alone),
        np.array([0.4, 0.2]),
    )
    needed = int(search.critical_counts[0])
    told(search, E1, secret, 30 * needed)
    stuck = search.box.sides[0]
    assert 0.05 * 4 / 2 < stuck < 4 and search.critical_counts[0] > 10**15
    told(search, E2, secret, needed)
    assert search.critical_counts[0] == needed  # without noise any gap at all will do
    told(search, E1, secret, needed)
    assert search.box.sides[0] == pytest.approx(0.75 * stuck)


def test_only_queries_within_the_angle_of_a_direction_count() -> None:
    search = BisectionSearch(4, 2, None, horizon=100)
    angle = printed_angle(2)
    inside, outside = (
        2 * np.array([math.cos(a), math.sin(a)]) for a in (0.999 * angle, 1.001 * angle)
    )
    assert search.direction(inside) == 0
    assert search.direction(inside[::-1]) == 1
    assert search.direction(outside) is None
    assert search.direction(-inside) is None
    assert search.direction(np.zeros(2)) is None


def test_only_queries_as_long_as_the_gap_assumes_count() -> None:
    search = BisectionSearch(4, 2, None, horizon=100)
    assert search.direction(0.99 * E1) is None
    assert search.direction(1.01 * E1) == 0
    printed = BisectionSearch(4, 2, None, horizon=100, reading=Errata.as_printed())
    assert printed.direction(1e-9 * E1) == 0
    short = BisectionSearch(4, 2, None, horizon=100, constants=BisectionConstants(shortest=0.25))
    assert short.direction(0.3 * E1) == 0


def test_it_stops_at_the_stopping_side() -> None:
    search, secret = BisectionSearch(1, 1, None, horizon=100), np.array([0.7])
    told(search, np.ones(1), secret, 100 * int(search.critical_counts[0]))
    assert search.stopped
    assert 0.75 * math.log(100) / 10 < search.side <= math.log(100) / 10
    assert search.box.seen.tolist() == [0]


def test_the_answer_is_the_middle_and_so_is_the_threshold() -> None:
    search = BisectionSearch(4, 2, Uniform(1.0), horizon=100, constants=TIGHT)
    search.box.shrink(0, upper=True)
    x = np.array([1.0, -2.0])
    assert search.answer(x) == pytest.approx(0.5)
    assert search.threshold(x) == pytest.approx(0.5)


# The horizon --------------------------------------------------------------------------------------


def test_a_horizon_that_nobody_gave_doubles_and_asks_for_more_evidence() -> None:
    search, secret = BisectionSearch(1, 1, None), np.array([0.7])
    told(search, np.ones(1), secret, FIRST_HORIZON)
    assert search.horizon == FIRST_HORIZON
    told(search, np.ones(1), secret, 1)
    assert search.horizon == 2 * FIRST_HORIZON
    assert search.critical_counts[0] == math.ceil(30 * math.log(2 * FIRST_HORIZON))


def test_a_doubled_horizon_resumes_a_search_that_had_stopped() -> None:
    search, secret = BisectionSearch(1, 1, None), np.array([0.7])
    told(search, np.ones(1), secret, 40_000)
    assert search.horizon == 1 << 16
    assert search.side < math.log(FIRST_HORIZON) / math.sqrt(FIRST_HORIZON) / 2
    assert search.box.holds(secret)


@pytest.mark.parametrize(("directions", "horizon"), [(0, 9), (5, 9), (2, 1)])
def test_a_wrong_argument_is_a_value_error(directions: int, horizon: int) -> None:
    with pytest.raises(ValueError, match="need"):
        BisectionSearch(4, directions, None, horizon=horizon)
