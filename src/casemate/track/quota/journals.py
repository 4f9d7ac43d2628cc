"""What must not be forgotten when a process of a quota is killed: of a site, and of the server.

A site keeps what it used and its bound (`QuotaFileJournal`); the server its window, its limit, and
what it has leased to whom (`ServerFile`).

Guarantee  What a site used is one aligned word of a mapped file, stored before `acquire` returns;
           the bound is written down before a recall is answered. Both survive a process killed with
           -9. A machine that lost power may have lost the last seconds, so a journal that was not
           closed since the machine started anew is given up: the site begins as another
           incarnation, and what its lease had left is lost.
Durable    The server's is SQLite with a write-ahead log and synchronous=FULL: `keep` returns after
           the log was flushed to the disk, and an order leaves only after that.
Alone      One server at a time holds the file; a second one is refused.
"""

import os
import sqlite3
import struct
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from casemate.errors import Misconfigured
from casemate.privacy.book import connect_sqlite, make_durable, write_transaction
from casemate.track.journal import Journal, MappedFile, lock_file, new_number, open_private_file
from casemate.track.quota.messages import Numbered

_RECORD = struct.Struct("<QQQq")  # window, sequence, bound, ceiling (-1: none)
_BOOT, _CLOSED = slice(1, 3), 3  # words of the file; the first is what was used
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class OrderStanding:
    """The newest order that a site follows, and what it makes of it."""

    window: int = 0
    sequence: int = 0
    bound: int = 0
    ceiling: int | None = None


SiteJournal = Journal[OrderStanding]


class QuotaFileJournal(MappedFile):
    """A journal in a mapped file, which one process at a time may hold."""

    def __init__(self, path: Path, boot: bytes | None = None) -> None:
        start = struct.unpack("<QQ", _this_start() if boot is None else boot)
        super().__init__(path, b"casequot", "a quota's site")
        known = tuple(self.cells[_BOOT]) == start and any(start)
        if not self.cells[_CLOSED] and not known:  # something may have been lost
            self.begin_anew()
        self.cells[1], self.cells[2] = start
        self.cells[_CLOSED] = 0
        self.flush()

    def load(self) -> OrderStanding | None:
        """The newest standing that was written whole."""
        record = self.newest()
        if record is None:
            return None
        window, sequence, bound, ceiling = _RECORD.unpack(record)
        return OrderStanding(window, sequence, bound, None if ceiling < 0 else ceiling)

    def save(self, record: OrderStanding) -> None:
        """Write the standing down beside the one before."""
        at, ceiling = record, -1 if record.ceiling is None else record.ceiling
        self.keep(_RECORD.pack(at.window, at.sequence, at.bound, ceiling))

    def close(self) -> None:
        """Flush the file, say that nothing is missing, and let go of it."""
        self.flush()
        self.cells[_CLOSED] = 1
        self.flush()
        super().close()


def _this_start() -> bytes:
    """What tells this start of the machine from others; zeros, which are never trusted, if none."""
    try:
        return bytes.fromhex(_BOOT_ID.read_text("ascii").strip().replace("-", ""))[:16]
    except (OSError, ValueError):
        return bytes(16)


# What each incarnation of each site holds --------------------------------------------------------


@dataclass(eq=False)
class Holding:
    """One incarnation of a site, as the server knows it."""

    site: str
    incarnation: int
    sequence: int = 0  # of the newest order to it
    bound: int = 0  # the most it may ever use, whatever arrives
    used: int = 0  # what it has said to have used; it may be more by now
    told_ceiling: int | None = None  # the ceiling in the newest order
    silent: bool = False  # gone, as far as anybody knows
    wanted: int = 0  # what it waits for
    order: Numbered | None = None  # the newest, to be sent again
    sent: float = 0.0  # when
    times: int = 0  # how often

    @property
    def left(self) -> int:
        """The most it can have left."""
        return max(0, self.bound - self.used)


