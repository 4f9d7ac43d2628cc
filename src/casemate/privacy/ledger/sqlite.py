"""A ledger in one SQLite file, shared by the threads and processes of one host.

Durable    Write-ahead log with synchronous=FULL: a commit returns after the log was flushed to the
           disk. The file must lie on a local disk, since the log needs shared memory.
Shared     BEGIN IMMEDIATE takes the one write lock before anything is read, so a check and the
           charge that follows it are never parted by another process.
Private    The file is made with mode 0600; SQLite gives its log the same. One that somebody else
           owns or may write to is refused.
Rewound    Beside the file stands `FILE-head`, the newest row's number and hash, written after each
           commit. It may lag behind and is not flushed, so it never raises a false alarm; but a
           ledger that is deleted, copied without its log, or put back from an older copy alone is
           behind it, and is refused.
"""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from casemate.errors import LedgerDamaged, LedgerUnavailable, Misconfigured
from casemate.privacy.book.files import (
    WRITTEN_BY_OTHERS,
    connected,
    locked,
    make_durable,
    open_private,
    require_private,
)
from casemate.privacy.ledger.entry import Head, State
from casemate.privacy.ledger.group_commit import GroupCommit
from casemate.privacy.ledger.sql import LedgerSqlBook, create
from casemate.privacy.ledger.store import LedgerBook

TRIGGERS = (
    """CREATE TRIGGER entries_never_change BEFORE UPDATE ON entries
       BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    """CREATE TRIGGER entries_never_leave BEFORE DELETE ON entries
       BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    """CREATE TRIGGER head_never_leaves BEFORE DELETE ON head
       BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
    """CREATE TRIGGER head_never_turns_back BEFORE UPDATE ON head
       WHEN NEW.number <= OLD.number OR NEW.units < OLD.units
       BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END""",
)
_HEAD = re.compile(r"(\d{20}) ([0-9a-f]{64})\n")


def open_sqlite(path: Path) -> tuple[GroupCommit, Head | None]:
    """The store in this file, made if there is none, and the head that stands beside it."""
    kept = _kept_head(path)  # read first: the file is never behind it
    if kept is not None and not path.exists():
        raise LedgerDamaged(
            f"{path} is gone, and {_head_path(path).name} says that it had {kept.number + 1} rows; "
            f"put the ledger back, or delete that file too if the data was never asked anything"
        )
    try:
        file = _LedgerFile(path)
    except OSError as reason:
        raise Misconfigured(
            f"the ledger {path} cannot be opened ({reason.strerror}); name a file that can be "
            f"written"
        ) from reason
    return GroupCommit(file.transaction, file.close), kept


class _LedgerFile:
    """One connection to the file, used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        _make_private(path)
        self._head = open_private(_head_path(path), os.O_RDWR | os.O_CREAT, WRITTEN_BY_OTHERS)
        with _translated(path):
            self._connection = connected(path)
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise

    def _prepare(self) -> None:
        execute = self._connection.execute
        make_durable(self._connection)
        with locked(self._connection):
            names = {name for (name,) in execute("SELECT name FROM sqlite_master")}
            if names and not {"entries", "head"} <= names:
                raise Misconfigured(
                    f"{self._path} is an SQLite file and not a ledger; give the ledger its own"
                )
            if not names:
                create(self._connection, "", integer="INTEGER", bytes="BLOB")
                for trigger in TRIGGERS:
                    execute(trigger)

    @contextmanager
    def transaction(self) -> Iterator[LedgerBook]:
        """The book under the write lock; durable when the block has ended."""
        with _translated(self._path), locked(self._connection):
            book = LedgerSqlBook(self._connection, "")
            yield book
            book.flush()
        if book.changed:
            self._keep_head(book.state())

    def _keep_head(self, state: State) -> None:
        with suppress(OSError):  # the commit stands; a head that lags behind is still true
            os.pwrite(self._head, f"{state.number:020d} {state.hash.hex()}\n".encode(), 0)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()
        os.close(self._head)


def _make_private(path: Path) -> None:
    """Make the file for its owner alone, and its name durable, before SQLite opens it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        require_private(path, path.stat(), WRITTEN_BY_OTHERS)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in casemate's own errors."""
    try:
        yield
    except sqlite3.OperationalError as reason:
        raise LedgerUnavailable(
            f"the ledger {path} could not be used ({reason}); nothing left; "
            f"see to it and retry with the same key"
        ) from reason
    except sqlite3.Error as reason:
        raise LedgerDamaged(
            f"{path} is not a sound ledger ({reason}); restore it from a copy that verifies"
        ) from reason


def _head_path(path: Path) -> Path:
    return path.with_name(path.name + "-head")


def _kept_head(path: Path) -> Head | None:
    """What stands beside the file; what cannot be read vouches for nothing."""
    try:
        found = _HEAD.fullmatch(_head_path(path).read_text("ascii", "replace"))
    except OSError:
        return None
    return Head(int(found[1]), found[2]) if found else None
