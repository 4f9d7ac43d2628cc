"""What every book on a disk promises: a ledger and a transcript, in SQLite and in PostgreSQL."""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
from privacy.places import TENTH, Place

from casemate.doors import Closed, open_transcript
from casemate.doors.transcript import FORM as TRANSCRIPT
from casemate.errors import (
    BudgetExhausted,
    LedgerDamaged,
    LedgerUnavailable,
    Misconfigured,
    TranscriptDamaged,
)
from casemate.privacy import Pure
from casemate.privacy.book.files import SqliteSession
from casemate.privacy.book.postgres_session import PostgresSession
from casemate.privacy.ledger.entry import FORM

REFUSED_BY_THE_DATABASE = (
    sqlite3.IntegrityError,
    psycopg.errors.RaiseException,
    psycopg.errors.CheckViolation,
)


# Sharing --------------------------------------------------------------------------------------


def test_a_ledger_and_its_transcript_share_one_place(place: Place) -> None:
    for number in range(2):
        with place.open() as ledger, open_transcript(place.where) as transcript:
            ledger.charge(TENTH, key=f"q{number}", purpose="count")
            transcript.append(Closed(f"r{number}", ""))
            assert ledger.verify().number == number + 1
            assert len(list(transcript.replay())) == number + 1


def test_a_charge_that_returned_is_seen_by_every_other_connection(place: Place) -> None:
    count = place.with_table_names("SELECT count(*) FROM {entries} WHERE kind = 'charge'")
    with place.open() as ledger, place.connection() as other:
        for number in range(5):
            ledger.charge(TENTH, key=str(number), purpose="count")
            assert other.execute(count).fetchone() == (number + 1,)


def test_ledgers_opened_at_once_on_a_new_place_share_it(place: Place) -> None:
    """Threads with a connection each stand in for processes; the kill tests use real ones."""
    granted, together = list[str](), threading.Barrier(5)

    def spend(name: int) -> None:
        together.wait()
        with place.open() as ledger:
            for number in range(5):
                try:
                    ledger.charge(Pure(Fraction(1, 20)), key=f"{name}.{number}", purpose="race")
                except BudgetExhausted:
                    return
                granted.append(f"{name}.{number}")

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 20
    with place.open() as ledger:
        assert ledger.remaining() == 0


# The database's own refusals ------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {entries} SET cost_text = 'pure 0' WHERE number = 1",
        "DELETE FROM {entries} WHERE number = 3",
        "DELETE FROM {head}",
        "UPDATE {head} SET number = 1, units = 0",
        "UPDATE {head} SET number = 9, units = 0",
        "UPDATE {transcript} SET text = ''",
        "DELETE FROM {transcript}",
    ],
)
def test_rows_that_were_written_stay_written(place: Place, statement: str) -> None:
    place.fill()
    with pytest.raises(REFUSED_BY_THE_DATABASE, match="is append-only"):
        place.change(statement, disarmed=False)


def test_the_database_itself_refuses_to_pass_the_budget(place: Place) -> None:
    place.fill()
    with place.connection() as other:
        units = other.execute(
            place.with_table_names("SELECT units, budget_units FROM {head}")
        ).fetchone()
    assert units == (300_000_000_000, 1_000_000_000_000)
    with pytest.raises(REFUSED_BY_THE_DATABASE, match=r"CHECK|check"):
        place.change("UPDATE {head} SET number = 9, units = 1000000000001", disarmed=False)


# Damage ---------------------------------------------------------------------------------------


def test_an_untouched_ledger_opens(place: Place) -> None:
    place.fill()
    place.change("UPDATE {entries} SET purpose = purpose")
    with place.open() as ledger:
        assert ledger.verify().number == 4


ANOTHER_HASH = "(SELECT hash FROM {entries} WHERE number = 1)"


@pytest.mark.parametrize(
    ("number", "change"),
    [
        (0, "purpose = replace(purpose, '\"1\"', '\"9\"')"),
        (2, "cost_text = 'pure 0'"),
        (2, "principal = 'somebody else'"),
        (3, "total_text = '0'"),
        (3, f"hash = {ANOTHER_HASH}"),
        (4, f"output = {ANOTHER_HASH}"),
        (1, "total_text = 'rubbish'"),
    ],
)
def test_a_tampered_row_is_named_when_the_ledger_is_opened(
    place: Place, number: int, change: str
) -> None:
    place.fill()
    place.change(f"UPDATE {{entries}} SET {change} WHERE number = {number}")
    with pytest.raises(LedgerDamaged, match=f"^row {number} of the ledger is damaged"):
        place.open()


@pytest.mark.parametrize("change", ["total_text = '0'", "budget_text = '9'", "total_text = 'x'"])
def test_a_tampered_head_is_found(place: Place, change: str) -> None:
    place.fill()
    place.change(f"UPDATE {{head}} SET {change}")
    with pytest.raises(LedgerDamaged):
        place.open()


