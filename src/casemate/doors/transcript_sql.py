"""The entries of a transcript in an SQL table, written once for SQLite and PostgreSQL."""

from collections.abc import Sequence
from typing import Any, Protocol

from casemate.doors.entry import COLUMNS, Entry

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


class Session(Protocol):
    """A connection of either engine; parameters stand at `?`."""

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any:
        """Run one statement and return a cursor."""
        ...


class SqlBook:
    """The entries as one connection sees them."""

    def __init__(self, session: Session, prefix: str) -> None:
        self._session, self._table = session, f"{prefix}transcript"

    def newest(self) -> Entry | None:
        """The last entry."""
        return self._one("ORDER BY number DESC LIMIT 1")

    def find(self, key: str) -> Entry | None:
        """The entry under this key."""
        return self._one("WHERE key = ?", key)

    def latest(self, run: str) -> Entry | None:
        """The newest entry of this run."""
        return self._one("WHERE run = ? ORDER BY number DESC LIMIT 1", run)

    def rows(self, first: int, count: int) -> Sequence[Entry]:
        """At most `count` entries in order, from number `first`."""
        return self._select("WHERE number >= ? ORDER BY number LIMIT ?", first, count)

    def of_kinds(self, kinds: Sequence[str], first: int) -> Sequence[Entry]:
        """Every entry of these kinds in order, from number `first`."""
        marks = ", ".join("?" * len(kinds))
        clauses = f"WHERE kind IN ({marks}) AND number >= ? ORDER BY number"
        return self._select(clauses, *kinds, first)

    def append(self, entry: Entry) -> None:
        """Write the next entry."""
        marks = ", ".join("?" * len(COLUMNS))
        row = [getattr(entry, name) for name in COLUMNS]
        self._session.execute(f"INSERT INTO {self._table} ({_COLUMNS}) VALUES ({marks})", row)

    def _one(self, clauses: str, *parameters: object) -> Entry | None:
        return next(iter(self._select(clauses, *parameters)), None)

    def _select(self, clauses: str, *parameters: object) -> list[Entry]:
        sql = f"SELECT {_COLUMNS} FROM {self._table} {clauses}"
        return [Entry(*row) for row in self._session.execute(sql, parameters).fetchall()]
