"""What every source promises, on every source."""

import csv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.table import ColumnType
from casemate.table.sources import RECORD, Series, Source
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import ColumnsInMemory
from casemate.table.sources.place import DuckDBTable, Files, PostgresTable, find
from casemate.table.sources.postgres import PostgresSource
from casemate.table.sources.source import READ_FAILED, literal, quote_name

TYPES = {
    "id": ColumnType.INTEGER,
    "Member": ColumnType.BOOLEAN,
    "Blood sugar": ColumnType.DECIMAL,
    "ratio": ColumnType.DOUBLE,
    'odd "näme"; --': ColumnType.TEXT,
    "day": ColumnType.DATE,
    "at": ColumnType.TIMESTAMP,
    "zip": ColumnType.INTEGER,
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
    ColumnType.BOOLEAN: "boolean",
    ColumnType.INTEGER: "bigint",
    ColumnType.DECIMAL: "decimal(12, 2)",
    ColumnType.DOUBLE: "double precision",
    ColumnType.TEXT: "text",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
}
KINDS = [
    "csv",
    "gzipped csv",
    "several csv",
    "parquet",
    "several parquet",
    "duckdb file",
    "columns",
    pytest.param("postgres", marks=pytest.mark.postgres),
]


def declared(types: dict[str, ColumnType]) -> str:
    return ", ".join(f"{quote_name(name)} {ENGINE_TYPES[type_]}" for name, type_ in types.items())


