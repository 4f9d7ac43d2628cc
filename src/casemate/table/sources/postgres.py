"""PostgreSQL as a source, through psycopg (the extra `casemate[postgres]`).

Read only  The session is read only, and every query is a subquery of one SELECT that is sent by
           the extended protocol, which takes a single statement.
One moment All queries of a source see the table as it was when it was opened (one repeatable-read
           transaction), so records do not come and go between them.
Threads    There is one connection; `read` takes a lock, so threads wait for each other.

PostgreSQL's types and casemate's seven, both ways.

Left out   Columns of other types (times of day, intervals, bytes, arrays, ranges, addresses) are
           not shown to queries; naming one in a policy is a mistake.
Zones      A timestamp with a time zone becomes the same instant in UTC, without a zone.
Domains    A domain is what it is made of; an ENUM is text.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.csv import check_names
from casemate.table.sources.exactness import NEEDS_KEY, check_key, no_column
from casemate.table.sources.place import PostgresTable, shown
from casemate.table.sources.postgres_cells import identity, read_cell
from casemate.table.sources.source import (
    OUT_OF_RANGE,
    PERSON,
    READ_FAILED,
    RECORD,
    Frame,
    SelectedFrom,
    Series,
    quoted,
)
from casemate.table.sources.types import ByPolicy

if TYPE_CHECKING:
    import psycopg


TYPES = {
    "bool": ColumnType.BOOLEAN,
    "int2": ColumnType.INTEGER,
    "int4": ColumnType.INTEGER,
    "int8": ColumnType.INTEGER,
    "numeric": ColumnType.DECIMAL,
    "float4": ColumnType.DOUBLE,
    "float8": ColumnType.DOUBLE,
    "text": ColumnType.TEXT,
    "varchar": ColumnType.TEXT,
    "bpchar": ColumnType.TEXT,
    "name": ColumnType.TEXT,
    "uuid": ColumnType.TEXT,
    "json": ColumnType.TEXT,
    "jsonb": ColumnType.TEXT,
    "date": ColumnType.DATE,
    "timestamp": ColumnType.TIMESTAMP,
    "timestamptz": ColumnType.TIMESTAMP,
}
"""PostgreSQL's types; an ENUM is text too. Columns of other types are left out."""

CASTS = {
    ColumnType.INTEGER: "CAST({} AS bigint)",
    ColumnType.DOUBLE: "CAST({} AS double precision)",
    ColumnType.TEXT: "CAST({} AS text)",
}


def reading(name: str, word: str) -> str:
    """The expression that shows a column in one of casemate's types."""
    if word == "timestamptz":
        return f"({quoted(name)} AT TIME ZONE 'UTC')"
    return CASTS.get(TYPES[word], "{}").format(quoted(name))


def result_type(oid: int) -> ColumnType:
    """The type of a result's column, from PostgreSQL's number for it."""
    import psycopg

    known = psycopg.adapters.types.get(oid)
    word = known.name if known else "user-defined"
    if word in ("uuid", "json", "jsonb") or word not in TYPES:
        raise ValueError(f"a query must not return a column of type {word}")
    return TYPES[word]


STORAGE: dict[ColumnType, tuple[type, object]] = {
    ColumnType.BOOLEAN: (np.bool_, False),
    ColumnType.INTEGER: (np.int64, 0),
    ColumnType.DOUBLE: (np.float64, 0.0),
}


def series(column: Sequence[Any], type_: ColumnType) -> Series:
    """The cells of a result's column as arrays."""
    missing = np.fromiter((value is None for value in column), np.bool_, len(column))
    storage, filler = STORAGE.get(type_, (object, None))
    values: NDArray[Any] = np.empty(len(column), dtype=storage)
    values[:] = [filler if value is None else value for value in column]
    return Series(values, missing)


# Postgres source --------------------------------------------------------------------------------


