"""Where runs pause."""

from hypothesis import given
from hypothesis import strategies as st

from casemate.track.simulate.pace import Pace


@given(st.integers(1, 50), st.integers(1, 500))
def test_pauses_are_evenly_apart_and_the_last_is_the_end(every: int, last: int) -> None:
    told: list[int] = []
    pace, items = Pace(told.append, every), 0
    while items < last:
        before, items = items, pace.pause(items, last)
        assert 0 < items - before <= every
        pace.note(items, last)
    assert told == [*range(every, last, every), last]


@given(st.integers(2, 50), st.integers(1, 500))
def test_nobody_is_told_between_pauses(every: int, items: int) -> None:
    told: list[int] = []
    Pace(told.append, every).note(items, 1000)
    assert told == ([items] if items % every == 0 else [])


def test_a_run_at_its_end_stays_there() -> None:
    assert Pace(every=8).pause(16, 16) == 16
