"""What is true of PostgreSQL only: one moment, read only, the server's many types."""

import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from casemate.errors import Misconfigured
from casemate.table import ColumnType, Table
from casemate.table.sources import RECORD
from casemate.table.sources.place import PostgresTable, find
from casemate.table.sources.postgres import PostgresSource

SECRET = "postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2"


def run(url: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def opened(url: str, table: str, key: str | None = None) -> PostgresSource:
    schema, _, name = table.rpartition(".")
    return PostgresSource(PostgresTable("", url, (schema, name) if schema else (name,)), key=key)


@pytest.mark.parametrize(
    "url", [SECRET, SECRET + "&nonsense=1", SECRET.replace("secret", "sec%zret")]
)
def test_a_connection_that_fails_shows_no_password_and_no_host(url: str) -> None:
    with pytest.raises(Misconfigured, match="cannot connect to postgresql://…#people") as caught:
        Table.open(f"{url}#people")
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert not any(word in sentence for word in ("secret", "sec%", "127.0.0.1", "me:"))


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Misconfigured, match=r"pip install 'casemate\[postgres\]'"):
        Table.open("postgresql://host/db#people")


def test_the_place_of_a_table_is_printed_without_its_address() -> None:
    place = find(f"{SECRET}#people", None)  # type: ignore[arg-type]  # no folder is needed here
    assert "secret" not in repr(place) and "people" in repr(place)


@pytest.mark.postgres
def test_a_table_may_be_in_any_schema_and_have_any_name(postgres: str) -> None:
    run(
        postgres,
        'CREATE SCHEMA "my schema"',
        'CREATE TABLE "my schema"."it\'s ""a"" %s table" ("the %(x)s id" int PRIMARY KEY)',
        'INSERT INTO "my schema"."it\'s ""a"" %s table" VALUES (7)',
    )
    source = opened(postgres, 'my schema.it\'s "a" %s table')
    assert source.key == "the %(x)s id"
    frame = source.read(f"SELECT * FROM {source.relation()} AS t WHERE 'a%' LIKE 'a%'")
    assert {name: series.values[0] for name, series in frame.items()} == {
        RECORD: 7,
        "the %(x)s id": 7,
    }
    source.close()


@pytest.mark.postgres
def test_all_queries_see_the_moment_of_opening(postgres: str) -> None:
    run(postgres, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    source = opened(postgres, "t")
    run(postgres, "INSERT INTO t VALUES (3)")
    counted = source.read(f"SELECT COUNT(*) AS n FROM {source.relation()} AS t")
    assert counted["n"].values[0] == 2
    source.close()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "DELETE FROM t RETURNING id",
        "WITH gone AS (DELETE FROM t RETURNING id) SELECT id FROM gone",
        "SELECT 1 AS x) AS q; COMMIT; DELETE FROM t; SELECT * FROM (SELECT 1 AS x",
        "SELECT nextval('s')",
        "SET TRANSACTION READ WRITE",
        "COPY t TO '/tmp/never-written'",
    ],
)
def test_nothing_can_be_written(postgres: str, sql: str) -> None:
    run(postgres, "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run(postgres, "CREATE SEQUENCE s")
    source = opened(postgres, "t")
    with pytest.raises(Misconfigured):
        source.read(sql)
    source.close()
    again = opened(postgres, "t")
    assert again.read(f"SELECT COUNT(*) AS n FROM {again.relation()} AS t")["n"].values[0] == 1
    again.close()


@pytest.mark.postgres
def test_functions_of_other_schemas_do_not_replace_the_servers_own(postgres: str) -> None:
    run(
        postgres,
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (4)",
        "CREATE FUNCTION sqrt(bigint) RETURNS int LANGUAGE sql AS 'SELECT 0'",
    )
    source = opened(postgres, "t")
    frame = source.read(f"SELECT sqrt(id) AS x FROM {source.relation()} AS t")
    assert frame["x"].values[0] == 2.0
    source.close()


SHOWN: dict[str, tuple[str, ColumnType, Any]] = {
    "smallint": ("-7", ColumnType.INTEGER, -7),
    "numeric": ("0.1", ColumnType.DECIMAL, Decimal("0.1")),
    "real": ("0.5", ColumnType.DOUBLE, 0.5),
    "varchar(9)": ("'a b '", ColumnType.TEXT, "a b "),
    "char(9)": ("'a'", ColumnType.TEXT, "a"),
    "name": ("'a'", ColumnType.TEXT, "a"),
    "uuid": (
        "'00000000-0000-0000-0000-000000000001'",
        ColumnType.TEXT,
        "00000000-0000-0000-0000-000000000001",
    ),
    "json": ("'[1]'", ColumnType.TEXT, "[1]"),
    "mood": ("'fine'", ColumnType.TEXT, "fine"),
    "positive": ("5", ColumnType.INTEGER, 5),
    "more_than_positive": ("6", ColumnType.INTEGER, 6),
    "timestamptz": ("'2020-01-01 10:00+02'", ColumnType.TIMESTAMP, datetime(2020, 1, 1, 8)),
    "date": ("'infinity'", ColumnType.DATE, None),
    "timestamp": ("'20000-01-01'", ColumnType.TIMESTAMP, None),
}


@pytest.mark.postgres
def test_the_servers_types_are_shown_as_seven(postgres: str) -> None:
    columns = ", ".join(f'"{name}" {name}' for name in SHOWN)
    cells = ", ".join(text for text, _, _ in SHOWN.values())
    run(
        postgres,
        "CREATE TYPE mood AS ENUM ('fine')",
        "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
        "CREATE DOMAIN more_than_positive AS positive",
        f"CREATE TABLE t (id int PRIMARY KEY, {columns}, hour time, list int[], bytes bytea)",
        f"INSERT INTO t VALUES (1, {cells}, '10:00', '{{1}}', 'x')",
    )
    source = opened(postgres, "t")
    assert dict(source.fields()) == {"id": ColumnType.INTEGER} | {
        name: type_ for name, (_, type_, _) in SHOWN.items()
    }
    assert dict(source.left_out) == {"hour": "time", "list": "_int4", "bytes": "bytea"}
    frame = source.read(f"SELECT * FROM {source.relation()} AS t")
    for name, (_, _, value) in SHOWN.items():
        got = None if frame[name].missing[0] else frame[name].values[0]
        assert got == value, name
    source.close()


MISTAKES = {
    "no table": ("absent", None, "has no table absent"),
    "no key": ("keyless", None, "needs `key`"),
    "a key of two columns": ("double", None, "needs `key`"),
    "a key no query can use": ("keyless", "hour", "did you mean"),
}


@pytest.mark.postgres
@pytest.mark.parametrize("case", MISTAKES)
def test_a_table_that_cannot_be_opened_is_one_sentence(postgres: str, case: str) -> None:
    run(
        postgres,
        "CREATE TABLE keyless (hours int, hour time)",
        "CREATE TABLE double (a int, b int, PRIMARY KEY (a, b))",
    )
    table, key, expected = MISTAKES[case]
    with pytest.raises(Misconfigured, match=expected):
        opened(postgres, table, key)
