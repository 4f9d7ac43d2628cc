"""The tally: what a server knows of each site, plain and compiled."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.engine import Marks, SiteTally
from casemate.track.reporting_rule import FIXED_POINT_ONE, Every, Growth, Sample

counts = st.integers(0, 10**12)
events = st.lists(st.tuples(st.integers(0, 4), counts, counts, st.booleans()), max_size=40)


def fresh(sites: int = 5) -> SiteTally:
    return SiteTally(
        sites, FIXED_POINT_ONE + FIXED_POINT_ONE // 8, FIXED_POINT_ONE - FIXED_POINT_ONE // 8, 0.25
    )


@given(events)
def test_sums_are_those_of_the_columns(told: list[tuple[int, int, int, bool]]) -> None:
    tally = fresh()
    for site, count, more, sampled in told:
        if sampled:
            tally.sample(site, count, more)
        else:
            tally.hold(site, count, count + more)
    s = tally.sampled
    assert (tally.low, tally.high) == (tally.reported[~s].sum(), tally.top[~s].sum())
    assert (tally.base, tally.draws) == (tally.reported[s].sum(), tally.drawn[s].sum())


def test_the_value_lies_in_the_windows_and_scales_draws_up() -> None:
    tally = fresh()
    tally.probability = 0.5
    tally.hold(0, 100, 140)
    tally.sample(1, 1000, 3)
    assert tally.value() == 110 + 1000 + 6
    assert tally.counts().tolist() == [110, 1006, 0, 0, 0]


def test_a_rule_sent_to_a_site_widens_its_window_until_it_answers() -> None:
    tally = fresh()
    tally.hold(0, 100, 120)
    tally.widen(0, Growth(3 * FIXED_POINT_ONE, 2 * FIXED_POINT_ONE))
    assert (tally.reported[0], tally.top[0]) == (100, 180)  # it may have taken the rule at 120


def test_every_mark_is_noticed() -> None:
    tally = fresh()
    tally.hold(0, 100, 101)
    tally.sample(1, 0, 7)
    tally.heard = 9
    assert not tally.due(0)
    excess = tally.down * 101 - tally.up * 100
    for marks in (Marks(draws=7), Marks(heard=9), Marks(value=100.0), Marks(room=excess - 1)):
        tally.marks = marks
        assert tally.due(0)
    tally.marks = Marks(draws=8, heard=10, value=200.0, room=excess)
    assert not tally.due(0)


def test_a_round_begins_at_exact_counts() -> None:
    tally = fresh(3)
    for site in range(3):
        tally.follow(site, Growth(2 * FIXED_POINT_ONE, FIXED_POINT_ONE))
    tally.follow(0, Every())
    tally.begin([5, 6, 7], np.array([False, False, True]))
    assert (tally.low, tally.high, tally.base, tally.draws) == (11, 17, 7, 0)
    tally.probability = 0.5
    rules = [tally.rule(site) for site in range(3)]
    assert rules == [Growth(1, 1), Growth(2 * FIXED_POINT_ONE, FIXED_POINT_ONE), Sample(0.5)]
