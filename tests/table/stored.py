"""The same rows in any kind of source: CSV and Parquet files, a DuckDB file, PostgreSQL."""

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from casemate.table.sources.source import Series, literal, quote_name

Rows = Sequence[Sequence[Any]]
POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
FILES = ["csv", "gzipped csv", "several csv", "parquet", "several parquet"]
DATABASES = ["duckdb", POSTGRES]


def run_in(database: str | Path, *statements: str) -> None:
    """Run statements in a DuckDB file, or at an address of PostgreSQL."""
    connection: Any
    if str(database).startswith("postgresql://"):
        import psycopg

        connection = psycopg.connect(str(database))
    else:
        connection = duckdb.connect(str(database))
    with connection:
        for statement in statements:
            connection.execute(statement)


def database_of(kind: str, folder: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    """An empty database of a kind: where statements run, and how its sources begin."""
    if kind == "postgres":
        url: str = request.getfixturevalue("postgres")
        return url, f"{url}#"
    return str(folder / "base.db"), f"duckdb:///{folder / 'base.db'}#"


def inserted(name: str, types: Mapping[str, str], rows: Rows) -> Iterator[str]:
    """The statements that make a table of rows in any engine."""
    declared = ", ".join(f"{quote_name(column)} {type_}" for column, type_ in types.items())
    yield f"CREATE TABLE {quote_name(name)} ({declared})"
    for row in rows:
        cells = ", ".join(
            "NULL" if cell is None else f"CAST({literal(str(cell))} AS {type_})"
            for cell, type_ in zip(row, types.values(), strict=True)
        )
        yield f"INSERT INTO {quote_name(name)} VALUES ({cells})"


def cells_of(series: Series) -> list[Any]:
    """The values of a column, None where there is none."""
    cells = zip(series.values, series.missing, strict=True)
    return [None if missing else value for value, missing in cells]


def write_csv(path: Path, names: Sequence[str], rows: Rows) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([names, *rows])
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    return path


def store(
    kind: str,
    folder: Path,
    types: Mapping[str, str],
    rows: Rows,
    *,
    name: str = "t",
    postgres: str | None = None,
) -> str:
    """The source of these rows, stored as this kind; `types` are the engine's."""
    half = len(rows) // 2 if "several" in kind else len(rows)
    if "csv" in kind:
        ending = "csv.gz" if "gzipped" in kind else "csv"
        for part, some in enumerate((rows[:half], rows[half:])):
            if part == 0 or "several" in kind:
                write_csv(folder / f"{name}-{part}.{ending}", list(types), some)
        return f"{folder}/{name}-*.{ending}"
    database = postgres or folder / "base.db"
    run_in(database, *inserted(name, types, rows))
    if "parquet" not in kind:
        return f"{postgres}#{name}" if postgres else f"duckdb:///{database}#{name}"
    for part, where in enumerate((f"rowid < {half}", f"rowid >= {half}")):
        if part == 0 or "several" in kind:
            copied = f"(FROM {quote_name(name)} WHERE {where})"
            run_in(database, f"COPY {copied} TO '{folder}/{name}-{part}.parquet'")
    return f"{folder}/{name}-*.parquet"
