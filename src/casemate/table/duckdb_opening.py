"""Opening tables in DuckDB, and the lock that ends it.

First everything is opened: CSV and columns are loaded, Parquet is found, database files are
attached read only. Then access to files is switched off, save for those Parquet files and the
engine's temporary folder, and the configuration is locked. (A view on Parquet dies when access is
simply switched off, and a database in memory cannot be opened read only.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from casemate.errors import Misconfigured
from casemate.table.csv_file import check_names
from casemate.table.duckdb_files import (
    describe,
    load_cells,
    load_columns,
    load_csv,
    scan_parquet,
)
from casemate.table.keys import NEEDS_KEY
from casemate.table.place import DuckDBTable, FileFormat, Files
from casemate.table.schema import ColumnType
from casemate.table.source import Relation, Series
from casemate.table.sql_text import literal, quoted

PROGRESS_BAR = "enable_progress_bar"
"""The one setting that stays open: an interactive Python switches it on for every new cursor."""


@dataclass(frozen=True, eq=False)
class Columns:
    """A table that is in memory already, with the types of its columns."""

    source: str
    series: Mapping[str, Series] = field(repr=False)
    types: Mapping[str, ColumnType]


Place = Files | DuckDBTable | Columns


class Opening:
    """The time before the lock: what is opened until then is all that can ever be read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._readable: list[Path] = []
        self._attached: dict[Path, str] = {}
        self._tables = 0

    def relation(self, place: Place, types: Mapping[str, ColumnType]) -> Relation:
        """Load or find a table; `types` says how to read the columns of CSV files."""
        self._tables += 1
        into = quoted(f"casemate_data{self._tables}")
        if isinstance(place, Columns):
            return load_columns(self._connection, place.series, place.types, into)
        if isinstance(place, DuckDBTable):
            return self._table_of_file(place)
        if place.format is FileFormat.CSV:
            return load_csv(self._connection, place.paths, into, types)
        self._readable += place.paths
        return scan_parquet(self._connection, place.paths)[0]

    def raw(self, place: Place) -> list[Relation]:
        """Load or find a table without deciding any type: one relation for each of a file's own."""
        if not isinstance(place, Files):
            return [self.relation(place, {})]
        if place.format is FileFormat.CSV:
            return [load_cells(self._connection, place.paths)]
        self._readable += place.paths
        return scan_parquet(self._connection, place.paths, mixed=True)

    def primary_key(self, place: DuckDBTable) -> str:
        """The column that is a table's primary key."""
        catalog = self._catalog(place.path)
        schema, name = _full_name(place)
        found = self._connection.execute(
            "SELECT constraint_column_names FROM duckdb_constraints() WHERE database_name = ? "
            "AND schema_name = ? AND table_name = ? AND constraint_type = 'PRIMARY KEY'",
            [catalog, schema, name],
        ).fetchone()
        if found is None or len(found[0]) != 1:
            raise Misconfigured(NEEDS_KEY)
        return str(found[0][0])

    def lock(self) -> None:
        """End this time."""
        allowed = ", ".join(literal(str(path)) for path in self._readable)
        self._connection.execute(f"SET allowed_paths = [{allowed}]")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute(f"SET allowed_configs = ['{PROGRESS_BAR}']")
        self._connection.execute("SET lock_configuration = true")

    def _table_of_file(self, place: DuckDBTable) -> Relation:
        text = quoted(self._catalog(place.path), *_full_name(place))
        try:
            columns = describe(self._connection, text)
        except duckdb.Error:
            raise Misconfigured(
                f"{place.path} has no table {'.'.join(place.table)} that can be read"
            ) from None
        check_names(place.path, list(columns))
        return Relation(text, columns, None)

    def _catalog(self, path: Path) -> str:
        """The name under which a database file is attached, once."""
        if path in self._attached:
            return self._attached[path]
        catalog = self._attached[path] = f"casemate_file{len(self._attached)}"
        try:
            self._connection.execute(
                f"ATTACH {literal(str(path))} AS {quoted(catalog)} (TYPE duckdb, READ_ONLY)"
            )
        except duckdb.Error:
            raise Misconfigured(
                f"{path} cannot be opened as a DuckDB database; check that it is one and that no "
                f"other program is writing to it"
            ) from None
        return catalog


def _full_name(place: DuckDBTable) -> tuple[str, str]:
    return place.table if len(place.table) == 2 else ("main", place.table[0])


def connected(folder: str, memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    """An empty database in memory that may use a folder for what does not fit."""
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,  # or a query could name a Python variable
            "temp_directory": folder,
        }
    )
    connection.execute("SET GLOBAL TimeZone = 'UTC'")
    connection.execute(f"SET {PROGRESS_BAR} = false")
    if memory_limit is not None:
        try:
            connection.execute(f"SET memory_limit = {literal(memory_limit)}")
        except duckdb.Error:
            connection.close()
            raise ValueError(
                f'the memory limit must be a size such as "2GB", got {memory_limit!r}'
            ) from None
    return connection
