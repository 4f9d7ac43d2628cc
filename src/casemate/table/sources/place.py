"""Where a source string points: files, a table of a DuckDB file, or a table of PostgreSQL."""

import glob
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, unquote

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.source import Series


class FileFormat(StrEnum):
    """What is inside the files of a source."""

    CSV = "csv"
    PARQUET = "parquet"


SUFFIXES = {
    ".csv": FileFormat.CSV,
    ".csv.gz": FileFormat.CSV,
    ".tsv": FileFormat.CSV,
    ".tsv.gz": FileFormat.CSV,
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
}
FORMS = (
    "a .csv, .csv.gz or .parquet file, a pattern of such files, duckdb:///file.db#table "
    "or postgresql://host/database#table"
)


@dataclass(frozen=True)
class Files:
    """One table spread over files, in the order of their names."""

    source: str
    format: FileFormat
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class DuckDBTable:
    """A table of a DuckDB database file."""

    source: str
    path: Path
    table: tuple[str, ...]  # schema and name, or the name alone


@dataclass(frozen=True, eq=False)
class ColumnsInMemory:
    """A table that is in memory already, with the types of its columns."""

    source: str
    series: Mapping[str, Series] = field(repr=False)
    types: Mapping[str, ColumnType]


@dataclass(frozen=True)
class PostgresTable:
    """A table of a PostgreSQL database."""

    source: str = field(repr=False)  # may carry a password
    url: str = field(repr=False)
    table: tuple[str, ...]


Place = Files | DuckDBTable | PostgresTable


def find(source: str, folder: Path) -> Place | None:
    """What a source string points to, seen from a folder; None when nothing is there."""
    scheme, separator, rest = source.partition("://")
    if not separator:
        return _files(source, folder)
    if scheme == "duckdb":
        return _duckdb(rest, folder)
    if scheme in ("postgresql", "postgres"):
        address, table = _split(rest, "postgresql://host/database")
        return PostgresTable(source, f"postgresql://{address}", table)
    raise Misconfigured(f"does not know the address {scheme}://…; expected {FORMS}")


def redact_source(source: str) -> str:
    """A source string as a message may show it: without host, user and password.

    >>> redact_source("postgresql://me:secret@host/db#people"), redact_source("people.csv")
    ('postgresql://…#people', 'people.csv')
    """
    scheme, separator, rest = source.partition("://")
    if not separator or scheme == "duckdb":
        return source
    _, sign, table = rest.rpartition("#")  # the last: a password may hold another
    return f"{scheme}://…{sign}{table if sign else ''}"


def beside(place: Place, name: str) -> Place:
    """The table of this name in the database that another table lives in."""
    table = tuple(unquote(part) for part in name.split("."))
    if isinstance(place, DuckDBTable):
        return DuckDBTable(place.source, place.path, table)
    if isinstance(place, PostgresTable):
        return PostgresTable(place.source, place.url, table)
    raise Misconfigured("is missing: tables beside a file are files too")


def _files(source: str, folder: Path) -> Files | None:
    path = folder / source
    if path.is_dir():
        raise Misconfigured(f"names the folder {path}; expected {FORMS}")
    if path.exists():
        return Files(str(path.absolute()), _format(path), (path.absolute(),))
    if not glob.has_magic(source):
        return None
    pattern = source if os.path.isabs(source) else f"{glob.escape(str(folder.absolute()))}/{source}"
    found = sorted(Path(name) for name in glob.glob(pattern, recursive=True))
    paths = tuple(path for path in found if path.is_file())
    formats = {_format(path) for path in paths}
    if len(formats) > 1:
        raise Misconfigured(f"matches both CSV and Parquet files with {pattern}; keep to one")
    return Files(pattern, formats.pop(), paths) if formats else None


def _format(path: Path) -> FileFormat:
    name = path.name.lower()
    for suffix, format_ in SUFFIXES.items():
        if name.endswith(suffix):
            return format_
    if name.endswith((".db", ".duckdb")):
        raise Misconfigured(f"names the database {path}; say which table: duckdb:///{path}#table")
    raise Misconfigured(f"names {path}, whose kind is unknown; expected {FORMS}")


def _duckdb(rest: str, folder: Path) -> DuckDBTable:
    """`duckdb:///file.db` is a file beside the policy; `duckdb:////tmp/file.db` is absolute."""
    address, table = _split(rest, "duckdb:///file.db")
    if not address.startswith("/") or address == "/":
        raise Misconfigured("needs three slashes and a file: duckdb:///file.db#table")
    relative, absolute = folder / unquote(address[1:]), Path(unquote(address))
    path = absolute if absolute.is_file() and not relative.is_file() else relative
    if not path.is_file():
        raise Misconfigured(f"names the database {path}, and there is no such file")
    path = path.absolute()
    return DuckDBTable(f"duckdb:///{quote(str(path))}#{rest.partition('#')[2]}", path, table)


def _split(rest: str, example: str) -> tuple[str, tuple[str, ...]]:
    """The address and the `schema.table` behind its # sign."""
    address, _, fragment = rest.partition("#")
    table = tuple(unquote(part) for part in fragment.split("."))
    if not all(table) or len(table) > 2:
        raise Misconfigured(f"must end in #table or #schema.table, as in {example}#table")
    return address, table