def test_rows_cut_off_are_found_at_the_next_charge_and_when_the_ledger_is_opened(
    place: Place,
) -> None:
    place.fill()
    with place.open() as ledger:
        place.change("DELETE FROM {entries} WHERE number > 2")
        with pytest.raises(LedgerDamaged, match="the head counts 5 rows"):
            ledger.charge(TENTH, key="next", purpose="count")
    with pytest.raises(LedgerDamaged, match=r"row 3 .* the head counts 5 rows"):
        place.open()


def cut_consistently(place: Place, length: int) -> None:
    """Cut rows off and make the head agree: a valid shorter ledger."""
    newest = "SELECT number, hash, total_text, units FROM {entries} ORDER BY number DESC LIMIT 1"
    place.change(
        f"DELETE FROM {{entries}} WHERE number >= {length}",
        f"UPDATE {{head}} SET (number, hash, total_text, units) = ({newest})",
    )


def test_a_consistent_truncation_is_found_by_a_head_kept_elsewhere_and_only_by_one(
    place: Place,
) -> None:
    receipts = place.fill()
    cut_consistently(place, 2)
    if isinstance(place.where, Path):
        with pytest.raises(
            LedgerDamaged, match=r"row 2 .* missing, and a receipt vouches for row 4"
        ):
            place.open()
        place.path.with_name(place.path.name + "-head").unlink()
    with place.open() as ledger:
        assert ledger.spent().amount == Fraction(1, 10), "the stated limit of what can be found"
        with pytest.raises(LedgerDamaged, match=r"row 2 .* a receipt vouches for row 3"):
            ledger.verify(expected_head=receipts[-1].head)
    with pytest.raises(LedgerDamaged, match="a receipt vouches for row 3"):
        place.open(expected_head=receipts[-1].head)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE {transcript} SET text = '{{}}' WHERE number = 1", "entry 1 .* its hash"),
        ("DELETE FROM {transcript} WHERE number = 1", "entry 1 .* it is missing"),
        ("UPDATE {transcript} SET runs = 9 WHERE number = 0", "entry 0 .* its hash"),
    ],
)
def test_a_tampered_transcript_is_refused_when_it_is_opened(
    place: Place, statement: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what is found is found by the walk and nothing else."""
    place.fill()
    place.change(statement)
    with pytest.raises(TranscriptDamaged, match=found):
        open_transcript(place.where)
    monkeypatch.setattr("casemate.doors.transcript.Transcript.verify", lambda _: None)
    open_transcript(place.where).close()


def test_an_entry_whose_hash_was_made_anew_is_found_by_the_one_after_it(place: Place) -> None:
    place.fill()
    with open_transcript(place.where) as transcript:
        changed = replace(next(transcript.replay()), text="{}")
    mark = "?" if isinstance(place.where, Path) else "%s"
    place.change("UPDATE {transcript} SET text = '{{}}' WHERE number = 0")
    with place.connection() as other:
        update = place.with_table_names(f"UPDATE {{transcript}} SET hash = {mark} WHERE number = 0")
        other.execute(update, (TRANSCRIPT.digest(changed, bytes(32)),))
    with pytest.raises(TranscriptDamaged, match=r"entry 1 .* its hash"):
        open_transcript(place.where)


@pytest.mark.parametrize(("name", "use"), [("ledger", Place.open), ("transcript", None)])
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE {book_versions} SET version = 'casemate.x/9'", "has the format 'casemate.x/9'"),
        ("UPDATE {book_versions} SET version = NULL", "names no format"),
        ("DELETE FROM {book_versions}", "names no format"),
        ("DROP TABLE {book_versions}", "names no format"),
    ],
)
def test_a_book_of_another_version_is_refused_with_a_sentence(
    place: Place, name: str, use: Callable[[Place], Any] | None, change: str, found: str
) -> None:
    place.fill()
    place.change(change)
    with pytest.raises(Misconfigured, match=f"this {name} {found} and this version"):
        use(place) if use else open_transcript(place.where)


# A session ------------------------------------------------------------------------------------


def test_a_transaction_is_whole_or_undone_and_what_fails_is_told_in_our_own_errors(
    place: Place,
) -> None:
    form = replace(FORM, again="try once more")
    if isinstance(place.where, Path):
        store: SqliteSession | PostgresSession = SqliteSession(place.where, form)
    else:
        store = PostgresSession(place.where, form)
    with store.transaction():
        store.execute("CREATE TABLE t (x integer PRIMARY KEY)", ())
        store.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    broken = pytest.raises(LedgerDamaged, match=r"constraint.*restore it from a copy that verifies")
    with broken, store.transaction():
        store.executemany("INSERT INTO t VALUES (?)", [(3,), (3,)])
    assert store.has("t") and not store.has("u")
    assert store.execute("SELECT count(*) FROM t", ()).fetchone() == (2,)
    absent = r"\((UndefinedTable|no such table: u)\).* and try once more"
    with pytest.raises(LedgerUnavailable, match=absent), store.transaction():
        store.execute("SELECT * FROM u", ())
    store.close()
