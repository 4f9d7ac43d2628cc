"""One SQLite file shared by the processes of a host: durable commits, one writer at a time.

Switching on the write-ahead log needs patience of its own: SQLite waits for a lock when a
transaction begins, but not when the kind of journal changes, and of two who open a new file at the
same moment one would be told that it is locked.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 30.0
"""Seconds to wait for another process that holds the write lock."""

PAUSE = 0.01
"""Seconds from one attempt to the next."""

IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def write_ahead(connection: sqlite3.Connection, patience: float) -> None:
    """Switch a file to the write-ahead log, for so many seconds if others do the same."""
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as reason:
            if reason.sqlite_errorcode & 0xFF not in IN_USE or time.monotonic() > until:
                raise
            time.sleep(PAUSE)
        else:
            return


def connected(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, whose transactions are begun and ended by hand."""
    return sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def make_durable(connection: sqlite3.Connection) -> None:
    """From now on a commit returns after the log was flushed to the disk."""
    connection.execute("PRAGMA synchronous = FULL")
    write_ahead(connection, PATIENCE)


@contextmanager
def locked(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the one write lock before anything is read."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
