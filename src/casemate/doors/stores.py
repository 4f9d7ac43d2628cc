"""Where a transcript's entries live: the narrow interface, and the form that lives in memory.

The entries of a transcript in an SQL table, written once for SQLite and PostgreSQL.

A transcript in one SQLite file, usually the ledger's, shared by the processes of one host.

Durable    Write-ahead log with synchronous=FULL: a commit returns after the log was flushed to the
           disk. A commit that a crash cut off leaves a torn end of the log, which SQLite finds by
           its checksums and leaves out.
Shared     BEGIN IMMEDIATE takes the one write lock before anything is read.

A transcript in the ledger's PostgreSQL database, shared by the processes of several hosts.

Where      postgresql://…/database#name, the ledger's own URL, keeps the table `name_transcript`.
Shared     A transaction starts by taking an advisory lock of its own and reads nothing before it
           holds it, so READ COMMITTED shows it every entry there is.
Durable    A session with synchronous_commit = off switches it on. That the server has fsync on is
           seen to by the ledger in the same database.
"""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from casemate.doors.entry import COLUMNS, TranscriptEntry
from casemate.errors import LedgerUnavailable, Misconfigured, TranscriptDamaged
from casemate.privacy.book import (
    PostgresSession,
    address_and_prefix,
    connected,
    locked,
    make_durable,
)

Result = TypeVar("Result")


class TranscriptBook(Protocol):
    """The entries of one transcript, inside a transaction where it is written to."""

    def newest(self) -> TranscriptEntry | None:
        """The last entry."""
        ...

    def find(self, key: str) -> TranscriptEntry | None:
        """The entry under this key; there is at most one."""
        ...

    def latest(self, run: str) -> TranscriptEntry | None:
        """The newest entry of this run of the gate."""
        ...

    def rows(self, first: int, count: int) -> Sequence[TranscriptEntry]:
        """At most `count` entries in order, from number `first`."""
        ...

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[TranscriptEntry]:
        """Every entry of these kinds in order, from number `first`."""
        ...

    def append(self, entry: TranscriptEntry) -> None:
        """Write the next entry."""
        ...


class TranscriptStore(Protocol):
    """Something that keeps the entries."""

    def read(self, look: Callable[[TranscriptBook], Result]) -> Result:
        """Look at what is durable."""
        ...

    def run(self, work: Callable[[TranscriptBook], Result]) -> Result:
        """Do the work alone and all or nothing; return its result once that is durable."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class TranscriptInMemory:
    """A transcript that ends with the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: list[TranscriptEntry] = []
        self._found: dict[str, TranscriptEntry] = {}
        self._latest: dict[str, TranscriptEntry] = {}

    def read(self, look: Callable[[TranscriptBook], Result]) -> Result:
        """Look while nobody writes."""
        with self._lock:
            return look(self)

    def run(self, work: Callable[[TranscriptBook], Result]) -> Result:
        """Do the work while nobody else does any, and take it back if it fails."""
        with self._lock:
            length = len(self._rows)
            try:
                return work(self)
            except BaseException:
                self._cut(length)
                raise

    def _cut(self, length: int) -> None:
        kept = self._rows[:length]
        self._rows, self._found, self._latest = [], {}, {}
        for entry in kept:
            self.append(entry)

    def close(self) -> None:
        """Nothing to let go of."""

    def newest(self) -> TranscriptEntry | None:
        """The last entry."""
        return self._rows[-1] if self._rows else None

    def find(self, key: str) -> TranscriptEntry | None:
        """The entry under this key."""
        return self._found.get(key)

    def latest(self, run: str) -> TranscriptEntry | None:
        """The newest entry of this run."""
        return self._latest.get(run)

    def rows(self, first: int, count: int) -> Sequence[TranscriptEntry]:
        """At most `count` entries in order, from number `first`."""
        return self._rows[first : first + count]

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[TranscriptEntry]:
        """Every entry of these kinds in order, from number `first`."""
        return [entry for entry in self._rows[first:] if entry.kind in kinds]

    def append(self, entry: TranscriptEntry) -> None:
        """Write the next entry."""
        self._rows.append(entry)
        self._found[entry.key] = entry
        self._latest[entry.run] = entry


