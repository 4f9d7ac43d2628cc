"""Trackers as a library: every mode keeps its word, and bad input changes no count."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import ClockWentBackwards, Misconfigured, UnknownSite
from casemate.track import CountTracker
from casemate.track.modes import TRACKERS
from casemate.track.service.membership import join

modes = pytest.mark.parametrize("mode", TRACKERS)


@modes
def test_the_count_is_within_alpha_and_its_interval_at_all_times(mode: str, seed: int) -> None:
    sites = np.random.default_rng(seed).integers(0, 8, 20_000).tolist()
    with CountTracker(8, alpha=0.1, delta=1e-9, mode=mode) as tracker:
        for items, site in enumerate(sites, start=1):
            tracker.site(site).add()
            count = tracker.read()
            assert abs(count.value - items) <= 0.1 * items * (1 + 1e-12)
            assert count.lo <= items <= count.hi
            assert not count.stale_sites and count.lag == 0.0


@modes
def test_a_poll_makes_it_exact(mode: str) -> None:
    with CountTracker(["a", "b", "c"], alpha=0.2, mode=mode) as tracker:
        tracker.site("a").add(1000)
        for _ in range(2345):
            tracker.site("c").add()
        words = tracker.read().words
        count = tracker.poll()
        assert count.value == 3345
        assert count.words - words in (6, 9)


@modes
def test_polls_at_any_moment_change_nothing_but_words(mode: str) -> None:
    with CountTracker(3, alpha=0.1, delta=1e-9, mode=mode) as tracker:
        assert tracker.poll().value == tracker.poll().value == 0
        for items in range(1, 3_000):
            tracker.site(items % 3).add()
            if items % 97 == 0:
                assert tracker.poll().value == items
            assert abs(tracker.read().value - items) <= 0.1 * items * (1 + 1e-12)


@modes
def test_what_comes_in_batches_is_counted_like_what_comes_alone(mode: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    with CountTracker(16, alpha=0.1, delta=1e-9, mode=mode) as tracker:
        total = 0
        for size in (10, 1_000, 50_000, 3, 200_000):
            tracker.add_many(random.integers(0, 16, size))
            total += size
            assert abs(tracker.read().value - total) <= 0.1 * total
        tracker.add_many([3, 3, 5], [10, 20, 30])
        assert tracker.poll().value == total + 60


def test_a_batch_costs_no_more_words_than_one_report_of_each_site() -> None:
    tracker = CountTracker(16, alpha=0.1, mode="deterministic")
    tracker.add_many(np.arange(16).repeat(1000))
    assert tracker.read().words == 16


@pytest.mark.parametrize(
    ("sites", "n", "error"),
    [
        ([0, 8], 1, UnknownSite),
        ([-1], 1, UnknownSite),
        ([[0]], 1, Misconfigured),
        ([0.5], 1, Misconfigured),
        ([0, 1], -1, ValueError),
        ([0, 1], [1, -1], ValueError),
        ([0, 1], [1, 1, 1], ValueError),
        ([0, 1], 1.5, ValueError),
    ],
)
def test_a_wrong_batch_changes_no_count(sites: object, n: object, error: type[Exception]) -> None:
    tracker = CountTracker(8, alpha=0.1, mode="exact")
    tracker.add_many([1, 2, 3])
    with pytest.raises(error):
        tracker.add_many(sites, n)  # type: ignore[arg-type] # what is refused
    assert tracker.read().value == 3


@pytest.mark.parametrize("sites", ["abc", [""], [1, 2], 0, [], ["a", "a"]])
def test_sites_are_a_number_or_names(sites: object) -> None:
    with pytest.raises(Misconfigured, match="site"):
        CountTracker(sites, alpha=0.1)  # type: ignore[arg-type] # what is refused


def test_an_empty_batch_counts_nothing() -> None:
    tracker = CountTracker(2, alpha=0.1)
    tracker.add_many([])
    assert tracker.read().value == 0


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, float("nan"), "x", None])
def test_alpha_is_a_fraction(alpha: object) -> None:
    with pytest.raises(Misconfigured, match="alpha is a relative error between 0 and 1"):
        CountTracker(8, alpha=alpha)  # type: ignore[arg-type] # what is refused


@pytest.mark.parametrize("delta", [0, 1, float("nan")])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(Misconfigured, match="delta is a probability"):
        CountTracker(8, 0.1, delta)


@pytest.mark.parametrize("site", ["x", 8, -1])
def test_an_unknown_site_is_said(site: str | int) -> None:
    with pytest.raises(UnknownSite, match="check its name"):
        CountTracker(8, alpha=0.1).site(site)


def test_an_unknown_mode_is_said_with_the_choices() -> None:
    with pytest.raises(Misconfigured, match=r"no mode 'best'; choose one of auto, determin"):
        CountTracker(8, alpha=0.1, mode="best")


@pytest.mark.parametrize("mode", ["huang-yi-zhang", "block"])
def test_a_mode_that_is_broken_tracks_nothing_real(mode: str) -> None:
    with pytest.raises(Misconfigured, match="broken by anybody who adapts"):
        CountTracker(8, alpha=0.1, mode=mode)


def test_a_clock_that_went_backwards_is_said_and_changes_no_count() -> None:
    now = [1000.0]
    tracker = CountTracker(2, alpha=0.1, mode="deterministic", clock=lambda: now[0])
    tracker.site(0).add(100)
    tracker.poll()
    before = tracker.read()
    now[0] = 900.0
    with pytest.raises(ClockWentBackwards, match="set the clock"):
        tracker.poll()
    assert tracker.read() == before
    tracker.site(1).add(50)
    now[0] = 1001.0
    assert tracker.poll().value == 150


def test_one_site_a_thread_needs_no_lock_of_yours() -> None:
    tracker = CountTracker(4, alpha=0.05, delta=1e-6, mode="sampled")

    def count(site: int) -> None:
        add = tracker.site(site).add
        for _ in range(30_000):
            add()

    threads = [threading.Thread(target=count, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert abs(tracker.read().value - 120_000) <= 0.05 * 120_000
    assert tracker.poll().value == 120_000


@modes
def test_a_thread_may_read_and_poll_while_others_count(mode: str) -> None:
    """Threads change places all the time; nothing is lost, and every poll is in between."""
    tracker = CountTracker(4, alpha=0.05, delta=1e-6, mode=mode)

    def count(site: int) -> None:
        for _ in range(3_000):
            tracker.site(site).add()

    threads = [threading.Thread(target=count, args=(i,)) for i in range(4)]
    before, polled = sys.getswitchinterval(), [0.0]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            polled += [tracker.poll().value]
            tracker.read()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert polled == sorted(polled)
    assert abs(tracker.read().value - 12_000) <= 0.05 * 12_000
    assert tracker.poll().value == 12_000


def test_trackers_with_journals_go_on_where_they_were(tmp_path: Path) -> None:
    for total in (100, 200, 300):
        with CountTracker(["a", "b"], alpha=0.1, mode="exact", journals=tmp_path) as tracker:
            tracker.site("b").add(100)
            assert tracker.poll().value == total


def test_a_folder_for_journals_may_be_a_text_and_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "journals"
    for total in (100, 200):
        with CountTracker(["a"], alpha=0.1, mode="exact", journals=os.fspath(folder)) as tracker:
            tracker.site("a").add(100)
            assert tracker.poll().value == total
    assert [path.name for path in folder.iterdir()] == ["a"]


@pytest.mark.parametrize("under", ["file", "file/journals"])
def test_a_folder_that_cannot_be_made_is_said(under: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Misconfigured, match=r"the folder .* for journals cannot be made .*folder"):
        CountTracker(["a"], alpha=0.1, journals=tmp_path / under)


def test_a_journal_of_another_site_is_refused(tmp_path: Path) -> None:
    CountTracker(["lima"], alpha=0.1, journals=tmp_path).close()
    (tmp_path / "lima").rename(tmp_path / "tokyo")
    with pytest.raises(Misconfigured, match="belongs to site 'lima'; name another file for 'tok"):
        CountTracker(["tokyo"], alpha=0.1, journals=tmp_path)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1000)), max_size=60))
def test_the_sure_modes_are_sure(adds: list[tuple[int, int]]) -> None:
    """Counts, batches and order are anybody's choice."""
    trackers = [CountTracker(5, 0.07, mode=m) for m in ("deterministic", "allocated", "exact")]
    total = 0
    for site, n in adds:
        total += n
        for tracker in trackers:
            tracker.site(site).add(n)
            count = tracker.read()
            assert count.lo <= total <= count.hi
            assert abs(count.value - total) <= 0.07 * total
            assert count.confidence == 1.0


