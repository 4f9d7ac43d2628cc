"""A transcript in one SQLite file, usually the ledger's, shared by the processes of one host.

Durable    Write-ahead log with synchronous=FULL: a commit returns after the log was flushed to the
           disk. A commit that a crash cut off leaves a torn end of the log, which SQLite finds by
           its checksums and leaves out.
Shared     BEGIN IMMEDIATE takes the one write lock before anything is read.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from casemate.doors.transcript_sql import TABLES, SqlBook
from casemate.doors.transcript_store import Book, Result
from casemate.errors import LedgerUnavailable, Misconfigured, TranscriptDamaged
from casemate.privacy.write_ahead import connected, locked, make_durable

TRIGGERS = (
    """CREATE TRIGGER transcript_never_changes BEFORE UPDATE ON transcript
       BEGIN SELECT RAISE(ABORT, 'the transcript is append-only'); END""",
    """CREATE TRIGGER transcript_never_shrinks BEFORE DELETE ON transcript
       BEGIN SELECT RAISE(ABORT, 'the transcript is append-only'); END""",
)


class FileStore:
    """One connection to the file, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.RLock()
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # before SQLite opens it
        except OSError as reason:
            raise Misconfigured(
                f"the transcript {path} cannot be opened ({reason.strerror}); name a file that "
                f"can be written"
            ) from reason
        with self._translated():
            self._connection = connected(path)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        self._book = SqlBook(self._connection, "")

    def read(self, look: Callable[[Book], Result]) -> Result:
        """Look at what is durable, without the write lock."""
        with self._lock, self._translated():
            return look(self._book)

    def run(self, work: Callable[[Book], Result]) -> Result:
        """Do the work under the write lock, and return its result once that is durable."""
        with self._lock, self._translated(), locked(self._connection):
            return work(self._book)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        execute = self._connection.execute
        make_durable(self._connection)
        with locked(self._connection):
            names = {name for (name,) in execute("SELECT name FROM sqlite_master")}
            if "transcript" not in names:
                for statement in (*TABLES, *TRIGGERS):
                    execute(statement.format(prefix="", integer="INTEGER", bytes="BLOB"))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Say what went wrong with the file in casemate's own errors."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as reason:
            raise LedgerUnavailable(
                f"the transcript in {self._path} could not be used ({reason}); nothing left; "
                f"see to it and ask again"
            ) from reason
        except sqlite3.Error as reason:
            raise TranscriptDamaged(
                f"{self._path} holds no sound transcript ({reason}); restore it from a copy that "
                f"verifies"
            ) from reason
