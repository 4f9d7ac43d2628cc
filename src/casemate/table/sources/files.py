"""Tables opened in DuckDB: files and columns brought in, each row with its position, then locked.

DuckDB returns rows in any order, so a position is taken from the reader itself: from Parquet's
own row numbers, and for CSV from a running number, which makes the scan run in order. CSV is loaded
once (its types depend on all cells; it would be parsed again for each query), Parquet is read in
place, database files are attached read only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.csv import (
    check_names,
    count_records,
    decide,
    is_cut,
    misfits,
    read_as,
    read_header,
    spell_out,
)
from casemate.table.sources.engine_tables import POSITION
from casemate.table.sources.formats import FormatOf, plain_cells, plain_number, text_present
from casemate.table.sources.place import ColumnsInMemory, DuckDBTable, FileFormat, Files
from casemate.table.sources.source import (
    NEEDS_KEY,
    Frame,
    SelectedFrom,
    Series,
    literal,
    quote_name,
)
from casemate.table.sources.text_numbers import TextColumn

CELLS = quote_name("casemate_cells")
LINE_ENDS = {"\n": "'\\n'", "\r": "'\\r'", "\r\n": "'\\r\\n'"}  # as DuckDB's option spells them


@contextmanager
def interruptible() -> Iterator[None]:
    """Inside, Ctrl-C is a KeyboardInterrupt, as everywhere, and not one of DuckDB's errors."""
    try:
        yield
    except (duckdb.InterruptException, RuntimeError) as error:
        if isinstance(error, RuntimeError) and str(error) != "Query interrupted":
            raise
        raise KeyboardInterrupt from None


def describe(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, str]:
    """The columns of a relation and DuckDB's types for them, in order."""
    rows = connection.execute(f"DESCRIBE SELECT * FROM {text}").fetchall()
    return {name: engine_type for name, engine_type, *_ in rows}


# CSV ------------------------------------------------------------------------------------------


def load_csv(
    connection: duckdb.DuckDBPyConnection,
    paths: Sequence[Path],
    into: str,
    declared: Mapping[str, ColumnType],
    format_of: FormatOf,
) -> SelectedFrom:
    """Load CSV files of the same columns, one after the other, into a table of typed columns."""
    names = list(load_cells(connection, paths).columns)
    present = {name: text_present(quote_name(name), format_of(name)) for name in names}
    numbers = {
        name: spell_out(plain_number(present[name], format_of(name)), declared.get(name))
        for name in names
    }
    plain = ", ".join(f"{cell} AS {quote_name(name)}" for name, cell in numbers.items())
    written = f"(SELECT {POSITION}, {plain} FROM {CELLS})"
    types = _decide_types(connection, paths[0], written, names, declared, format_of=format_of)
    cut = _cut(connection, written, [name for name in names if types[name] == "DOUBLE"])
    typed = ", ".join(
        f"{present[name] if types[name] == 'VARCHAR' else read_as(numbers[name], types[name])} "
        f"AS {quote_name(name)}"
        for name in names
    )
    connection.execute(f"CREATE TABLE {into} AS SELECT {POSITION}, {typed} FROM {CELLS}")
    connection.execute(f"DROP TABLE {CELLS}")
    found = describe(connection, into)
    return SelectedFrom(into, {name: found[name] for name in names}, POSITION, cut)


