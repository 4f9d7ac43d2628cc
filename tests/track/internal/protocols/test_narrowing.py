"""Windows that are narrowed when there is too much width."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.instruction import ONE, Growth
from casemate.track.protocols.windows import fixed, narrowed, weight_of_top
from casemate.track.tally import Marks, SiteTally

A = fixed(0.05)


def tally_of(windows: list[tuple[int, int]]) -> SiteTally:
    """Sites with these counts and rates, in thousandths."""
    tally = SiteTally(len(windows), ONE + A, ONE - A, weight_of_top(0.05))
    for site, (count, rate) in enumerate(windows):
        rule = Growth(ONE + ONE * rate // 1000, ONE)
        tally.follow(site, rule)
        tally.hold(site, count, rule.top(count))
    tally.marks = Marks(room=0)
    return tally


def nothing_too_wide(tally: SiteTally, loads: np.ndarray, answers: st.DataObject) -> bool:
    """Narrow until it is right, whatever the sites answer within their windows."""
    for _ in range(60):
        if tally.excess() <= 0:
            return True
        orders = narrowed(tally, loads)
        assert orders, "it is too wide and nothing is narrowed"
        for site, rule in orders.items():
            assert isinstance(rule, Growth)
            count = answers.draw(st.integers(int(tally.known[site]), int(tally.top[site])))
            tally.follow(site, rule)
            tally.hold(site, count, rule.top(count))
    return False


windows = st.lists(
    st.tuples(st.integers(0, 10**6), st.integers(0, 900)), min_size=1, max_size=8
).filter(lambda sites: any(count for count, _ in sites))


@given(windows, st.data())
def test_narrowing_ends_what_is_too_wide(
    sites: list[tuple[int, int]], answers: st.DataObject
) -> None:
    loads = np.full(len(sites), 1 / len(sites))
    assert nothing_too_wide(tally_of(sites), loads, answers)


@given(windows, st.data())
def test_one_step_is_enough_where_enough_can_be_set_free(
    sites: list[tuple[int, int]], answers: st.DataObject
) -> None:
    """Rates of less than twice alpha more than needed: half of one window will do."""
    tally = tally_of([(10**6, 105), *[(10**4, 90) for _ in sites]])
    if tally.excess() <= 0:
        tally.marks = Marks(room=tally.excess() - 1 + tally.marks.room)
    loads = np.full(len(sites) + 1, 1 / (len(sites) + 1))
    orders = narrowed(tally, loads)
    for site, rule in orders.items():
        assert isinstance(rule, Growth)
        count = answers.draw(st.integers(int(tally.known[site]), int(tally.top[site])))
        tally.follow(site, rule)
        tally.hold(site, count, rule.top(count))
    assert tally.excess() <= 0


def test_idle_sites_with_wide_windows_give_first() -> None:
    tally = tally_of([(10**5, 200), (10**5, 200), (10**5, 100)])
    tally.marks = Marks(room=tally.excess() - 1)
    loads = np.array([0.5, 0.0, 0.5])
    assert next(iter(narrowed(tally, loads))) == 1
