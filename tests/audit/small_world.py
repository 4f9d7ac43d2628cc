"""Small random tables with private columns of every kind, and random logs of statements about them.

Everything is small enough that all tables which a policy allows can be written down.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

import duckdb

from casemate.published import Knowledge, Publication, evidence_of
from casemate.query.parse import Logged
from casemate.table import Table

PUBLIC = {"id": "BIGINT", "sex": "TEXT", "age": "INTEGER", "weight": "INTEGER", "area": "INTEGER"}
AREAS = [(1, "north", 2), (2, "south", 1)]
OFFERS = [(10, 1, 3), (11, 1, 4), (12, 2, 5)]
MOST = 3_000
"""Tables that a policy may allow."""


@dataclass(frozen=True)
class Secret:
    """A private column: its type in SQL, what its policy says, and every value it may have."""

    name: str
    kind: str
    policy: str
    possible: tuple[Any, ...]


@dataclass(frozen=True)
class World:
    """A small table: its private columns, and its rows as dictionaries."""

    secrets: tuple[Secret, ...]
    rows: tuple[dict[str, Any], ...]

    def of(self, kind: str) -> list[Secret]:
        """The private columns of one kind."""
        return [each for each in self.secrets if each.kind == kind]


def random_world(rng: Random, nullable: bool = True) -> World:
    """Two to five records with one or two private columns."""
    size = rng.randint(2, 5)
    makers: list[Callable[[Random, bool], Secret]] = [number, number, category, yes_no]
    chosen = rng.sample(makers, rng.choice([1, 1, 2]))
    secrets: list[Secret] = []
    for make in chosen:
        secret = make(rng, nullable)
        taken = {each.name for each in secrets}
        secrets.append(secret if secret.name not in taken else renamed(secret))
    options = 1
    for secret in secrets:
        options *= len(secret.possible)
    while options**size > MOST and size > 2:
        size -= 1
    rows = [
        {
            "id": i,
            "sex": rng.choice(["f", "m"]),
            "age": rng.choice([1, 2, 3]),
            "weight": rng.choice([0, 1, 1, 2, None]),
            "area": rng.choice([1, 1, 2, 3]),
            **{secret.name: rng.choice(secret.possible) for secret in secrets},
        }
        for i in range(1, size + 1)
    ]
    return World(tuple(secrets), tuple(rows))


def number(rng: Random, nullable: bool) -> Secret:
    low = rng.choice([0, 0, 1, -1])
    high = low + rng.choice([1, 2, 3, 4])
    missing = nullable and rng.random() < 0.2
    policy = f"min = {low}\nmax = {high}" + ("\nnullable = true" if missing else "")
    possible = (*range(low, high + 1), *((None,) if missing else ()))
    return Secret("income", "INTEGER", policy, possible)


def category(rng: Random, nullable: bool) -> Secret:
    values = ["none", "flu", "gout"][: rng.choice([2, 3])]
    missing = nullable and rng.random() < 0.2
    policy = f"values = {values}" + ("\nnullable = true" if missing else "")
    return Secret("illness", "TEXT", policy, (*values, *((None,) if missing else ())))


def yes_no(rng: Random, nullable: bool) -> Secret:
    return Secret("smoker", "BOOLEAN", "values = [false, true]", (False, True))


def renamed(secret: Secret) -> Secret:
    """A second number beside the first."""
    return Secret("debt", secret.kind, secret.policy, secret.possible)


@contextmanager
def opened(world: World, folder: Path) -> Iterator[Table]:
    """The world in a DuckDB file, opened through its policy."""
    path, policy = folder / "small.db", folder / "small.toml"
    path.unlink(missing_ok=True)
    kinds = PUBLIC | {secret.name: secret.kind for secret in world.secrets}
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            created("people", kinds, [tuple(row[name] for name in kinds) for row in world.rows])
            + created("areas", {"area": "INTEGER", "region": "TEXT", "rate": "INTEGER"}, AREAS)
            + created("offers", dict.fromkeys(("offer", "area", "price"), "INTEGER"), OFFERS)
        )
    policy.write_text(policy_of(world, path))
    with Table.open(policy) as table:
        yield table


def created(name: str, kinds: dict[str, str], rows: Sequence[tuple[Any, ...]]) -> str:
    """SQL that makes a table and fills it."""
    listed = ", ".join(f"{column} {kind}" for column, kind in kinds.items())
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
    return f"CREATE TABLE {name} ({listed}); INSERT INTO {name} VALUES {values}; "


def literal(value: object) -> str:
    if isinstance(value, str):
        return f"'{value}'"
    return "NULL" if value is None else str(value)


def policy_of(world: World, path: Path) -> str:
    lines = ["[table]", f'source = "duckdb:///{path}#people"', 'key = "id"']
    lines += ["[columns.id]", 'role = "identifier"']
    for name in PUBLIC.keys() - {"id"}:
        lines += [f"[columns.{name}]", 'role = "public"']
    for secret in world.secrets:
        lines += [f"[columns.{secret.name}]", 'role = "private"', secret.policy]
    lines += ["[public.areas]", 'key = "area"', "[public.offers]", 'key = "offer"']
    return "\n".join(lines)


# Statements -----------------------------------------------------------------------------------

CONDITIONS = [
    "TRUE",
    "TRUE",
    "sex = 'f'",
    "sex = 'm'",
    "age > 1",
    "age = 2",
    "weight > 0",
    "age < 0",
]
KEYS = ["sex", "age", "area", "age > 1"]


def read(table: Table, entry: Logged) -> Publication:
    """A statement as an audit reads it, with what the table says of its public columns."""
    return evidence_of([entry], table.policy, Knowledge(), table.source).publication


def readable_log(rng: Random, world: World, table: Table) -> list[str]:
    """A random log of which everything can be audited."""
    return random_log(rng, world, lambda sql: not read(table, Logged(sql, 1)).refused)


def random_log(rng: Random, world: World, accepted: Callable[[str], bool]) -> list[str]:
    """Between one and six statements that are accepted, now and then one of them twice."""
    statements = filter(accepted, (random_statement(rng, world) for _ in count()))
    log = list(islice(statements, rng.randint(1, 6)))
    return log + rng.sample(log, 1) if rng.random() < 0.1 else log


def random_statement(rng: Random, world: World) -> str:
    secret = rng.choice(world.secrets)
    makers = NUMBERS if secret.kind == "INTEGER" else CATEGORIES
    shown = [rng.choice(makers)(rng, secret, world) for _ in range(rng.choice([1, 1, 1, 2]))]
    where = condition(rng, secret, world)
    source = "people"
    if rng.random() < 0.1:
        source, joined = rng.choice(
            [
                ("people JOIN areas USING (area)", "rate"),
                ("people JOIN offers USING (area)", "price"),
            ]
        )
        shown = [each.replace("weight", joined) for each in shown]
    keys = grouping(rng, secret)
    if not keys:
        return f"SELECT {', '.join(shown)} FROM {source} WHERE {where}"
    having = rng.choice(["", "", f" HAVING COUNT(*) >= {rng.choice([1, 2])}"])
    if any(secret.name in key for key in keys) or any(s.name in where for s in world.secrets):
        having = rng.choice(["", "", f" HAVING {keys[0]} IS NOT NULL"])
    listed = ", ".join(keys)
    return (
        f"SELECT {listed}, {', '.join(shown)} FROM {source} WHERE {where} GROUP BY {listed}{having}"
    )


def condition(rng: Random, secret: Secret, world: World) -> str:
    """A public condition, for a category now and then a private one."""
    public = " AND ".join(rng.choice(CONDITIONS) for _ in range(rng.choice([1, 1, 2])))
    if rng.random() < (0.4 if secret.kind != "INTEGER" else 0.1):
        return f"{public} AND {private_condition(rng, secret)}"
    return public


def private_condition(rng: Random, secret: Secret) -> str:
    if secret.kind == "BOOLEAN":
        return rng.choice([secret.name, f"NOT {secret.name}", f"{secret.name} OR sex = 'f'"])
    if secret.kind == "INTEGER":
        return comparison(rng, secret)
    values = [each for each in secret.possible if each is not None]
    one = rng.choice(values)
    return rng.choice(
        [
            f"{secret.name} = '{one}'",
            f"{secret.name} <> '{one}'",
            f"({secret.name} = '{one}' OR age = 2)",
            f"{secret.name} IS NOT NULL",
        ]
    )


def comparison(rng: Random, secret: Secret) -> str:
    """A comparison of a private number with a constant."""
    values = [each for each in secret.possible if each is not None]
    around = [values[0] - 1, *values, values[-1] + 1]
    one, other = sorted((rng.choice(around), rng.choice(values)))
    name = secret.name
    return rng.choice(
        [
            f"{name} {rng.choice(['<', '<=', '>', '>=', '=', '<>'])} {one}",
            f"{name} {rng.choice(['<', '<=', '>', '>='])} {one}.5",
            f"{one} {rng.choice(['<', '>='])} {name}",
            f"{name} BETWEEN {one} AND {other}",
            f"{name} IN ({one}, {other})",
            f"NOT ({name} > {one} AND sex = 'f')",
            f"({name} = {one} OR age = 2)",
            f"2 * {name} - 1 > {one}",
        ]
    )


def grouping(rng: Random, secret: Secret) -> list[str]:
    keys = rng.sample(KEYS, rng.choice([0, 0, 0, 1, 1, 2]))
    if rng.random() < 0.2 and secret.kind != "INTEGER":
        keys = [secret.name, *keys][:2]
    elif rng.random() < 0.1 and secret.kind == "INTEGER":
        keys = [f"({comparison(rng, secret)})", *keys][:2]
    return keys


Maker = Callable[[Random, Secret, World], str]


def added(rng: Random, secret: Secret) -> str:
    name = secret.name
    return rng.choice(
        [
            name,
            name,
            f"weight * {name}",
            f"{name} * 2",
            f"CASE WHEN sex = 'f' THEN {name} ELSE 0 END",
            f"CASE WHEN age > 1 THEN {name} ELSE 2 * {name} END",
            f"{name} - age",
        ]
    )


def filtered(rng: Random, aggregate: str) -> str:
    return aggregate + rng.choice(["", "", "", " FILTER (WHERE sex = 'm')"])


def a_sum(rng: Random, secret: Secret, world: World) -> str:
    text = filtered(rng, f"SUM({added(rng, secret)})")
    return rng.choice(
        [text, text, text, f"{text} / 2", f"ROUND({text} / 2.0)", f"COALESCE({text}, 0)"]
    )


def an_average(rng: Random, secret: Secret, world: World) -> str:
    text = filtered(rng, f"AVG({added(rng, secret)})")
    return rng.choice(
        [text, f"ROUND({text})", f"ROUND({text}, 1)", f"CAST({text} AS NUMERIC(9,1))"]
    )


def a_ratio(rng: Random, secret: Secret, world: World) -> str:
    return rng.choice(
        [f"SUM({secret.name}) / COUNT(*)", f"ROUND(SUM({secret.name}) * 1.0 / COUNT(*), 1)"]
    )


def an_extreme(rng: Random, secret: Secret, world: World) -> str:
    return filtered(rng, f"{rng.choice(['MIN', 'MAX', 'MEDIAN'])}({secret.name})")


def a_difference(rng: Random, secret: Secret, world: World) -> str:
    other = rng.choice([each for each in world.secrets if each.kind == "INTEGER"])
    return f"SUM({secret.name}) - SUM({other.name}) FILTER (WHERE age > 1)"


def a_filled_count(rng: Random, secret: Secret, world: World) -> str:
    return f"COUNT({secret.name})"


def a_count(rng: Random, secret: Secret, world: World) -> str:
    return rng.choice(
        [
            "COUNT(*)",
            f"COUNT(*) FILTER (WHERE {private_condition(rng, secret)})",
            f"COUNT({secret.name})",
            f"SUM(CASE WHEN {private_condition(rng, secret)} THEN 1 ELSE 0 END)",
            f"SUM(CASE WHEN {private_condition(rng, secret)} THEN weight ELSE 1 END)",
            "SUM(weight)",
            f"SUM(weight) FILTER (WHERE {private_condition(rng, secret)})",
            f"AVG(CASE WHEN {private_condition(rng, secret)} THEN 1 ELSE 0 END)",
            f"ROUND(AVG(CASE WHEN {private_condition(rng, secret)} THEN 1 ELSE 0 END), 1)",
        ]
    )


def a_mixture(rng: Random, secret: Secret, world: World) -> str:
    other = rng.choice(world.secrets)
    return f"SUM({secret.name}) + COUNT(*) FILTER (WHERE {private_condition(rng, other)})"


NUMBERS: list[Maker] = [
    a_sum,
    a_sum,
    an_average,
    a_ratio,
    an_extreme,
    an_extreme,
    a_difference,
    a_mixture,
    a_count,
    a_count,
    a_count,
]
CATEGORIES: list[Maker] = [a_count]
