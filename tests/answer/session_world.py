"""Small protected tables on disk, their policies, and sessions over them as a user opens them."""

import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
from grid.compiled_world import as_policy_declares
from oracles.statements import show

from casemate.answer import Answer
from casemate.grid import Noised
from casemate.query.parse import parse_statement
from casemate.table import Table

COLUMNS = """
[columns.id]
role = "identifier"
[columns.age]
type = "integer"
min = 0
max = 99
bins = 10
[columns.sex]
values = ["f", "m"]
[columns.bonus]
type = "decimal"
min = -100
max = 100
bins = 4
[columns.ill]
role = "private"
values = [0, 1]
[columns.visits]
type = "integer"
role = "private"
min = 0
max = 15
"""
HEAD = ("id", "age", "sex", "bonus", "ill", "visits")
MODERATE = "epsilon = 1\ndelta = 1e-6"
LAVISH = "epsilon = 1000\ndelta = 1e-6"
COUNT = "SELECT COUNT(*) FROM t"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex"


def people(number: int, seed: int = 1) -> list[tuple[Any, ...]]:
    """Rows whose columns depend on each other, some of them NULL, undeclared or out of bounds."""
    random = Random(seed)
    found = []
    for place in range(number):
        age = random.choice([random.randrange(100), 30, 40])  # heaped
        sex = random.choice(["f", "m", "f", "x", None])
        bonus = f"{random.gauss(age / 2, 60):.2f}"
        ill = int(random.random() < age / 120)
        visits = None if random.random() < 0.05 else min(20, int(random.expovariate(0.3)) + ill)
        found.append((place, age, sex, bonus, ill, visits))
    return found


def csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    lines = [",".join(f'"{name}"' for name in head)]
    lines += [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def policy(
    folder: Path,
    *,
    budget: str | None = MODERATE,
    table: str = 'source = "people.csv"',
    columns: str = COLUMNS,
    more: str = "",
    name: str = "casemate.toml",
) -> Path:
    """A policy in a folder; without a budget it has no such section."""
    spent = "" if budget is None else f"[budget]\n{budget}\n"
    path = folder / name
    path.write_text(f"[table]\n{table}\n{columns}\n{spent}{more}")
    return path


def world(folder: Path, number: int = 600, seed: int = 1, **changes: Any) -> Path:
    """People in a CSV, and a policy beside it."""
    csv(folder / "people.csv", HEAD, people(number, seed))
    return policy(folder, **changes)


def truth(path: Path | str, sql: str) -> list[tuple[Any, ...]]:
    """What the engine shows of the table as its policy declares it."""
    with Table.open(path) as table:
        statement = as_policy_declares(parse_statement(sql, table.policy))
        return list(show(statement, table.source).rows)


def values(answer: Answer) -> list[tuple[Any, ...]]:
    """Rows of values alone."""
    return [tuple(c.value if isinstance(c, Noised) else c for c in row) for row in answer.rows]


def number(answer: Answer, row: int = 0, column: int = -1) -> Noised:
    cell = answer.rows[row][column]
    assert isinstance(cell, Noised), "this column has keys"
    return cell


def numbers(answer: Answer) -> list[Noised]:
    return [cell for row in answer.rows for cell in row if isinstance(cell, Noised)]


def modes(folder: Path) -> dict[str, int]:
    """The files of a folder and who may use them."""
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


@dataclass(frozen=True)
class Kinds:
    """A table with a column of every type, and its policy."""

    columns = """
[columns.flag]
type = "boolean"
[columns."Mixed Case"]
values = ["a b", "it's"]
[columns.born]
min = 2000-01-01
max = 2001-12-31
bins = 4
[columns.score]
type = "double"
role = "private"
nullable = true
min = -2
max = 2
bins = 5
[columns.paid]
type = "decimal"
min = 0
max = 10
bins = 4
"""
    head = ("flag", "Mixed Case", "born", "score", "paid", "undeclared")

    @staticmethod
    def rows(count: int = 100, seed: int = 3) -> list[tuple[Any, ...]]:
        random = Random(seed)
        return [
            (
                random.choice([True, False, None]),
                random.choice(["a b", "it's", "never declared", None]),
                date(2000, 1, 1) + timedelta(days=random.randrange(731)),
                random.choice([None, round(random.gauss(0, 1), 4), 1e30]),
                f"{random.randrange(1200) / 100:.2f}",
                random.randrange(10),
            )
            for _ in range(count)
        ]

    @classmethod
    def in_duckdb(cls, path: Path) -> None:
        """The same rows in a database, and as a Parquet file beside it."""
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                'CREATE TABLE "Kinds" (key BIGINT, flag BOOLEAN, "Mixed Case" VARCHAR, born DATE, '
                "score DOUBLE, paid DECIMAL(8,2), undeclared INTEGER)"
            )
            for place, row in enumerate(cls.rows()):
                connection.execute('INSERT INTO "Kinds" VALUES (?,?,?,?,?,?,?)', (place, *row))
            parquet = path.with_suffix(".parquet")
            connection.execute(f"COPY \"Kinds\" TO '{parquet}' (FORMAT parquet)")


def close_to(found: Any, exact: Any, room: float) -> bool:
    """Whether two cells are alike; numbers within room."""
    if isinstance(exact, bool) or not isinstance(exact, int | float | Decimal):
        return bool(found == exact)
    return found is not None and abs(float(found) - float(exact)) <= room


def cells_by_key(rows: Iterable[Sequence[Any]], keys: int) -> Mapping[tuple[Any, ...], Any]:
    return {tuple(row[:keys]): row[keys:] for row in rows}
