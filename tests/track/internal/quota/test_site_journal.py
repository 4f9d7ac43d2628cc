from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.quota.journals import OrderStanding, QuotaFileJournal

standings = st.builds(
    OrderStanding,
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.none() | st.integers(0, 2**62),
)
TODAY, TOMORROW = b"1" * 16, b"2" * 16


@given(st.lists(standings, max_size=4))
def test_the_newest_standing_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, saved: list[OrderStanding]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "site"
    journal = QuotaFileJournal(path)
    for standing in saved:
        journal.save(standing)
    assert journal.load() == (saved or [OrderStanding()])[-1]
    journal.close()
    journal = QuotaFileJournal(path)
    assert journal.load() == (saved or [OrderStanding()])[-1]
    journal.close()


def killed(journal: QuotaFileJournal, path: Path) -> Path:
    """What is left of a journal whose process was killed: the file as it is now."""
    copy = path.with_name(path.name + "-left")
    copy.write_bytes(path.read_bytes())
    journal.close()
    return copy


def test_a_torn_standing_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "site"
    journal = QuotaFileJournal(path, boot=TODAY)
    journal.save(OrderStanding(1, 1, 10))
    journal.save(OrderStanding(1, 2, 5))
    left = killed(journal, path)
    data = bytearray(left.read_bytes())
    data[64 + 24] ^= 1  # the newest is in the first slot
    left.write_bytes(bytes(data))
    journal = QuotaFileJournal(left, boot=TODAY)
    assert journal.load() == OrderStanding(1, 1, 10)
    journal.close()


def test_a_killed_site_keeps_what_it_used_and_who_it_is(tmp_path: Path) -> None:
    path = tmp_path / "site"
    journal = QuotaFileJournal(path, boot=TODAY)
    journal.cells[0] = 7
    incarnation = journal.incarnation
    journal = QuotaFileJournal(killed(journal, path), boot=TODAY)
    assert (journal.incarnation, journal.cells[0]) == (incarnation, 7)
    journal.close()


@pytest.mark.parametrize("boot", [TOMORROW, bytes(16)])
def test_a_machine_that_started_anew_does_not_trust_what_a_killed_site_left(
    tmp_path: Path, boot: bytes
) -> None:
    path = tmp_path / "site"
    journal = QuotaFileJournal(path, boot=TODAY)
    journal.cells[0] = 7
    journal.save(OrderStanding(1, 1, 10))
    incarnation = journal.incarnation
    journal = QuotaFileJournal(killed(journal, path), boot=boot)
    assert journal.incarnation != incarnation
    assert (journal.cells[0], journal.load()) == (0, OrderStanding())
    journal.close()


def test_a_journal_that_was_closed_is_trusted_once(tmp_path: Path) -> None:
    path = tmp_path / "site"
    journal = QuotaFileJournal(path, boot=TODAY)
    incarnation = journal.incarnation
    journal.close()
    journal = QuotaFileJournal(path, boot=TOMORROW)
    assert journal.incarnation == incarnation
    left = killed(journal, path)
    again = QuotaFileJournal(left, boot=TOMORROW)
    assert again.incarnation == incarnation
    again.close()


def test_a_journal_has_one_owner_and_is_no_other_file(tmp_path: Path) -> None:
    journal = QuotaFileJournal(tmp_path / "site")
    with pytest.raises(Misconfigured, match="held by another process"):
        QuotaFileJournal(tmp_path / "site")
    journal.close()
    (tmp_path / "other").write_text("not a journal")
    with pytest.raises(Misconfigured, match="no journal of a quota's site"):
        QuotaFileJournal(tmp_path / "other")
    with pytest.raises(Misconfigured, match="cannot be opened"):
        QuotaFileJournal(tmp_path / "missing" / "site")
