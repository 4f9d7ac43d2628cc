"""What every source promises, on every source."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from table.stored import DATABASES, FILES, Rows, database_of, run_in, store

from casemate.errors import Misconfigured
from casemate.table import ColumnType
from casemate.table.sources import RECORD, Series, Source
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import ColumnsInMemory
from casemate.table.sources.place import PostgresTable, find
from casemate.table.sources.postgres import PostgresSource
from casemate.table.sources.source import READ_FAILED, quote_name

BOOLEAN, INTEGER, DECIMAL, DOUBLE, TEXT, DATE, TIMESTAMP = ColumnType
TYPES = {
    "id": INTEGER,
    "Member": BOOLEAN,
    "Blood sugar": DECIMAL,
    "ratio": DOUBLE,
    'odd "näme"; --': TEXT,
    "day": DATE,
    "at": TIMESTAMP,
    "zip": INTEGER,
}
ROWS: list[tuple[Any, ...]] = [
    (11, True, "4.3", 0.1, "Ann", date(2020, 2, 29), datetime(2020, 1, 1, 12, 30), 20001),
    (12, False, "-0.1", float("nan"), 'O\'Neil, "Bo"', date(1, 1, 1), None, 20002),
    (13, None, None, None, None, None, datetime(1999, 12, 31, 23, 59, 59, 999_999), None),
    (14, True, "5.25", -1e300, "line\nbreak", date(9999, 12, 31), datetime(1, 1, 1), 20001),
    (15, None, "123456.75", 5e-324, "žluťoučký 你好 🦆", None, datetime(2020, 1, 1), 2**62),
    (16, False, "0.1", float("inf"), " kept ", date(1970, 1, 1), datetime(1970, 1, 1), 2**62),
]
ZIPS: list[tuple[Any, ...]] = [(20001, "north"), (20002, "south"), (2**62, None)]
ENGINE_TYPES = {
    BOOLEAN: "boolean",
    INTEGER: "bigint",
    DECIMAL: "decimal(12, 2)",
    DOUBLE: "double precision",
    TEXT: "text",
    DATE: "date",
    TIMESTAMP: "timestamp",
}


def opened(source: str, **options: Any) -> Source:
    place: Any = find(source, Path("/"))
    return (PostgresSource if isinstance(place, PostgresTable) else DuckDBSource)(place, **options)


class Build:
    """Opens the same rows as any kind of source."""

    def __init__(self, kind: str, folder: Path, postgres: str | None) -> None:
        self.kind, self.folder, self.postgres = kind, folder, postgres

    def __call__(
        self, rows: Rows = ROWS, zips: Rows = ZIPS, key: str | None = "id", zip_key: str = "zip"
    ) -> Source:
        beside: Any = find(self._store("zips", {"zip": INTEGER, "region": TEXT}, zips), Path("/"))
        options: dict[str, Any] = {"key": key, "public": {"zips": (beside, zip_key)}}
        if self.postgres is None:
            options["types"] = TYPES
        if self.kind != "columns":
            return opened(self._store("people", TYPES, rows), **options)
        columns = {name: series(cells, TYPES[name]) for name, cells in by_name(rows)}
        return DuckDBSource(ColumnsInMemory("people", columns, TYPES), **options)

    def _store(self, name: str, types: dict[str, ColumnType], rows: Rows) -> str:
        engine_types = {column: ENGINE_TYPES[type_] for column, type_ in types.items()}
        kind = "csv" if self.kind == "columns" else self.kind
        where: dict[str, Any] = {"name": name, "postgres": self.postgres}
        return store(kind, self.folder, engine_types, rows, **where)


def by_name(rows: Rows) -> Iterator[tuple[str, list[Any]]]:
    for place, name in enumerate(TYPES):
        yield name, [row[place] for row in rows]


def series(cells: list[Any], type_: ColumnType) -> Series:
    """Cells as a source is to return them."""
    exact = [None if cell is None else Decimal(cell) for cell in cells if type_ is DECIMAL]
    return Series.of(exact or cells, type_)


@pytest.fixture(params=[*FILES, "columns", *DATABASES])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    remote = request.param == "postgres"
    url = request.getfixturevalue("postgres") if remote else None
    return Build(request.param, tmp_path, url)


@pytest.fixture(scope="module")
def opened_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Source]]:
    """Opens a source of each kind once: nothing that is read of it changes it."""
    with ExitStack() as stack:

        @cache
        def source_of(kind: str) -> Source:
            source = Build(kind, tmp_path_factory.mktemp("source"), None)()
            stack.callback(source.close)
            return source

        yield source_of


@pytest.fixture
def source(build: Build, opened_once: Callable[[str], Source]) -> Iterator[Source]:
    """A source of each kind; a server's is opened for each test, whose database is its own."""
    if build.postgres is None:
        yield opened_once(build.kind)
    else:
        with closing(build()) as found:
            yield found


