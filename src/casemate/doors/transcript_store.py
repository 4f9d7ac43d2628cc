"""Where a transcript's entries live: the narrow interface, and the form that lives in memory."""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from casemate.doors.entry import Entry

Result = TypeVar("Result")


class Book(Protocol):
    """The entries of one transcript, inside a transaction where it is written to."""

    def newest(self) -> Entry | None:
        """The last entry."""
        ...

    def find(self, key: str) -> Entry | None:
        """The entry under this key; there is at most one."""
        ...

    def latest(self, run: str) -> Entry | None:
        """The newest entry of this run of the gate."""
        ...

    def rows(self, first: int, count: int) -> Sequence[Entry]:
        """At most `count` entries in order, from number `first`."""
        ...

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[Entry]:
        """Every entry of these kinds in order, from number `first`."""
        ...

    def append(self, entry: Entry) -> None:
        """Write the next entry."""
        ...


class Store(Protocol):
    """Something that keeps the entries."""

    def read(self, look: Callable[[Book], Result]) -> Result:
        """Look at what is durable."""
        ...

    def run(self, work: Callable[[Book], Result]) -> Result:
        """Do the work alone and all or nothing; return its result once that is durable."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class MemoryStore:
    """A transcript that ends with the process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: list[Entry] = []
        self._found: dict[str, Entry] = {}
        self._latest: dict[str, Entry] = {}

    def read(self, look: Callable[[Book], Result]) -> Result:
        """Look while nobody writes."""
        with self._lock:
            return look(self)

    def run(self, work: Callable[[Book], Result]) -> Result:
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

    def newest(self) -> Entry | None:
        """The last entry."""
        return self._rows[-1] if self._rows else None

    def find(self, key: str) -> Entry | None:
        """The entry under this key."""
        return self._found.get(key)

    def latest(self, run: str) -> Entry | None:
        """The newest entry of this run."""
        return self._latest.get(run)

    def rows(self, first: int, count: int) -> Sequence[Entry]:
        """At most `count` entries in order, from number `first`."""
        return self._rows[first : first + count]

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[Entry]:
        """Every entry of these kinds in order, from number `first`."""
        return [entry for entry in self._rows[first:] if entry.kind in kinds]

    def append(self, entry: Entry) -> None:
        """Write the next entry."""
        self._rows.append(entry)
        self._found[entry.key] = entry
        self._latest[entry.run] = entry
