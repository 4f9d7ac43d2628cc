"""One session for every store in PostgreSQL: names from the URL, locks, and errors in words."""

from dataclasses import replace

import psycopg
import pytest

from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy.book.postgres_session import PostgresSession, address_and_prefix
from casemate.privacy.ledger.entry import FORM


def session(url: str) -> PostgresSession:
    return PostgresSession(url, replace(FORM, again="try once more"))


def test_the_name_after_the_hash_is_what_tables_begin_with() -> None:
    assert address_and_prefix("postgresql://h/d#hospital") == ("postgresql://h/d", "hospital_")
    assert address_and_prefix("postgresql://h/d") == ("postgresql://h/d", "casemate_ledger_")
    with pytest.raises(Misconfigured, match="a ledger's name in PostgreSQL is at most 40"):
        address_and_prefix("postgresql://h/d#No Name")


@pytest.mark.postgres
def test_a_transaction_is_kept_whole_or_not_at_all(postgres: str) -> None:
    store = session(postgres)
    with store.transaction():
        store.execute("CREATE TABLE t (x integer PRIMARY KEY)", ())
        store.executemany("INSERT INTO t VALUES (?)", [(1,), (2,)])
    with pytest.raises(LedgerDamaged), store.transaction():
        store.executemany("INSERT INTO t VALUES (?)", [(3,), (3,)])
    assert store.has("t") and not store.has("u")
    assert store.execute("SELECT count(*) FROM t", ()).fetchone() == (2,)
    store.close()


@pytest.mark.postgres
def test_what_the_database_refuses_is_told_in_our_own_errors(postgres: str) -> None:
    store = session(postgres)
    with store.transaction():
        store.execute("CREATE TABLE t (x integer PRIMARY KEY)", ())
    broken = pytest.raises(LedgerDamaged, match="constraints refuse what comes next")
    with broken, store.transaction():
        store.executemany("INSERT INTO t VALUES (?)", [(1,), (1,)])
    absent = pytest.raises(LedgerUnavailable, match=r"\(UndefinedTable\).* and try once more")
    with absent, store.transaction():
        store.execute("SELECT * FROM u", ())
    store.close()


@pytest.mark.postgres
def test_a_lock_is_held_to_the_end_of_its_transaction(postgres: str) -> None:
    one = session(postgres)
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
    divider = "&" if "?" in postgres else "?"
    store = session(f"{postgres}{divider}options=-csearch_path%3Dpublic,elsewhere")
    with store.transaction():
        assert store.has("kept") and not store.has("t")
    store.close()
    with psycopg.connect(f"{postgres}{divider}options=-csearch_path%3Dpublic,elsewhere") as plain:
        twin = plain.execute("SELECT to_regclass('t') IS NOT NULL").fetchone()
    assert twin == (True,), "the twin: without the one schema it would be found"
