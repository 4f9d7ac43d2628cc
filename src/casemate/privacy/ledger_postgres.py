"""A ledger in a PostgreSQL database, shared by the processes of several hosts.

Where      postgresql://…/database#name keeps the tables `name_entries` and `name_head`; without a
           name they are `casemate_ledger_entries` and `casemate_ledger_head`. They are made if they
           are absent; after that a role needs only SELECT and INSERT on the first and SELECT and
           UPDATE on the second.
Shared     A transaction starts by locking the head row (SELECT … FOR UPDATE) and reads nothing
           before it holds the lock, so READ COMMITTED shows it every charge there is.
Durable    A session with synchronous_commit = off switches it on, and a server with fsync = off is
           refused.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urldefrag

from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy.group_commit import GroupCommit
from casemate.privacy.ledger_sql import SqlBook, create
from casemate.privacy.ledger_store import Book

if TYPE_CHECKING:
    import psycopg

DEFAULT_NAME = "casemate_ledger"
WAIT_FOR_THE_DISK = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)

TRIGGERS = (
    """CREATE FUNCTION {prefix}refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$""",
    """CREATE TRIGGER never_change BEFORE UPDATE OR DELETE ON {prefix}entries
       FOR EACH ROW EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_empty BEFORE TRUNCATE ON {prefix}entries
       FOR EACH STATEMENT EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_leave BEFORE DELETE ON {prefix}head
       FOR EACH ROW EXECUTE FUNCTION {prefix}refuse()""",
    """CREATE TRIGGER never_turn_back BEFORE UPDATE ON {prefix}head FOR EACH ROW
       WHEN (NEW.number <= OLD.number OR NEW.units < OLD.units)
       EXECUTE FUNCTION {prefix}refuse()""",
)


def open_postgres(url: str) -> GroupCommit:
    """The store at this URL, made if it is absent."""
    address, name = urldefrag(url)
    name = name or DEFAULT_NAME
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", name):
        raise Misconfigured(
            f"a ledger's name in PostgreSQL is at most 40 lower-case letters, digits and _, "
            f"got {name!r}"
        )
    database = _LedgerDatabase(address, name + "_")
    return GroupCommit(database.transaction, database.close)


class _LedgerDatabase:
    """One connection, made again when it was lost, used by one thread at a time."""

    def __init__(self, address: str, prefix: str) -> None:
        try:
            import psycopg
        except ImportError as reason:
            raise Misconfigured(
                "a ledger in PostgreSQL needs psycopg; install casemate[postgres]"
            ) from reason
        self._psycopg, self._address, self._prefix = psycopg, address, prefix
        self._connection: psycopg.Connection[Any] | None = None
        with self._translated(), self._connected().transaction():
            self._require_durable()
            self._prepare()

    @contextmanager
    def transaction(self) -> Iterator[Book]:
        """The book under the lock of its head row; durable when the block has ended."""
        with self._translated(), self._connected().transaction():
            book = SqlBook(self, self._prefix, lock=" FOR UPDATE")
            yield book
            book.flush()

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is None or self._connection.closed:
            self._connection = self._psycopg.connect(self._address, autocommit=True)
            self._connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
            self.execute(WAIT_FOR_THE_DISK, ())
        return self._connection

    def execute(self, sql: str, parameters: Sequence[Any], /) -> "psycopg.Cursor[Any]":
        """Run one statement on the connection of the transaction."""
        return self._connected().execute(_with_percents(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> None:
        """Run one statement for each row, in one journey to the server."""
        with self._connected().cursor() as cursor:
            cursor.executemany(_with_percents(sql), parameters)

    def _require_durable(self) -> None:
        (fsync,) = self.execute("SELECT current_setting('fsync')", ()).fetchone() or ("off",)
        if fsync != "on":
            raise Misconfigured(
                "this PostgreSQL server runs with fsync = off, so no charge would be durable; "
                "switch it on, or keep the ledger elsewhere"
            )

    def _prepare(self) -> None:
        """Make the tables once, whoever comes first."""
        self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (self._prefix,))
        found = self.execute("SELECT to_regclass(?)::text", (self._prefix + "head",)).fetchone()
        if found == (None,):
            create(self, self._prefix, integer="BIGINT", bytes="BYTEA")
            for trigger in TRIGGERS:
                self.execute(trigger.format(prefix=self._prefix), ())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say what went wrong with the database in casemate's own errors, without its address."""
        try:
            yield
        except self._psycopg.IntegrityError as reason:
            raise LedgerDamaged(
                "the ledger's own constraints refuse the next row; "
                "restore it from a copy that verifies"
            ) from reason
        except self._psycopg.Error as reason:
            raise LedgerUnavailable(
                f"the ledger in PostgreSQL could not be used ({type(reason).__name__}); nothing "
                f"left; see to it and retry with the same key"
            ) from reason


def _with_percents(sql: str) -> bytes:
    """The statement in psycopg's notation for parameters."""
    return sql.replace("?", "%s").encode()