def one(source: Source, expression: str) -> Any:
    """The value of an expression over the whole table."""
    answer = source.read(f"SELECT {expression} AS x FROM {source.relation()} AS t")["x"]
    assert len(answer.values) == 1
    return None if answer.missing[0] else answer.values[0]


# Reading --------------------------------------------------------------------------------------


def test_every_cell_comes_back_exactly_under_its_name_and_type(source: Source) -> None:
    assert list(source.fields().items()) == list(TYPES.items())
    assert list(source.fields("zips").items()) == [("zip", INTEGER), ("region", TEXT)]
    frame = source.read(f"SELECT * FROM {source.relation()} AS t")
    assert list(frame) == [RECORD, *TYPES]
    assert list(frame[RECORD].values) == list(frame["id"].values)
    assert not frame[RECORD].missing.any()
    order = np.argsort(frame[RECORD].values)
    for name, cells in by_name(ROWS):
        expected, got = series(cells, TYPES[name]), frame[name]
        assert got.values.dtype == expected.values.dtype, name
        assert got.missing.dtype == np.bool_
        assert list(got.missing[order]) == list(expected.missing), name
        present = ~expected.missing
        shown = [repr(cell) for cell in _plain(got.values[order][present])]
        assert shown == [repr(cell) for cell in _plain(expected.values[present])], name


def _plain(values: Any) -> list[Any]:
    """Comparable by their text: 4.30 is 4.3, and nan is nan."""
    return [cell.normalize() if isinstance(cell, Decimal) else cell for cell in values]


def test_numbers_add_up_exactly_nan_counts_and_null_without_a_type_does_not(
    source: Source,
) -> None:
    total = one(source, 'SUM("Blood sugar")')
    assert isinstance(total, Decimal) and total == Decimal("123466.30")
    assert int(one(source, "SUM(zip)")) == 2 * 20001 + 20002 + 2 * 2**62
    assert int(one(source, "SUM(id)")) == sum(row[0] for row in ROWS)
    assert one(source, "COUNT(ratio)") == 5
    assert one(source, "MAX(NULL)") is None


def test_an_empty_answer_has_its_columns_and_their_types(source: Source) -> None:
    frame = source.read(f"SELECT * FROM {source.relation()} AS t WHERE id < 0")
    assert {name: len(column.values) for name, column in frame.items()} == dict.fromkeys(
        [RECORD, *TYPES], 0
    )
    assert frame["id"].values.dtype == np.int64
    assert frame["day"].values.dtype == object


def test_what_no_python_date_can_hold_is_null(source: Source) -> None:
    frame = source.read(
        f"SELECT CAST('infinity' AS DATE) AS a, CAST('-infinity' AS TIMESTAMP) AS b, "
        f"DATE '9999-12-31' + 1 AS c FROM {source.relation()} AS t WHERE id = 11"
    )
    assert [bool(column.missing[0]) for column in frame.values()] == [True, True, True]


def test_a_public_table_can_be_joined(source: Source) -> None:
    frame = source.read(
        f"SELECT t.id AS id, z.region AS region FROM {source.relation()} AS t "
        f"JOIN {source.relation('zips')} AS z ON t.zip = z.zip WHERE t.id < 15"
    )
    pairs = dict(zip(frame["id"].values.tolist(), frame["region"].values, strict=True))
    assert pairs == {11: "north", 12: "south", 14: "north"}


def test_threads_may_read_at_once(source: Source) -> None:
    def ask(record: int) -> int:
        sql = f"SELECT id FROM {source.relation()} AS t WHERE id = {record}"
        return int(source.read(sql)["id"].values[0])

    records = [row[0] for row in ROWS] * 10
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, records)) == records


def test_text_that_ends_in_a_comment_or_a_semicolon_is_read(source: Source) -> None:
    for end in (";\n", " -- why"):
        sql = f"SELECT 1 AS x FROM {source.relation()} AS t{end}"
        assert source.read(sql)["x"].values[0] == 1


