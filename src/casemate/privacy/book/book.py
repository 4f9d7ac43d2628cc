"""A book: entries that only grow in number, each with a hash over itself and all before it.

What a `Form` says of a kind of book is written once here for memory, SQLite and PostgreSQL: its
table, the rules that the database itself keeps (an entry never changes and never leaves, a key is
used once), and the version, so that a book of another version is refused.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from casemate.privacy.book.chain import Chained, Entry, Form
from casemate.privacy.book.files import SqliteSession

if TYPE_CHECKING:
    from casemate.privacy.book.postgres_session import PostgresSession

    BookSession = SqliteSession | PostgresSession

IN_MEMORY = ":memory:"
"""Where a book is that ends with the process: for simulations, which promise nothing."""

Result = TypeVar("Result")


# In memory --------------------------------------------------------------------------------------


class MemoryBook(Generic[Entry]):
    """A book that ends with the process, and the store that keeps it."""

    def __init__(self, form: Form[Entry]) -> None:
        self._lock, self._form = threading.RLock(), form
        self._cut([])

    def read(self, look: Callable[["Book[Entry]"], Result]) -> Result:
        """Look while nobody writes."""
        with self._lock:
            return look(self)

    def run(self, work: Callable[["Book[Entry]"], Result]) -> Result:
        """Do the work while nobody else does any, and take it back if it fails."""
        with self._lock:
            length = len(self._rows)
            try:
                return work(self)
            except BaseException:
                self._cut(self._rows[:length])
                raise

    def _cut(self, kept: list[Entry]) -> None:
        self._rows: list[Entry] = []
        self._found: dict[tuple[str, ...], Entry] = {}
        self._latest: dict[tuple[str, ...], Entry] = {}
        for entry in kept:
            MemoryBook.append(self, entry)

    def close(self) -> None:
        """Nothing to let go of."""

    def newest(self) -> Entry | None:
        """The last entry."""
        return self._rows[-1] if self._rows else None

    def find(self, *identity: str) -> Entry | None:
        """The entry of this identity."""
        return self._found.get(identity)

    def latest(self, *group: str) -> Entry | None:
        """The newest entry of this group."""
        return self._latest.get(group)

    def rows(self, first: int, count: int) -> Sequence[Entry]:
        """At most `count` entries in order, from number `first`."""
        return self._rows[first : first + count]

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[Entry]:
        """Every entry of these kinds in order, from number `first`."""
        return [entry for entry in self._rows[first:] if entry.kind in kinds]

    def append(self, entry: Entry) -> None:
        """Write the next entry."""
        self._rows.append(entry)
        self._found[_texts(entry, self._form.identity)] = entry
        self._latest[_texts(entry, self._form.group)] = entry


# In a database ----------------------------------------------------------------------------------


class SqlBook(Generic[Entry]):
    """The entries as one transaction of a database sees them.

    New ones are kept back and written together, since each statement may be a journey to a server.
    """

    def __init__(self, session: "BookSession", form: Form[Entry]) -> None:
        self._session, self._form = session, form
        self._table, self._names = session.prefix + form.table, ", ".join(form.names)
        self._unwritten: list[Entry] = []
        self._found: dict[tuple[str, ...], Entry] = {}  # entries of this transaction
        self._latest: dict[tuple[str, ...], Entry | None] = {}

    def newest(self) -> Entry | None:
        """The last entry."""
        if self._unwritten:
            return self._unwritten[-1]
        return self._one("ORDER BY number DESC LIMIT 1")

    def find(self, *identity: str) -> Entry | None:
        """The entry of this identity."""
        new = self._found.get(identity)
        return new or self._one(f"WHERE {_equal(self._form.identity)}", *identity)

    def latest(self, *group: str) -> Entry | None:
        """The newest entry of this group."""
        if group not in self._latest:
            newest = f"WHERE {_equal(self._form.group)} ORDER BY number DESC LIMIT 1"
            self._latest[group] = self._one(newest, *group)
        return self._latest[group]

    def rows(self, first: int, count: int) -> Sequence[Entry]:
        """At most `count` entries in order, from number `first`."""
        self.flush()
        return self._select("WHERE number >= ? ORDER BY number LIMIT ?", first, count)

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[Entry]:
        """Every entry of these kinds in order, from number `first`."""
        self.flush()
        marks = ", ".join("?" * len(kinds))
        clauses = f"WHERE kind IN ({marks}) AND number >= ? ORDER BY number"
        return self._select(clauses, *kinds, first)

    def append(self, entry: Entry) -> None:
        """Add the next entry; it is written before the transaction ends."""
        self._unwritten.append(entry)
        self._found[_texts(entry, self._form.identity)] = entry
        self._latest[_texts(entry, self._form.group)] = entry

    def flush(self) -> None:
        """Write the new entries."""
        if self._unwritten:
            marks = ", ".join("?" * len(self._form.names))
            insert = f"INSERT INTO {self._table} ({self._names}) VALUES ({marks})"
            self._session.executemany(insert, list(map(self._form.values, self._unwritten)))
            self._unwritten = []

    def _one(self, clauses: str, *parameters: object) -> Entry | None:
        return next(iter(self._select(clauses, *parameters)), None)

    def _select(self, clauses: str, *parameters: object) -> list[Entry]:
        sql = f"SELECT {self._names} FROM {self._table} {clauses}"
        return [self._form.row(*row) for row in self._session.execute(sql, parameters).fetchall()]


def _equal(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} = ?" for name in names)


def _texts(entry: Chained, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(getattr(entry, name)) for name in names)


Book = MemoryBook[Entry] | SqlBook[Entry]
"""The entries of one book, inside a transaction where it is written to."""


class SqlStore(Generic[Entry]):
    """A book in a database; threads wait for each other, and processes for a lock."""

    def __init__(self, session: "BookSession", form: Form[Entry]) -> None:
        self._session, self._form, self._lock = session, form, threading.RLock()

    def read(self, look: Callable[["Book[Entry]"], Result]) -> Result:
        """Look at what is durable, without the lock."""
        with self._lock, self._session.translate_errors():
            return look(SqlBook(self._session, self._form))

    def run(self, work: Callable[["Book[Entry]"], Result]) -> Result:
        """Do the work under the lock, and return its result once that is durable."""
        with self._lock, self._session.transaction():
            self._session.lock(self._session.prefix + self._form.table)
            book = SqlBook(self._session, self._form)
            result = work(book)
            book.flush()
            return result

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._session.close()


Store = MemoryBook[Entry] | SqlStore[Entry]
"""Something that keeps a book: work is done alone and all or nothing, and is then durable."""

VERSIONS = "book_versions"


@contextmanager
def open_book(where: str | Path, form: Form[Entry]) -> Iterator["BookSession"]:
    """A session on the database of a book, in one transaction that makes the book if it is new."""
    if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")):
        from casemate.privacy.book.postgres_session import PostgresSession

        session: BookSession = PostgresSession(where, form)
    else:
        session = SqliteSession(Path(where), form)
    try:
        with session.transaction():
            session.lock(session.prefix + VERSIONS)
            _require_version(session, form)
            yield session
    except BaseException:
        session.close()
        raise


def _require_version(session: "BookSession", form: Form[Entry]) -> None:
    """Refuse a book of another version; where there is none, make an empty one."""
    versions, table = session.prefix + VERSIONS, session.prefix + form.table
    if not session.has(table):
        if not session.has(versions):
            session.execute(f"CREATE TABLE {versions} (book TEXT PRIMARY KEY, version TEXT)")
        columns = form.columns.format(**session.types)
        identity, group = ", ".join(form.identity), ", ".join(form.group)
        session.execute(f"CREATE TABLE {table} ({columns}, UNIQUE ({identity}))")
        session.execute(f"CREATE INDEX {table}_latest ON {table} ({group}, number)")
        session.execute(f"CREATE INDEX {table}_kinds ON {table} (kind, number)")
        session.protect(table, form.name)
        session.execute(f"INSERT INTO {versions} VALUES (?, ?)", (form.name, form.version))
    found = None
    if session.has(versions):
        sql = f"SELECT version FROM {versions} WHERE book = ?"
        found = session.execute(sql, (form.name,)).fetchone()
    form.require_version(found and found[0])
