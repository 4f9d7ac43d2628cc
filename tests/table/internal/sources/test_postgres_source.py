"""What is true of PostgreSQL only: one moment, read only, no address in a message."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from table.stored import run_in

from casemate.errors import Misconfigured
from casemate.table import Table
from casemate.table.sources.place import PostgresTable, find
from casemate.table.sources.postgres import PostgresSource

SECRET = "postgresql://me:secret@127.0.0.1:1/db?connect_timeout=2"


@contextmanager
def opened(url: str) -> Iterator[PostgresSource]:
    """The table `t`, opened."""
    with closing(PostgresSource(PostgresTable("", url, ("t",)))) as source:
        yield source


def counted(source: PostgresSource) -> int:
    return int(source.read(f"SELECT COUNT(*) AS n FROM {source.relation()} AS t")["n"].values[0])


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


ONE_ROW = ("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (4)")


@pytest.mark.postgres
def test_all_queries_see_the_moment_of_opening(postgres: str) -> None:
    run_in(postgres, *ONE_ROW)
    with opened(postgres) as source:
        run_in(postgres, "INSERT INTO t VALUES (3)")
        assert counted(source) == 1


@pytest.mark.postgres
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "DELETE FROM t RETURNING id",
        "WITH gone AS (DELETE FROM t RETURNING id) SELECT id FROM gone",
        "SELECT 1 AS x) AS q; COMMIT; DELETE FROM t; SELECT * FROM (SELECT 1 AS x",
        "SELECT nextval('public.s')",
        "SET TRANSACTION READ WRITE",
        "COPY t TO '/tmp/never-written'",
    ],
)
def test_nothing_can_be_written(postgres: str, sql: str) -> None:
    run_in(postgres, *ONE_ROW, "CREATE SEQUENCE s")
    with opened(postgres) as source, pytest.raises(Misconfigured):
        source.read(sql)
    with opened(postgres) as again:
        assert counted(again) == 1


@pytest.mark.postgres
def test_functions_of_other_schemas_do_not_replace_the_servers_own(postgres: str) -> None:
    zero = "CREATE FUNCTION sqrt(bigint) RETURNS int LANGUAGE sql AS 'SELECT 0'"
    run_in(postgres, *ONE_ROW, zero)
    with opened(postgres) as source:
        frame = source.read(f"SELECT sqrt(id) AS x FROM {source.relation()} AS t")
    assert frame["x"].values[0] == 2.0
