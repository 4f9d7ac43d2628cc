"""What a quota's server must not forget: its window, its limit, and what it has leased to whom.

Durable    SQLite with a write-ahead log and synchronous=FULL: `keep` returns after the log was
           flushed to the disk, and an order leaves only after that.
Alone      One server at a time holds the file; a second one is refused.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from casemate.errors import Misconfigured
from casemate.privacy.write_ahead import connected, locked, make_durable
from casemate.track.mapped import held, new_number, opened
from casemate.track.quota.holdings import Holding

_TABLES = (
    "CREATE TABLE quota (id INTEGER PRIMARY KEY CHECK (id = 1), total INTEGER, window_ INTEGER)",
    """CREATE TABLE lease (site TEXT, incarnation INTEGER, sequence INTEGER, bound INTEGER,
       used INTEGER, PRIMARY KEY (site, incarnation)) WITHOUT ROWID""",
)


class ServerJournal(Protocol):
    """Somewhere to keep a quota."""

    window: int  # a server without its journal has another one, and sites do not follow it

    def load(self, limit: int) -> tuple[int, Sequence[Holding]]:
        """The limit in force, which is the one given for a new quota, and what is leased."""
        ...

    def keep(self, limit: int, changed: Iterable[Holding]) -> None:
        """Write down, durably, what has changed."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class ServerMemory:
    """A journal that ends with its process."""

    def __init__(self) -> None:
        self.window = new_number()

    def load(self, limit: int) -> tuple[int, Sequence[Holding]]:
        """A new quota."""
        return limit, ()

    def keep(self, limit: int, changed: Iterable[Holding]) -> None:
        """Nothing needs to be written."""

    def close(self) -> None:
        """Nothing is held."""


class ServerFile:
    """A journal in an SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with ExitStack() as stack, _translated(path):
            lock = path.with_name(path.name + "-lock")
            stack.callback(os.close, held(lock, _taken(path)))
            os.close(opened(path))  # for its owner's eyes alone: SQLite would not make it so
            self._connection = connected(path)
            stack.callback(self._connection.close)
            self.window = self._prepared()
            self._held = stack.pop_all()

    def _prepared(self) -> int:
        execute = self._connection.execute
        make_durable(self._connection)
        with locked(self._connection):
            names = {name for (name,) in execute("SELECT name FROM sqlite_master")}
            if not names:
                for table in _TABLES:
                    execute(table)
                execute("INSERT INTO quota VALUES (1, NULL, ?)", (new_number(),))
            elif not {"quota", "lease"} <= names:
                raise Misconfigured(
                    f"{self._path} is an SQLite file and no quota's journal; give the quota its own"
                )
        window: int = execute("SELECT window_ FROM quota").fetchone()[0]
        return window

    def load(self, limit: int) -> tuple[int, Sequence[Holding]]:
        """What was kept last."""
        execute = self._connection.execute
        with _translated(self._path):
            (kept,) = execute("SELECT total FROM quota").fetchone()
            rows: list[tuple[str, int, int, int, int]]
            rows = execute("SELECT site, incarnation, sequence, bound, used FROM lease").fetchall()
        # What they were told is not kept; 0 makes sure that they hear of a higher limit.
        return (limit if kept is None else kept), [Holding(*row, told=0) for row in rows]

    def keep(self, limit: int, changed: Iterable[Holding]) -> None:
        """Write down, durably, what has changed."""
        rows = [(r.site, r.incarnation, r.sequence, r.bound, r.used) for r in changed]
        with _translated(self._path), locked(self._connection):
            self._connection.execute("UPDATE quota SET total = ?", (limit,))
            self._connection.executemany(
                "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?)", rows
            )

    def close(self) -> None:
        """Let go of the file."""
        self._held.close()


def _taken(path: Path) -> str:
    return f"the quota's journal {path} is held by another server; one quota has one server"


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in casemate's own errors."""
    try:
        yield
    except sqlite3.Error as reason:
        raise Misconfigured(
            f"the quota's journal {path} could not be used ({reason}); nothing was leased; "
            f"see to the file and try again"
        ) from reason
