"""Where a ledger's rows live: in memory, in one SQLite file, or in a PostgreSQL database.

A store runs a piece of work on its book, alone and all or nothing, and returns only when what the
work wrote is durable. The rules of charging know nothing else about it.

Head       Beside the `entries`, which only grow, stands one row that names the newest of them and
           holds the totals after it. The database itself refuses a total above the budget (CHECK),
           a second row of one kind and key (UNIQUE), any change of an entry and any step back of
           the head (triggers).
SQLite     Write-ahead log with synchronous=FULL: a commit returns after the log was flushed to the
           disk. The file must lie on a local disk, since the log needs shared memory. BEGIN
           IMMEDIATE takes the one write lock before anything is read, so a check and the charge
           that follows it are never parted by another process.
Private    The file is made with mode 0600; SQLite gives its log the same. One that somebody else
           owns or may write to is refused, and so is a link.
Rewound    Beside the file stands `FILE-head`, the newest row's number and hash, written after each
           commit. It may lag behind, and be empty after a crash, since it is not flushed; so it
           never raises a false alarm. But a ledger that is deleted, copied without its log, or put
           back from an older copy alone is behind it, and is refused; so is a head that says
           something else.
PostgreSQL postgresql://…/database#name keeps the tables `name_entries`, `name_head` and
           `name_book_versions`; without a name they begin with `casemate_ledger_`. They are made if
           they are absent; after that a role needs only SELECT and INSERT on the first, SELECT and
           UPDATE on the second and SELECT on the third. A transaction starts by locking the head
           row (SELECT … FOR UPDATE) and reads nothing before it holds the lock, so READ COMMITTED
           shows it every charge there is. A session with synchronous_commit = off switches it on,
           and a server with fsync = off is refused.
"""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from casemate.errors import LedgerDamaged, Misconfigured
from casemate.privacy.book.book import Book, MemoryBook, Result, SqlBook, open_book
from casemate.privacy.book.chain import START, Head
from casemate.privacy.book.files import (
    WRITTEN_BY_OTHERS,
    flush_folder,
    open_private,
    require_private,
)
from casemate.privacy.cost import Currency
from casemate.privacy.ledger.entry import (
    FORM,
    Draft,
    LedgerEntry,
    State,
    Total,
    next_row,
    require_newest,
    whole_units,
)
from casemate.privacy.ledger.group_commit import GroupCommit

if TYPE_CHECKING:
    from casemate.privacy.book.book import BookSession


class LedgerBook:
    """The rows of one ledger inside a transaction, and the state after the newest of them."""

    def __init__(self, rows: Book[LedgerEntry], state: State) -> None:
        self.rows, self.state = rows, state

    def extend(self, draft: Draft, principal_total: Total) -> LedgerEntry:
        """Write the next row."""
        entry, self.state = next_row(self.state, draft, principal_total)
        self.rows.append(entry)
        return entry


class LedgerInMemory:
    """A ledger that ends with the process: for simulations, which promise nothing to anybody."""

    def __init__(self) -> None:
        self.commits, self._lock = 0, threading.Lock()
        self.book = LedgerBook(MemoryBook(FORM), State())

    def run(self, work: Callable[[LedgerBook], Result]) -> Result:
        """Do the work while nobody else does any."""
        with self._lock:
            result = work(self.book)
            self.commits += 1
            return result

    def close(self) -> None:
        """Nothing to let go of."""


LedgerStore = LedgerInMemory | GroupCommit[LedgerBook]
"""Runs work in a transaction and returns its result once that is durable.

Work that is refused raises before it writes anything, never after.
"""


# In a database ----------------------------------------------------------------------------------


HEAD_TABLE = """CREATE TABLE {head} (
    one {integer} PRIMARY KEY CHECK (one = 1),
    number {integer} NOT NULL CHECK (number >= -1),
    hash {bytes} NOT NULL CHECK (length(hash) = 32),
    total_text TEXT NOT NULL,
    currency TEXT NOT NULL CHECK (currency IN ('epsilon', 'rho')),
    budget_text TEXT NOT NULL,
    units {integer} NOT NULL CHECK (units >= 0),
    budget_units {integer} NOT NULL,
    CHECK (units <= budget_units)
)"""
FORWARD = "NEW.number > OLD.number AND NEW.units >= OLD.units"


