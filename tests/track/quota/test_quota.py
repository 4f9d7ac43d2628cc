"""Hard limits as a library: never more than the limit, and few messages."""

import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.quota import Quota

calls = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 40)), max_size=120)

# Exactly true


@given(limit=st.integers(1, 500), asked=calls)
def test_with_nothing_left_over_it_is_a_locked_counter(
    limit: int, asked: list[tuple[int, int]]
) -> None:
    quota, used = Quota(limit, sites=5, remainder=0.0), 0
    for site, n in asked:
        fits = used + n <= limit
        assert quota.site(site).acquire(n) is fits
        used += n * fits
        assert (quota.left(), quota.admitted()) == (limit - used, used)


@given(limit=st.integers(1, 5000), asked=calls, remainder=st.floats(0, 0.5))
def test_nobody_is_refused_before_the_remainder(
    limit: int, asked: list[tuple[int, int]], remainder: float
) -> None:
    quota, used = Quota(limit, sites=5, remainder=remainder), 0
    for site, n in asked:
        if quota.site(site).acquire(n):
            used += n
        else:
            assert limit - used < n + remainder * limit
        assert used <= limit


def test_a_site_that_was_told_that_nothing_is_left_does_not_ask_again() -> None:
    quota = Quota(100, sites=2)
    assert [quota.site(0).acquire(50), quota.site(1).acquire(50)] == [True, True]
    assert not quota.site(0).acquire()
    messages = quota.messages
    assert not any(quota.site(0).acquire() for _ in range(100))
    assert quota.site(0).closed and quota.messages == messages


def test_a_higher_limit_reopens_sites_that_were_refused() -> None:
    quota = Quota(10, sites=2)
    assert [quota.site(0).acquire(10), quota.site(0).acquire(), quota.site(1).acquire()] == [
        True,
        False,
        False,
    ]
    quota.raise_limit(12)
    assert [quota.site(i).acquire() for i in (0, 1, 0)] == [True, True, False]
    assert quota.limit == 12


def test_a_limit_is_lowered_as_far_as_it_is_not_used() -> None:
    quota = Quota(100, sites=2, remainder=0.0)
    assert quota.site(0).acquire(30)
    assert quota.site(1).acquire(10)
    assert quota.lower_limit(60) == 60
    assert quota.lower_limit(20) == 40
    assert quota.left() == 0
    assert not quota.site(0).acquire()


def test_bad_settings_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for limit, sites, remainder in [(0, 1, 0.1), (1, 0, 0.1), (1, ["a", "a"], 0.1), (1, 1, 1.0)]:
        with pytest.raises(Misconfigured):
            Quota(limit, sites, remainder=remainder)  # type: ignore[arg-type]  # a mixed list
    with pytest.raises(Misconfigured, match="none of the sites here"):
        Quota(10, sites=["a"]).site("b")
    with pytest.raises(ValueError, match="2 sites"):
        Quota(10, sites=2).acquire()
    (tmp_path / "file").touch()
    with pytest.raises(Misconfigured, match="cannot be made"):
        Quota(10, journal=tmp_path / "file")
    quota = Quota(10)
    for n in (0, -1):
        with pytest.raises(ValueError, match="at least one thing"):
            quota.acquire(n)
    assert quota.left() == 10
    for change in (quota.raise_limit, quota.lower_limit):
        with pytest.raises(ValueError, match="the limit is 10"):
            change(9 if change == quota.raise_limit else 11)


# Threads and processes


def test_threads_admit_exactly_the_limit() -> None:
    quota, admitted = Quota(20_000, sites=4, remainder=0.0), []

    def work(site: int) -> None:
        acquire = quota.site(site % 4).acquire
        admitted.append(sum(acquire() for _ in range(4_000)))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(admitted) == 20_000


def test_a_quota_goes_on_where_it_was_closed(tmp_path: Path) -> None:
    with Quota(100, sites=["eu/west", ".."], remainder=0.0, journal=tmp_path) as quota:
        assert quota.site("eu/west").acquire(30)
        assert quota.site("..").acquire(30)
    with Quota(100, sites=["eu/west", ".."], remainder=0.0, journal=tmp_path) as quota:
        assert quota.left() == 40
        assert quota.site("..").acquire(40)
        assert not quota.site("eu/west").acquire()


def test_a_journal_belongs_to_one_limit_and_one_process_at_a_time(tmp_path: Path) -> None:
    with Quota(100, journal=tmp_path), pytest.raises(Misconfigured, match="another server"):
        Quota(100, journal=tmp_path)
    with Quota(100, journal=tmp_path) as quota:
        quota.raise_limit(200)
    with pytest.raises(Misconfigured, match="its limit is 200, and not 100"):
        Quota(100, journal=tmp_path)
    with Quota(200, journal=tmp_path) as quota:
        assert quota.acquire(200)


SPENDER = """
import sys
from casemate.track.quota.quota import Quota
quota = Quota(3000, sites=3, remainder=0.0, journal=sys.argv[1])
for turn in range(10**6):
    if quota.site(turn % 3).acquire():
        sys.stdout.write("1"); sys.stdout.flush()
    else:
        break
"""


def test_a_process_killed_again_and_again_admits_no_more_than_the_limit(tmp_path: Path) -> None:
    """What was printed was admitted; at each kill one unit may be used and not printed."""
    printed, kills = 0, 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", SPENDER, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        heard = len(process.stdout.read(700))
        if heard < 700:
            printed += heard
            assert process.wait() == 0
            process.stdout.close()
            break
        process.kill()
        printed += heard + len(process.stdout.read())
        process.wait()
        process.stdout.close()
        kills += 1
    assert kills >= 1
    assert 3000 - kills <= printed <= 3000


@pytest.mark.parametrize("wrong", [1.5, "1", None])
def test_what_is_no_whole_number_is_refused_and_admits_nothing(wrong: Any) -> None:
    quota = Quota(10, ["a"])
    with pytest.raises(ValueError, match="whole number"):
        quota.site("a").acquire(wrong)
    with pytest.raises(ValueError, match="whole number"):
        quota.lower_limit(wrong)
    with pytest.raises(ValueError, match="whole number"):
        quota.raise_limit(wrong)
    with pytest.raises(Misconfigured, match="whole number"):
        Quota(wrong, ["a"])
    assert quota.admitted() == 0
    assert quota.acquire(10)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64])
def test_whole_numbers_of_every_kind_are_admitted(kind: Any) -> None:
    quota = Quota(1000, ["a"], remainder=0)
    assert all(quota.acquire(kind(100)) for _ in range(10))
    assert not quota.acquire(kind(1))
    assert quota.admitted() == 1000


# Messages


ZIPF = [1 / rank for rank in range(1, 65)]


@pytest.mark.parametrize(
    ("weights", "most"), [([1.0] * 64, 6), (ZIPF, 14), ([1.0] + 63 * [0.0], 4)]
)
def test_messages_are_few_and_99_percent_are_admitted_before_the_first_refusal(
    rng: random.Random, weights: list[float], most: int
) -> None:
    limit, quota = 200_000, Quota(200_000, sites=64)
    acquires = rng.choices([quota.site(name).acquire for name in quota.sites], weights, k=limit + 1)
    admitted = next(i for i, acquire in enumerate(acquires) if not acquire())
    assert 0.99 * limit <= admitted <= limit
    assert quota.messages <= most * 64
