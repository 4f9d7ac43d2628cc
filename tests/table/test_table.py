"""`Table.open`: what is found under which name, and a policy held against its source."""

from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from casemate.errors import Misconfigured
from casemate.table import (
    Column,
    ColumnType,
    Missing,
    Policy,
    Role,
    Table,
    load_policy,
    plain_source,
)
from casemate.table.sources import RECORD

PEOPLE = "id,ZIP,Gender,Blood sugar,Note\n1,20001,Male,4.3,a\n2,20002,Female,5.1,b\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table, a public table and a database, which is also the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "zips.csv").write_text("zip,region\n20001,north\n20002,south\n")
    with duckdb.connect("base.db") as connection:
        connection.execute("CREATE TABLE people AS FROM 'people.csv'")
        connection.execute("CREATE TABLE zips AS FROM 'zips.csv'")
        connection.execute("CREATE TABLE odd AS SELECT 1 AS id, TIME '10:00' AS hour")
        connection.execute("COPY people TO 'people.parquet'")
    return tmp_path


def policy(text: str) -> Path:
    Path("casemate.toml").write_text(text)
    return Path("casemate.toml")


BLOOD = '[columns.ZIP]\n[columns."Blood sugar"]\nrole = "private"\nmin = 3\nmax = 10\n'
POLICY = f'[table]\nsource = "people.csv"\n{BLOOD}'


# What is found --------------------------------------------------------------------------------


def test_a_policy_is_opened_with_every_type_filled_in() -> None:
    with Table.open(policy(POLICY)) as table:
        assert table.policy.columns == (
            Column("ZIP", type=ColumnType.INTEGER),
            Column("Blood sugar", Role.PRIVATE, ColumnType.DECIMAL, low=3, high=10),
        )
        assert "Note" in table.source.fields()


@pytest.mark.parametrize("where", ["people.csv", Path("people.csv"), "peop*.csv", "people.parquet"])
def test_a_bare_source_is_public_but_for_the_columns_named(where: str | Path) -> None:
    with Table.open(where, private=["Blood sugar", "Note"]) as table:
        names = ["id", "ZIP", "Gender", "Blood sugar", "Note"]
        assert [column.name for column in table.policy.columns] == names
        assert [column.name for column in table.policy.private()] == ["Blood sugar", "Note"]
        assert table.policy.key is None


def test_what_a_policy_would_say_is_said_of_a_bare_source_beside_its_name() -> None:
    assert plain_source("people.csv") == "people.csv"
    with Table.open(plain_source("people.csv", missing="public"), private="Note") as table:
        said = {column.name: column.missing for column in table.policy.columns}
        assert said.pop("Note") is Missing.PUBLIC and set(said.values()) == {Missing.NONE}
        assert table.policy.source == str(Path("people.csv").absolute())
    with pytest.raises(Misconfigured, match=r"a\.toml is a policy; declare `missing` in it"):
        plain_source("a.toml", missing="secret")
    with pytest.raises(Misconfigured, match="hospital comes with a policy"):
        Table.open(plain_source("hospital", missing="secret"))


def test_a_bare_table_of_a_database_needs_a_key() -> None:
    with Table.open("duckdb:///base.db#people", key="id") as table:
        assert table.policy.key == "id"
        frame = table.source.read(f"SELECT {RECORD} FROM {table.source.relation()} AS t")
        assert sorted(frame[RECORD].values) == [1, 2]
    with pytest.raises(Misconfigured, match=r"#people: a table of a database needs `key`"):
        Table.open("duckdb:///base.db#people")


def test_a_shipped_table_has_its_own_policy() -> None:
    with Table.open("hospital") as table:
        blood = table.policy.column("Blood sugar")
        assert blood == Column("Blood sugar", Role.PRIVATE, ColumnType.DECIMAL, low=3, high=10)
        total = table.source.read(f'SELECT SUM("Blood sugar") AS x FROM {table.source.relation()}')
        assert total["x"].values[0] == Decimal("32.1")
    with Table.open("population:500:7") as table:
        counted = table.source.read(f"SELECT COUNT(*) AS n FROM {table.source.relation()} AS t")
        assert counted["n"].values[0] == 500


def test_a_file_comes_before_a_shipped_table_of_its_name() -> None:
    Path("hospital").write_text(PEOPLE)
    with pytest.raises(Misconfigured, match="whose kind is unknown"):
        Table.open("hospital")


@pytest.mark.parametrize(
    ("source", "public"),
    [
        ("people.csv", 'source = "zips.csv"'),
        ("duckdb:///base.db#people", ""),
        ("duckdb:///base.db#people", 'source = "#main.zips"'),
        ("duckdb:///base.db#people", 'source = "zips.csv"'),
    ],
)
def test_the_columns_of_public_tables_are_filled_in(source: str, public: str) -> None:
    text = f'[table]\nsource="{source}"\nkey="id"\n{BLOOD}[public.zips]\nkey="zip"\n{public}'
    with Table.open(policy(text)) as table:
        [zips] = table.policy.public_tables
        assert zips.columns == (
            Column("zip", type=ColumnType.INTEGER),
            Column("region", type=ColumnType.TEXT),
        )
        joined = table.source.read(
            f"SELECT COUNT(*) AS n FROM {table.source.relation()} AS t "
            f"JOIN {table.source.relation('zips')} AS z ON t.ZIP = z.zip"
        )
        assert joined["n"].values[0] == 2