class Holdings:
    """All of them, with their sums."""

    def __init__(self, kept: Iterable[Holding]) -> None:
        self._rows: dict[tuple[str, int], Holding] = {}
        self._of_site: dict[str, list[Holding]] = {}
        self.granted = 0  # every bound, of the silent ones too
        self.bound = self.used = 0  # of those who answer
        for row in kept:
            self._insert(row)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._rows.values())

    def find(self, site: str, incarnation: int) -> Holding | None:
        """The holding of an incarnation, if it was ever heard of."""
        return self._rows.get((site, incarnation))

    def add(self, site: str, incarnation: int) -> Holding:
        """The holding of a new incarnation: nothing."""
        row = Holding(site, incarnation)
        self._insert(row)
        return row

    def others(self, row: Holding) -> list[Holding]:
        """Other incarnations of the same site."""
        return [holding for holding in self._of_site[row.site] if holding is not row]

    def change(
        self,
        row: Holding,
        bound: int | None = None,
        used: int | None = None,
        silent: bool | None = None,
    ) -> None:
        """Change what is known of one, and the sums with it."""
        self._count(row, -1)
        row.bound = row.bound if bound is None else bound
        row.used = row.used if used is None else used
        row.silent = row.silent if silent is None else silent
        self._count(row, 1)

    def donors(self, need: int, many: int, but: Container[int]) -> list[Holding]:
        """The largest of those who answer: as many as asked for, and enough that halves may do."""
        able = [row for row in self if row.left and not row.silent and id(row) not in but]
        chosen: list[Holding] = []
        for row in sorted(able, key=lambda row: -row.left):
            if need <= 0 and len(chosen) >= many:
                break
            chosen.append(row)
            need -= (row.left + 1) // 2
        return chosen

    def _insert(self, row: Holding) -> None:
        self._rows[row.site, row.incarnation] = row
        self._of_site.setdefault(row.site, []).append(row)
        self._count(row, 1)

    def _count(self, row: Holding, sign: int) -> None:
        self.granted += sign * row.bound
        if not row.silent:
            self.bound += sign * row.bound
            self.used += sign * min(row.used, row.bound)


# The server's journal ----------------------------------------------------------------------------


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
        with ExitStack() as stack, _sqlite_errors(path):
            held = f"the quota's journal {path} is held by another server; one quota has one server"
            lock = lock_file(path.with_name(path.name + "-lock"), held)
            stack.callback(os.close, lock)
            os.close(open_private_file(path))  # SQLite would let others read what it makes
            self._connection = connect_sqlite(path)
            stack.callback(self._connection.close)
            self.window = self._prepare()
            self._held = stack.pop_all()

    def _prepare(self) -> int:
        execute = self._connection.execute
        make_durable(self._connection)
        with write_transaction(self._connection):
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
        with _sqlite_errors(self._path):
            (total,) = execute("SELECT total FROM quota").fetchone()
            rows: list[tuple[str, int, int, int, int]]
            rows = execute("SELECT site, incarnation, sequence, bound, used FROM lease").fetchall()
        # What they were told is not kept; 0 makes sure that they hear of a higher limit.
        leases = [Holding(*row, told_ceiling=0) for row in rows]
        return (limit if total is None else total), leases

    def keep(self, limit: int, changed: Iterable[Holding]) -> None:
        """Write down, durably, what has changed."""
        rows = [(r.site, r.incarnation, r.sequence, r.bound, r.used) for r in changed]
        with _sqlite_errors(self._path), write_transaction(self._connection):
            self._connection.execute("UPDATE quota SET total = ?", (limit,))
            self._connection.executemany(
                "INSERT OR REPLACE INTO lease VALUES (?, ?, ?, ?, ?)", rows
            )

    def close(self) -> None:
        """Let go of the file."""
        self._held.close()


@contextmanager
def _sqlite_errors(path: Path) -> Iterator[None]:
    """Say what went wrong with the file in casemate's own errors."""
    try:
        yield
    except sqlite3.Error as reason:
        raise Misconfigured(
            f"the quota's journal {path} could not be used ({reason}); nothing was leased; "
            f"see to the file and try again"
        ) from reason
