"""What a quota's server must not forget: its window, its limit, and what it has leased to whom.

Durable    SQLite with a write-ahead log and synchronous=FULL: `keep` returns after the log was
           flushed to the disk, and an order leaves only after that.
Alone      One server at a time holds the file; a second one is refused.

What a site of a quota must not forget when it is killed: what it used, and its bound.

Guarantee  What was used is one aligned word of a mapped file, stored before `acquire` returns; the
           bound is written down before a recall is answered. Both survive a process killed with
           -9. A machine that lost power may have lost the last seconds, so a journal that was not
           closed since the machine started anew is given up: the site begins as another
           incarnation, and what its lease had left is lost.

What a quota's server knows of what each incarnation of each site holds.
"""

import heapq
import os
import sqlite3
import struct
from array import array
from collections.abc import Container, Iterable, Iterator, MutableSequence, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

from casemate.errors import Misconfigured
from casemate.privacy.book import connected, locked, make_durable
from casemate.track.journal import Mapped, held, new_number, opened
from casemate.track.quota.messages import Numbered

_RECORD = struct.Struct("<QQQq")  # window, sequence, bound, ceiling (-1: none)
_BOOT, _CLOSED = slice(1, 3), 3  # words of the file; the first is what was used
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

Cells = MutableSequence[int] | memoryview
"""What was used is the first of them."""


@dataclass(frozen=True)
class OrderStanding:
    """The newest order that a site follows, and what it makes of it."""

    window: int = 0
    sequence: int = 0
    bound: int = 0
    ceiling: int | None = None


class SiteJournal(Protocol):
    """Somewhere to keep what was used, and a standing."""

    incarnation: int
    cells: Cells

    def load(self) -> OrderStanding:
        """The newest standing."""
        ...

    def save(self, standing: OrderStanding) -> None:
        """Write the standing down."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class QuotaMemoryJournal:
    """A journal that ends with its process."""

    def __init__(self, incarnation: int | None = None) -> None:
        self.incarnation = new_number() if incarnation is None else incarnation
        self.cells: Cells = array("Q", [0])
        self._standing = OrderStanding()

    def load(self) -> OrderStanding:
        """What was saved last."""
        return self._standing

    def save(self, standing: OrderStanding) -> None:
        """Keep it."""
        self._standing = standing

    def close(self) -> None:
        """Nothing is held."""


class QuotaFileJournal:
    """A journal in a mapped file, which one process at a time may hold."""

    def __init__(self, path: Path, boot: bytes | None = None) -> None:
        start = struct.unpack("<QQ", _this_start() if boot is None else boot)
        self._mapped = Mapped(path, b"casequot", "a quota's site")
        self.cells: Cells = self._mapped.words
        if not self._is_whole(start):
            self._mapped.begin_anew()
        self.incarnation = self._mapped.incarnation
        self._mapped.words[1], self._mapped.words[2] = start
        self._mapped.words[_CLOSED] = 0
        self._mapped.flush()

    def _is_whole(self, start: tuple[int, ...]) -> bool:
        """Whether nothing of the file can have been lost."""
        words = self._mapped.words
        return bool(words[_CLOSED]) or (tuple(words[_BOOT]) == start and any(start))

    def load(self) -> OrderStanding:
        """The newest standing that was written whole."""
        record = self._mapped.newest()
        if record is None:
            return OrderStanding()
        window, sequence, bound, ceiling = _RECORD.unpack(record)
        return OrderStanding(window, sequence, bound, None if ceiling < 0 else ceiling)

    def save(self, standing: OrderStanding) -> None:
        """Write the standing down beside the one before."""
        at, ceiling = standing, -1 if standing.ceiling is None else standing.ceiling
        self._mapped.keep(_RECORD.pack(at.window, at.sequence, at.bound, ceiling))

    def close(self) -> None:
        """Flush the file, say that nothing is missing, and let go of it."""
        self._mapped.flush()
        self._mapped.words[_CLOSED] = 1
        self._mapped.flush()
        self._mapped.close()


def _this_start() -> bytes:
    """What tells this start of the machine from others; zeros, which are never trusted, if none."""
    try:
        return bytes.fromhex(_BOOT_ID.read_text("ascii").strip().replace("-", ""))[:16]
    except (OSError, ValueError):
        return bytes(16)


# Holdings ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Holding:
    """One incarnation of a site, as the server knows it."""

    site: str
    incarnation: int
    sequence: int = 0  # of the newest order to it
    bound: int = 0  # the most it may ever use, whatever arrives
    used: int = 0  # what it has said to have used; it may be more by now
    told: int | None = None  # the ceiling in the newest order
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
    """All of them, with their sums, and the largest at hand."""

    def __init__(self, kept: Iterable[Holding]) -> None:
        self._rows: dict[tuple[str, int], Holding] = {}
        self._of_site: dict[str, list[Holding]] = {}
        self._heap: list[tuple[int, int, Holding]] = []  # larger first; some entries are outdated
        self._number = count()
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
        return [each for each in self._of_site[row.site] if each is not row]

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
        self._push(row)

    def donors(self, need: int, many: int, but: Container[int]) -> list[Holding]:
        """The largest of those who answer: as many as asked for, and enough that halves may do."""
        chosen: list[Holding] = []
        seen: dict[int, Holding] = {}
        while self._heap and (need > 0 or len(chosen) < many):
            left, _, row = heapq.heappop(self._heap)
            if -left != row.left or row.silent or id(row) in seen:
                continue
            seen[id(row)] = row
            if id(row) not in but:
                chosen.append(row)
                need -= (row.left + 1) // 2
        for row in seen.values():
            self._push(row)
        return chosen

    def _insert(self, row: Holding) -> None:
        self._rows[row.site, row.incarnation] = row
        self._of_site.setdefault(row.site, []).append(row)
        self._count(row, 1)
        self._push(row)

    def _count(self, row: Holding, sign: int) -> None:
        self.granted += sign * row.bound
        if not row.silent:
            self.bound += sign * row.bound
            self.used += sign * min(row.used, row.bound)

    def _push(self, row: Holding) -> None:
        if row.left == 0 or row.silent:
            return
        heapq.heappush(self._heap, (-row.left, next(self._number), row))
        if len(self._heap) > 4 * len(self._rows) + 64:
            self._heap = [(-each.left, next(self._number), each) for each in self]
            heapq.heapify(self._heap)


# Server journal ---------------------------------------------------------------------------------


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
