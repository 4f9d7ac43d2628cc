"""DuckDB as a source: CSV and Parquet files, DuckDB files, and tables held in memory.

Locked     Everything is opened first; then the engine may read the Parquet files it was given and
           its own temporary folder, nothing else, and no setting can be changed any more.
           Database files are attached read only, and every query runs in a read-only transaction.
Memory     What does not fit `memory_limit` is written to a temporary folder that only this user
           can enter and that `close` removes.
Threads    `read` opens a cursor of its own, so several threads may call it at once.
"""

import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence

import duckdb

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.duckdb_cells import CellReading, fetch, identity, read_cell, reading
from casemate.table.sources.exactness import NEEDS_KEY, check_key, no_column
from casemate.table.sources.files import PROGRESS_BAR, Opening, Place, connected
from casemate.table.sources.place import DuckDBTable
from casemate.table.sources.source import (
    OUT_OF_RANGE,
    PERSON,
    READ_FAILED,
    RECORD,
    Frame,
    SelectedFrom,
    quoted,
)
from casemate.table.sources.types import ByPolicy


class DuckDBSource:
    """A protected table, and the public tables beside it, in a DuckDB of their own."""

    dialect = "duckdb"

    def __init__(
        self,
        protected: Place,
        *,
        key: str | None = None,
        public: Mapping[str, tuple[Place, str]] | None = None,
        types: Mapping[str, ColumnType] | None = None,
        memory_limit: str | None = None,
        person: str | None = None,
        by_policy: ByPolicy | None = None,
    ) -> None:
        """Open the tables; `public` gives each public table's place and key.

        Without a `key`, a file's record is the row's position, and a database table's its primary
        key if that is one column. `types` says how to read the columns of CSV files;
        `memory_limit` is a size like "2GB"; `person` is the column that says whose row it is.
        With `by_policy` nothing is refused because of what a cell of the protected table holds.
        """
        folder = tempfile.mkdtemp(prefix="casemate-")
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._fields: dict[str | None, dict[str, ColumnType]] = {}
        self._cells: dict[str | None, SelectedFrom] = {}
        self._left_out: dict[str, str] = {}
        self._stored: dict[str, str] = {}
        self._lock = threading.Lock()
        self.key, self._person = key, person
        try:
            self._connection = connected(folder, memory_limit)
            self._open(protected, public or {}, types or {}, by_policy)
        except BaseException:
            self.close()
            raise

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns of the protected table that queries cannot use, with the engine's types."""
        return self._left_out

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        return quoted("casemate_table") if public is None else quoted("casemate_public", public)

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self._fields[public]

    def cells(self, public: str | None = None) -> SelectedFrom:
        """A relation as the engine has it, before it is shown in casemate's types."""
        return self._cells[public]

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SET {PROGRESS_BAR} = false")
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                return _read(cursor, sql)
        except duckdb.OutOfRangeException:
            raise Misconfigured(OUT_OF_RANGE) from None
        except duckdb.Error:
            raise Misconfigured(READ_FAILED) from None

    def stored(self, sql: str) -> str:
        """The name of a table of the rows of a SELECT, which is run once."""
        with self._lock:
            if sql not in self._stored:
                name = quoted(f"casemate_stored{len(self._stored)}")
                try:
                    with self._connection.cursor() as cursor:
                        cursor.execute(f"SET {PROGRESS_BAR} = false")
                        cursor.execute(f"CREATE TABLE {name} AS {sql}")
                except duckdb.Error:
                    raise Misconfigured(READ_FAILED) from None
                self._stored[sql] = name
            return self._stored[sql]

    def close(self) -> None:
        """Let go of the files and remove the temporary folder."""
        if hasattr(self, "_connection"):
            self._connection.close()
        self._remove_folder()

    def _open(
        self,
        protected: Place,
        public: Mapping[str, tuple[Place, str]],
        types: Mapping[str, ColumnType],
        by_policy: ByPolicy | None,
    ) -> None:
        opening = Opening(self._connection)
        if self.key is None and isinstance(protected, DuckDBTable):
            self.key = opening.primary_key(protected)
        if by_policy is None:
            self._show(None, opening.relation(protected, types))
        else:
            self._show_by_policy(opening.raw(protected), by_policy)
        self._connection.execute("CREATE SCHEMA casemate_public")
        for name, (place, _) in public.items():
            self._show(name, opening.relation(place, {}))
        opening.lock()
        if self.key is not None and by_policy is None:
            check_key(self, self.key)
        for name, (_, public_key) in public.items():
            check_key(self, public_key, public=name)

    def _show(self, public: str | None, relation: SelectedFrom) -> None:
        """Make the view that queries see: casemate's types, and the record's identity first."""
        self._cells[public] = relation
        readings = {column: reading(word) for column, word in relation.columns.items()}
        usable = {column: how for column, how in readings.items() if how is not None}
        if not usable:
            raise Misconfigured("the table has no column of a type that queries can use")
        shown = [f"{how.of(quoted(column))} AS {quoted(column)}" for column, how in usable.items()]
        if public is None:
            self._left_out = {c: w for c, w in relation.columns.items() if c not in usable}
            shown.insert(0, f"{_record(relation, usable, self.key)} AS {RECORD}")
            if self._person in usable:
                shown.append(f"{usable[self._person].of(quoted(self._person))} AS {PERSON}")
        self._connection.execute(
            f"CREATE VIEW {self.relation(public)} AS SELECT {', '.join(shown)} FROM {relation.text}"
        )
        self._fields[public] = {column: how.type for column, how in usable.items()}

    def _show_by_policy(self, relations: Sequence[SelectedFrom], by_policy: ByPolicy) -> None:
        """Make what queries see of the protected table, or its rows where a file's are loaded."""
        columns = relations[0].columns
        by_policy.require(columns)
        for what, name in (("key", self.key), ("table.person", self._person)):
            if name is not None and name not in columns:
                raise no_column(what, name, columns)
        selects = [self._select_by_policy(each, by_policy) for each in relations]
        kind = "TABLE" if relations[0].written else "VIEW"
        self._connection.execute(
            f"CREATE {kind} {self.relation()} AS {' UNION ALL '.join(selects)}"
        )
        if relations[0].written:
            self._connection.execute(f"DROP TABLE {relations[0].text}")
        self._fields[None] = by_policy.types()

    def _select_by_policy(self, relation: SelectedFrom, by_policy: ByPolicy) -> str:
        columns = relation.columns
        shown = by_policy.shown(lambda name, wanted: read_cell(quoted(name), columns[name], wanted))
        record = relation.position
        if self.key is not None:
            record = identity(quoted(self.key), columns[self.key])
        if record is None:
            raise Misconfigured(NEEDS_KEY)
        shown.insert(0, f"{record} AS {RECORD}")
        if self._person is not None:
            shown.append(f"{identity(quoted(self._person), columns[self._person])} AS {PERSON}")
        return f"SELECT {', '.join(shown)} FROM {relation.text}"