class LedgerDatabase:
    """The tables of one ledger, used by one thread at a time."""

    def __init__(self, where: str | Path) -> None:
        lock = "" if isinstance(where, Path) else " FOR UPDATE"
        with open_book(where, FORM) as self._session:
            head = self._session.prefix + "head"
            if lock:
                _require_durable(self._session)
            if not self._session.has(head):
                self._session.execute(HEAD_TABLE.format(head=head, **self._session.types))
                first = f"INSERT INTO {head} VALUES (1, -1, ?, '0', 'epsilon', '0', 0, 0)"
                self._session.execute(first, (START,))
                self._session.protect(head, FORM.name, unless=FORWARD)
        names = "number, hash, total_text, currency, budget_text"
        self._select = f"SELECT {names} FROM {head}{lock}"
        self._update = (
            f"UPDATE {head} SET number = ?, hash = ?, total_text = ?, currency = ?, "
            f"budget_text = ?, units = ?, budget_units = ? WHERE one = 1"
        )

    @contextmanager
    def transaction(self) -> Iterator[LedgerBook]:
        """The book under the lock of its head; durable when the block has ended."""
        with self._session.transaction():
            state, rows = self._state(), SqlBook(self._session, FORM)
            require_newest(state, rows.newest())
            book = LedgerBook(rows, state)
            yield book
            if book.state != state:
                rows.flush()
                self.write_head(book.state)

    def write_head(self, state: State) -> None:
        """The last step before the commit."""
        facts = (state.number, state.hash, state.total.to_text(), state.currency.value)
        units = (state.total.units, whole_units(state.budget))
        self._session.execute(self._update, (*facts, str(state.budget), *units))

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def _state(self) -> State:
        try:
            number, hash_, total, currency, budget = self._session.execute(self._select).fetchone()
            known = Total.from_text(total), Currency(currency), Fraction(budget)
            return State(number, hash_, *known)
        except (ValueError, ArithmeticError, TypeError) as reason:
            raise LedgerDamaged(
                "the head of the ledger cannot be read; restore it from a copy that verifies"
            ) from reason


def _require_durable(session: "BookSession") -> None:
    if session.execute("SELECT current_setting('fsync')").fetchone() != ("on",):
        raise Misconfigured(
            "this PostgreSQL server runs with fsync = off, so no charge would be durable; "
            "switch it on, or keep the ledger elsewhere"
        )


def open_database(where: str | Path) -> GroupCommit[LedgerBook]:
    """The store in this database, made if it is absent; nothing beside a file is looked at."""
    database = LedgerDatabase(where)
    return GroupCommit(database.transaction, database.close)


# In a file --------------------------------------------------------------------------------------


_HEAD = re.compile(rb"(\d{20}) ([0-9a-f]{64})\n")


def open_sqlite(path: Path) -> tuple[GroupCommit[LedgerBook], Head | None]:
    """The store in this file, made if there is none, and the head that stands beside it."""
    kept = _kept_head(path)  # read first: the file is never behind it
    if kept is not None and not path.exists():
        raise LedgerDamaged(
            f"{path} is gone, and {_head_path(path).name} says that it had {kept.number + 1} rows; "
            f"put the ledger back, or delete that file too if the data was never asked anything"
        )
    try:
        file = LedgerFile(path)
    except OSError as reason:
        raise Misconfigured(
            f"the ledger {path} cannot be opened ({reason.strerror}); name a file that can be "
            f"written"
        ) from reason
    return GroupCommit(file.transaction, file.close), kept


def is_there(path: Path) -> bool:
    """Whether there is a ledger's file, or the head of one that is gone."""
    return os.path.lexists(path) or os.path.lexists(_head_path(path))


class LedgerFile:
    """The tables in a file of its owner's, and the head beside it."""

    def __init__(self, path: Path) -> None:
        _make_private(path)
        self._head = open_private(_head_path(path), os.O_RDWR | os.O_CREAT, WRITTEN_BY_OTHERS)
        try:
            self._database = LedgerDatabase(path)
        except BaseException:
            os.close(self._head)
            raise

    @contextmanager
    def transaction(self) -> Iterator[LedgerBook]:
        """The book under the write lock; durable when the block has ended."""
        with self._database.transaction() as book:
            before = book.state
            yield book
        if book.state != before:
            self.keep_head(book.state)

    def keep_head(self, state: State) -> None:
        """The first step after the commit."""
        with suppress(OSError):  # the commit stands; a head that lags behind is still true
            os.pwrite(self._head, f"{state.number:020d} {state.hash.hex()}\n".encode(), 0)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
        os.close(self._head)


def _make_private(path: Path) -> None:
    """Make the file for its owner alone, and its name durable, before SQLite opens it."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        require_private(path, path.lstat(), WRITTEN_BY_OTHERS)
        return
    flush_folder(path.parent)


def _head_path(path: Path) -> Path:
    return path.with_name(path.name + "-head")


def _kept_head(path: Path) -> Head | None:
    """What stands beside the file; an empty one was made by a ledger that wrote no row."""
    where = _head_path(path)
    try:
        with os.fdopen(open_private(where, os.O_RDWR, WRITTEN_BY_OTHERS), "rb") as file:
            written = file.read()
    except FileNotFoundError:
        return None
    except OSError as reason:
        raise Misconfigured(
            f"{where}, which names the ledger's newest row, cannot be opened ({reason.strerror}); "
            f"move away what is there, and put back a file that can be written"
        ) from reason
    found = _HEAD.fullmatch(written)
    if found is None and written:
        raise LedgerDamaged(
            f"{where} does not name a row of the ledger, so whether rows are missing cannot be "
            f"told; put it back from a copy, or delete it if you know that the ledger is whole"
        )
    return Head(int(found[1]), found[2].decode()) if found else None
