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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.cells import DUCKDB_CELLS, LARGE, read_date, read_moment
from casemate.table.sources.engine_tables import EngineTables
from casemate.table.sources.files import (
    PROGRESS_BAR,
    Opening,
    Place,
    connect_duckdb,
    interruptible,
)
from casemate.table.sources.formats import FormatOf, plain_cells
from casemate.table.sources.place import DuckDBTable, FileFormat, Files
from casemate.table.sources.source import (
    OUT_OF_RANGE,
    READ_FAILED,
    Frame,
    SelectedFrom,
    Series,
    check_key,
    quote_name,
)
from casemate.table.sources.types import ByPolicy


class DuckDBSource(EngineTables):
    """A protected table, and the public tables beside it, in a DuckDB of their own."""

    dialect = "duckdb"
    dialect_cells = DUCKDB_CELLS

    def __init__(
        self,
        protected: Place,
        *,
        key: str | None = None,
        public: Mapping[str, tuple[Place, str]] | None = None,
        types: Mapping[str, ColumnType] | None = None,
        format_of: FormatOf = plain_cells,
        memory_limit: str | None = None,
        person: str | None = None,
        by_policy: ByPolicy | None = None,
    ) -> None:
        """Open the tables; `public` gives each public table's place and key.

        Without a `key`, a file's record is the row's position, and a database table's its primary
        key if that is one column. `types` and `format_of` say how to read columns of text;
        `memory_limit` is a size like "2GB"; `person` is the column that says whose row it is.
        With `by_policy` nothing is refused because of what a cell of the protected table holds.
        """
        super().__init__(key, person)
        folder = tempfile.mkdtemp(prefix="casemate-")
        self._remove_folder = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._stored: dict[str, str] = {}
        self._lock = threading.Lock()
        try:
            self._connection = connect_duckdb(folder, memory_limit)
            with interruptible():
                self._open(protected, public or {}, types or {}, format_of, by_policy)
        except BaseException:
            self.close()
            raise

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        return (
            quote_name("casemate_table")
            if public is None
            else quote_name("casemate_public", public)
        )

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        try:
            with interruptible(), self._connection.cursor() as cursor:
                cursor.execute(f"SET {PROGRESS_BAR} = false")
                cursor.execute("BEGIN TRANSACTION READ ONLY")
                return _read(cursor, sql)
        except duckdb.OutOfRangeException:
            raise Misconfigured(OUT_OF_RANGE) from None
        except duckdb.Error:
            raise Misconfigured(READ_FAILED) from None

    def materialise(self, sql: str) -> str:
        """The name of a table of the rows of a SELECT, which is run once."""
        with self._lock:
            if sql not in self._stored:
                name = quote_name(f"casemate_stored{len(self._stored)}")
                try:
                    with interruptible(), self._connection.cursor() as cursor:
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
        format_of: FormatOf,
        by_policy: ByPolicy | None,
    ) -> None:
        opening = Opening(self._connection)
        if self.key is None and isinstance(protected, DuckDBTable):
            self.key = opening.primary_key(protected)
        if by_policy is None:
            relation = opening.relation(protected, types, format_of)
            if not (isinstance(protected, Files) and protected.format is FileFormat.CSV):
                relation = self._as_declared(relation, types, format_of)
            self._show(None, relation)
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
        """Make the view that queries see of a table."""
        select = self._select_typed(public, relation)
        self._connection.execute(f"CREATE VIEW {self.relation(public)} AS {select}")

    def _show_by_policy(self, relations: Sequence[SelectedFrom], by_policy: ByPolicy) -> None:
        """Make what queries see of the protected table, or its rows where a file's are loaded."""
        selects = " UNION ALL ".join(self._select_by_policy(each, by_policy) for each in relations)
        kind = "TABLE" if relations[0].written else "VIEW"
        self._connection.execute(f"CREATE {kind} {self.relation()} AS {selects}")
        if relations[0].written:
            self._connection.execute(f"DROP TABLE {relations[0].text}")


def _read(cursor: duckdb.DuckDBPyConnection, sql: str) -> Frame:
    statements = cursor.extract_statements(sql)
    if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
        raise ValueError("a source reads one SELECT at a time")
    query = sql.strip().rstrip(";")
    bound = cursor.sql(f"SELECT * FROM (\n{query}\n)")  # which is not run, unlike a statement
    fetches = {
        name: fetch(str(engine_type), f"c{place}")
        for place, (name, engine_type) in enumerate(zip(bound.columns, bound.types, strict=True))
    }
    columns = ", ".join(f"c{place}" for place in range(len(bound.columns)))
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


# Results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    """One column of a result: what to select so that NumPy gets it whole, and how to read that."""

    expressions: tuple[str, ...]
    read: Callable[..., Series]


def fetch(engine_type: str, name: str) -> Fetch:
    """How to bring a result's column of DuckDB's type over exactly.

    DuckDB hands decimals and 128-bit whole numbers to NumPy as doubles, an ENUM's NULL as a nan,
    and fails on dates that Python cannot hold; so none of these is fetched as it is.
    """
    if engine_type in LARGE:
        small = f"TRY_CAST({name} AS BIGINT)"
        return Fetch((small, f"CAST(CASE WHEN {small} IS NULL THEN {name} END AS VARCHAR)"), _large)
    how = DUCKDB_CELLS.reading(engine_type)
    if how is None:
        raise ValueError(f"a query must not return a column of type {engine_type}")
    shown = how.of(name)
    match how.type:
        case ColumnType.DECIMAL:
            return Fetch((f"CAST({shown} AS VARCHAR)",), _decimals)
        case ColumnType.DATE:
            return Fetch((read_date(shown),), _dates)
        case ColumnType.TIMESTAMP:
            return Fetch((read_moment(shown),), _timestamps)
    return Fetch((shown,), _series)


def _series(column: NDArray[Any]) -> Series:
    missing = np.ma.getmaskarray(column)
    return Series(np.ma.getdata(column), missing)


def _decimals(column: NDArray[Any]) -> Series:
    text = _series(column)
    return Series(_exact(text), text.missing)


def _dates(column: NDArray[Any]) -> Series:
    instants = _series(column)
    return Series(instants.values.astype("datetime64[D]").astype(object), instants.missing)


def _timestamps(column: NDArray[Any]) -> Series:
    instants = _series(column)
    return Series(instants.values.astype("datetime64[us]").astype(object), instants.missing)


def _large(small: NDArray[Any], rest: NDArray[Any]) -> Series:
    """Whole numbers past 64 bits: int64 when all of them fit, exact decimals when one does not."""
    narrow, wide = _series(small), _series(rest)
    missing = narrow.missing & wide.missing
    if bool(wide.missing.all()):
        return Series(narrow.values, missing)
    exact = _exact(wide)
    exact[wide.missing] = [Decimal(int(number)) for number in narrow.values[wide.missing]]
    return Series(exact, missing)


def _exact(text: Series) -> NDArray[Any]:
    values = np.empty(len(text.values), dtype=object)
    present = ~text.missing
    values[present] = [Decimal(cell) for cell in text.values[present]]
    return values
