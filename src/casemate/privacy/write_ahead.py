"""SQLite's write-ahead log, switched on by several processes at once.

SQLite waits for a lock when a transaction begins, but not when the kind of journal changes: of two
who open a new file at the same moment, one would be told that it is locked.
"""

import sqlite3
import time

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
