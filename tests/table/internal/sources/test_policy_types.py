"""Cells read as the policy's type: in every source, by expressions that cannot fail."""

import math
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table.stored import POSTGRES, cells_of, store

from casemate.errors import Misconfigured
from casemate.table import CellFormat, Column, ColumnType, Policy, Table
from casemate.table.sources import RECORD, typed_by_policy
from casemate.table.sources.cells import DUCKDB_CELLS
from casemate.table.sources.types import PolicyType

EVERY_TYPE = {
    each.value: Column(each.value, type=each, low=low, high=high)
    for each, low, high in (
        (ColumnType.BOOLEAN, None, None),
        (ColumnType.INTEGER, 0, 9),
        (ColumnType.DECIMAL, 0, 100),
        (ColumnType.DOUBLE, 0, 9),
        (ColumnType.TEXT, None, None),
        (ColumnType.DATE, date(2020, 1, 1), date(2020, 12, 31)),
        (ColumnType.TIMESTAMP, None, None),
    )
}
WIDE = Column("wide", type=ColumnType.DECIMAL)
COLUMNS = (*EVERY_TYPE.values(), WIDE)
HOSTILE = [
    *("3.5", "3.0", "3.", "-0", "+7", "007", " 8 ", "1e3", "1E-2", "9" * 30, "-" + "9" * 30),
    *(
        "9" * 300,
        "0" * 254 + "5",
        "0" * 255 + "5",
        "0.1234567890125",
        "-0.1234567890125",
        "999999.9999999999999",
    ),
    *("nan", "NaN", "inf", "-Infinity", "1e400", "-1e999", "1e-400", "1e9999", "0x10", "1_000"),
    *("true", "FALSE", "yes", "maybe", "2020-02-30", "2020-02-29", "0000-01-01", "9999-12-31"),
    *("2020-01-01 00:00", "2020-01-01T00:00:00.000", "2020-01-01 24:00", "2020-01-01 23:59:60"),
    *("2020-01-01T23:59:59.999999", "2020-01-01T10:00Z", "2020-01-01 10:00 +0530"),
    *("2020-01-01 10:00-05", "0001-01-01 00:00+10", "9999-12-31 23:59-14:00", "infinity"),
    *("2020-01-01 10:00 -0530", "2020-01-01 10:00+99", "1.5e-12", "12345678901.25e-3"),
    *("é", "\u00a05", "5\t", "it's", '"', "5,6", "-", ".", "+", "e5", "123456.7890123456789"),
]
CELLS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(alphabet="0123456789+-.eE trufalsnTZ:é", max_size=12),
    st.decimals(allow_nan=True, places=14).map(str),
    st.integers().map(str),
    st.floats().map(repr),
    st.dates().map(str),
    st.datetimes().map(str),
)


# A slow reading, from the page that describes it -----------------------------------------------

PRECISE = Context(prec=400, Emax=99999, Emin=-99999)
NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:[.](\d{1,6}))?)?"
    r"(?: ?(Z|[+-]\d\d(?::?\d\d)?))?)?",
    re.ASCII,
)


def wanted(column: Column) -> PolicyType:
    found = PolicyType.of(column)
    assert found is not None
    return found


def clamped(number: Decimal, kind: PolicyType) -> Decimal:
    with localcontext(PRECISE):
        number = max(min(number, kind.largest), -kind.largest)
        return number.quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP)


def decimal_of(number: float, kind: PolicyType) -> Decimal | None:
    """A double to 15 digits, in steps of three."""
    if math.isnan(number):
        return None
    if math.isinf(number):
        return clamped(Decimal(10) ** 60 * (1 if number > 0 else -1), kind)
    scale = next(
        (s for below, s in ((3, 12), (6, 9), (9, 6), (12, 3)) if abs(number) < 10**below), 0
    )
    with localcontext(PRECISE):
        return clamped(Decimal(number).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP), kind)


def read_text(cell: str | None, kind: PolicyType) -> Any:
    if cell is None or cell == "":
        return None
    return cell if kind.type is ColumnType.TEXT else READ[kind.type](cell.strip(" "), kind)