class PostgresSource:
    """A protected table of a PostgreSQL database, and public tables of the same database."""

    dialect = "postgres"

    def __init__(
        self,
        protected: PostgresTable,
        *,
        key: str | None = None,
        public: Mapping[str, tuple[PostgresTable, str]] | None = None,
        person: str | None = None,
        by_policy: ByPolicy | None = None,
    ) -> None:
        """Open the tables; without a `key`, the primary key is taken if it is one column.

        `person` is the column that says whose row it is. With `by_policy` nothing is refused
        because of what a cell of the protected table holds.
        """
        self._lock = threading.Lock()
        self._relations: dict[str | None, str] = {}
        self._fields: dict[str | None, dict[str, ColumnType]] = {}
        self._cells: dict[str | None, SelectedFrom] = {}
        self._left_out: dict[str, str] = {}
        self._connection = _connected(protected)
        try:
            if by_policy is None:
                self.key = self._show(None, protected, key, person)
                check_key(self, self.key)
            else:
                self.key = self._show_by_policy(protected, key, person, by_policy)
            for name, (place, public_key) in (public or {}).items():
                self._show(name, place, public_key)
                check_key(self, public_key, public=name)
            self._ask("SET search_path = pg_catalog")  # from here on every name is a full one
        except BaseException:
            self.close()
            raise

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns of the protected table that queries cannot use, with the engine's types."""
        return self._left_out

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        return self._relations[public]

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self._fields[public]

    def cells(self, public: str | None = None) -> SelectedFrom:
        """A relation as the engine has it, before it is shown in casemate's types."""
        return self._cells[public]

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
            name: series(column, result_type(oid))
            for (name, oid), column in zip(names.items(), columns, strict=True)
        }

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _show(
        self, public: str | None, place: PostgresTable, key: str | None, person: str | None = None
    ) -> str:
        """Describe a table as queries see it, and return its key."""
        table = self._full_name(place)
        found = self._columns(table)
        check_names(".".join(table), list(found))
        usable = {name: TYPES[word] for name, word in found.items() if word in TYPES}
        key = key or self._primary_key(table)
        if key not in usable:
            raise no_column("key" if public is None else f"public.{public}.key", key, usable)
        columns = [f"{reading(name, found[name])} AS {quoted(name)}" for name in usable]
        if public is None:
            self._left_out = {name: word for name, word in found.items() if name not in usable}
            columns.insert(0, f"{reading(key, found[key])} AS {RECORD}")
            if person in usable:
                columns.append(f"{reading(person, found[person])} AS {PERSON}")
        self._relations[public] = f"(SELECT {', '.join(columns)} FROM {quoted(*table)})"
        self._cells[public] = SelectedFrom(quoted(*table), found)
        self._fields[public] = usable
        return key

    def _show_by_policy(
        self, place: PostgresTable, key: str | None, person: str | None, by_policy: ByPolicy
    ) -> str:
        """Describe the protected table as its policy reads it, and return its key."""
        table = self._full_name(place)
        found = self._columns(table)
        by_policy.require(found)
        key = key or self._primary_key(table)
        for what, name in (("key", key), ("table.person", person)):
            if name is not None and name not in found:
                raise no_column(what, name, found)
        columns = by_policy.shown(lambda name, wanted: read_cell(quoted(name), found[name], wanted))
        columns.insert(0, f"{identity(quoted(key), found[key])} AS {RECORD}")
        if person is not None:
            columns.append(f"{identity(quoted(person), found[person])} AS {PERSON}")
        self._relations[None] = f"(SELECT {', '.join(columns)} FROM {quoted(*table)})"
        self._fields[None] = by_policy.types()
        return key

    def _full_name(self, place: PostgresTable) -> tuple[str, str]:
        found = self._ask(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n "
            "ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)",
            quoted(*place.table),
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
                quoted(*table),
            )
        )

    def _primary_key(self, table: tuple[str, str]) -> str:
        found = self._ask(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid "
            "AND a.attnum = ANY(i.indkey) WHERE i.indisprimary AND i.indrelid = to_regclass(%s)",
            quoted(*table),
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


def _connected(place: PostgresTable) -> "psycopg.Connection":
    try:
        import psycopg

        from casemate.table.sources.postgres_dates import tolerate
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
            f"cannot connect to {shown(place.source)}; check the address, the user and the "
            f"password, and that the server is running"
        ) from None
    tolerate(connection)
    return connection
