"""PostgreSQL as a source, through psycopg (the extra `casemate[postgres]`).

Read only  The session is read only, and every query is a subquery of one SELECT that is sent by
           the extended protocol, which takes a single statement.
One moment All queries of a source see the table as it was when it was opened (one repeatable-read
           transaction), so records do not come and go between them.
Threads    There is one connection; `read` takes a lock, so threads wait for each other.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.cells import POSTGRES_CELLS
from casemate.table.sources.csv import check_names
from casemate.table.sources.engine_tables import EngineTables
from casemate.table.sources.formats import FormatOf, plain_cells
from casemate.table.sources.place import PostgresTable, redact_source
from casemate.table.sources.source import (
    NEEDS_KEY,
    OUT_OF_RANGE,
    READ_FAILED,
    Frame,
    SelectedFrom,
    Series,
    check_key,
    quote_name,
)
from casemate.table.sources.types import ByPolicy

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Buffer


def result_type(oid: int) -> ColumnType:
    """The type of a result's column, from PostgreSQL's number for it."""
    import psycopg

    known = psycopg.adapters.types.get(oid)
    word = known.name if known else "user-defined"
    how = POSTGRES_CELLS.reading(word)
    if word in ("uuid", "json", "jsonb") or how is None:
        raise ValueError(f"a query must not return a column of type {word}")
    return how.type


EPOCH = datetime(2000, 1, 1)
"""Where PostgreSQL's days and microseconds begin."""


# The source --------------------------------------------------------------------------------------


class PostgresSource(EngineTables):
    """A protected table of a PostgreSQL database, and public tables of the same database."""

    dialect = "postgres"
    dialect_cells = POSTGRES_CELLS

    def __init__(
        self,
        protected: PostgresTable,
        *,
        key: str | None = None,
        public: Mapping[str, tuple[PostgresTable, str]] | None = None,
        types: Mapping[str, ColumnType] | None = None,
        format_of: FormatOf = plain_cells,
        person: str | None = None,
        by_policy: ByPolicy | None = None,
    ) -> None:
        """Open the tables; without a `key`, the primary key is taken if it is one column.

        `types` and `format_of` say how to read columns of text; `person` is the column that says
        whose row it is. With `by_policy` nothing is refused
        because of what a cell of the protected table holds.
        """
        super().__init__(key, person)
        self._lock = threading.Lock()
        self._relations: dict[str | None, str] = {}
        self._types, self._format_of = types or {}, format_of
        self._connection = _connect(protected)
        try:
            self._show(None, protected, by_policy)
            for name, (place, public_key) in (public or {}).items():
                self._show(name, place)
                check_key(self, public_key, public=name)
            self._ask("SET search_path = pg_catalog")  # from here on every name is a full one
        except BaseException:
            self.close()
            raise

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        return self._relations[public]

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        import psycopg

        query = sql.strip().rstrip(";")
        wrapped = f"SELECT * FROM (\n{query}\n) AS casemate_query"
        try:
            # The inner transaction is a savepoint: a query that fails takes nothing with it.
            with self._lock, self._connection.transaction(), self._connection.cursor() as cursor:
                cursor.execute(wrapped.encode(), binary=True)
                names = {column.name: column.type_code for column in cursor.description or ()}
                rows = cursor.fetchall()
        except psycopg.errors.NumericValueOutOfRange:
            raise Misconfigured(OUT_OF_RANGE) from None
        except psycopg.Error:
            raise Misconfigured(READ_FAILED) from None
        columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(names)
        return {
            name: Series.of(column, result_type(oid))
            for (name, oid), column in zip(names.items(), columns, strict=True)
        }

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _show(
        self, public: str | None, place: PostgresTable, by_policy: ByPolicy | None = None
    ) -> None:
        """Describe a table as queries see it."""
        table = self._full_name(place)
        relation = SelectedFrom(quote_name(*table), self._columns(table))
        if public is None:
            self.key = self.key or self._primary_key(table)
        if by_policy is not None:
            self._relations[None] = f"({self._select_by_policy(relation, by_policy)})"
            return
        check_names(".".join(table), list(relation.columns))
        if public is None:
            relation = self._as_declared(relation, self._types, self._format_of)
        self._relations[public] = f"({self._select_typed(public, relation)})"
        if public is None and self.key is not None:
            check_key(self, self.key)

    def _full_name(self, place: PostgresTable) -> tuple[str, str]:
        found = self._ask(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            quote_name(*place.table),
        )
        if not found:
            raise Misconfigured(f"the database has no table {'.'.join(place.table)}")
        return found[0][0], found[0][1]

    def _columns(self, table: tuple[str, str]) -> dict[str, str]:
        """PostgreSQL's name for the type of each column: what a domain is made of, ENUM as text."""
        return dict(
            self._ask(
                "WITH RECURSIVE made_of AS ("
                " SELECT a.attnum, a.attname, a.atttypid AS type FROM pg_attribute a"
                " WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped"
                " UNION ALL SELECT m.attnum, m.attname, t.typbasetype"
                " FROM made_of m JOIN pg_type t ON t.oid = m.type WHERE t.typtype = 'd') "
                "SELECT attname, CASE t.typtype WHEN 'e' THEN 'text' ELSE t.typname END "
                "FROM made_of m JOIN pg_type t ON t.oid = m.type "
                "WHERE t.typtype <> 'd' ORDER BY attnum",
                quote_name(*table),
            )
        )

    def _primary_key(self, table: tuple[str, str]) -> str:
        found = self._ask(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
            "AND a.attnum = ANY(i.indkey) WHERE i.indisprimary AND i.indrelid = to_regclass(%s)",
            quote_name(*table),
        )
        if len(found) != 1:
            raise Misconfigured(NEEDS_KEY)
        return str(found[0][0])

    def _ask(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        """Run a statement of our own, on the catalog only."""
        import psycopg

        try:
            cursor = self._connection.execute(sql.encode(), values)
            return cursor.fetchall() if cursor.description else []
        except psycopg.Error:
            raise Misconfigured(READ_FAILED) from None


def _connect(place: PostgresTable) -> "psycopg.Connection":
    try:
        import psycopg
    except ImportError:
        raise Misconfigured(
            "a PostgreSQL table needs the package psycopg: pip install 'casemate[postgres]'"
        ) from None
    try:
        connection = psycopg.connect(place.url)
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SET standard_conforming_strings = on")
        connection.execute("SET DateStyle = 'ISO, YMD'")  # dates and doubles have one text
        connection.execute("SET extra_float_digits = 1")
    except psycopg.Error:  # its text may quote the user, the host or the password
        raise Misconfigured(
            f"cannot connect to {redact_source(place.source)}; check the address, the user and the "
            f"password, and that the server is running"
        ) from None
    _tolerate(connection)
    return connection


def _tolerate(connection: "psycopg.Connection") -> None:
    """Read dates and timestamps that Python cannot hold as NULL on this connection.

    psycopg's own loaders raise an error on infinity and on years before 1 or after 9999, and the
    error quotes the value.
    """
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    def loader(read: Callable[[int], date]) -> type[Loader]:
        class Tolerant(Loader):
            format = Format.BINARY

            def load(self, data: "Buffer") -> date | None:
                try:
                    return read(int.from_bytes(data, "big", signed=True))
                except OverflowError:
                    return None

        return Tolerant

    day = loader(lambda days: EPOCH.date() + timedelta(days=days))
    moment = loader(lambda steps: EPOCH + timedelta(microseconds=steps))  # in UTC, with a zone
    for name, each in (("date", day), ("timestamp", moment), ("timestamptz", moment)):
        connection.adapters.register_loader(name, each)