# Refusing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        """SELECT CAST('odd "näme"; --' AS BIGINT) AS x FROM {} AS t""",
        """SELECT CAST("odd ""näme""; --" AS BIGINT) AS x FROM {} AS t""",
        "SELECT nothing FROM {} AS t",
        "SELECT (",
    ],
)
def test_a_failed_query_says_nothing_of_the_data_and_breaks_nothing(
    source: Source, sql: str
) -> None:
    with pytest.raises(Misconfigured) as caught:
        source.read(sql.format(source.relation()))
    assert str(caught.value) == READ_FAILED
    assert caught.value.__suppress_context__
    assert one(source, "COUNT(*)") == len(ROWS)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE extra (a INT)",
        "SELECT 1 AS x; SELECT 2 AS x",
        "SELECT 1 AS x) AS a; CREATE TABLE extra (a INT); SELECT * FROM (SELECT 1 AS x",
        "COMMIT",
        "SET TIME ZONE 'UTC'",
    ],
)
def test_only_one_select_at_a_time_is_read(source: Source, sql: str) -> None:
    with pytest.raises((Misconfigured, ValueError)):
        source.read(sql)
    with pytest.raises(Misconfigured):
        source.read("SELECT * FROM extra")
    assert one(source, "COUNT(*)") == len(ROWS)


def test_a_column_that_numpy_cannot_hold_is_refused(source: Source) -> None:
    with pytest.raises(ValueError, match="must not return a column of type"):
        one(source, "MAX(INTERVAL '1 day')")


KEY_MISTAKES: dict[str, tuple[Callable[[Build], Source], str]] = {
    "equal keys": (lambda build: build([*ROWS, ROWS[0]]), "same value in several rows"),
    "a NULL key": (lambda build: build([*ROWS, (None, *ROWS[0][1:])]), "is NULL in some rows"),
    "a key that is not there": (lambda build: build(key="idd"), "did you mean `id`?"),
    "equal public keys": (lambda build: build(zips=[*ZIPS, ZIPS[0]]), "public.zips.key"),
    "a public key that is not there": (lambda build: build(zip_key="zap"), "public.zips.key"),
}


@pytest.mark.parametrize("case", KEY_MISTAKES)
def test_a_key_that_names_no_row_or_two_is_one_sentence(build: Build, case: str) -> None:
    attempt, expected = KEY_MISTAKES[case]
    with pytest.raises(Misconfigured) as caught:
        attempt(build)
    assert expected in str(caught.value)
    assert "20001" not in str(caught.value) and "11" not in str(caught.value)


def test_closing_twice_is_closing_once(build: Build) -> None:
    source = build()
    source.close()
    source.close()


# Databases ------------------------------------------------------------------------------------

Engine = tuple[str, str]