def boolean(cell: str, _: PolicyType) -> bool | None:
    return {"true": True, "false": False}.get(cell.lower())


def integer(cell: str, _: PolicyType) -> int | None:
    shape = rf"[+-]?[0-9]+([.]0*)?|{NUMBER}[eE][+-]?[0-9]{{1,3}}"
    if len(cell) > 255 or not re.fullmatch(shape, cell):
        return None
    number = Decimal(float(cell)) if "e" in cell.lower() else Decimal(cell)
    whole = number.is_infinite() or number == number.to_integral_value()
    return int(max(min(number, Decimal(2**63 - 1)), Decimal(-(2**63)))) if whole else None


def real(cell: str) -> float | None:
    shape = rf"{NUMBER}([eE][+-]?[0-9]{{1,3}})?|[+-]?(inf|infinity)"
    return float(cell) if len(cell) <= 255 and re.fullmatch(shape, cell, re.IGNORECASE) else None


def decimal(cell: str, kind: PolicyType) -> Decimal | None:
    number = real(cell)
    if number is None:
        return None
    return clamped(Decimal(cell), kind) if re.fullmatch(NUMBER, cell) else decimal_of(number, kind)


def moment(cell: str, _: PolicyType) -> datetime | None:
    found = MOMENT.fullmatch(cell)
    if found is None:
        return None
    day, hour, minute, second, part, offset = found.groups()
    try:
        start = datetime.fromisoformat(day)
        if hour is not None:
            start = start.replace(
                *(start.year, start.month, start.day, int(hour), int(minute), int(second or 0)),
                int((part or "0").ljust(6, "0")),
            )
        if offset in (None, "Z"):
            return start
        hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
        if hours > 14 or minutes > 59:
            return None
        away = timedelta(hours=hours, minutes=minutes)
        return start - away if offset[0] == "+" else start + away
    except (ValueError, OverflowError):
        return None


def day(cell: str, kind: PolicyType) -> date | None:
    found = None if re.search("Z|[+-][0-9:]*$", cell[10:]) else moment(cell, kind)
    midnight = found is not None and found.time() == datetime.min.time()
    return found.date() if found is not None and midnight else None


READ: dict[ColumnType, Callable[[str, PolicyType], Any]] = {
    ColumnType.BOOLEAN: boolean,
    ColumnType.INTEGER: integer,
    ColumnType.DECIMAL: decimal,
    ColumnType.DOUBLE: lambda cell, _: real(cell),
    ColumnType.DATE: day,
    ColumnType.TIMESTAMP: moment,
}


# Sources ----------------------------------------------------------------------------------------

KINDS = ["csv", "parquet", "duckdb"]


def seen(
    kind: str, folder: Path, engine_type: str, cells: Sequence[Any], **where: Any
) -> dict[str, list[Any]]:
    """What is read of cells of one type that stand in every column, by column."""
    types = {"n": "bigint"} | {column.name: engine_type for column in COLUMNS}
    rows = [(place, *[cell] * len(COLUMNS)) for place, cell in enumerate(cells)]
    return read_by_policy(store(kind, folder, types, rows, **where), COLUMNS)


def read_by_policy(source: str, columns: Sequence[Column]) -> dict[str, list[Any]]:
    """The columns as the policy reads them, in the order of the rows' numbers."""
    with Table.open(Policy(source, tuple(columns), key="n"), by_policy=True) as table:
        frame = table.source.read(f"SELECT * FROM {table.source.relation()} AS t")
    order = sorted(range(len(frame[RECORD].values)), key=lambda row: int(frame[RECORD].values[row]))
    read = {each.name: cells_of(frame[each.name]) for each in columns}
    return {name: [cells[row] for row in order] for name, cells in read.items()}


