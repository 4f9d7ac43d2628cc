"""Trackers as a library: every mode keeps its word, and bad input changes no count."""

import math
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
from casemate.track.messages import site_names
from casemate.track.modes import TRACKERS, make_engine
from casemate.track.protocols.windows import centred_rule, paper_rule
from casemate.track.service.membership import join
from casemate.track.setting import MOST_COUNTED, MOST_ITEMS, Setting
from casemate.track.simulate.adversary import named_adversary
from casemate.track.simulate.compiled_run import run_compiled

modes = pytest.mark.parametrize("mode", TRACKERS)


@modes
def test_the_count_is_within_alpha_at_all_times_one_by_one_between_polls_and_in_batches(
    mode: str, seed: int
) -> None:
    random, items = np.random.default_rng(seed), 0
    with CountTracker(3, alpha=0.1, delta=1e-9, mode=mode) as tracker:
        assert tracker.poll().value == tracker.poll().value == 0
        for site in random.integers(0, 3, 6_000).tolist():
            tracker.site(site).add()
            items, count = items + 1, tracker.read()
            assert abs(count.value - items) <= 0.1 * items * (1 + 1e-12)
            assert count.lo <= items <= count.hi
            assert not count.stale_sites and count.lag == 0.0
            if items > 4_000 and items % 97 == 0:
                assert tracker.poll().value == items
        for size in (10, 1_000, 50_000, 3, 200_000):
            tracker.add_many(random.integers(0, 3, size))
            items += size
            assert abs(tracker.read().value - items) <= 0.1 * items
        tracker.add_many([0, 0, 2], [10, 20, 30])
        assert tracker.poll().value == items + 60


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


@modes
def test_a_thread_may_read_and_poll_while_others_count(mode: str) -> None:
    """Threads change places all the time; nothing is lost, and every poll is in between."""
    tracker = CountTracker(3, alpha=0.1, delta=1e-9, mode=mode)

    def count(site: int) -> None:
        for _ in range(2_000):
            tracker.site(site).add()

    threads = [threading.Thread(target=count, args=(i,)) for i in range(3)]
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
    assert abs(tracker.read().value - 6_000) <= 0.1 * 6_000
    assert tracker.poll().value == 6_000


def test_trackers_with_journals_go_on_where_they_were(tmp_path: Path) -> None:
    for total in (100, 200, 300):
        with CountTracker(["a", "b"], alpha=0.1, mode="exact", journals=tmp_path) as tracker:
            tracker.site("b").add(100)
            assert tracker.poll().value == total


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


def test_over_a_broker_the_sites_may_be_anywhere(address: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("sites", [2, np.int64(2), ["0", "1"], ("0", "1")])
def test_sites_are_counted_or_listed(sites: Any) -> None:
    assert site_names(sites) == ["0", "1"]


@pytest.mark.parametrize("sites", ["ab", 2.5, None, True, ["a", ""], ["a", 1], {"a", "b"}])
def test_anything_else_names_no_sites(sites: Any) -> None:
    with pytest.raises(Misconfigured, match="a number of them, or a list of their names"):
        site_names(sites)


@pytest.mark.parametrize(
    "wrong",
    [
        *[(sites, 0.1, 0.1, 1) for sites in (0, -3, 2.5, "2", None, True, math.nan)],
        *[(1, alpha, 0.1, 1) for alpha in (1.0, 0.0, -0.1, "0.1", None, math.nan, math.inf)],
        *[(1, 0.1, delta, 1) for delta in (0.0, 1.0, "0.1", None, math.nan)],
        *[(1, 0.1, 0.1, items) for items in (0, "9", None, math.inf, math.nan, 1.5, 10**400)],
    ],
)
def test_a_setting_without_sense_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(Misconfigured):
        Setting(*wrong)


@pytest.mark.parametrize("items", [1, 1e8, np.int64(7), MOST_COUNTED])
def test_whole_numbers_of_every_kind_are_taken(items: Any) -> None:
    assert Setting(3, 0.1, 0.1, items).items == items


@pytest.mark.parametrize(
    "mode",
    ["auto", "deterministic", "allocated"],
)
def test_more_items_than_the_windows_of_a_simulation_can_count_are_refused(mode: str) -> None:
    one, two = np.random.default_rng(0).spawn(2)
    setting = Setting(2, 0.1, items=MOST_ITEMS + 1)
    with pytest.raises(Misconfigured, match="goes up to 4,294,967,296 items"):
        run_compiled(
            setting, make_engine(mode, setting), named_adversary("single-site", 2), (one, two)
        )


@pytest.mark.parametrize("alpha", [1e-9, 0.01, 0.999999])
def test_no_window_of_the_most_items_at_one_site_overflows(alpha: float) -> None:
    for rule in (centred_rule(alpha), paper_rule(alpha)):
        assert MOST_ITEMS * rule.numerator < 1 << 63