def _cut(
    connection: duckdb.DuckDBPyConnection, cells: str, doubles: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """The columns with cells that are no double as one is printed: how many, and the first."""
    found = {}
    for name in doubles:
        asked = f"SELECT count(*), min({POSITION}) FROM {cells} WHERE {is_cut(name)}"
        count, first = connection.execute(asked).fetchone() or (0, 0)
        if count:
            found[name] = int(count), int(first)
    return found


def load_cells(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> SelectedFrom:
    """Load CSV files of the same columns, one after the other, with every cell as it is written."""
    names = read_header(paths[0]).names
    columns = ", ".join(f"{quote_name(name)} VARCHAR" for name in names)
    connection.execute(f"CREATE TABLE {CELLS} ({POSITION} BIGINT, {columns})")
    loaded = 0
    for path in paths:
        loaded += _load_file(connection, path, names, loaded)
    return SelectedFrom(CELLS, dict.fromkeys(names, "VARCHAR"), POSITION, written=True)


def _load_file(
    connection: duckdb.DuckDBPyConnection, path: Path, names: tuple[str, ...], before: int
) -> int:
    header = read_header(path)
    if header.names != names:
        raise Misconfigured(f"{path} has other columns than the first file; expected the same")
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    scan = (
        f"read_csv({literal(str(path))}, auto_detect=false, header=true, "
        f"delim={literal(header.delimiter)}, quote='\"', escape='\"', "
        f"new_line={LINE_ENDS[header.line_end]}, columns={{{columns}}})"
    )
    try:
        with interruptible():
            connection.execute(
                f"INSERT INTO {CELLS} SELECT {before} + row_number() OVER (), * FROM {scan}"
            )
    except duckdb.Error as error:
        raise _malformed_file(path, str(error)) from None
    counted = connection.execute(f"SELECT count(*) FROM {CELLS}").fetchone()
    loaded = int(counted[0]) - before if counted else 0
    if loaded != count_records(path, header, expected=loaded):
        raise _malformed_file(path, "")
    return loaded


def _malformed_file(path: Path, message: str) -> Misconfigured:
    """Say where a file is malformed; the engine's own message quotes the line."""
    line = re.search(r"CSV Error on Line: (\d+)", message)
    where = f" at line {line[1]}" if line else ""
    width = re.search(r"^Expected Number of Columns: (\d+) Found: (\d+)", message, re.MULTILINE)
    if width:
        reason = f"expected {width[1]} cells and found {width[2]}"
    elif "utf-8" in message:
        reason = "it is not UTF-8 text; save it again as UTF-8"
    elif "unterminated quote" in message:
        reason = "a quote is not closed, or text follows it"
    elif "Maximum line size" in message:
        reason = "the line is longer than 2,000,000 bytes"
    else:
        reason = "check its quotes, its line ends (all alike), and that it can be read"
    return Misconfigured(f"{path} cannot be read as CSV{where}: {reason}")


def _decide_types(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    cells: str,
    names: Sequence[str],
    declared: Mapping[str, ColumnType],
    *,
    format_of: FormatOf,
) -> dict[str, str]:
    def ask(sql: str) -> Sequence[Any]:
        return connection.execute(sql).fetchone() or ()

    types: dict[str, str] = {}
    for name, engine_type in decide(ask, cells, names, declared).items():
        if engine_type is None:
            form = format_of(name)
            cell = text_present(quote_name(name), form)
            column = TextColumn(partial(_read, connection), CELLS, name, cell)
            wrong = misfits(ask, cells, POSITION, name, declared[name])
            said = column.misfit(declared[name], form, wrong.sentence, wrong.fitting)
            raise Misconfigured(f"{path}: {said}")
        types[name] = engine_type
    return types


def _read(connection: duckdb.DuckDBPyConnection, sql: str) -> Frame:
    """The answer to a query about the cells that are being loaded."""
    arrays = connection.execute(sql).fetchnumpy().items()
    return {name: Series(np.ma.getdata(a), np.ma.getmaskarray(a)) for name, a in arrays}


# Parquet --------------------------------------------------------------------------------------


def scan_parquet(
    connection: duckdb.DuckDBPyConnection, paths: Sequence[Path], *, mixed: bool = False
) -> list[SelectedFrom]:
    """Parquet files of the same columns, read in place: those together whose types agree.

    Writers of files choose types by the cells, so one cell may give a file another type: `mixed`
    takes that, and otherwise there is one relation.
    """
    schemas = {path: _parquet_columns(connection, path) for path in paths}
    first = schemas[paths[0]]
    for path, columns in schemas.items():
        if list(columns) != list(first) or (columns != first and not mixed):
            raise Misconfigured(
                f"{path} has other columns, or columns of other types, than {paths[0]}; "
                f"expected the same"
            )
    rows = connection.execute(
        f"SELECT file_name, num_rows FROM parquet_file_metadata([{_path_list(paths)}])"
    ).fetchall()
    counts = dict(rows)
    before = accumulate((counts[str(path)] for path in paths), initial=0)
    offsets = dict(zip(paths, before, strict=False))
    groups: dict[tuple[str, ...], list[Path]] = {}
    for path, columns in schemas.items():
        groups.setdefault(tuple(columns.values()), []).append(path)
    return [
        SelectedFrom(_parquet(_path_list(group)), schemas[group[0]], _position(group, offsets))
        for group in groups.values()
    ]


def _position(paths: Sequence[Path], before: Mapping[Path, int]) -> str:
    """The position of a row among those of all files, of which some are read together."""
    offsets = ", ".join(str(before[path]) for path in paths)
    return f"CAST(file_row_number + 1 + [{offsets}][CAST(file_index AS BIGINT) + 1] AS BIGINT)"


def _path_list(paths: Sequence[Path]) -> str:
    return ", ".join(literal(str(path)) for path in paths)


def _parquet(files: str) -> str:
    return f"read_parquet([{files}], hive_partitioning=false)"


def _parquet_columns(connection: duckdb.DuckDBPyConnection, path: Path) -> dict[str, str]:
    try:
        columns = describe(connection, _parquet(literal(str(path))))
    except duckdb.Error:
        raise Misconfigured(f"{path} cannot be read as Parquet") from None
    check_names(path, list(columns))
    clash = {"file_row_number", "file_index", "filename"} & {name.lower() for name in columns}
    if clash:
        raise Misconfigured(f"{path} has a column called {clash.pop()!r}; rename it")
    return columns


# Columns --------------------------------------------------------------------------------------


def load_columns(
    connection: duckdb.DuckDBPyConnection,
    columns: Mapping[str, Series],
    types: Mapping[str, ColumnType],
    into: str,
) -> SelectedFrom:
    """Load columns that are in memory already."""
    length = len(next(iter(columns.values())).values)
    arrays: dict[str, NDArray[Any]] = {POSITION: np.arange(1, length + 1)}
    shown: list[str] = []
    for place, (name, series) in enumerate(columns.items()):
        arrays[f"v{place}"], engine_type = _storable(series, types[name])
        arrays[f"m{place}"] = series.missing
        cell = f"CAST(v{place} AS {engine_type})"
        if types[name] is ColumnType.DOUBLE:
            cell = f"coalesce({cell}, CAST('nan' AS DOUBLE))"  # DuckDB takes NumPy's nan for NULL
        shown.append(f"CASE WHEN NOT m{place} THEN {cell} END AS {quote_name(name)}")
    connection.register("casemate_arrays", arrays)
    connection.execute(
        f"CREATE TABLE {into} AS SELECT {POSITION}, {', '.join(shown)} FROM casemate_arrays"
    )
    connection.unregister("casemate_arrays")
    found = describe(connection, into)
    return SelectedFrom(into, {name: found[name] for name in columns}, POSITION)


ENGINE_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}


def _storable(series: Series, type_: ColumnType) -> tuple[NDArray[Any], str]:
    """An array DuckDB reads without loss, and the type to cast it to."""
    present = ~series.missing
    if type_ is ColumnType.DECIMAL:
        text = np.full(len(present), "0", dtype=object)
        text[present] = [format(value, "f") for value in series.values[present]]
        scale = max((len(cell.partition(".")[2]) for cell in text), default=0)
        return text, f"DECIMAL(38, {scale})"
    if type_ in (ColumnType.DATE, ColumnType.TIMESTAMP):
        instants = np.zeros(len(present), dtype="datetime64[us]")
        instants[present] = series.values[present].astype("datetime64[us]")
        return instants, ENGINE_TYPES[type_]
    if type_ is ColumnType.TEXT:
        return np.where(present, series.values, ""), "VARCHAR"
    return series.values, ENGINE_TYPES[type_]


# Opening, and the lock that ends it --------------------------------------------------------------
#
# First everything is opened. Then access to files is switched off, save for the Parquet files that
# were found and the engine's temporary folder, and the configuration is locked. (A view on Parquet
# dies when access is simply switched off, and a database in memory cannot be opened read only.)


PROGRESS_BAR = "enable_progress_bar"
"""The one setting that stays open: an interactive Python switches it on for every new cursor."""


Place = Files | DuckDBTable | ColumnsInMemory


class Opening:
    """The time before the lock: what is opened until then is all that can ever be read."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._readable: list[Path] = []
        self._attached: dict[Path, str] = {}
        self._tables = 0

    def relation(
        self, place: Place, types: Mapping[str, ColumnType], format_of: FormatOf = plain_cells
    ) -> SelectedFrom:
        """Load or find a table; types and formats say how to read the columns of CSV files."""
        self._tables += 1
        into = quote_name(f"casemate_data{self._tables}")
        if isinstance(place, ColumnsInMemory):
            return load_columns(self._connection, place.series, place.types, into)
        if isinstance(place, DuckDBTable):
            return self._table_of_file(place)
        if place.format is FileFormat.CSV:
            return load_csv(self._connection, place.paths, into, types, format_of)
        self._readable += place.paths
        return scan_parquet(self._connection, place.paths)[0]

    def raw(self, place: Place) -> list[SelectedFrom]:
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

    def _table_of_file(self, place: DuckDBTable) -> SelectedFrom:
        text = quote_name(self._catalog(place.path), *_full_name(place))
        try:
            columns = describe(self._connection, text)
        except duckdb.Error:
            raise Misconfigured(
                f"{place.path} has no table {'.'.join(place.table)} that can be read"
            ) from None
        check_names(place.path, list(columns))
        return SelectedFrom(text, columns, None)

    def _catalog(self, path: Path) -> str:
        """The name under which a database file is attached, once."""
        if path in self._attached:
            return self._attached[path]
        catalog = self._attached[path] = f"casemate_file{len(self._attached)}"
        try:
            self._connection.execute(
                f"ATTACH {literal(str(path))} AS {quote_name(catalog)} (TYPE duckdb, READ_ONLY)"
            )
        except duckdb.Error:
            raise Misconfigured(
                f"{path} cannot be opened as a DuckDB database; check that it is one and that no "
                f"other program is writing to it"
            ) from None
        return catalog


def _full_name(place: DuckDBTable) -> tuple[str, str]:
    return place.table if len(place.table) == 2 else ("main", place.table[0])


def connect_duckdb(folder: str, memory_limit: str | None) -> duckdb.DuckDBPyConnection:
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
