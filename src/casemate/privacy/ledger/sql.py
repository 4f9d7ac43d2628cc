"""The book of a ledger in SQL tables, written once for SQLite and PostgreSQL.

Two tables: `entries`, which only grows, and `head`, one row that names the newest entry and holds
the totals after it. The database itself refuses a total above the budget (CHECK), a second row of
one kind and key (UNIQUE), and any change of an entry (triggers, written by each engine's module).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from casemate.errors import LedgerDamaged
from casemate.privacy.cost import Currency
from casemate.privacy.ledger.entry import (
    COLUMNS,
    START,
    LedgerEntry,
    RowKind,
    State,
    require_newest,
    row_of,
)
from casemate.privacy.ledger.terms import Total, whole_units


class LedgerSession(Protocol):
    """A connection of either engine; parameters stand at `?`."""

    def execute(self, sql: str, parameters: Sequence[Any], /) -> Any:
        """Run one statement and return a cursor."""
        ...

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> object:
        """Run one statement for each row of parameters."""
        ...


TABLES = (
    """CREATE TABLE {prefix}entries (
        number {integer} PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL CHECK (kind IN ('terms', 'charge', 'output')),
        key TEXT NOT NULL,
        principal TEXT NOT NULL,
        purpose TEXT NOT NULL,
        cost_text TEXT NOT NULL,
        output {bytes} NOT NULL,
        total_text TEXT NOT NULL,
        principal_total_text TEXT NOT NULL,
        units {integer} NOT NULL CHECK (units >= 0),
        at TEXT NOT NULL,
        hash {bytes} NOT NULL CHECK (length(hash) = 32),
        UNIQUE (kind, key)
    )""",
    "CREATE INDEX {prefix}latest ON {prefix}entries (kind, principal, number)",
    """CREATE TABLE {prefix}head (
        one {integer} PRIMARY KEY CHECK (one = 1),
        number {integer} NOT NULL CHECK (number >= -1),
        hash {bytes} NOT NULL CHECK (length(hash) = 32),
        total_text TEXT NOT NULL,
        currency TEXT NOT NULL CHECK (currency IN ('epsilon', 'rho')),
        budget_text TEXT NOT NULL,
        units {integer} NOT NULL CHECK (units >= 0),
        budget_units {integer} NOT NULL,
        CHECK (units <= budget_units)
    )""",
)
FIRST_HEAD = "INSERT INTO {prefix}head VALUES (1, -1, ?, '0', 'epsilon', '0', 0, 0)"


class LedgerSqlBook:
    """The rows of one ledger inside one transaction of a database.

    New rows are kept back and written together, since each statement may be a journey to a server.
    """

    def __init__(self, session: LedgerSession, prefix: str, lock: str = "") -> None:
        self._session, self._prefix = session, prefix
        self._columns = ", ".join(COLUMNS)
        self.changed = False
        self._unwritten: list[LedgerEntry] = []
        self._found: dict[tuple[str, str], LedgerEntry] = {}  # rows of this transaction
        self._latest: dict[tuple[str, str], LedgerEntry | None] = {}
        self._state = self._read(lock)
        require_newest(self._state, self._one("ORDER BY number DESC LIMIT 1"))

    def state(self) -> State:
        """The state after the newest row, those of this transaction included."""
        return self._state

    def find(self, kind: RowKind, key: str) -> LedgerEntry | None:
        """The row of this kind and key."""
        new = self._found.get((kind, key))
        return new or self._one("WHERE kind = ? AND key = ?", kind.value, key)

    def latest(self, kind: RowKind, principal: str) -> LedgerEntry | None:
        """The newest row of this kind and principal."""
        place = (kind.value, principal)
        if place not in self._latest:
            newest = "WHERE kind = ? AND principal = ? ORDER BY number DESC LIMIT 1"
            self._latest[place] = self._one(newest, *place)
        return self._latest[place]

    def rows(self, first: int, count: int) -> Sequence[LedgerEntry]:
        """At most `count` rows in order, from number `first`."""
        self._write()
        return self._select("WHERE number >= ? ORDER BY number LIMIT ?", first, count)

    def append(self, entry: LedgerEntry, state: State) -> None:
        """Add the next row; it is written before the transaction ends."""
        self._unwritten.append(entry)
        self._found[entry.kind, entry.key] = entry
        self._latest[entry.kind, entry.principal] = entry
        self._state, self.changed = state, True

    def flush(self) -> None:
        """Write the new rows, and the head once for the whole transaction."""
        if not self.changed:
            return
        self._write()
        state = self._state
        self._session.execute(
            f"UPDATE {self._prefix}head SET number = ?, hash = ?, total_text = ?, currency = ?, "
            f"budget_text = ?, units = ?, budget_units = ? WHERE one = 1",
            (
                state.number,
                state.hash,
                state.total.to_text(),
                state.currency.value,
                str(state.budget),
                state.total.units,
                whole_units(state.budget),
            ),
        )

    def _write(self) -> None:
        if self._unwritten:
            marks = ", ".join("?" * len(COLUMNS))
            insert = f"INSERT INTO {self._prefix}entries ({self._columns}) VALUES ({marks})"
            self._session.executemany(insert, [row_of(entry) for entry in self._unwritten])
            self._unwritten = []

    def _read(self, lock: str) -> State:
        names = "number, hash, total_text, currency, budget_text"
        row = self._session.execute(f"SELECT {names} FROM {self._prefix}head{lock}", ()).fetchone()
        try:
            number, digest, total, currency, budget = row
            total, currency = Total.from_text(total), Currency(currency)
            return State(number, digest, total, currency, Fraction(budget))
        except (ValueError, ArithmeticError, TypeError) as reason:
            raise LedgerDamaged(
                "the head of the ledger cannot be read; restore it from a copy that verifies"
            ) from reason

    def _one(self, clauses: str, *parameters: object) -> LedgerEntry | None:
        return next(iter(self._select(clauses, *parameters)), None)

    def _select(self, clauses: str, *parameters: object) -> list[LedgerEntry]:
        sql = f"SELECT {self._columns} FROM {self._prefix}entries {clauses}"
        return [LedgerEntry(*row) for row in self._session.execute(sql, parameters).fetchall()]


def create(session: LedgerSession, prefix: str, **types: str) -> None:
    """Make the tables of an empty ledger."""
    for statement in TABLES:
        session.execute(statement.format(prefix=prefix, **types), ())
    session.execute(FIRST_HEAD.format(prefix=prefix), (START,))