def assert_read(found: dict[str, list[Any]], cells: Sequence[str | None]) -> None:
    for column in COLUMNS:
        kind = wanted(column)
        for cell, value in zip(cells, found[column.name], strict=True):
            expected = read_text(cell, kind)
            if isinstance(expected, Decimal) and value is not None:
                close = abs(value - expected) <= Decimal(1).scaleb(-kind.scale)
                exact = re.fullmatch(NUMBER, (cell or "").strip(" ")) is not None
                assert value == expected if exact else close, (column.name, cell)
            else:
                assert value == expected, (column.name, cell)


@settings(max_examples=15)
@given(cells=st.lists(CELLS, min_size=1, max_size=25))
def test_cells_of_csv_are_read_as_the_slow_reading_says(
    tmp_path_factory: pytest.TempPathFactory, cells: list[str]
) -> None:
    assert_read(seen("csv", tmp_path_factory.mktemp("cells"), "text", cells), cells)


@pytest.mark.parametrize("kind", [*KINDS, POSTGRES])
def test_every_hostile_cell_is_read_as_the_slow_reading_says(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cells = [*HOSTILE, None]
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    found = seen(kind, tmp_path, "text", cells, postgres=url)
    if url is not None:  # whose doubles end a little earlier
        found["double"] = [read_text(each, wanted(EVERY_TYPE["double"])) for each in cells]
    assert_read(found, cells)


NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "UTINYINT": st.integers(0, 255),
    "HUGEINT": st.integers(-(2**120), 2**120),
    "DOUBLE": st.floats(),
    "DECIMAL(38, 14)": st.decimals(-(10**23), 10**23, places=14),
    "DECIMAL(10, 2)": st.decimals(-(10**7), 10**7, places=2),
}


def read_number(value: Any, kind: PolicyType) -> Any:
    """A number of the engine's own, as the page says."""
    finite = not isinstance(value, float) or math.isfinite(value)
    match kind.type:
        case ColumnType.INTEGER:
            whole = finite and value == int(value)
            return max(min(int(value), 2**63 - 1), -(2**63)) if whole else None
        case ColumnType.DECIMAL if isinstance(value, float):
            return decimal_of(value, kind)
        case ColumnType.DECIMAL:
            return clamped(Decimal(value), kind)
        case ColumnType.DOUBLE:
            return None if isinstance(value, float) and math.isnan(value) else float(value)
    return None


@pytest.mark.parametrize("kind", ["parquet", "duckdb"])
@pytest.mark.parametrize("engine_type", NUMBERS)
@settings(max_examples=3)
@given(data=st.data())
def test_numbers_of_an_engine_are_read_as_the_slow_reading_says(
    tmp_path_factory: pytest.TempPathFactory, engine_type: str, kind: str, data: st.DataObject
) -> None:
    cells = data.draw(st.lists(NUMBERS[engine_type] | st.none(), min_size=1, max_size=20))
    found = seen(kind, tmp_path_factory.mktemp("cells"), engine_type, cells)
    as_doubles = kind == "parquet" and engine_type == "HUGEINT"  # as a Parquet file holds these
    if as_doubles:
        cells = [None if cell is None else float(cell) for cell in cells]
    for column in COLUMNS:
        type_ = wanted(column)
        for cell, value in zip(cells, found[column.name], strict=True):
            expected = None if cell is None else read_number(cell, type_)
            if type_.type is ColumnType.TEXT:
                assert (value is None) == (cell is None)
            elif type_.type is ColumnType.DOUBLE and value is not None:
                assert value == pytest.approx(expected, rel=1e-15)
            elif (
                type_.type is ColumnType.DECIMAL
                and (engine_type == "DOUBLE" or as_doubles)
                and value is not None
            ):
                assert expected is not None and abs(value - expected) <= max(
                    abs(expected) * Decimal("1e-15"), Decimal("1e-12")
                )
            else:
                assert value == expected, (column.name, cell)