@pytest.fixture(params=DATABASES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """An empty database: where statements run, and how the sources of its tables begin."""
    return database_of(request.param, tmp_path, request)


def test_a_table_of_any_name_in_any_schema_has_its_primary_key(engine: Engine) -> None:
    database, address = engine
    schema, name, key = "my schema", 'it\'s "a" %s table', "the %(x)s id"
    table = quote_name(schema, name)
    run_in(
        database,
        f"CREATE SCHEMA {quote_name(schema)}",
        f"CREATE TABLE {table} (a int, {quote_name(key)} varchar PRIMARY KEY)",
        f"INSERT INTO {table} VALUES (7, 'x')",
    )
    with closing(opened(f"{address}{quote(schema)}.{quote(name)}")) as source:
        frame = source.read(f"SELECT * FROM {source.relation()} AS t WHERE 'a%' LIKE 'a%'")
    assert {name: series.values[0] for name, series in frame.items()} == {
        RECORD: "x",
        "a": 7,
        key: "x",
    }


@pytest.mark.parametrize(
    ("table", "key", "expected"),
    [
        ("absent", "id", "has no table absent"),
        ("keyless", None, "needs `key`"),
        ("two", None, "needs `key`"),
        ("keyless", "hour", "did you mean"),
    ],
)
def test_a_table_that_cannot_be_opened_is_one_sentence(
    engine: Engine, table: str, key: str | None, expected: str
) -> None:
    database, address = engine
    run_in(
        database,
        "CREATE TABLE keyless (hours int, hour time)",
        "CREATE TABLE two (a int, b int, PRIMARY KEY (a, b))",
    )
    with pytest.raises(Misconfigured, match=expected):
        opened(f"{address}{table}", key=key)


UUID = "00000000-0000-0000-0000-000000000001"
TEN = "'2020-01-01 10:00:00'"
SHOWN: dict[str, dict[str, tuple[str, ColumnType, Any]]] = {
    "duckdb": {
        "TINYINT": ("-7", INTEGER, -7),
        "UINTEGER": ("7", INTEGER, 7),
        "UBIGINT": ("18446744073709551615", DECIMAL, Decimal(2**64 - 1)),
        "HUGEINT": (f"'-{'9' * 38}'", DECIMAL, Decimal("-" + "9" * 38)),
        "UHUGEINT": ("7", DECIMAL, Decimal(7)),
        "DECIMAL(38, 10)": ("'0.1'", DECIMAL, Decimal("0.1")),
        "FLOAT": ("0.1", DOUBLE, float(np.float32(0.1))),
        "UUID": (f"'{UUID}'", TEXT, UUID),
        "ENUM('a', 'b')": ("'b'", TEXT, "b"),
        "TIMESTAMP_S": (TEN, TIMESTAMP, datetime(2020, 1, 1, 10)),
        "TIMESTAMP_MS": (TEN, TIMESTAMP, datetime(2020, 1, 1, 10)),
        "TIMESTAMP_NS": (TEN, TIMESTAMP, datetime(2020, 1, 1, 10)),
        "TIMESTAMPTZ": ("'2020-01-01 10:00:00+02'", TIMESTAMP, datetime(2020, 1, 1, 8)),
    },
    "postgres": {
        "smallint": ("-7", INTEGER, -7),
        "numeric": ("0.1", DECIMAL, Decimal("0.1")),
        "real": ("0.5", DOUBLE, 0.5),
        "varchar(9)": ("'a b '", TEXT, "a b "),
        "char(9)": ("'a'", TEXT, "a"),
        "name": ("'a'", TEXT, "a"),
        "uuid": (f"'{UUID}'", TEXT, UUID),
        "json": ("'[1]'", TEXT, "[1]"),
        "mood": ("'fine'", TEXT, "fine"),
        "positive": ("5", INTEGER, 5),
        "more_than_positive": ("6", INTEGER, 6),
        "timestamptz": ("'2020-01-01 10:00+02'", TIMESTAMP, datetime(2020, 1, 1, 8)),
        "date": ("'infinity'", DATE, None),
        "timestamp": ("'20000-01-01'", TIMESTAMP, None),
    },
}
LEFT_OUT = {
    "duckdb": {
        "TIME": "TIME '10:00'",
        "INTERVAL": "INTERVAL 1 DAY",
        "BIGNUM": "123::BIGNUM",
        "BLOB": "'a'::BLOB",
        "INTEGER[]": "[1, 2]",
        "DECIMAL(2,1)[2]": "array_value(1.5, 2.5)",
        "STRUCT(a INTEGER)": "{'a': 1}",
        "MAP(VARCHAR, INTEGER)": "MAP {'a': 1}",
    },
    "postgres": {"time": "TIME '10:00'", "_int4": "ARRAY[1]", "bytea": "'x'::bytea"},
}
USER_TYPES = [
    "CREATE TYPE mood AS ENUM ('fine')",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE DOMAIN more_than_positive AS positive",
]


@pytest.mark.parametrize("kind", DATABASES)
def test_an_engines_types_are_shown_as_one_of_seven_or_left_out(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    database, address = database_of(kind, tmp_path, request)
    shown, left_out = SHOWN[kind], LEFT_OUT[kind]
    cells = {type_: f"CAST({text} AS {type_})" for type_, (text, _, _) in shown.items()}
    named = [f"{cell} AS {quote_name(type_)}" for type_, cell in (cells | left_out).items()]
    run_in(
        database,
        *(USER_TYPES if kind == "postgres" else ()),
        f"CREATE TABLE t AS SELECT 1 AS id, {', '.join(named)}",
        "INSERT INTO t (id) VALUES (2)",
    )
    with closing(opened(f"{address}t", key="id")) as source:
        types = {type_: found for type_, (_, found, _) in shown.items()}
        assert dict(source.fields()) == {"id": INTEGER} | types
        assert isinstance(source, DuckDBSource | PostgresSource)
        assert dict(source.left_out) == {type_: type_ for type_ in left_out}
        first, second = (
            source.read(f"SELECT * FROM {source.relation()} AS t WHERE id = {record}")
            for record in (1, 2)
        )
    for name, (_, _, value) in shown.items():
        assert (None if first[name].missing[0] else first[name].values[0]) == value, name
        assert second[name].missing[0], name
