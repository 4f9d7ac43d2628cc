"""What only the SQLite form promises: its file, its constraints, and what tampering comes to."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_race import race

from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy import Pure
from casemate.privacy.book import files as write_ahead
from casemate.privacy.ledger import Ledger, answer_once, open_ledger
from casemate.privacy.ledger.ledger import Receipt

FACTS: dict[str, Any] = {"dataset": "hospital", "policy": "a1b2", "epsilon": Fraction(1)}
TENTH = Pure(Fraction(1, 10))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hospital.ledger"


def opened(path: Path, **changes: Any) -> Ledger:
    return open_ledger(path, **(FACTS | changes))


def fill(path: Path, charges: int = 3) -> list[Receipt]:
    with opened(path) as ledger:
        receipts = [ledger.charge(TENTH, key=f"q{n}", purpose="count") for n in range(charges)]
        ledger.record_output("q0", b"17")
    return receipts


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Receipt]]:
    """A ledger of five rows, written once, that tests copy."""
    folder = tmp_path_factory.mktemp("written")
    return folder, fill(folder / "hospital.ledger")


@pytest.fixture
def receipts(written: tuple[Path, list[Receipt]], tmp_path: Path) -> list[Receipt]:
    """The receipts of that ledger, of which a copy stands at `path`."""
    folder, receipts = written
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return receipts


filled = pytest.mark.usefixtures("receipts")


@contextmanager
def by_hand(path: Path, *, disarmed: bool = True) -> Iterator[sqlite3.Connection]:
    """The raw database, its triggers dropped, as an intruder with the file would have it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        if disarmed:
            triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            for (name,) in triggers.fetchall():
                connection.execute(f"DROP TRIGGER {name}")
        yield connection


def forget_head(path: Path) -> None:
    path.with_name(path.name + "-head").unlink()


# The file -------------------------------------------------------------------------------------


def test_the_file_and_all_beside_it_belong_to_their_owner_alone(path: Path) -> None:
    with opened(path) as ledger:
        ledger.charge(TENTH, key="q", purpose="count")
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == dict.fromkeys(
        [path.name, f"{path.name}-wal", f"{path.name}-shm", f"{path.name}-head"], 0o600
    )


def test_every_commit_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def remembered(*args: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", remembered)
    with opened(path):
        assert made[0].execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert made[0].execute("PRAGMA synchronous").fetchone() == (2,), "2 is FULL"


def test_a_charge_that_returned_is_seen_by_every_other_connection(path: Path) -> None:
    with opened(path) as ledger, by_hand(path, disarmed=False) as other:
        for number in range(5):
            ledger.charge(TENTH, key=str(number), purpose="count")
            count = "SELECT count(*) FROM entries WHERE kind = 'charge'"
            assert other.execute(count).fetchone() == (number + 1,)


def test_ledgers_opened_at_once_on_one_new_file_share_it(path: Path) -> None:
    """Threads with a connection each stand in for processes; the kill tests use real ones."""
    granted = race(lambda: opened(path), callers=6)
    assert len(granted) == 20
    with opened(path) as ledger:
        assert ledger.remaining() == 0


@filled
def test_a_lock_held_too_long_is_unavailable_and_charges_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_ahead, "LOCK_TIMEOUT_SECONDS", 0.05)
    with opened(path) as ledger, by_hand(path, disarmed=False) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match=r"locked.*retry with the same key"):
            ledger.charge(TENTH, key="late", purpose="count")
        other.execute("ROLLBACK")
        ledger.charge(TENTH, key="late", purpose="count")
        assert ledger.spent().amount == Fraction(2, 5)


@pytest.mark.parametrize("content", [b"diary", b"SQLite format 3\0" + b"x" * 4000])
def test_a_file_that_is_no_database_is_not_a_ledger(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="holds no sound ledger"):
        opened(path)
    assert path.read_bytes() == content


def test_another_database_is_left_alone(path: Path) -> None:
    with by_hand(path) as other:
        other.execute("CREATE TABLE diary (entry TEXT)")
    with pytest.raises(Misconfigured, match="not a ledger; give the ledger its own"):
        opened(path)


def test_a_folder_that_is_not_there_is_misconfigured(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"No such file or directory.*can be written"):
        opened(tmp_path / "nowhere" / "a.ledger")


# The database's own refusals ------------------------------------------------------------------


@filled
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET cost_text = 'pure 0' WHERE number = 1",
        "DELETE FROM entries WHERE number = 3",
        "DELETE FROM head",
        "UPDATE head SET number = 1, units = 0",
        "UPDATE head SET number = 9, units = 0",
    ],
)
def test_rows_that_were_written_stay_written(path: Path, statement: str) -> None:
    with (
        by_hand(path, disarmed=False) as other,
        pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"),
    ):
        other.execute(statement)


@filled
def test_the_database_itself_refuses_to_pass_the_budget(path: Path) -> None:
    with by_hand(path, disarmed=False) as other:
        assert other.execute("SELECT units, budget_units FROM head").fetchone() == (
            300_000_000_000,
            1_000_000_000_000,
        )
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            other.execute("UPDATE head SET number = 9, units = 1000000000001")


# Damage ---------------------------------------------------------------------------------------