def tables(rows: Sequence[tuple[Any, ...]], zips: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    """The statements that make both tables in any engine."""
    region = {"zip": ColumnType.INTEGER, "region": ColumnType.TEXT}
    for name, types, data in (("people", TYPES, rows), ("zips", region, zips)):
        yield f"CREATE TABLE {name} ({declared(types)})"
        for row in data:
            cells = ", ".join(
                "NULL" if cell is None else f"CAST({literal(str(cell))} AS {ENGINE_TYPES[type_]})"
                for cell, type_ in zip(row, types.values(), strict=True)
            )
            yield f"INSERT INTO {name} VALUES ({cells})"


def write_csv(path: Path, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(names)
        writer.writerows(rows)


class Build:
    """Opens the same rows as any kind of source."""

    def __init__(self, kind: str, folder: Path, postgres: str | None) -> None:
        self.kind, self.folder, self.postgres = kind, folder, postgres

    def __call__(
        self,
        rows: Sequence[tuple[Any, ...]] = ROWS,
        zips: Sequence[tuple[Any, ...]] = ZIPS,
        key: str | None = "id",
        zip_key: str = "zip",
    ) -> Source:
        if self.postgres is not None:
            return self._postgres(rows, zips, key, zip_key)
        protected = self._place(rows, zips)
        beside = self._zips(zips)
        return DuckDBSource(protected, key=key, public={"zips": (beside, zip_key)}, types=TYPES)

    def _postgres(
        self,
        rows: Sequence[tuple[Any, ...]],
        zips: Sequence[tuple[Any, ...]],
        key: str | None,
        zip_key: str,
    ) -> Source:
        import psycopg

        assert self.postgres is not None
        with psycopg.connect(self.postgres) as connection:
            for statement in tables(rows, zips):
                connection.execute(statement.encode())
        places = [PostgresTable("", self.postgres, (name,)) for name in ("people", "zips")]
        return PostgresSource(places[0], key=key, public={"zips": (places[1], zip_key)})

    def _place(
        self, rows: Sequence[tuple[Any, ...]], zips: Sequence[tuple[Any, ...]]
    ) -> Files | DuckDBTable | ColumnsInMemory:
        if self.kind == "columns":
            return ColumnsInMemory(
                "people", {n: series(c, TYPES[n]) for n, c in by_name(rows)}, TYPES
            )
        if "csv" in self.kind:
            return self._csv(rows)
        database = duckdb.connect(str(self.folder / "people.db"))
        for statement in tables(rows, zips):
            database.execute(statement)
        if "parquet" in self.kind:
            half = len(rows) // 2 if "several" in self.kind else len(rows)
            for part, where in enumerate((f"rowid < {half}", f"rowid >= {half}")):
                if part == 0 or "several" in self.kind:
                    path = literal(f"{self.folder}/people-{part}.parquet")
                    database.execute(f"COPY (FROM people WHERE {where}) TO {path}")
        database.close()
        if "parquet" in self.kind:
            return local("people-*.parquet", self.folder)
        return local("duckdb:///people.db#people", self.folder)

    def _csv(self, rows: Sequence[tuple[Any, ...]]) -> Files | DuckDBTable:
        cut = len(rows) // 2 if "several" in self.kind else len(rows)
        for part, some in enumerate((rows[:cut], rows[cut:])):
            if part == 0 or "several" in self.kind:
                write_csv(self.folder / f"people-{part}.csv", list(TYPES), some)
        if "gzipped" in self.kind:
            import gzip

            plain = self.folder / "people-0.csv"
            Path(f"{plain}.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
        return local("people-*", self.folder)

    def _zips(self, zips: Sequence[tuple[Any, ...]]) -> Files | DuckDBTable:
        if self.kind == "duckdb file":
            return local("duckdb:///people.db#main.zips", self.folder)
        write_csv(self.folder / "zips.csv", ["zip", "region"], zips)
        return local("zips.csv", self.folder)


def local(source: str, folder: Path) -> Files | DuckDBTable:
    place = find(source, folder)
    assert isinstance(place, Files | DuckDBTable)
    return place


def by_name(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
    for place, name in enumerate(TYPES):
        yield name, [row[place] for row in rows]


def series(cells: list[Any], type_: ColumnType) -> Series:
    """Cells as a source is to return them."""
    kinds: dict[ColumnType, type] = {
        ColumnType.BOOLEAN: np.bool_,
        ColumnType.INTEGER: np.int64,
        ColumnType.DOUBLE: np.float64,
    }
    values: NDArray[Any] = np.zeros(len(cells), dtype=kinds.get(type_, object))
    missing = np.array([cell is None for cell in cells], dtype=np.bool_)
    for place, cell in enumerate(cells):
        if cell is not None:
            values[place] = Decimal(cell) if type_ is ColumnType.DECIMAL else cell
    return Series(values, missing)


@pytest.fixture(params=KINDS)
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
        with closing(build()) as opened:
            yield opened


def one(source: Source, expression: str) -> Any:
    """The value of an expression over the whole table."""
    answer = source.read(f"SELECT {expression} AS x FROM {source.relation()} AS t")["x"]
    assert len(answer.values) == 1
    return None if answer.missing[0] else answer.values[0]


# Reading --------------------------------------------------------------------------------------


def test_fields_are_the_columns_in_order_with_their_types(source: Source) -> None:
    assert list(source.fields().items()) == list(TYPES.items())
    zips = {"zip": ColumnType.INTEGER, "region": ColumnType.TEXT}
    assert list(source.fields("zips").items()) == list(zips.items())


def test_every_cell_comes_back_exactly(source: Source) -> None:
    frame = source.read(f"SELECT * FROM {source.relation()} AS t")
    assert list(frame) == [RECORD, *TYPES]
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


def test_the_record_is_the_key(source: Source) -> None:
    frame = source.read(f"SELECT {RECORD}, id FROM {source.relation()} AS t")
    assert sorted(frame[RECORD].values) == [row[0] for row in ROWS]
    assert list(frame[RECORD].values) == list(frame["id"].values)
    assert not frame[RECORD].missing.any()


def test_decimals_add_up_exactly(source: Source) -> None:
    total = one(source, 'SUM("Blood sugar")')
    assert isinstance(total, Decimal)
    assert total == Decimal("123466.30")


def test_whole_numbers_add_up_exactly_past_64_bits(source: Source) -> None:
    assert int(one(source, "SUM(zip)")) == 2 * 20001 + 20002 + 2 * 2**62
    assert int(one(source, "SUM(id)")) == sum(row[0] for row in ROWS)


def test_nan_is_a_number_and_not_null(source: Source) -> None:
    assert one(source, "COUNT(ratio)") == 5
    frame = source.read(f"SELECT ratio FROM {source.relation()} AS t WHERE id = 12")
    assert np.isnan(frame["ratio"].values[0]) and not frame["ratio"].missing[0]


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


def test_null_without_a_type_is_null(source: Source) -> None:
    assert one(source, "MAX(NULL)") is None


def test_a_public_table_can_be_joined(source: Source) -> None:
    frame = source.read(
        f"SELECT t.id AS id, z.region AS region FROM {source.relation()} AS t "
        f"JOIN {source.relation('zips')} AS z ON t.zip = z.zip"
    )
    pairs = {
        int(record): region
        for record, region in zip(frame["id"].values, frame["region"].values, strict=True)
        if region is not None
    }
    assert {k: v for k, v in pairs.items() if k < 15} == {11: "north", 12: "south", 14: "north"}


def test_threads_may_read_at_once(source: Source) -> None:
    def ask(record: int) -> int:
        sql = f"SELECT id FROM {source.relation()} AS t WHERE id = {record}"
        return int(source.read(sql)["id"].values[0])

    records = [row[0] for row in ROWS] * 10
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, records)) == records


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


def test_text_that_ends_in_a_comment_or_a_semicolon_is_read(source: Source) -> None:
    relation = source.relation()
    assert source.read(f"SELECT 1 AS x FROM {relation} AS t;\n")["x"].values[0] == 1
    assert source.read(f"SELECT 1 AS x FROM {relation} AS t -- why")["x"].values[0] == 1


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
