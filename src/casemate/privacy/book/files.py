"""One SQLite file shared by the processes of a host, and files that only their owner may use.

Commits are durable, one writer at a time. Switching on the write-ahead log needs patience of its
own: SQLite waits for a lock when a transaction begins, but not when the kind of journal changes,
and of two who open a new file at the same moment one would be told that it is locked.

A private file is opened so that nobody can put another in its place. A name that is a symbolic link
is not followed: whoever can write to the folder could point it at a file of their choice, which
would then be read as a secret or written over. A file that belongs to somebody else is not used
either, since its owner reads and changes it at will.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from casemate.errors import LedgerUnavailable, Misconfigured
from casemate.privacy.book.chain import Form

LOCK_TIMEOUT_SECONDS = 30.0
"""Seconds to wait for another process that holds the write lock."""

RETRY_PAUSE_SECONDS = 0.01
"""Seconds from one attempt to the next."""

IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def write_ahead(connection: sqlite3.Connection, timeout_seconds: float) -> None:
    """Switch a file to the write-ahead log, for so many seconds if others do the same."""
    until = time.monotonic() + timeout_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as reason:
            if reason.sqlite_errorcode & 0xFF not in IN_USE or time.monotonic() > until:
                raise
            time.sleep(RETRY_PAUSE_SECONDS)
        else:
            return


def connect_sqlite(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, whose transactions are begun and ended by hand."""
    return sqlite3.connect(
        path, timeout=LOCK_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False
    )


def make_durable(connection: sqlite3.Connection) -> None:
    """From now on a commit returns after the log was flushed to the disk."""
    connection.execute("PRAGMA synchronous = FULL")
    write_ahead(connection, LOCK_TIMEOUT_SECONDS)


@contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the one write lock before anything is read."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


# Files for their owner alone --------------------------------------------------------------------


EVERYBODY_ELSE = 0o077
WRITTEN_BY_OTHERS = 0o022


def open_private(path: Path, flags: int, forbidden: int = EVERYBODY_ELSE) -> int:
    """A handle of a plain file that is ours and that nobody else may use, made if `flags` say so.

    `forbidden` are the permissions that others must not have.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        require_private(path, os.fstat(handle), forbidden)
    except BaseException:
        os.close(handle)
        raise
    return handle


def require_private(path: Path, found: os.stat_result, forbidden: int = EVERYBODY_ELSE) -> None:
    """Refuse a file that is not ours alone, or no plain file."""
    if stat.S_ISLNK(found.st_mode):
        raise Misconfigured(f"{path} is a link, which is not followed; name the file itself")
    if not stat.S_ISREG(found.st_mode):
        raise Misconfigured(f"{path} is no plain file; move away what is there, and ask again")
    if found.st_uid not in (os.geteuid(), 0):
        raise Misconfigured(
            f"{path} belongs to somebody else, who can read and change it; move it away, or run "
            f"casemate as its owner"
        )
    if found.st_mode & forbidden:
        raise Misconfigured(
            f"{path} may be used by others than its owner; delete it if they may have read or "
            f"changed it, or take the permission away with chmod 600"
        )


def flush_folder(folder: Path) -> None:
    """Make the names of a folder's files durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# A book in a file -------------------------------------------------------------------------------


class SqliteSession:
    """One connection to a file that holds books."""

    prefix = ""
    types: ClassVar[dict[str, str]] = {"integer": "INTEGER", "bytes": "BLOB"}

    def __init__(self, path: Path, form: Form[Any]) -> None:
        self._path, self._form = path, form
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            os.close(os.open(path, flags, 0o600))  # before SQLite opens it
        except OSError as reason:
            raise Misconfigured(
                f"the {form.name} {path} cannot be opened ({reason.strerror}); name a file that "
                f"can be written, and no link to one"
            ) from reason
        with self.translate_errors():
            self._connection = connect_sqlite(path)
            try:
                make_durable(self._connection)
                self._require_alone()
            except BaseException:
                self._connection.close()
                raise
        self.execute, self.executemany = self._connection.execute, self._connection.executemany

    def _require_alone(self) -> None:
        tables = self._connection.execute("SELECT name FROM sqlite_master").fetchall()
        if self._form.alone and tables and (self._form.table,) not in tables:
            raise Misconfigured(
                f"{self._path} is an SQLite file and not a {self._form.name}; "
                f"give the {self._form.name} its own"
            )

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """What is done in the block is durable when it has ended, or undone."""
        with self.translate_errors(), write_transaction(self._connection):
            yield

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Say what went wrong with the file in casemate's own errors."""
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as reason:
            raise LedgerUnavailable(
                f"the {self._form.name} {self._path} could not be used ({reason}); nothing left; "
                f"see to it and {self._form.again}"
            ) from reason
        except sqlite3.Error as reason:
            raise self._form.damaged(
                f"{self._path} holds no sound {self._form.name} ({reason}); restore it from a "
                f"copy that verifies"
            ) from reason

    def has(self, table: str) -> bool:
        """Whether there is a table of this name."""
        found = self.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,))
        return found.fetchone() is not None

    def lock(self, name: str) -> None:
        """A transaction of SQLite holds the one lock already."""

    def protect(self, table: str, what: str, unless: str = "") -> None:
        """Have the database refuse to delete rows, and to update them (only `unless` that)."""
        condition = f"WHEN NOT ({unless})" if unless else ""
        for name, change, when in (("changes", "UPDATE", condition), ("shrinks", "DELETE", "")):
            self.execute(
                f"CREATE TRIGGER {table}_never_{name} BEFORE {change} ON {table} {when} "
                f"BEGIN SELECT RAISE(ABORT, 'the {what} is append-only'); END"
            )

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