@filled
def test_an_untouched_ledger_opens(path: Path) -> None:
    with by_hand(path) as other:
        other.execute("UPDATE entries SET purpose = purpose")
    with opened(path) as ledger:
        assert ledger.verify().number == 4


@filled
@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, "purpose = replace(purpose, '\"1\"', '\"9\"')"),
        (2, "cost_text = 'pure 0'"),
        (2, "principal = 'somebody else'"),
        (3, "total_text = '0'"),
        (3, "hash = zeroblob(32)"),
        (4, "output = x'00'"),
        (1, "total_text = 'rubbish'"),
    ],
)
def test_a_tampered_row_is_named_when_the_ledger_is_opened(
    path: Path, number: int, change: str
) -> None:
    with by_hand(path) as other:
        other.execute(f"UPDATE entries SET {change} WHERE number = {number}")
    with pytest.raises(LedgerDamaged, match=f"row {number}"):
        opened(path)


@filled
@pytest.mark.parametrize("change", ["total_text = '0'", "budget_text = '9'", "total_text = 'x'"])
def test_a_tampered_head_is_found(path: Path, change: str) -> None:
    with by_hand(path) as other:
        other.execute(f"UPDATE head SET {change}")
    with pytest.raises(LedgerDamaged):
        opened(path)


@filled
def test_rows_cut_off_are_found_when_the_ledger_is_opened(path: Path) -> None:
    with by_hand(path) as other:
        other.execute("DELETE FROM entries WHERE number > 2")
    with pytest.raises(LedgerDamaged, match=r"row 3 .* the head counts 5 rows"):
        opened(path)


@filled
def test_rows_cut_off_are_found_by_the_next_charge_of_an_open_ledger(path: Path) -> None:
    with opened(path) as ledger:
        with by_hand(path) as other:
            other.execute("DELETE FROM entries WHERE number > 2")
        with pytest.raises(LedgerDamaged, match="the head counts 5 rows"):
            ledger.charge(TENTH, key="next", purpose="count")


def cut_consistently(path: Path, length: int) -> None:
    """Cut rows off and make the head agree: a valid shorter ledger."""
    with by_hand(path) as other:
        other.execute("DELETE FROM entries WHERE number >= ?", (length,))
        other.execute(
            "UPDATE head SET (number, hash, total_text, units) = (SELECT number, hash, total_text, "
            "units FROM entries ORDER BY number DESC LIMIT 1)"
        )


@filled
def test_a_consistent_truncation_is_found_by_the_head_beside_the_file(path: Path) -> None:
    cut_consistently(path, 2)
    with pytest.raises(LedgerDamaged, match=r"row 2 .* missing, and a receipt vouches for row 4"):
        opened(path)


def test_a_truncation_that_also_removes_that_head_is_found_only_by_a_receipt(
    path: Path, receipts: list[Receipt]
) -> None:
    cut_consistently(path, 2)
    forget_head(path)
    with opened(path) as ledger:
        assert ledger.spent().amount == Fraction(1, 10), "the stated limit of what can be found"
        with pytest.raises(LedgerDamaged, match=r"row 2 .* a receipt vouches for row 3"):
            ledger.verify(expected_head=receipts[-1].head)
    with pytest.raises(LedgerDamaged, match="a receipt vouches for row 3"):
        opened(path, expected_head=receipts[-1].head)


def test_an_older_copy_put_back_is_found(path: Path) -> None:
    fill(path, charges=1)
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with opened(path) as ledger:
        answer_once(ledger, TENTH, "later", "count", lambda: b"3")
    shutil.copy(copy, path)
    with pytest.raises(LedgerDamaged, match="a receipt vouches for row 4"):
        opened(path)


@filled
def test_a_ledger_that_was_deleted_does_not_start_again_at_zero(path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerDamaged, match=r"is gone, and hospital.ledger-head says .* 5 rows"):
        opened(path)
    forget_head(path)
    with opened(path) as ledger:
        assert ledger.remaining() == 1, "both are gone: a new ledger, as asked"


@filled
@pytest.mark.parametrize("rubbish", ["", "half a li", "00000000000000000009 xyz\n"])
def test_a_head_that_cannot_be_read_raises_no_false_alarm(path: Path, rubbish: str) -> None:
    path.with_name(path.name + "-head").write_text(rubbish)
    with opened(path) as ledger:
        assert ledger.spent().amount == Fraction(3, 10)


def test_a_head_that_lags_behind_raises_no_false_alarm(path: Path) -> None:
    fill(path, charges=1)
    beside = path.with_name(path.name + "-head")
    older = beside.read_bytes()
    with opened(path) as ledger:
        ledger.charge(TENTH, key="later", purpose="count")
    beside.write_bytes(older)
    with opened(path) as ledger:
        assert ledger.spent().amount == Fraction(1, 5)


def test_a_closed_ledger_lets_go_of_its_files(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    fill(path)
    with pytest.raises(Misconfigured):
        opened(path, neighbours="replace")
    path.with_name("diary").write_bytes(b"not a database, but long enough to be taken for one")
    with pytest.raises(LedgerDamaged):
        opened(path.with_name("diary"))
    assert len(os.listdir("/proc/self/fd")) == before
