"""Trackers as a library: what they refuse changes no count, and what they count is kept."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from casemate.errors import ClockWentBackwards, Misconfigured, UnknownSite
from casemate.track import CountTracker, Setting
from casemate.track.service import join

MOST_COUNTED = 2**53


@pytest.mark.parametrize(
    ("sites", "n", "error"),
    [
        ([0, 8], 1, UnknownSite),
        ([-1], 1, UnknownSite),
        ([[0]], 1, Misconfigured),
        ([0.5], 1, Misconfigured),
        *[([0, 1], n, ValueError) for n in (-1, [1, -1], [1, 1, 1], 1.5, 2**62, 2**63, 2**70)],
        ([0, 0, 0, 0], [2**62] * 4, ValueError),  # a sum of which 63 bits would be 0
        ([0, 0, 0, 0], np.full(4, 2**63, np.uint64), ValueError),
        ([0, 7], 1, ValueError),  # the last site is full
    ],
)
def test_a_wrong_batch_changes_no_count(sites: Any, n: Any, error: type[Exception]) -> None:
    tracker = CountTracker(8, alpha=0.1, mode="exact")
    tracker.add_many([1, 2, 3])
    tracker.site(7).add(MOST_COUNTED)
    match = r"whole numbers|one for each|counts up to 2\^53" if error is ValueError else None
    with pytest.raises(error, match=match):
        tracker.add_many(sites, n)
    assert [tracker.site(i).count for i in range(8)] == [0, 1, 1, 1, 0, 0, 0, MOST_COUNTED]


NO_SENSE: list[tuple[dict[str, Any], str]] = [
    ({"mode": "best"}, r"no mode 'best'; choose one of auto, determin"),
    ({"mode": "block"}, "broken by anybody who adapts"),
    ({"mode": "huang-yi-zhang"}, "broken by anybody who adapts"),
    ({"sites": ["a", "a"]}, "each a name of its own"),
    *[
        ({"sites": sites}, "a number of them, or a list of their names")
        for sites in ("ab", 2.5, None, True, ["a", ""], ["a", 1], {"a", "b"})
    ],
    ({"journals": "file"}, r"the folder .* for journals cannot be made .*folder"),
    ({"journals": "file/journals"}, r"the folder .* for journals cannot be made .*folder"),
    (
        {"sites": ["tokyo"], "journals": "of lima"},
        "belongs to site 'lima'; name another file for 'tok",
    ),
]


@pytest.mark.parametrize(("options", "sentence"), NO_SENSE)
def test_a_tracker_without_sense_is_refused_in_a_sentence(
    options: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    CountTracker(["lima"], alpha=0.1, journals="of lima").close()
    (tmp_path / "of lima" / "lima").rename(tmp_path / "of lima" / "tokyo")
    with pytest.raises(Misconfigured, match=sentence):
        CountTracker(**{"sites": 8, "alpha": 0.1, **options})


@pytest.mark.parametrize("site", ["x", 8, -1])
def test_an_unknown_site_is_said(site: str | int) -> None:
    with pytest.raises(UnknownSite, match="check its name"):
        CountTracker(8, alpha=0.1).site(site)


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


@pytest.mark.parametrize("sites", [2, np.int64(2), ["0", "1"], ("0", "1")])
def test_sites_are_counted_or_listed_and_found_by_name_or_number(sites: Any) -> None:
    tracker = CountTracker(sites, 0.1)
    assert [tracker.site(i).name for i in (0, 1)] == ["0", "1"]
    assert tracker.site("1") is tracker.site(1)


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


def test_trackers_with_journals_go_on_where_they_were_and_no_name_leads_out_of_the_folder(
    tmp_path: Path,
) -> None:
    names = ["../up", "/tmp/there", "a/b"]
    for total in (100, 200, 300):
        with CountTracker(names, 0.1, mode="exact", journals=tmp_path / "here") as tracker:
            tracker.site("../up").add(100)
            assert tracker.poll().value == total
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert len(list((tmp_path / "here").iterdir())) == 3


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
