"""What only one engine of books promises: the files of SQLite, the sessions of PostgreSQL."""

import os
import shutil
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from privacy.places import TENTH, Place

from casemate.doors import Closed, open_transcript
from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy.book import files
from casemate.privacy.book.files import write_ahead
from casemate.privacy.book.postgres_session import PostgresSession, address_and_prefix
from casemate.privacy.ledger import answer_once
from casemate.privacy.ledger.entry import FORM


def remember_connections(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every connection that the module makes from now on."""
    made, connect = [], module.connect

    def remembered(*args: Any, **options: Any) -> Any:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(module, "connect", remembered)
    return made


# SQLite: the file -----------------------------------------------------------------------------


def test_the_file_and_all_beside_it_belong_to_their_owner_alone(file: Place) -> None:
    name = file.path.name
    with file.open() as ledger, open_transcript(file.where):
        ledger.charge(TENTH, key="q", purpose="count")
        modes = {
            each.name: stat.S_IMODE(each.stat().st_mode) for each in file.path.parent.iterdir()
        }
    assert modes == dict.fromkeys([name, f"{name}-wal", f"{name}-shm", f"{name}-head"], 0o600)


def test_every_commit_waits_for_the_disk(file: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    made = remember_connections(sqlite3, monkeypatch)
    with file.open():
        assert made[0].execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert made[0].execute("PRAGMA synchronous").fetchone() == (2,), "2 is FULL"


def test_a_lock_held_too_long_is_unavailable_and_charges_nothing(
    file: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LOCK_TIMEOUT_SECONDS", 0.05)
    with file.open() as ledger, file.connection() as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerUnavailable, match=r"locked.*retry with the same key"):
            ledger.charge(TENTH, key="late", purpose="count")
        other.execute("ROLLBACK")
        ledger.charge(TENTH, key="late", purpose="count")
        assert ledger.spent().amount == Fraction(1, 10)


def test_a_file_in_use_is_switched_to_the_log_once_it_is_free_and_patience_ends(
    tmp_path: Path,
) -> None:
    holder, other = (
        sqlite3.connect(tmp_path / "a", timeout=0, isolation_level=None, check_same_thread=False)
        for _ in range(2)
    )
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        write_ahead(other, 0.05)
    release = threading.Timer(0.2, holder.close)
    release.start()
    write_ahead(other, 30)
    assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    release.join()
    other.close()


@pytest.mark.parametrize("content", [b"diary", b"SQLite format 3\0" + b"x" * 4000])
def test_a_file_that_is_no_database_is_not_a_ledger(file: Place, content: bytes) -> None:
    file.path.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="holds no sound ledger"):
        file.open()
    assert file.path.read_bytes() == content


def test_another_database_and_a_folder_that_is_not_there_are_misconfigured(file: Place) -> None:
    file.change("CREATE TABLE diary (entry TEXT)")
    with pytest.raises(Misconfigured, match="not a ledger; give the ledger its own"):
        file.open()
    with pytest.raises(Misconfigured, match=r"No such file or directory.*can be written"):
        Place(file.path.with_name("nowhere") / "a.ledger").open()


@pytest.mark.parametrize("lost", [1, 100, 4096, 5000])
def test_a_torn_end_of_the_log_is_left_out_and_the_rest_is_whole(tmp_path: Path, lost: int) -> None:
    """What a loss of power in the middle of a write leaves: a log that ends within a page."""
    with open_transcript(tmp_path / "t") as transcript:
        for number in range(5):
            transcript.append(Closed(f"r{number}", "tired"))
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"t{suffix}", tmp_path / f"copy{suffix}")
    log = tmp_path / "copy-wal"
    with log.open("r+b") as end:
        end.truncate(log.stat().st_size - lost)
    with open_transcript(tmp_path / "copy") as copy:
        assert 0 < len(list(copy.replay())) < 5
        copy.append(Closed("r4", "again"))
        list(copy.replay())


# SQLite: the head beside the file -------------------------------------------------------------


def head_file(file: Place) -> Path:
    return file.path.with_name(file.path.name + "-head")


def test_an_older_copy_put_back_is_found_and_a_head_that_lags_behind_is_no_alarm(
    file: Place,
) -> None:
    file.fill(charges=1)
    older, copy = head_file(file).read_bytes(), file.path.with_name("copy")
    shutil.copy(file.path, copy)
    with file.open() as ledger:
        answer_once(ledger, TENTH, "later", "count", lambda: b"3")
    newer = head_file(file).read_bytes()
    head_file(file).write_bytes(older)
    with file.open() as ledger:
        assert ledger.spent().amount == Fraction(1, 5)
    head_file(file).write_bytes(newer)
    shutil.copy(copy, file.path)
    with pytest.raises(LedgerDamaged, match="a receipt vouches for row 4"):
        file.open()


def test_a_ledger_that_was_deleted_does_not_start_again_at_zero(file: Place) -> None:
    file.fill()
    file.path.unlink()
    with pytest.raises(LedgerDamaged, match=r"is gone, and hospital.ledger-head says .* 5 rows"):
        file.open()
    head_file(file).unlink()
    with file.open() as ledger:
        assert ledger.remaining() == 1, "both are gone: a new ledger, as asked"


def test_an_empty_head_is_what_a_crash_leaves_and_is_written_again(file: Place) -> None:
    file.fill()
    head_file(file).write_text("")
    with file.open() as ledger:
        assert ledger.spent().amount == Fraction(3, 10)
        ledger.charge(TENTH, key="next", purpose="count")
    assert head_file(file).read_text().startswith("00000000000000000005 ")


@pytest.mark.parametrize("rubbish", [b"half a li", b"00000000000000000009 xyz\n", bytes(86)])
def test_a_head_that_names_no_row_is_refused_until_it_is_taken_away(
    file: Place, rubbish: bytes
) -> None:
    file.fill()
    head_file(file).write_bytes(rubbish)
    with pytest.raises(LedgerDamaged, match=r"ledger-head does not name a row .* or delete it"):
        file.open()
    head_file(file).unlink()
    with file.open() as ledger:
        assert ledger.spent().amount == Fraction(3, 10)


def test_a_closed_ledger_lets_go_of_its_files(file: Place) -> None:
    before = len(os.listdir("/proc/self/fd"))
    file.fill()
    with pytest.raises(Misconfigured):
        file.open(neighbours="replace")
    diary = file.path.with_name("diary")
    diary.write_bytes(b"not a database, but long enough to be taken for one")
    with pytest.raises(LedgerDamaged):
        Place(diary).open()
    assert len(os.listdir("/proc/self/fd")) == before


# PostgreSQL -----------------------------------------------------------------------------------


either_book = pytest.mark.parametrize(
    "use", [lambda url: Place(url).open(), open_transcript], ids=["ledger", "transcript"]
)


@either_book
def test_without_psycopg_one_sentence_says_what_to_install(
    use: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Misconfigured, match=r"needs psycopg; install casemate\[postgres\]"):
        use("postgresql://localhost/nowhere")


@either_book
@pytest.mark.parametrize("name", ["Upper", "with-dash", "x; DROP TABLE y", "a" * 41, "1st"])
def test_a_name_that_is_no_plain_identifier_is_misconfigured(
    use: Callable[[str], object], name: str
) -> None:
    with pytest.raises(Misconfigured, match="a ledger's name in PostgreSQL is at most 40"):
        use(f"postgresql://localhost/nowhere#{name}")


@either_book
def test_a_server_that_is_not_there_is_unavailable_and_its_password_is_not_told(
    use: Callable[[str], object],
) -> None:
    unavailable = pytest.raises(LedgerUnavailable, match=r"OperationalError.*(same key|ask again)")
    with unavailable as failure:
        use("postgresql://ann:secret@127.0.0.1:1/nowhere?connect_timeout=2")
    assert "secret" not in str(failure.value)


def test_the_name_after_the_hash_is_what_tables_begin_with() -> None:
    assert address_and_prefix("postgresql://h/d#hospital") == ("postgresql://h/d", "hospital_")
    assert address_and_prefix("postgresql://h/d") == ("postgresql://h/d", "casemate_ledger_")


@pytest.mark.postgres
def test_books_of_two_names_live_side_by_side(postgres: str) -> None:
    one, two = (Place(f"{postgres}#{name}") for name in ("hospital", "school"))
    with one.open() as ledger, two.open(dataset="school") as other:
        ledger.charge(TENTH, key="q", purpose="count")
        assert other.remaining() == 1 and ledger.remaining() == Fraction(9, 10)
    for place in (one, two):
        with open_transcript(place.where) as transcript:
            assert transcript.append(Closed("r", "")).number == 0


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["{entries}", "{transcript}"])
def test_a_table_that_was_written_to_is_not_emptied(postgres: str, table: str) -> None:
    place = Place(postgres)
    place.fill()
    with pytest.raises(psycopg.errors.RaiseException, match="is append-only"):
        place.change(f"TRUNCATE {table}", disarmed=False)


@pytest.mark.postgres
def test_a_lost_connection_is_reported_and_made_again(postgres: str) -> None:
    place = Place(postgres)
    with place.open() as ledger, open_transcript(postgres) as transcript:
        ledger.charge(TENTH, key="q1", purpose="count")
        transcript.append(Closed("r1", ""))
        place.change(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            disarmed=False,
        )
        with pytest.raises(LedgerUnavailable, match="retry with the same key"):
            ledger.charge(TENTH, key="q2", purpose="count")
        ledger.charge(TENTH, key="q2", purpose="count")
        assert ledger.spent().amount == Fraction(1, 5)
        with pytest.raises(LedgerUnavailable, match="ask again"):
            transcript.append(Closed("r2", ""))
        assert transcript.append(Closed("r2", "")).number == 1


@pytest.mark.postgres
def test_a_role_that_may_only_append_is_enough(postgres: str) -> None:
    place = Place(postgres)
    place.fill()
    place.change(
        "DROP ROLE IF EXISTS clerk",
        "CREATE ROLE clerk",
        "GRANT SELECT, INSERT ON {entries} TO clerk",
        "GRANT SELECT, UPDATE ON {head} TO clerk",
        "GRANT SELECT ON {book_versions} TO clerk",
        disarmed=False,
    )
    with Place(f"{postgres}&options=-c%20role%3Dclerk").open() as ledger:
        ledger.charge(TENTH, key="more", purpose="count")
        assert ledger.spent().amount == Fraction(2, 5)
    place.change("DROP OWNED BY clerk", "DROP ROLE clerk", disarmed=False)


@pytest.mark.postgres
def test_a_session_that_does_not_wait_for_the_disk_is_made_to(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = remember_connections(psycopg, monkeypatch)
    with Place(f"{postgres}&options=-c%20synchronous_commit%3Doff").open():
        assert made[0].execute("SHOW synchronous_commit").fetchone() == ("on",)


@pytest.mark.postgres
def test_a_lock_is_held_to_the_end_of_its_transaction(postgres: str) -> None:
    one = PostgresSession(postgres, FORM)
    free = "SELECT pg_try_advisory_lock(hashtext('name'))"
    with psycopg.connect(postgres, autocommit=True) as other:
        with one.transaction():
            one.lock("name")
            assert other.execute(free).fetchone() == (False,)
        assert other.execute(free).fetchone() == (True,)
    one.close()


@pytest.mark.postgres
def test_a_table_of_the_name_in_another_schema_of_the_path_is_not_taken(postgres: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE SCHEMA elsewhere")
        other.execute("CREATE TABLE elsewhere.t (x integer)")
        other.execute("CREATE TABLE kept (x integer)")
    wide = f"{postgres}&options=-csearch_path%3Dpublic,elsewhere"
    store = PostgresSession(wide, FORM)
    with store.transaction():
        assert store.has("kept") and not store.has("t")
    store.close()
    with psycopg.connect(wide) as plain:
        twin = plain.execute("SELECT to_regclass('t') IS NOT NULL").fetchone()
    assert twin == (True,), "the twin: without the one schema it would be found"