LEAP, NOON = date(2020, 2, 29), datetime(2020, 2, 29, 12)
DAYS = ["2020-02-29", "infinity", "-infinity", "12020-01-01"]
LARGEST = wanted(EVERY_TYPE["decimal"]).largest
Reading = tuple[str, list[str | None], dict[str, list[Any]]]
ENGINE_CELLS: dict[str, list[Reading]] = {
    "duckdb": [
        ("BOOLEAN", ["true", None], {"boolean": [True, None], "integer": [None, None]}),
        (
            "DATE",
            [*DAYS, "0044-03-15 (BC)"],
            {
                "date": [LEAP, *[None] * 4],
                "timestamp": [datetime(2020, 2, 29), *[None] * 4],
                "integer": [None] * 5,
            },
        ),
        (
            "TIMESTAMP",
            ["2020-02-29 00:00", "2020-02-29 12:00", "infinity", "200000-01-01 00:00"],
            {
                "date": [LEAP, None, None, None],
                "timestamp": [datetime(2020, 2, 29), NOON, None, None],
            },
        ),
        (
            "TIMESTAMPTZ",
            ["2020-02-29 00:00+00", "2020-02-29 14:00+02", "infinity"],
            {"date": [LEAP, None, None], "timestamp": [datetime(2020, 2, 29), NOON, None]},
        ),
        ("TIME", ["12:00:00"], {"timestamp": [None], "text": ["12:00:00"]}),
        ("UUID", ["00000000-0000-0000-0000-000000000001"], {"integer": [None]}),
        ("BLOB", ["5"], {"integer": [5]}),
        ("INTEGER[]", ["[1, 2]"], {"integer": [None], "decimal": [None]}),
        ("STRUCT(a INTEGER)", ["{'a': 1}"], {"integer": [None], "boolean": [None]}),
        ("FLOAT", ["nan", "0.5", "-inf"], {"integer": [None, None, None]}),
        ("DOUBLE", ["1.0", "2.5"], {"text": ["1", "2.5"]}),
        ("DECIMAL(6, 3)", ["1.000", "1.500", "0.050"], {"text": ["1", "1.5", "0.05"]}),
    ],
    "postgres": [
        (
            "numeric",
            ["3.5", "3.0", "NaN", "Infinity", "-Infinity", "9" * 30, "0.1234567890125", None],
            {
                "integer": [None, 3, None, None, None, 2**63 - 1, None, None],
                "decimal": [
                    *(Decimal("3.5"), Decimal(3), None, LARGEST, -LARGEST, LARGEST),
                    *(Decimal("0.123456789013"), None),
                ],
            },
        ),
        (
            "float8",
            ["3.5", "3", "0.1", "123456.789", "1e-310", "NaN", "Infinity", "1e300"],
            {
                "integer": [None, 3, *[None] * 5, 2**63 - 1],
                "decimal": [
                    *(Decimal("3.5"), Decimal(3), Decimal("0.1"), Decimal("123456.789")),
                    *(Decimal(0), None, LARGEST, LARGEST),
                ],
                "double": [3.5, 3.0, 0.1, 123456.789, 1e-310, None, math.inf, 1e300],
            },
        ),
        (
            "date",
            [*DAYS, "0044-03-15 BC", None],
            {
                "date": [LEAP, *[None] * 5],
                "timestamp": [datetime(2020, 2, 29), *[None] * 5],
            },
        ),
    ],
}