def test_what_is_printed_of_a_table_is_not_its_data() -> None:
    with Table.open(policy(POLICY)) as table:
        printed = f"{table!r} {table.policy!r} {table.source!r}"
        assert f"<Table {Path.cwd()}/people.csv: 2 columns, 1 private>" in printed
        assert "4.3" not in printed and "20001" not in printed


# What is refused ------------------------------------------------------------------------------

TABLE = '[table]\nsource = "people.csv"\n'
PARQUET = '[table]\nsource = "people.parquet"\n'
ODD = '[table]\nsource = "duckdb:///base.db#odd"\nkey = "id"\n'
TWICE = '[table]\nsource = "twice.csv"\nkey = "id"\n[columns.ZIP]'
MISTAKES = [
    (TABLE + "[columns.Zap]", "`columns.Zap`", "`ZIP`?"),
    (PARQUET + '[columns.ZIP]\ntype = "text"', "`columns.ZIP.type`", "is text, and the source has"),
    (TABLE + '[columns.Gender]\ntype = "integer"', "'Gender' is to be read as integer", "else"),
    (TABLE + "[columns.ZIP]\nmin = 0\nmax = 2.5", "`columns.ZIP.max`", "whole numbers"),
    (TABLE + "[columns.Gender]\nmin = 0\nmax = 2", "`columns.Gender.min`", "text"),
    (
        TABLE + '[columns."Blood sugar"]\nvalues = ["a"]',
        '`columns."Blood sugar".values`',
        "numbers",
    ),
    (TABLE + 'person = "idd"\nrows_per_person = 2\n[columns.ZIP]', "`table.person`", "`id`?"),
    (TABLE + 'key = "idd"\n[columns.ZIP]', "`key`", "`id`?"),
    (TWICE, "`key`", "same value"),
    (ODD + "[columns.hour]", "`columns.hour`", "type TIME"),
    (
        TABLE + '[columns.ZIP]\n[public.t]\nsource = "twice.csv"\nkey = "id"',
        "`public.t.key`",
        "same value",
    ),
]


@pytest.mark.parametrize(("text", "key", "expected"), MISTAKES)
def test_a_policy_that_contradicts_its_source_is_one_sentence(
    text: str, key: str, expected: str
) -> None:
    Path("twice.csv").write_text("id,ZIP\n1,20001\n1,20002\n")
    with pytest.raises(Misconfigured) as caught:
        Table.open(policy(text))
    sentence = str(caught.value)
    assert sentence.startswith("casemate.toml")
    assert key in sentence and expected in sentence
    assert "\n" not in sentence and "20001" not in sentence and "Male" not in sentence


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("absent.toml", "cannot read the policy absent.toml"),
        ("absent.csv", "absent.csv: there is no file absent.csv"),
        ("hospitl", "or `hospital`, `population` or `rand_hie`"),
        ("population:many", "population:ROWS"),
        ("base.db", "base.db names the database"),
        ("mysql://me:secret@host/db#t", "mysql://…#t does not know the address"),
        ("postgresql://me:secret@host/db", "postgresql://… must end in #table"),
        ("postgresql://me:no#secret@host/db#t", "cannot connect to postgresql://…#t;"),
        ("duckdb:///base.db#absent", "has no table absent"),
        (".", "names the folder"),
    ],
)
def test_what_is_no_table_is_one_sentence(where: str, expected: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        Table.open(where, key="id")
    assert expected in str(caught.value)
    assert "secret" not in str(caught.value) and "\n" not in str(caught.value)


def test_a_private_column_that_is_not_there_or_no_query_can_use_is_one_sentence() -> None:
    with pytest.raises(Misconfigured, match=r"`private` names the column 'gender'.*`Gender`\?"):
        Table.open("people.csv", private=["gender"])
    for outsider in (False, True):
        with pytest.raises(Misconfigured, match="`private` names 'hour', a column of type TIME"):
            Table.open("duckdb:///base.db#odd", key="id", private=["hour"], outsider=outsider)


def test_a_file_that_went_away_after_its_policy_was_read_is_one_sentence() -> None:
    loaded = load_policy(policy(POLICY))
    Path("people.csv").unlink()
    with pytest.raises(Misconfigured, match="there is no file"):
        Table.open(loaded)
    in_memory = Policy("people.csv", (Column("ZIP"),))
    with pytest.raises(Misconfigured, match="there is no file people"):
        Table.open(in_memory)
