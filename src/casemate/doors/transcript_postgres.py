"""A transcript in the ledger's PostgreSQL database, shared by the processes of several hosts.

Where      postgresql://…/database#name, the ledger's own URL, keeps the table `name_transcript`.
Shared     A transaction starts by taking an advisory lock of its own and reads nothing before it
           holds it, so READ COMMITTED shows it every entry there is.
Durable    A session with synchronous_commit = off switches it on. That the server has fsync on is
           seen to by the ledger in the same database.
"""

import threading
from collections.abc import Callable
from typing import Self

from casemate.doors.transcript_sql import TABLES, SqlBook
from casemate.doors.transcript_store import Book, Result
from casemate.errors import TranscriptDamaged
from casemate.privacy.postgres_session import PostgresSession, address_and_prefix

TRIGGERS = (
    """CREATE FUNCTION {prefix}transcript_refuse() RETURNS trigger LANGUAGE plpgsql
       AS $$ BEGIN RAISE EXCEPTION 'the transcript is append-only'; END $$""",
    """CREATE TRIGGER never_change BEFORE UPDATE OR DELETE ON {prefix}transcript
       FOR EACH ROW EXECUTE FUNCTION {prefix}transcript_refuse()""",
    """CREATE TRIGGER never_empty BEFORE TRUNCATE ON {prefix}transcript
       FOR EACH STATEMENT EXECUTE FUNCTION {prefix}transcript_refuse()""",
)


class PostgresStore:
    """The entries of one transcript; threads wait for each other."""

    def __init__(self, address: str, prefix: str) -> None:
        self._session = PostgresSession(address, "transcript", TranscriptDamaged, "ask again")
        self._prefix, self._lock = prefix, threading.RLock()
        self._book = SqlBook(self._session, prefix)
        self.run(lambda _: self._prepare())

    @classmethod
    def at(cls, url: str) -> Self:
        """The transcript beside the ledger at this URL, made if it is absent."""
        return cls(*address_and_prefix(url))

    def read(self, look: Callable[[Book], Result]) -> Result:
        """Look at what is durable, without the lock."""
        with self._lock, self._session.translated():
            return look(self._book)

    def run(self, work: Callable[[Book], Result]) -> Result:
        """Do the work under the lock, and return its result once that is durable."""
        with self._lock, self._session.transaction():
            self._session.lock(f"{self._prefix}text")
            return work(self._book)

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._session.close()

    def _prepare(self) -> None:
        """Make the table once, whoever comes first."""
        if not self._session.has(f"{self._prefix}transcript"):
            for statement in (*TABLES, *TRIGGERS):
                made = statement.format(prefix=self._prefix, integer="BIGINT", bytes="BYTEA")
                self._session.execute(made, ())