@pytest.mark.parametrize("kind", ["parquet", "duckdb", POSTGRES])
def test_other_types_of_an_engine_are_read_too_and_never_fail(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    for place, (engine_type, cells, expected) in enumerate(
        ENGINE_CELLS["duckdb" if url is None else "postgres"]
    ):
        if kind == "parquet" and "infinity" in cells:
            continue  # a Parquet file has no such dates
        found = seen(kind, tmp_path, engine_type, cells, name=f"t{place}", postgres=url)
        assert {name: found[name] for name in expected} == expected, engine_type


def test_parquet_files_whose_writers_chose_other_types_are_read_together(tmp_path: Path) -> None:
    for place, cells in enumerate(
        ("1 AS n, 5 AS x", "2.0::DOUBLE AS n, 'a' AS x", "3 AS n, 7 AS x")
    ):
        duckdb.execute(f"COPY (SELECT {cells}) TO '{tmp_path / str(place)}.parquet'")
    columns = (Column("x", low=0, high=9),)
    source = str(tmp_path / "*.parquet")
    with pytest.raises(Misconfigured, match="columns of other types"):
        Table.open(Policy(source, columns, key="n"))
    assert read_by_policy(source, columns) == {"x": [Decimal(5), None, Decimal(7)]}


# What follows from the policy -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (Column("x", values=(True, False)), ColumnType.BOOLEAN),
        (Column("x", values=(1, 2)), ColumnType.INTEGER),
        (Column("x", values=(1, Decimal("2.5"))), ColumnType.DECIMAL),
        (Column("x", values=("a",)), ColumnType.TEXT),
        (Column("x", values=(date(2020, 1, 1),)), ColumnType.DATE),
        (Column("x", values=(datetime(2020, 1, 1),)), ColumnType.TIMESTAMP),
        (Column("x", low=0, high=9), ColumnType.DECIMAL),
        (Column("x", type=ColumnType.INTEGER, low=0, high=9), ColumnType.INTEGER),
        (Column("x", low=date(2020, 1, 1), high=date(2020, 1, 2)), ColumnType.DATE),
        (Column("x", low=datetime(2020, 1, 1), high=datetime(2020, 1, 2)), ColumnType.TIMESTAMP),
        (Column("x", unbounded=True), None),
        (Column("x"), None),
    ],
)
def test_the_type_of_a_column_follows_from_the_policy(
    column: Column, type_: ColumnType | None
) -> None:
    assert typed_by_policy(Policy("", (column,))).columns[0].type is type_


@pytest.mark.parametrize(
    ("low", "high", "layout"),
    [
        (0, 1, (18, 12)),
        (-999_999, 0, (18, 12)),
        (0, 1_000_000, (18, 11)),
        (0, 10**12 - 1, (18, 6)),
        (0, 10**12, (38, 12)),
        (Decimal("0.0000000001"), 10**9, (38, 12)),
        (Decimal("1E-12"), 1, (18, 12)),
    ],
)
def test_decimals_are_narrow_where_the_bounds_allow_it(
    low: Decimal, high: Decimal, layout: tuple[int, int]
) -> None:
    kind = wanted(Column("x", low=low, high=high))
    assert (kind.digits, kind.scale) == layout
    assert kind.largest >= high


@pytest.mark.parametrize(
    ("column", "key", "person"), [("y", "n", None), ("x", "k", "n"), ("x", "n", "p")]
)
def test_a_column_that_is_not_there_is_named_whatever_the_cells(
    tmp_path: Path, column: str, key: str, person: str | None
) -> None:
    (tmp_path / "t.csv").write_text("n,x\n1,1\n")
    described = Policy(str(tmp_path / "t.csv"), (Column(column, low=0, high=1),), key, person)
    with pytest.raises(Misconfigured, match="which is not there"):
        Table.open(described, by_policy=True)


@pytest.mark.parametrize(
    ("types", "cell"),
    [
        (("BIGINT", "DOUBLE", "HUGEINT", "VARCHAR"), "4539578763621486"),
        (("DATE", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP_S", "VARCHAR"), "2020-01-01"),
        (("FLOAT", "DOUBLE", "DECIMAL(9, 4)", "VARCHAR"), "0.1"),
    ],
)
def test_text_and_identity_do_not_depend_on_the_type_that_a_writer_chose(
    types: tuple[str, ...], cell: str
) -> None:
    for kind in types:
        given = f"CAST('{cell}' AS {kind})"
        for read in (
            DUCKDB_CELLS.identity(given, kind),
            DUCKDB_CELLS.read(given, kind, PolicyType(ColumnType.TEXT), CellFormat()),
        ):
            ((found,),) = duckdb.execute(f"SELECT CAST({read} AS VARCHAR)").fetchall()
            assert found == cell


def test_a_single_precision_number_is_read_with_the_digits_it_has() -> None:
    read = DUCKDB_CELLS.read(
        "CAST('0.1' AS FLOAT)", "FLOAT", PolicyType(ColumnType.DECIMAL), CellFormat()
    )
    assert duckdb.execute(f"SELECT {read}").fetchall() == [(Decimal("0.1"),)]
