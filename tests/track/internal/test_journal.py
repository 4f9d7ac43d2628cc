"""The journal: whatever moment a process is killed at, the newest whole standing is read back."""

import os
import signal
from pathlib import Path

import pytest
from forked import ended, forked
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.instruction import Blocks, Every, Growth, Sample, SiteStanding
from casemate.track.journal import FileJournal, JournalEntry, MemoryJournal
from casemate.track.messages import Report
from casemate.track.site import Site

HEAD, SLOT = 64, 512
numbers = st.integers(0, 2**62)
entries = st.builds(
    JournalEntry,
    numbers,
    st.sampled_from([None, Every(), Growth(2**40, 2**39 + 1), Sample(0.123456789), Blocks(7.5)]),
    st.builds(SiteStanding, numbers, numbers, numbers, numbers),
    numbers,
)


def entry(number: int) -> JournalEntry:
    return JournalEntry(
        number, Sample(0.5), SiteStanding(number, number, number, number), number + 1
    )


def test_a_new_journal_is_empty(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "a")
    assert journal.load() is None and journal.cells[0] == 0
    journal.close()


@given(st.lists(entries, min_size=1, max_size=5), numbers)
def test_the_newest_standing_and_the_count_are_read_back(
    saved: list[JournalEntry], count: int
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        journal = FileJournal(path)
        for each in saved:
            journal.save(each)
        journal.cells[0] = count
        incarnation = journal.incarnation
        journal.close()
        again = FileJournal(path)
        assert (again.load(), again.cells[0], again.incarnation) == (saved[-1], count, incarnation)
        again.save(saved[0])
        assert again.load() == saved[0]
        again.close()


@pytest.mark.parametrize("saves", [1, 2, 3])
def test_a_standing_written_in_part_leaves_the_one_before(saves: int, tmp_path: Path) -> None:
    """Killed after any number of bytes of a write, in either slot."""
    path = tmp_path / "a"
    journal = FileJournal(path)
    for number in range(1, saves + 1):
        journal.save(entry(number))
    before = path.read_bytes()
    journal.save(entry(saves + 1))
    journal.close()
    after = path.read_bytes()
    changed = [i for i in range(len(after)) if after[i] != before[i]]
    for cut in range(changed[0], changed[-1] + 2):
        path.write_bytes(after[:cut] + before[cut:])
        again = FileJournal(path)
        expected = entry(saves + 1) if cut > changed[-1] else entry(saves)
        assert again.load() == expected, cut
        again.close()


@pytest.mark.parametrize("slot", [0, 1])
def test_a_damaged_slot_leaves_the_other(slot: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    journal = FileJournal(path)
    journal.save(entry(1))  # into slot 1
    journal.save(entry(2))  # into slot 0
    journal.close()
    whole = path.read_bytes()
    start = HEAD + slot * SLOT
    for at in range(start, start + 60):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        again = FileJournal(path)
        assert again.load() == entry(1 if slot == 0 else 2)
        again.close()


def test_two_damaged_slots_leave_the_count(tmp_path: Path) -> None:
    path = tmp_path / "a"
    journal = FileJournal(path)
    journal.cells[0] = 41
    journal.save(entry(1))
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:HEAD].ljust(len(whole), b"\xff"))
    sent: list[Report] = []
    again = FileJournal(path)
    site = Site("a", sent.append, journal=again)
    site.add()
    assert [report.count for report in sent] == [42]
    again.close()


def test_two_cannot_hold_one_journal(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "a")
    with pytest.raises(Misconfigured, match="is held by another process; give each site its own"):
        FileJournal(tmp_path / "a")

    def another() -> None:
        with pytest.raises(Misconfigured, match="is held by another process"):
            FileJournal(tmp_path / "a")

    assert ended(forked(another)) == 0
    journal.close()
    FileJournal(tmp_path / "a").close()


@pytest.mark.parametrize("content", [b"x", b"casemate", b"x" * 1088, b"casemate" + b"\0" * 5000])
def test_a_wrong_file_is_refused_in_a_sentence_and_left_as_it_is(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(Misconfigured, match="is no journal of a casemate site; name a new file"):
        FileJournal(path)
    assert path.read_bytes() == content


def test_every_journal_is_an_incarnation_of_its_own(tmp_path: Path) -> None:
    journals = [FileJournal(tmp_path / str(i)) for i in range(5)]
    assert len({journal.incarnation for journal in journals}) == 5
    for journal in journals:
        journal.close()


def test_memory_remembers_nothing() -> None:
    memory = MemoryJournal(3)
    memory.save(entry(1))
    assert memory.load() is None and (memory.incarnation, memory.cells[0]) == (3, 0)


# A site that is killed


def sends(path: Path, out: int, items: int) -> None:
    """Count items at a site, and write every report and then every count that was returned from."""
    journal = FileJournal(path)
    site = Site("a", lambda r: tell(out, f"r {r.reports} {r.count}\n"), Sample(0.2), journal)
    for _ in range(items):
        site.add()
        tell(out, f"c {site.count}\n")


def tell(out: int, line: str) -> None:
    os.write(out, line.encode())


def test_a_site_killed_at_any_moment_goes_on_where_it_was(tmp_path: Path) -> None:
    """Nothing that `add` returned from is lost, and no number of reports stands for two things."""
    path, log = tmp_path / "a", tmp_path / "log"
    for life in range(12):
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        child = forked(lambda out=out: sends(path, out, 10**9))  # type: ignore[misc]  # bound now
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
