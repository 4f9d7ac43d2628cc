"""One small table full of traps, the same in DuckDB and in PostgreSQL, with two public ones.

`areas` has a unique key; `offers` has several rows for one area, so that joining it repeats
records. Columns differ in type, and every type has NULLs and values on the edges.
"""

import random
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from casemate.table import Table
from casemate.table.sources import quote_name

Rows = Sequence[tuple[Any, ...]]

COLUMNS = {
    "id": "BIGINT",
    "area": "INTEGER",
    "age": "INTEGER",
    "Height": "DECIMAL(6,2)",
    "score": "DOUBLE PRECISION",
    "sex": "TEXT",
    "note": "TEXT",
    "member": "BOOLEAN",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "weight": "INTEGER",
    "income": "INTEGER",
    "bonus": "DECIMAL(10,2)",
    "diagnosis": "TEXT",
}
POLICY = """
[table]
source = "SOURCE#people"
key = "id"
[columns]
area = {}
age = {min = -5, max = 120}
Height = {}
score = {}
sex = {values = ["f", "m", "x"]}
note = {}
member = {}
born = {}
seen = {}
weight = {min = 0, max = 9}
income = {role = "private", min = 0, max = 1000}
bonus = {role = "private", min = -100, max = 100, nullable = true}
diagnosis = {role = "private", values = ["none", "flu", "gout"]}
id = {role = "identifier"}
[public]
areas = {key = "area"}
offers = {key = "offer"}
"""
AREAS = [(1, "north", Decimal("1.5")), (2, "north", Decimal("2.5")), (3, "south", None)]
OFFERS = [(10, 1, 3), (11, 1, 4), (12, 2, 5), (13, 9, 6)]


NOTES = ["", "a", "A", "ab%c", "a_b", "a\\b", "Zoe", "it's", " 12 ", "3.5"]


def people(seed: int = 0, count: int = 60) -> list[tuple[Any, ...]]:
    """Rows with NULLs, repeated values and values on the edges."""
    chance = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    return [
        (
            i,
            maybe(chance.choice([1, 2, 3, 4])),
            maybe(chance.choice([-3, 0, 1, 7, 18, 18, 30, 31, 64, 65, 90])),
            maybe(Decimal(chance.randrange(-300, 300)).scaleb(-2)),
            maybe(chance.choice([-2.5, -1.5, -0.5, 0.0, 0.5, 1.5, 2.5, 0.1, 1e-9, 1e6])),
            maybe(chance.choice(["f", "m", "x"])),
            maybe(chance.choice(NOTES)),
            maybe(chance.random() < 0.5),
            maybe(date(2019, 12, 28) + timedelta(days=chance.randrange(0, 800))),
            maybe(datetime(2020, 2, 28, 22, 58) + timedelta(minutes=chance.randrange(0, 400_000))),
            maybe(chance.randrange(0, 10)),
            chance.randrange(0, 1001),
            maybe(Decimal(chance.randrange(-10000, 10000)).scaleb(-2)),
            chance.choice(["none", "none", "flu", "gout"]),
        )
        for i in range(1, count + 1)
    ]  # fmt: skip


def script(rows: list[tuple[Any, ...]]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """CREATE and INSERT statements, in words both engines know; `?` marks a value."""
    listed = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    marks = ", ".join("?" * len(COLUMNS))
    return [
        (f"CREATE TABLE people ({listed})", []),
        (f"INSERT INTO people VALUES ({marks})", rows),
        ("CREATE TABLE areas (area INTEGER, region TEXT, rate DECIMAL(4,1))", []),
        ("INSERT INTO areas VALUES (?, ?, ?)", AREAS),
        ("CREATE TABLE offers (offer INTEGER, area INTEGER, price INTEGER)", []),
        ("INSERT INTO offers VALUES (?, ?, ?)", OFFERS),
    ]


def in_duckdb(folder: Path, rows: list[tuple[Any, ...]]) -> Table:
    """The world in a DuckDB file, opened through its policy."""
    path = folder / "world.db"
    with duckdb.connect(str(path)) as connection:
        for statement, values in script(rows):
            for row in values or [()]:
                connection.execute(statement, row or None)
    return _opened(folder / "duckdb.toml", f"duckdb:///{path}")


def in_file(folder: Path, columns: Mapping[str, str], rows: Rows, policy: str = "") -> Table:
    """A table `t` of these columns and rows in a DuckDB file, opened through its policy.

    Without a policy everything is public.
    """
    listed = ", ".join(f"{quote_name(name)} {kind}" for name, kind in columns.items())
    with duckdb.connect(str(folder / "t.db")) as connection:
        connection.execute(f"CREATE TABLE t ({listed})")
        for row in rows:
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
    source = f"duckdb:///{folder / 't.db'}#t"
    if not policy:
        return Table.open(source, key="id")
    (folder / "t.toml").write_text(f'[table]\nsource = "{source}"\nkey = "id"\n{policy}')
    return Table.open(folder / "t.toml")


def in_postgres(folder: Path, url: str, rows: list[tuple[Any, ...]]) -> Table:
    """The world in a PostgreSQL database, opened through its policy."""
    import psycopg

    with psycopg.connect(url) as connection:
        for statement, values in script(rows):
            for row in values or [()]:
                connection.execute(statement.replace("?", "%s").encode(), row or None)
    return _opened(folder / "postgres.toml", url)


def _opened(path: Path, source: str) -> Table:
    path.write_text(POLICY.replace("SOURCE", source))
    return Table.open(path)
