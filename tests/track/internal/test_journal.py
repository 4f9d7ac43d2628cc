"""Journals of sites: whatever moment a process is killed at, the newest whole standing is there."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from forked import ended, forked
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.journal import (
    MAX_RECORD_BYTES,
    FileJournal,
    JournalEntry,
    MappedFile,
    new_number,
)
from casemate.track.messages import SiteReport
from casemate.track.quota.journals import OrderStanding, QuotaFileJournal
from casemate.track.reporting_rule import Blocks, Every, Growth, Sample, SiteStanding
from casemate.track.site import Site

numbers = st.integers(0, 2**62)
rules = st.sampled_from([None, Every(), Growth(2**40, 2**39 + 1), Sample(0.123456789), Blocks(7.5)])
standings = st.builds(SiteStanding, numbers, numbers, numbers, numbers)
BOTH = pytest.mark.parametrize(
    ("opened", "records"),
    [
        (FileJournal, st.builds(JournalEntry, numbers, rules, standings, numbers)),
        (
            QuotaFileJournal,
            st.builds(OrderStanding, numbers, numbers, numbers, st.none() | numbers),
        ),
    ],
    ids=["tracker", "quota"],
)
Opened = Callable[[Path], Any]


@BOTH
@given(data=st.data(), cells=st.lists(numbers, min_size=2, max_size=2))
def test_the_newest_standing_and_the_count_are_read_back(
    opened: Opened, records: st.SearchStrategy[Any], data: st.DataObject, cells: list[int]
) -> None:
    saved = data.draw(st.lists(records, max_size=5))
    with TemporaryDirectory() as folder:
        journal = opened(Path(folder) / "a")
        assert journal.load() is None and journal.cells.tolist()[0] == 0
        journal.cells[0], journal.cells[5] = cells
        for record in saved:
            journal.save(record)
            assert journal.load() == record
        incarnation = journal.incarnation
        journal.close()
        again = opened(Path(folder) / "a")
        assert [again.cells[0], again.cells[5]] == cells
        assert (again.incarnation, again.load()) == (incarnation, saved[-1] if saved else None)
        again.save(next_one := data.draw(records))
        assert again.load() == next_one
        again.close()


@BOTH
@given(data=st.data(), random=st.randoms(use_true_random=False))
def test_a_standing_of_which_any_part_was_written_leaves_the_one_before(
    opened: Opened, records: st.SearchStrategy[Any], data: st.DataObject, random: Random
) -> None:
    kept, last = data.draw(st.lists(records, max_size=3)), data.draw(records)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        journal = opened(path)
        for record in kept:
            journal.save(record)
        before = path.read_bytes()
        journal.save(last)
        after = path.read_bytes()
        journal.close()
        changed = [i for i in range(len(after)) if after[i] != before[i]]
        part = set(random.sample(changed, random.randrange(len(changed))))
        path.write_bytes(bytes(after[i] if i in part else before[i] for i in range(len(after))))
        again = opened(path)
        assert again.load() == (kept[-1] if kept else None)
        again.close()


@BOTH
def test_a_journal_has_one_owner_and_is_no_other_file(
    opened: Opened, records: object, tmp_path: Path
) -> None:
    def another() -> None:
        with pytest.raises(Misconfigured, match="is held by another process; give each site its"):
            opened(tmp_path / "a")

    journal = opened(tmp_path / "a")
    another()
    assert ended(forked(another)) == 0
    journal.close()
    opened(tmp_path / "a").close()
    for content in (b"x", b"casemate", b"x" * 1088, b"casemate" + b"\0" * 5000):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(Misconfigured, match=r"is no journal of a .* site; name a new file"):
            opened(tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == content
    with pytest.raises(Misconfigured, match="cannot be opened"):
        opened(tmp_path / "missing" / "a")


def test_two_damaged_slots_leave_the_count(tmp_path: Path) -> None:
    path, sent = tmp_path / "a", list[SiteReport]()
    journal = FileJournal(path)
    journal.cells[0] = 41
    journal.save(JournalEntry(1, Sample(0.5), SiteStanding(1, 1, 1, 1), 2))
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:64].ljust(len(whole), b"\xff"))
    again = FileJournal(path)
    Site("a", sent.append, journal=again).add()
    assert [report.count for report in sent] == [42]
    again.close()


def test_a_record_that_has_no_room_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    mapped = MappedFile(tmp_path / "a", b"whatever", "a test")
    mapped.keep(b"x" * MAX_RECORD_BYTES)
    with pytest.raises(ValueError, match=f"at most {MAX_RECORD_BYTES} bytes"):
        mapped.keep(b"x" * (MAX_RECORD_BYTES + 1))
    assert mapped.newest() == b"x" * MAX_RECORD_BYTES
    mapped.close()


def test_numbers_are_whole_and_above_zero() -> None:
    found = {new_number() for _ in range(1000)}
    assert len(found) == 1000 and min(found) >= 1 and max(found) <= 2**62


# The name in it


@given(st.text(min_size=1, max_size=200), st.text(min_size=1, max_size=200))
def test_a_file_is_of_whom_it_was_given_to_first(first: str, second: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        FileJournal(path, first).close()
        whole = path.read_bytes()
        FileJournal(path, first).close()
        if first != second:
            with pytest.raises(Misconfigured) as caught:
                FileJournal(path, second)
            assert str(caught.value) == (
                f"the journal {path} belongs to site {first!r}; name another file for {second!r}"
            )
        assert path.read_bytes() == whole
        FileJournal(path).close()  # who does not say a name may look, and the lock was let go of


def test_a_file_without_a_name_or_with_part_of_one_is_adopted(tmp_path: Path) -> None:
    path = tmp_path / "a"
    older = FileJournal(path)
    incarnation = older.incarnation
    older.close()
    nameless = path.read_bytes()
    FileJournal(path, "lima").close()
    named = path.read_bytes()
    cuts = range(len(nameless), len(nameless) + 12)
    for left in [named[:cut].ljust(size, b"\0") for cut in cuts for size in (cut, len(named))]:
        path.write_bytes(left)
        adopted = FileJournal(path, "lima")
        assert adopted.incarnation == incarnation
        adopted.close()
        assert path.read_bytes() == named


# A quota's site trusts only what cannot have been lost

TODAY, TOMORROW = b"1" * 16, b"2" * 16


@pytest.mark.parametrize(
    ("closed", "boot", "trusted"),
    [(False, TODAY, True), (False, TOMORROW, False), (False, bytes(16), False),
     (True, TOMORROW, True), (True, bytes(16), True)],
)  # fmt: skip
def test_what_a_killed_site_left_is_trusted_until_the_machine_starts_anew(
    closed: bool, boot: bytes, trusted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "site"
    journal = QuotaFileJournal(path, boot=TODAY)
    journal.cells[0] = 7
    journal.save(OrderStanding(1, 1, 10))
    left, incarnation = path.read_bytes(), journal.incarnation
    journal.close()
    if not closed:
        path.write_bytes(left)
    again = QuotaFileJournal(path, boot=boot)
    found = (again.incarnation == incarnation, again.cells[0], again.load())
    assert found == ((True, 7, OrderStanding(1, 1, 10)) if trusted else (False, 0, None))
    assert again.cells[3] == 0  # once more killed, once more not trusted
    again.close()


# A site that is killed


def sends(path: Path, out: int) -> None:
    """Count items at a site, and write every report and then every count that was returned from."""
    journal = FileJournal(path)
    site = Site("a", lambda r: tell(out, f"r {r.reports} {r.count}\n"), Sample(0.2), journal)
    while True:
        site.add()
        tell(out, f"c {site.count}\n")


def tell(out: int, line: str) -> None:
    os.write(out, line.encode())


def test_a_site_killed_at_any_moment_goes_on_where_it_was(tmp_path: Path) -> None:
    """Nothing that `add` returned from is lost, and no number of reports stands for two things."""
    path, log = tmp_path / "a", tmp_path / "log"
    for life in range(12):
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        child = forked(lambda out=out: sends(path, out))  # type: ignore[misc]  # bound now
        size = log.stat().st_size
        while log.stat().st_size < size + 200 * (life + 1):
            pass
        os.kill(child, signal.SIGKILL)
        assert ended(child) == -signal.SIGKILL
        os.close(out)
        told = [line.split() for line in log.read_text().splitlines()]
        counted = max(int(line[1]) for line in told if line[0] == "c")
        journal = FileJournal(path)
        assert counted <= journal.cells[0] <= counted + 1
        journal.close()
    counts = [int(line[1]) for line in told if line[0] == "c"]
    assert counts == sorted(set(counts)), "an item was counted twice"
    reports = [(int(line[1]), int(line[2])) for line in told if line[0] == "r"]
    assert reports == sorted(reports), "a report went back"
    assert len({number for number, _ in reports}) == len(reports), "a trigger was reported twice"
