"""Where a ledger's rows live: the narrow interface, and the form that lives in memory.

A store runs a piece of work on its book, alone and all or nothing, and returns only when what the
work wrote is durable. The rules of charging know nothing else about it.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from casemate.privacy.ledger.entry import LedgerEntry, RowKind, State

Result = TypeVar("Result")


class LedgerBook(Protocol):
    """The rows of one ledger inside a transaction."""

    def state(self) -> State:
        """The newest row's number and hash, and the totals after it."""
        ...

    def find(self, kind: RowKind, key: str) -> LedgerEntry | None:
        """The row of this kind and key; there is at most one."""
        ...

    def latest(self, kind: RowKind, principal: str) -> LedgerEntry | None:
        """The newest row of this kind and principal."""
        ...

    def rows(self, first: int, count: int) -> Sequence[LedgerEntry]:
        """At most `count` rows in order, from number `first`."""
        ...

    def append(self, entry: LedgerEntry, state: State) -> None:
        """Write the next row, and the state after it."""
        ...


class LedgerStore(Protocol):
    """Something that keeps a book."""

    @property
    def commits(self) -> int:
        """How many transactions were committed so far."""
        ...

    def run(self, work: Callable[[LedgerBook], Result]) -> Result:
        """Do the work in a transaction, and return its result once that is durable.

        Work that is refused raises before it writes anything, never after.
        """
        ...

    def close(self) -> None:
        """Finish what was begun and let go of files and connections."""
        ...


class LedgerInMemory:
    """A ledger that ends with the process: for simulations, which promise nothing to anybody."""

    def __init__(self) -> None:
        self.commits = 0
        self._lock = threading.Lock()
        self._state = State()
        self._rows: list[LedgerEntry] = []
        self._found: dict[tuple[str, str], LedgerEntry] = {}
        self._latest: dict[tuple[str, str], LedgerEntry] = {}

    def run(self, work: Callable[[LedgerBook], Result]) -> Result:
        """Do the work while nobody else does any."""
        with self._lock:
            result = work(self)
            self.commits += 1
            return result

    def close(self) -> None:
        """Nothing to let go of."""

    def state(self) -> State:
        """The state after the newest row."""
        return self._state

    def find(self, kind: RowKind, key: str) -> LedgerEntry | None:
        """The row of this kind and key."""
        return self._found.get((kind, key))

    def latest(self, kind: RowKind, principal: str) -> LedgerEntry | None:
        """The newest row of this kind and principal."""
        return self._latest.get((kind, principal))

    def rows(self, first: int, count: int) -> Sequence[LedgerEntry]:
        """At most `count` rows in order, from number `first`."""
        return self._rows[first : first + count]

    def append(self, entry: LedgerEntry, state: State) -> None:
        """Write the next row."""
        self._rows.append(entry)
        self._found[entry.kind, entry.key] = entry
        self._latest[entry.kind, entry.principal] = entry
        self._state = state
