"""Sessions over every kind of source, column and table: files, databases, shipped tables."""

import os
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import psycopg
import pytest
from answer.session_world import (
    BY_SEX,
    COUNT,
    HEAD,
    LAVISH,
    MODERATE,
    codes,
    csv,
    modes,
    number,
    numbers,
    people,
    policy,
    truth,
    values,
    world,
)

from casemate import Policy, Session
from casemate.doors import edition_of
from casemate.errors import Unsupported
from casemate.grid import Origin
from casemate.table import Universe, load_policy
from casemate.table.sources import typed_by_policy

OF_EVERY_KIND = """
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
KINDS = [
    "SELECT flag, COUNT(*) FROM t GROUP BY flag",
    'SELECT "Mixed Case", COUNT(*) FROM t GROUP BY "Mixed Case"',
    "SELECT COUNT(*) FROM t WHERE \"Mixed Case\" = 'it''s' AND flag",
    'SELECT COUNT(*) FROM t WHERE "Mixed Case" IS NULL',
    "SELECT COUNT(*) FROM t WHERE born >= DATE '2001-01-01'",
    "SELECT COUNT(score), COUNT(*) FROM t WHERE NOT flag",
    "SELECT COUNT(*) FROM t WHERE paid < 2.5 OR paid >= 7.5",
]

BY_THE_GATE = "SELECT COUNT(*) FROM t WHERE sex = 'f' AND ill = 1 AND age < 30"  # three columns


def rows_of_every_kind(count: int = 100, seed: int = 3) -> list[tuple[Any, ...]]:
    random = Random(seed)
    return [
        (
            place,
            random.choice([True, False, None]),
            random.choice(["a b", "it's", "never declared", None]),
            date(2000, 1, 1) + timedelta(days=random.randrange(731)),
            random.choice([None, round(random.gauss(0, 1), 4), 1e30]),
            f"{random.randrange(1200) / 100:.2f}",
            random.randrange(10),
        )
        for place in range(count)
    ]


def kinds_in(folder: Path, source: str) -> Path:
    """The policy of a column of each kind over a source of this kind."""
    with duckdb.connect(str(folder / "kinds.db")) as connection:
        connection.execute(
            'CREATE TABLE "Kinds" (key BIGINT, flag BOOLEAN, "Mixed Case" VARCHAR, born DATE, '
            "score DOUBLE, paid DECIMAL(8,2), undeclared INTEGER)"
        )
        connection.executemany('INSERT INTO "Kinds" VALUES (?,?,?,?,?,?,?)', rows_of_every_kind())
        for form in ("csv", "parquet"):
            connection.execute(f"COPY \"Kinds\" TO '{folder}/kinds.{form}' (FORMAT {form})")
    table = f'source = "kinds.{source}"'
    if source == "duckdb":
        table = f'source = "duckdb:///{folder}/kinds.db#Kinds"\nkey = "key"'
    return policy(folder, table=table, columns=OF_EVERY_KIND, budget=LAVISH)


@pytest.mark.parametrize("source", ["parquet", "duckdb"])
def test_columns_of_every_kind_are_answered_from_every_file(source: str, tmp_path: Path) -> None:
    path = kinds_in(tmp_path, source)
    with Session(path) as session:
        for sql in KINDS:
            exact = {row[:-1]: row for row in truth(path, sql)} if "GROUP" in sql else {}
            for row in values(session.query(sql)):
                true = exact.get(row[:-1], (*row[:-1], 0)) if exact else truth(path, sql)[0]
                assert row[:-1] == true[:-1] if exact else row[0] == pytest.approx(true[0], abs=3)
                assert row[-1] == pytest.approx(true[-1], abs=3)
        latest = number(session.query("SELECT COUNT(*), MIN(born), MAX(born) FROM t"))
    assert isinstance(latest.value, date) and latest.hi == date(2001, 12, 31)


def test_private_answers_protect_missingness_whatever_the_policy_says_of_it(tmp_path: Path) -> None:
    path = kinds_in(tmp_path, "csv")
    text, drawn, answered = path.read_text(), [], []
    for word in ("secret", "public"):
        path.write_text(text.replace("nullable = true", f'missing = "{word}"'))
        declared = load_policy(path)
        universe = Universe.of(typed_by_policy(declared))
        drawn.append([(each.name, each.kind, each.points) for each in universe.attributes])
        assert declared.budget and declared.private()[0].missing.value == word
        edition = edition_of(declared, declared.budget)
        with Session.simulated(path, seed=5) as session:
            answered.append((edition, [values(session.query(sql)) for sql in KINDS]))
    assert drawn[0] == drawn[1] and answered[0] == answered[1]


REFUSED = {
    "SELECT COUNT(*) FROM t WHERE undeclared = 3": "undeclared",
    "SELECT COUNT(*) FROM t WHERE Mixed = 3": "mixed",
    "SELECT COUNT(*) FROM t WHERE \"mixed case\" = 'a'": "mixed case",
    "SELECT SUM(flag) FROM t": "SUM",
    "SELECT SUM(born) FROM t": "SUM",
    "SELECT COUNT(*) FROM t WHERE key > 2": "key has no cells; declare `min`, `max` and `bins`",
}


def test_what_a_column_cannot_be_asked_is_said_with_its_name(tmp_path: Path) -> None:
    path = kinds_in(tmp_path, "csv")
    path.write_text(f'{path.read_text()}[columns.key]\ntype = "integer"\n')
    with Session(path) as session:
        for sql, why in REFUSED.items():
            with pytest.raises(Unsupported, match=f"(?i){why}"):
                session.query(sql)
        assert session.standing().spent.epsilon == 0
        shown = [session.query(sql, all_groups=all_) for all_ in (False, True) for sql in KINDS[:2]]
    boolean, text, *every = [[row[0] for row in values(answer)] for answer in shown]
    assert (boolean, text) == ([False, True], ["a b", "it's"])
    assert every == [[*boolean, None], [*text, None]]


# Small tables -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "strategy"), [(0, "auto"), (1, "cold"), (5, "tables")])
def test_a_table_of_one_column_and_hardly_any_rows_is_answered(
    rows: int, strategy: str, tmp_path: Path
) -> None:
    csv(tmp_path / "t.csv", ("x", "y"), [(1, 2)] * rows)
    more = f'[answer]\nstrategy = "{strategy}"\n'
    path = policy(tmp_path, table='source = "t.csv"', columns=codes({"x": 2}), more=more)
    with Session(path) as session:
        for sql in (
            COUNT,
            "SELECT x, COUNT(*) FROM t GROUP BY x",
            "SELECT SUM(x), AVG(x), MEDIAN(x), MIN(x), MAX(x) FROM t",
        ):
            for cell in numbers(session.query(sql)):
                assert cell.lo is not None and cell.hi is not None
                if cell.value is not None:
                    assert cell.lo <= cell.value <= cell.hi  # type: ignore[operator]  # numbers


@pytest.mark.parametrize("relation", ['neighbours = "replace"', 'protects = "private-columns"'])
def test_an_empty_table_is_answered_under_every_relation(relation: str, tmp_path: Path) -> None:
    csv(tmp_path / "people.csv", HEAD, people(0))
    path = policy(tmp_path, budget=f"{MODERATE}\n{relation}")
    with Session(path) as session:
        assert number(session.query(COUNT)).value == 0
        for sql in ("SELECT AVG(visits) FROM t WHERE ill = 1", "SELECT MEDIAN(age) FROM t"):
            for measure in (False, True):
                assert len(session.query(sql, measure=measure).rows) == 1


# Shipped tables ---------------------------------------------------------------------------------

SHIPPED = {
    "hospital": 'SELECT "Gender", AVG("Blood sugar") FROM patients GROUP BY "Gender"',
    "population:2000:1": "SELECT sex, COUNT(*) FROM people WHERE age >= 50 GROUP BY sex",
    "rand_hie": "SELECT COUNT(*) FROM t",
}
LARGE = list(SHIPPED)[1:]


@pytest.mark.parametrize(
    "name", ["hospital", *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE)]
)
def test_a_shipped_table_is_answered_and_its_ledger_is_in_the_folder_one_is_in(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Session(name) as session:
        answer = session.query(SHIPPED[name])
    assert answer.rows and all(cell.lo is not None for cell in numbers(answer))
    assert all(each.startswith(f"{name.replace(':', '-')}.ledger") for each in os.listdir())
    with Session(name) as session:
        assert session.query(SHIPPED[name]).origin is Origin.CACHED


def test_a_policy_may_be_given_as_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_policy(world(tmp_path))
    assert isinstance(loaded, Policy)
    monkeypatch.chdir(tmp_path)
    with Session(loaded) as session:
        first = session.query(COUNT)
    with Session(tmp_path / "casemate.toml") as session:
        assert session.query(COUNT).rows == first.rows


# Dialects ---------------------------------------------------------------------------------------


def test_another_dialect_asks_the_same_question(tmp_path: Path) -> None:
    path = world(tmp_path)
    with Session(path) as session:
        first = session.query("SELECT COUNT(*) FROM t WHERE \"sex\" = 'f'")
    with Session(path, dialect="mysql") as session:
        again = session.query("SELECT COUNT(*) FROM t WHERE `sex` = 'f'")
    assert again.origin is Origin.CACHED and again.rows == first.rows


# PostgreSQL -------------------------------------------------------------------------------------


def in_postgres(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            'CREATE TABLE "People" (id BIGINT, age INTEGER, sex TEXT, bonus NUMERIC(8,2), '
            "ill INTEGER, visits INTEGER)"
        )
        for row in people(600):
            connection.execute('INSERT INTO "People" VALUES (%s,%s,%s,%s,%s,%s)', row)


@pytest.mark.postgres
def test_a_table_in_postgresql_is_answered_like_the_same_table_in_a_file(
    postgres: str, tmp_path: Path
) -> None:
    in_postgres(postgres)
    files, server = tmp_path / "files", tmp_path / "server"
    for folder in (files, server):
        folder.mkdir()
    table = f'source = "{postgres}#People"\nkey = "id"'
    paths = [world(files, budget=LAVISH), policy(server, table=table, budget=LAVISH)]
    for sql in (COUNT, BY_SEX, "SELECT SUM(visits), AVG(bonus) FROM t WHERE age < 50"):
        for measure in (False, True):
            found = []
            for path in paths:
                with Session.simulated(path, 5) as session:
                    found.append(session.query(sql, measure=measure).rows)
            assert found[0] == found[1]
    with Session(paths[1]) as session:
        assert session.query(BY_SEX).origin is not Origin.CACHED
    with Session(paths[1]) as session:
        assert session.query(BY_SEX).origin is Origin.CACHED


@pytest.mark.postgres
def test_people_with_several_rows_are_bounded_in_postgresql_too(
    postgres: str, tmp_path: Path
) -> None:
    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE seen (id BIGINT, who TEXT, ill INTEGER)")
        for place in range(300):
            row = (place, f"p{place % 50}", place % 2)
            connection.execute("INSERT INTO seen VALUES (%s,%s,%s)", row)
    table = f'source = "{postgres}#seen"\nkey = "id"\nperson = "who"\nrows_per_person = 2'
    columns = '[columns.who]\nrole = "identifier"\n[columns.ill]\nvalues = [0, 1]\n'
    path = policy(tmp_path, table=table, columns=columns, budget="epsilon = 99999\ndelta = 1e-6")
    with Session(path) as session:
        assert number(session.query(COUNT, measure=True)).value == 100
    assert modes(tmp_path)["casemate.ledger-key"] == 0o600


@pytest.mark.postgres
def test_a_ledger_in_postgresql_has_its_secrets_beside_the_policy(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    rules = tmp_path / "rules"
    rules.mkdir()
    path = world(rules, budget=f'{MODERATE}\nledger = "{postgres}"')
    with Session(path) as session:
        first = session.query(BY_SEX)
    with Session(path) as session:
        again = session.query(BY_SEX)
        assert again.origin is Origin.CACHED and again.rows == first.rows
        assert session.query("SELECT COUNT(*) FROM t WHERE ill = 1").cost.epsilon == 0
        session.query(BY_THE_GATE)
        assert postgres not in repr(session) and "postgresql" not in str(session.standing())
    secrets = {"casemate.ledger-gate", "casemate.ledger-gate.lock"}
    kept = {"casemate.ledger-stand-in"}
    assert set(modes(rules)) == {"people.csv", "casemate.toml", *secrets, *kept}
    assert not os.listdir(elsewhere)


@pytest.mark.postgres
def test_a_policy_without_a_file_keeps_secrets_under_the_name_of_its_dataset(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_policy(world(tmp_path, budget=f'{MODERATE}\nledger = "{postgres}"'))
    with Session(replace(loaded, path=None)) as session:
        session.query(BY_THE_GATE)
    assert {"people.csv.ledger-gate", "people.csv.ledger-gate.lock"} <= set(os.listdir())
    assert "casemate.ledger-gate" not in os.listdir()


def test_the_source_is_only_read(tmp_path: Path) -> None:
    path = kinds_in(tmp_path, "duckdb")
    before = (tmp_path / "kinds.db").read_bytes()
    with Session(path) as session:
        session.query(COUNT)
        session.query(KINDS[0], measure=True)
    assert (tmp_path / "kinds.db").read_bytes() == before
    with duckdb.connect(str(tmp_path / "kinds.db"), read_only=True) as connection:
        found: Any = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
    assert found == (1,)
