"""One SQLite file shared by the processes of a host: durable commits, one writer at a time.

Switching on the write-ahead log needs patience of its own: SQLite waits for a lock when a
transaction begins, but not when the kind of journal changes, and of two who open a new file at the
same moment one would be told that it is locked.

Files that only their owner may use, opened so that nobody can put another in their place.

A name that is a symbolic link is not followed: whoever can write to the folder could point it at
a file of their choice, which would then be read as a secret or written over. A file that belongs
to somebody else is not used either, since its owner reads and changes it at will.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from casemate.errors import Misconfigured

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


# Private file -----------------------------------------------------------------------------------


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