# Transcript sql ---------------------------------------------------------------------------------


TABLES = (
    """CREATE TABLE {prefix}transcript (
        number {integer} PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL,
        questions {integer} NOT NULL,
        runs {integer} NOT NULL,
        text TEXT NOT NULL,
        hash {bytes} NOT NULL CHECK (length(hash) = 32)
    )""",
    "CREATE INDEX {prefix}transcript_runs ON {prefix}transcript (run, number)",
    "CREATE INDEX {prefix}transcript_kinds ON {prefix}transcript (kind, number)",
)
_COLUMNS = ", ".join(COLUMNS)


class TranscriptSession(Protocol):
    """A connection of either engine; parameters stand at `?`."""

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any:
        """Run one statement and return a cursor."""
        ...


class TranscriptSqlBook:
    """The entries as one connection sees them."""

    def __init__(self, session: TranscriptSession, prefix: str) -> None:
        self._session, self._table = session, f"{prefix}transcript"

    def newest(self) -> TranscriptEntry | None:
        """The last entry."""
        return self._one("ORDER BY number DESC LIMIT 1")

    def find(self, key: str) -> TranscriptEntry | None:
        """The entry under this key."""
        return self._one("WHERE key = ?", key)

    def latest(self, run: str) -> TranscriptEntry | None:
        """The newest entry of this run."""
        return self._one("WHERE run = ? ORDER BY number DESC LIMIT 1", run)

    def rows(self, first: int, count: int) -> Sequence[TranscriptEntry]:
        """At most `count` entries in order, from number `first`."""
        return self._select("WHERE number >= ? ORDER BY number LIMIT ?", first, count)

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[TranscriptEntry]:
        """Every entry of these kinds in order, from number `first`."""
        marks = ", ".join("?" * len(kinds))
        clauses = f"WHERE kind IN ({marks}) AND number >= ? ORDER BY number"
        return self._select(clauses, *kinds, first)

    def append(self, entry: TranscriptEntry) -> None:
        """Write the next entry."""
        marks = ", ".join("?" * len(COLUMNS))
        row = [getattr(entry, name) for name in COLUMNS]
        self._session.execute(f"INSERT INTO {self._table} ({_COLUMNS}) VALUES ({marks})", row)

    def _one(self, clauses: str, *parameters: object) -> TranscriptEntry | None:
        return next(iter(self._select(clauses, *parameters)), None)

    def _select(self, clauses: str, *parameters: object) -> list[TranscriptEntry]:
        sql = f"SELECT {_COLUMNS} FROM {self._table} {clauses}"
        return [TranscriptEntry(*row) for row in self._session.execute(sql, parameters).fetchall()]


# Transcript file --------------------------------------------------------------------------------


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
        self._book = TranscriptSqlBook(self._connection, "")

    def read(self, look: Callable[[TranscriptBook], Result]) -> Result:
        """Look at what is durable, without the write lock."""
        with self._lock, self._translated():
            return look(self._book)

    def run(self, work: Callable[[TranscriptBook], Result]) -> Result:
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


# Transcript postgres ----------------------------------------------------------------------------


POSTGRES_TRIGGERS = (
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
        self._book = TranscriptSqlBook(self._session, prefix)
        self.run(lambda _: self._prepare())

    @classmethod
    def at(cls, url: str) -> Self:
        """The transcript beside the ledger at this URL, made if it is absent."""
        return cls(*address_and_prefix(url))

    def read(self, look: Callable[[TranscriptBook], Result]) -> Result:
        """Look at what is durable, without the lock."""
        with self._lock, self._session.translated():
            return look(self._book)

    def run(self, work: Callable[[TranscriptBook], Result]) -> Result:
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
            for statement in (*TABLES, *POSTGRES_TRIGGERS):
                made = statement.format(prefix=self._prefix, integer="BIGINT", bytes="BYTEA")
                self._session.execute(made, ())
