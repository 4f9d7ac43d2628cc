"""A transcript in the ledger's PostgreSQL database, shared by the processes of several hosts.

Where      postgresql://…/database#name, the ledger's own URL, keeps the table `name_transcript`.
Shared     A transaction starts by taking an advisory lock of its own and reads nothing before it
           holds it, so READ COMMITTED shows it every entry there is.
Durable    A session with synchronous_commit = off switches it on. That the server has fsync on is
           seen to by the ledger in the same database.
"""

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urldefrag

from casemate.doors.transcript_sql import TABLES, SqlBook
from casemate.doors.transcript_store import Book, Result
from casemate.errors import LedgerUnavailable, Misconfigured, TranscriptDamaged
from casemate.privacy.ledger_postgres import DEFAULT_NAME, WAIT_FOR_THE_DISK

if TYPE_CHECKING:
    import psycopg

TRIGGERS = (
    """CREATE FUNCTION {prefix}transcript_refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the transcript is append-only'; END $$""",
    """CREATE TRIGGER never_change BEFORE UPDATE OR DELETE ON {prefix}transcript
       FOR EACH ROW EXECUTE FUNCTION {prefix}transcript_refuse()""",
    """CREATE TRIGGER never_empty BEFORE TRUNCATE ON {prefix}transcript
       FOR EACH STATEMENT EXECUTE FUNCTION {prefix}transcript_refuse()""",
)


class PostgresStore:
    """One connection, made again when it was lost, used by one thread at a time."""

    def __init__(self, address: str, prefix: str) -> None:
        try:
            import psycopg
        except ImportError as reason:
            raise Misconfigured(
                "a transcript in PostgreSQL needs psycopg; install casemate[postgres]"
            ) from reason
        self._psycopg, self._address, self._prefix = psycopg, address, prefix
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._book = SqlBook(self, prefix)
        self.run(lambda _: self._prepare())

    @classmethod
    def at(cls, url: str) -> Self:
        """The transcript beside the ledger at this URL, made if it is absent."""
        address, name = urldefrag(url)
        name = name or DEFAULT_NAME
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,39}", name):
            raise Misconfigured(
                f"a ledger's name in PostgreSQL is at most 40 lower-case letters, digits and _, "
                f"got {name!r}"
            )
        return cls(address, name + "_")

    def read(self, look: Callable[[Book], Result]) -> Result:
        """Look at what is durable, without the lock."""
        with self._lock, self._translated():
            return look(self._book)

    def run(self, work: Callable[[Book], Result]) -> Result:
        """Do the work under the lock, and return its result once that is durable."""
        with self._lock, self._translated(), self._connected().transaction():
            self.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (f"{self._prefix}text",))
            return work(self._book)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def execute(self, sql: str, parameters: Sequence[Any], /) -> "psycopg.Cursor[Any]":
        """Run one statement."""
        statement = sql.replace("?", "%s").encode()
        return self._connected().execute(statement, parameters, binary=True)

    def _connected(self) -> "psycopg.Connection[Any]":
        if self._connection is None or self._connection.closed:
            self._connection = self._psycopg.connect(self._address, autocommit=True)
            self._connection.isolation_level = self._psycopg.IsolationLevel.READ_COMMITTED
            self.execute(WAIT_FOR_THE_DISK, ())
        return self._connection

    def _prepare(self) -> None:
        """Make the table once, whoever comes first."""
        name = f"{self._prefix}transcript"
        if self.execute("SELECT to_regclass(?)::text", (name,)).fetchone() == (None,):
            for statement in (*TABLES, *TRIGGERS):
                made = statement.format(prefix=self._prefix, integer="BIGINT", bytes="BYTEA")
                self.execute(made, ())

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say what went wrong with the database in casemate's own errors, without its address."""
        try:
            yield
        except self._psycopg.IntegrityError as reason:
            raise TranscriptDamaged(
                "the transcript's own constraints refuse the next entry; "
                "restore it from a copy that verifies"
            ) from reason
        except self._psycopg.Error as reason:
            raise LedgerUnavailable(
                f"the transcript in PostgreSQL could not be used ({type(reason).__name__}); "
                f"nothing left; see to it and ask again"
            ) from reason