def _record(relation: SelectedFrom, usable: Mapping[str, CellReading], key: str | None) -> str:
    """The expression that tells one record from all others."""
    if key is not None:
        if key not in usable:
            raise no_column("key", key, usable)
        return usable[key].of(quoted(key))
    if relation.position is None:
        raise Misconfigured(NEEDS_KEY)
    return relation.position


def _read(cursor: duckdb.DuckDBPyConnection, sql: str) -> Frame:
    statements = cursor.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise ValueError("a source reads one SELECT at a time")
    query = sql.strip().rstrip(";")
    described = cursor.execute(f"DESCRIBE SELECT * FROM (\n{query}\n)").fetchall()
    fetches = {
        name: fetch(engine_type, f"c{place}")
        for place, (name, engine_type, *_) in enumerate(described)
    }
    columns = ", ".join(f"c{place}" for place in range(len(described)))
    wanted = [expression for how in fetches.values() for expression in how.expressions]
    selected = ", ".join(f"{expression} AS e{place}" for place, expression in enumerate(wanted))
    arrays = iter(
        cursor.execute(f"SELECT {selected} FROM (\n{query}\n) AS q({columns})")
        .fetchnumpy()
        .values()
    )
    return {
        name: how.read(*(next(arrays) for _ in how.expressions)) for name, how in fetches.items()
    }
