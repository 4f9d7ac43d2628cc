"""Audits of hostile arithmetic against all small tables, which DuckDB evaluates by itself.

A person is exposed where every possible table that shows the same has the same value for them. The
meaning of a statement is written twice, once as casemate reads it and once for DuckDB, where what
PostgreSQL would raise is NULL; nothing else is shared with the audit.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
from neighbours.tables import csv

from casemate import Audit
from casemate.audit import AuditOptions

NAMES = ("ana", "ben", "cem", "dora")
HUGE = 9223372036854775807
PLACES = (0, -2, 1, 100, 2**53 - 2, 2**62 - 2, HUGE - 3, -HUGE, 3_037_000_498)
"""Where the possible whole numbers begin: near what doubles, sums and products cannot hold."""
WHOLE = (1, 2, 3, -1, 12, 2**53, 2**62, 2**62 + 1, HUGE, HUGE - 1, HUGE - 2, -HUGE, 3_037_000_500)
LISTS = (
    ("0.00", "0.01", "0.10", "2.50"),
    ("0.00", "1.00", "49999.99", "50000.00", "50000.01"),
    ("-0.05", "0.05", "0.04"),
)

Value = int | Decimal | None
Expression = tuple[str, str]
"""The text that casemate reads, and the text that DuckDB reads."""


@dataclass(frozen=True)
class World:
    """A few people, what is possible as their secret, and the secret of each."""

    possible: tuple[Value, ...]
    secrets: tuple[Value, ...]
    declared: str
    told: bool  # whether the audit knows what is possible

    @property
    def people(self) -> int:
        return len(self.secrets)

    @property
    def type(self) -> str:
        return "DECIMAL(38, 2)" if isinstance(self.possible[0], Decimal) else "BIGINT"

    def written(self, folder: Path) -> Path:
        rows = [
            (NAMES[i], "ab"[i % 2], "" if value is None else str(value))
            for i, value in enumerate(self.secrets)
        ]
        csv(folder / "people.csv", ("name", "team", "x"), rows)
        path = folder / "casemate.toml"
        path.write_text(
            '[table]\nsource = "people.csv"\n[columns.name]\n[columns.team]\n[columns.x]\n'
            f'role = "private"\n{self.declared}\n'
        )
        return path


def random_world(rng: Random) -> World:
    """Three to five possible values, consecutive whole ones or a list, in two to four people."""
    people, nullable = rng.choice([2, 3, 3, 4]), rng.random() < 0.15
    told = rng.random() < 0.85
    if rng.random() < 0.75:
        first, count = rng.choice(PLACES), rng.randint(3, 4)
        whole: list[Value] = [min(first + i, HUGE) for i in range(count)]
        values = list(dict.fromkeys(whole))
        declared = f'type = "integer"\nmin = {values[0]}\nmax = {values[-1]}'
        unbounded = 'type = "integer"\nunbounded = true'
    else:
        values = [Decimal(each) for each in rng.choice(LISTS)]
        declared = 'type = "decimal"\nvalues = [' + ", ".join(map(str, values)) + "]"
        unbounded = 'type = "decimal"\nunbounded = true'
    values += [None] if nullable else []
    text = (declared if told else unbounded) + f"\nnullable = {str(nullable).lower()}"
    return World(tuple(values), tuple(rng.choice(values) for _ in range(people)), text, told)


# Statements -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """A statement, and for DuckDB its parts: what is shown of each table, and over which rows.

    An average is shown there as a sum and a count, because its digits are a matter of the engine.
    """

    sql: str
    shown: tuple[str, ...]
    where: str
    keys: tuple[str, ...]
    averages: tuple[int, ...] = ()
    empty: tuple[Any, ...] = ()


def random_statement(rng: Random, world: World) -> Statement:
    names = rng.sample(NAMES[: world.people], rng.randint(1, world.people))
    few = ", ".join(f"'{name}'" for name in names)
    conditions = ["TRUE", "TRUE", f"name IN ({few})", f"name <> '{names[0]}'", "team = 'a'"]
    where = (each := rng.choice(conditions), each)
    if rng.random() < 0.2:
        where = compared(rng, world)
    keys: tuple[Expression, ...] = ()
    if rng.random() < 0.25:
        keys = (rng.choice([("team", "team"), compared(rng, world)]),)
    function = rng.choice(["SUM", "SUM", "SUM", "AVG", "COUNT", "COUNT", "MIN", "MAX"])
    argument = changed(rng, world)
    if "DOUBLE" in argument[0] and function == "AVG":
        function = "SUM"
    shown = [f"{function.lower()}({argument[1]})"]
    if function == "AVG":
        shown = [f"sum({argument[1]})", f"count({argument[1]})"]
    listed = ", ".join([key for key, _ in keys] + [f"{function}({argument[0]})"])
    grouped = f" GROUP BY {', '.join(key for key, _ in keys)}" if keys else ""
    text = f"SELECT {listed} FROM t WHERE {where[0]}{grouped}"
    averages = (0,) if function == "AVG" else ()
    empty = (0,) if function == "COUNT" else (None, 0) if averages else (None,)
    return Statement(text, tuple(shown), where[1], tuple(k for _, k in keys), averages, empty)


def changed(rng: Random, world: World) -> Expression:
    """The secret, changed up to twice, for everybody or for one person."""
    found: Expression = ("x", "x")
    for _ in range(rng.choice([0, 1, 1, 2])):
        found = step(rng, world, found)
    if rng.random() < 0.3 and found[0] != "x":
        who = rng.choice(NAMES[: world.people])
        found = (
            f"CASE WHEN name = '{who}' THEN {found[0]} ELSE x END",
            f"CASE WHEN name = '{who}' THEN {found[1]} ELSE x END",
        )
    return found


def step(rng: Random, world: World, x: Expression) -> Expression:
    decimal, double = world.type != "BIGINT", "DOUBLE" in x[0]
    if rng.random() < 0.15:
        return f"CAST({x[0]} AS DOUBLE PRECISION)", f"CAST({x[1]} AS DOUBLE)"
    if double:
        c = rng.choice(["1e15", "1e17", "1e18", "1e300", "0.5"])
        sign = rng.choice("+-*")
        made = f"TRY({x[1]} {sign} CAST('{c}' AS DOUBLE))"
        finite = f"(CASE WHEN isfinite({made}) THEN {made} END)"
        return f"({x[0]} {sign} CAST('{c}' AS DOUBLE PRECISION))", finite
    if decimal:
        return decimal_step(rng, x)
    return whole_step(rng, x)


def decimal_step(rng: Random, x: Expression) -> Expression:
    c = rng.choice(["0.0000001", "0.1", "0.5", "3", "1000"])
    twice = f"TRY_CAST(TRY({x[1]} * {c}) AS DECIMAL(38, 12))"
    again = f"TRY_CAST(TRY({twice} * {c}) AS DECIMAL(38, 12))"
    made: list[Expression] = [
        (f"({x[0]} * {c})", twice),
        (f"({x[0]} * {c} * {c})", again),
        (f"COALESCE({x[0]}, {c})", f"coalesce({x[1]}, {c})"),
        (
            f"CASE WHEN {x[0]} >= {c} THEN 1 ELSE 0 END",
            f"CASE WHEN {x[1]} >= {c} THEN 1 ELSE 0 END",
        ),
    ]
    return rng.choice(made)


def whole_step(rng: Random, x: Expression) -> Expression:
    c = rng.choice(WHOLE)
    big, divisor = f"CAST({c} AS BIGINT)", rng.choice([0, 2, 3, c])
    made: list[Expression] = [
        (f"({x[0]} + {c})", f"TRY({x[1]} + {big})"),
        (f"({x[0]} - {c})", f"TRY({x[1]} - {big})"),
        (f"({x[0]} * {c})", f"TRY({x[1]} * {big})"),
        (f"(({x[0]} + {c}) - {c})", f"TRY(TRY({x[1]} + {big}) - {big})"),
        (f"({x[0]} / {divisor})", f"TRY({x[1]} // CAST({divisor} AS BIGINT))"),
        (f"({x[0]} % {divisor})", f"TRY({x[1]} % CAST({divisor} AS BIGINT))"),
        (f"({c} - {x[0]})", f"TRY({big} - {x[1]})"),
        (f"COALESCE({x[0]}, {c})", f"coalesce({x[1]}, {big})"),
        (f"NULLIF({x[0]}, {c})", f"nullif({x[1]}, {big})"),
        (
            f"CASE WHEN {x[0]} > {c} THEN 1 ELSE 0 END",
            f"CASE WHEN {x[1]} > {big} THEN 1 ELSE 0 END",
        ),
    ]
    return rng.choice(made)


def compared(rng: Random, world: World) -> Expression:
    """A condition on the secret near its possible values."""
    c = rng.choice([each for each in world.possible if each is not None])
    x, y = (("x", "x")) if rng.random() < 0.5 else step(rng, world, ("x", "x"))
    if "CASE" in x:
        x, y = "x", "x"
    sign = rng.choice(["=", ">", "<=", "<>"])
    return f"({x} {sign} {c})", f"({y} {sign} CAST({c} AS {world.type}))"


# Brute force ----------------------------------------------------------------------------------


@dataclass
class Brute:
    """Every possible table in one database, told apart by a number; the true one has number 0."""

    world: World
    connection: duckdb.DuckDBPyConnection

    def __post_init__(self) -> None:
        tables = list(product(self.world.possible, repeat=self.world.people))
        tables.remove(self.world.secrets)
        self.tables = [self.world.secrets, *tables]
        rows = [
            f"({w}, '{NAMES[i]}', '{'ab'[i % 2]}', {'NULL' if v is None else repr(str(v))})"
            for w, table in enumerate(self.tables)
            for i, v in enumerate(table)
        ]
        self.connection.execute(
            f"CREATE OR REPLACE TABLE t AS SELECT w, name, team, CAST(v AS {self.world.type}) AS x "
            f"FROM (VALUES {', '.join(rows)}) AS cells(w, name, team, v)"
        )

    def consistent(self, log: Sequence[Statement]) -> list[tuple[Value, ...]]:
        """The tables of which all statements show what they show of the true one."""
        left = set(range(len(self.tables)))
        for statement in log:
            shown = self._shown(statement)
            left = {w for w in left if shown[w] == shown[0]}
        return [self.tables[w] for w in sorted(left)]

    def _shown(self, statement: Statement) -> list[list[Any]]:
        keys = ", ".join(("w", *statement.keys))
        rows = self.connection.execute(
            f"SELECT {', '.join([keys, *statement.shown])} FROM t WHERE {statement.where} "
            f"GROUP BY {keys}"
        ).fetchall()
        by_table: dict[int, list[Any]] = defaultdict(list)
        for w, *row in rows:
            by_table[w].append(self._row(row, statement))
        empty = [] if statement.keys else [self._row(list(statement.empty), statement)]
        return [sorted(by_table.get(w, empty), key=repr) for w in range(len(self.tables))]

    def _row(self, row: list[Any], statement: Statement) -> tuple[Any, ...]:
        key, shown = row[: len(statement.keys)], row[len(statement.keys) :]
        if statement.averages:
            total, count = shown
            shown = [None if not count else Fraction(total) / count]
        return (
            *key,
            *(Fraction(each) if isinstance(each, int | Decimal) else each for each in shown),
        )


@dataclass
class Checked:
    """How many logs were audited, and what the verdicts were."""

    verdicts: dict[str, int]
    exposed: int = 0
    wrong: tuple[str, ...] = ()


def check(rng: Random, folder: Path, connection: duckdb.DuckDBPyConnection, seen: Checked) -> None:
    """One log: what the audit says, and what all possible tables say."""
    world = random_world(rng)
    brute = Brute(world, connection)
    log = [random_statement(rng, world) for _ in range(rng.randint(1, 4))]
    limit = AuditOptions(seconds=5.0)  # what is not decided by then is not called safe
    found = Audit.of([each.sql for each in log], world.written(folder), options=limit)
    consistent = brute.consistent(log)
    verdict = str(found.verdict.value)
    seen.verdicts[verdict] = seen.verdicts.get(verdict, 0) + 1
    same = [i for i in range(world.people) if len({table[i] for table in consistent}) == 1]
    about = f"{world} {[each.sql for each in log]}"
    if verdict == "none-exposed" and world.told and same:
        seen.wrong += (f"false none-exposed: {NAMES[same[0]]} in {about}",)
    for each in found.exposed:
        if each.total:
            continue
        place = int(str(each.record)) - 1
        values = {table[place] for table in consistent}
        seen.exposed += 1
        if values != {each.value}:
            seen.wrong += (f"wrong exposed value: {NAMES[place]} {each.value} in {about}",)


def checked(rng: Random, logs: int, folder: Path) -> Checked:
    seen = Checked({})
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET threads = 1")
        for _ in range(logs):
            check(rng, folder, connection, seen)
    return seen


def test_no_audit_calls_a_log_safe_that_gives_somebody_away(seed: int, tmp_path: Path) -> None:
    seen = checked(Random(f"audit {seed}"), 30, tmp_path)
    assert not seen.wrong, "\n".join(seen.wrong[:5])
    assert seen.exposed > 1 and seen.verdicts.get("none-exposed", 0) > 1


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_no_audit_calls_any_of_many_more_logs_safe_that_gives_somebody_away(
    part: int, seed: int, tmp_path: Path
) -> None:
    seen = checked(Random(f"long audit {seed} {part}"), 150, tmp_path)
    assert not seen.wrong, "\n".join(seen.wrong[:5])