@pytest.mark.parametrize(
    "broker", [pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("nats", "redis")]
)
def test_over_a_broker_the_sites_may_be_anywhere(
    broker: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = request.getfixturevalue(f"{broker}_server").address()
    names = ["here", "there", "elsewhere"]
    with (
        join(address, "there") as there,
        join(address, "elsewhere") as elsewhere,
        CountTracker(names, alpha=0.1, transport=address, journals=tmp_path) as tracker,
    ):
        tracker.site("here").add(10)
        for _ in range(5_000):
            there.add()
            elsewhere.add(2)
        count = tracker.poll()
        assert (count.value, count.stale_sites) == (15_010, ())
        tracker.add_many([0, 0, 0])
        assert tracker.poll().value == 15_013
        assert tracker.read().lag < 60


@pytest.mark.parametrize("n", [2**62, 2**63, 2**70, [2**62] * 4, np.full(4, 2**63, np.uint64)])
def test_more_than_anybody_counts_is_refused_at_once_and_changes_no_count(n: Any) -> None:
    tracker = CountTracker(2, 0.1)
    tracker.add_many([0, 1], 5)
    with pytest.raises(ValueError, match=r"counts up to 2\^53|whole numbers"):
        tracker.add_many([0, 0, 1, 0], n)
    assert tracker.poll().value == 10


def test_one_site_too_full_keeps_all_others_from_counting() -> None:
    tracker = CountTracker(2, 0.1)
    tracker.site(1).add(2**53)
    with pytest.raises(ValueError, match=r"counts up to 2\^53"):
        tracker.add_many([0, 1], 1)
    assert tracker.site(0).count == 0


@pytest.mark.parametrize("mode", TRACKERS)
@pytest.mark.parametrize("alpha", [0.01, 0.999999])
def test_the_largest_counts_are_tracked_in_every_mode(mode: str, alpha: float) -> None:
    tracker = CountTracker(3, alpha, mode=mode)
    for site in range(3):
        tracker.site(site).add(2**53)
    assert tracker.poll().value == 3 * 2**53


def test_no_name_leads_a_journal_out_of_its_folder(tmp_path: Path) -> None:
    with CountTracker(["../up", "/tmp/there", "a/b"], 0.1, journals=tmp_path / "here") as tracker:
        tracker.site("../up").add(3)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert len(list((tmp_path / "here").iterdir())) == 3
