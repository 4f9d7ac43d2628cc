"""CSV files: what their cells become, and what is said of a file that cannot be read."""

import csv
import gzip
import io
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table.stored import cells_of

from casemate.errors import Misconfigured
from casemate.table import ColumnType
from casemate.table.sources import RECORD, Frame
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.place import Files, find

BOOLEAN, INTEGER, DECIMAL, DOUBLE, TEXT, DATE, TIMESTAMP = ColumnType


def opened(folder: Path, pattern: str = "*.csv", **declared: ColumnType) -> DuckDBSource:
    place = find(pattern, folder)
    assert isinstance(place, Files)
    return DuckDBSource(place, types=declared)


def read(source: DuckDBSource) -> Frame:
    frame = source.read(f"SELECT * FROM {source.relation()} AS t")
    order = np.argsort(frame[RECORD].values)
    return {name: type(s)(s.values[order], s.missing[order]) for name, s in frame.items()}


def column(folder: Path, cells: Sequence[str], **declared: ColumnType) -> tuple[ColumnType, Any]:
    """The type and the values of a column of these cells."""
    (folder / "t.csv").write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    source = opened(folder, "t.csv", **declared)
    values, type_ = cells_of(read(source)["x"]), source.fields()["x"]
    source.close()
    return type_, values


# Types ----------------------------------------------------------------------------------------

CELLS: dict[str, tuple[list[str], ColumnType, list[Any]]] = {
    "truth": (["true", "False", "TRUE", ""], BOOLEAN, [True, False, True, None]),
    "letters are not truth": (["t", "f"], TEXT, ["t", "f"]),
    "whole numbers": (["1", "-2", "+3", ""], INTEGER, [1, -2, 3, None]),
    "blanks around numbers": ([" 1", "2 "], INTEGER, [1, 2]),
    "leading zeros": (["02139", "10001"], INTEGER, [2139, 10001]),
    "the ends of 64 bits": ([str(2**63 - 1), str(-(2**63))], INTEGER, [2**63 - 1, -(2**63)]),
    "past 64 bits": ([str(2**63), "1"], DECIMAL, [Decimal(2**63), Decimal(1)]),
    "38 digits": (["9" * 38], DECIMAL, [Decimal("9" * 38)]),
    "39 digits": (["9" * 39, "1"], TEXT, ["9" * 39, "1"]),
    "39 digits with a fraction": (["9" * 39, "0.5"], DOUBLE, [1e39, 0.5]),
    "underscores": (["1_000"], TEXT, ["1_000"]),
    "thousands": (["1'000"], TEXT, ["1'000"]),
    "decimals": (
        ["4.3", "5", "-.25", "6."],
        DECIMAL,
        [Decimal(n) for n in ("4.3", "5", "-.25", "6")],
    ),
    "nine decimals": (["0.123456789"], DECIMAL, [Decimal("0.123456789")]),
    "ten decimals": (["0.1234567891"], DOUBLE, [0.1234567891]),
    "zeros at the end": (["1.50000000000000"], DECIMAL, [Decimal("1.5")]),
    "18 digits": (["123456789.123456789"], DECIMAL, [Decimal("123456789.123456789")]),
    "wide and deep": (
        ["1" * 20, "0.123456789"],
        DECIMAL,
        [Decimal("1" * 20), Decimal("0.123456789")],
    ),
    "an exponent": (["1e3", "2.5"], DOUBLE, [1000.0, 2.5]),
    "infinity": (["inf", "-Infinity", "1"], DOUBLE, [float("inf"), float("-inf"), 1.0]),
    "a name that is no number": (["Nan", "Nan"], TEXT, ["Nan", "Nan"]),
    "a point alone": (["."], TEXT, ["."]),
    "dates": (["2020-02-29", ""], DATE, [date(2020, 2, 29), None]),
    "a day that is not there": (["2021-02-29"], TEXT, ["2021-02-29"]),
    "the year 0": (["0000-01-01"], TEXT, ["0000-01-01"]),
    "other dates": (["31.12.2020"], TEXT, ["31.12.2020"]),
    "timestamps": (
        ["2020-01-01 10:00", "2020-01-01T10:00:00.25", "2020-01-02"],
        TIMESTAMP,
        [datetime(2020, 1, 1, 10), datetime(2020, 1, 1, 10, 0, 0, 250_000), datetime(2020, 1, 2)],
    ),
    "offsets": (
        ["2020-01-01T10:00:00+02:00", "2020-01-01 10:00Z"],
        TIMESTAMP,
        [datetime(2020, 1, 1, 8), datetime(2020, 1, 1, 10)],
    ),
    "offsets on some": (
        ["2020-01-01T10:00:00+02:00", "2020-01-01 10:00"],
        TEXT,
        ["2020-01-01T10:00:00+02:00", "2020-01-01 10:00"],
    ),
    "times of day": (["10:00:00"], TEXT, ["10:00:00"]),
    "text": ([" a ", "NULL", "NA", '"  "'], TEXT, [" a ", "NULL", "NA", "  "]),
    "nothing at all": (["", '""'], TEXT, [None, None]),
    "truth and numbers": (["true", "1"], TEXT, ["true", "1"]),
}


@pytest.mark.parametrize("case", CELLS)
def test_cells_become_the_first_type_that_fits_all_of_them(tmp_path: Path, case: str) -> None:
    cells, type_, values = CELLS[case]
    assert column(tmp_path, cells) == (type_, values)


@pytest.mark.parametrize(
    ("last", "type_"), [("2.5", DECIMAL), ("x", TEXT), ("1e9", DOUBLE), ("2020-01-01", TEXT)]
)
def test_the_last_cell_of_a_long_column_decides_too(
    tmp_path: Path, last: str, type_: ColumnType
) -> None:
    assert column(tmp_path, ["1"] * 20_000 + [last])[0] is type_


@settings(max_examples=10)
@given(st.lists(st.decimals(places=3, min_value=-(10**12), max_value=10**12), min_size=1))
def test_plain_decimals_are_never_rounded(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[Decimal]
) -> None:
    cells = [format(number, "f") for number in numbers]
    assert column(tmp_path_factory.mktemp("d"), cells) == (DECIMAL, numbers)


@settings(max_examples=10)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_floats_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float]
) -> None:
    cells = [repr(number) for number in numbers]
    _, values = column(tmp_path_factory.mktemp("d"), cells, x=DOUBLE)
    assert [repr(float(value)) for value in values] == cells


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(
            *[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"))] * 2
        ),
        min_size=1,
    ),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_text_comes_back_as_pythons_reader_sees_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], line_end: str
) -> None:
    folder = tmp_path_factory.mktemp("d")
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y"), *rows])
    (folder / "t.csv").write_text(buffer.getvalue(), encoding="utf-8", newline="")
    source = opened(folder, x=TEXT, y=TEXT)
    frame = read(source)
    source.close()
    for name, cells in zip("xy", zip(*rows, strict=True), strict=True):
        assert cells_of(frame[name]) == [cell or None for cell in cells]


@pytest.mark.parametrize(
    ("cells", "type_", "values"),
    [
        (["02139"], TEXT, ["02139"]),
        (["5"], DECIMAL, [Decimal(5)]),
        (["5", "9" * 40], DOUBLE, [5.0, 1e40]),
        (["2020-01-01"], TIMESTAMP, [datetime(2020, 1, 1)]),
        (["2020-01-01 10:00+01"], TIMESTAMP, [datetime(2020, 1, 1, 9)]),
        *(([""], type_, [None]) for type_ in (INTEGER, DECIMAL, DATE)),
    ],
)
def test_a_declared_type_decides_how_cells_are_read(
    tmp_path: Path, cells: list[str], type_: ColumnType, values: list[Any]
) -> None:
    assert column(tmp_path, cells, x=type_) == (type_, values)


@pytest.mark.parametrize(("cell", "type_"), [("secret", INTEGER), ("1.5", INTEGER), ("1", DATE)])
def test_a_declared_type_that_fails_is_one_sentence_without_the_cell(
    tmp_path: Path, cell: str, type_: ColumnType
) -> None:
    with pytest.raises(Misconfigured, match=f"column 'x' is to be read as {type_}") as caught:
        column(tmp_path, ["7", cell], x=type_)
    assert "secret" not in str(caught.value) and "1.5" not in str(caught.value)


# Headers, separators, line ends ---------------------------------------------------------------

Content = Callable[[str], bytes]


@pytest.mark.parametrize(
    "encoded",
    [
        lambda text: text.encode(),
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: text.encode("utf-8-sig"),
        lambda text: text.rstrip("\n").encode(),
        lambda text: text.replace(",", ";").encode(),
        lambda text: text.replace(",", "\t").encode(),
        lambda text: text.replace(",", "|").encode(),
    ],
)
def test_separators_line_ends_and_marks_are_found_out(tmp_path: Path, encoded: Content) -> None:
    (tmp_path / "t.csv").write_bytes(encoded('age,"first; name"\n41,"a;b|c\td"\n42,e\n'))
    frame = read(opened(tmp_path))
    assert list(frame) == [RECORD, "age", "first; name".replace(";", ";")]
    assert list(frame["age"].values) == [41, 42]


def test_names_are_kept_as_they_are(tmp_path: Path) -> None:
    names = ["Blood sugar", ' "quoted" ', "ÄGE", "äge", "a;b", "SELECT", "line\nbreak", "c0", "x.y"]
    with (tmp_path / "t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([names, range(len(names))])
    frame = read(opened(tmp_path))
    assert list(frame) == [RECORD, *names]
    assert [series.values[0] for series in frame.values()][1:] == list(range(len(names)))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",age,\n0,41,x\n", {"column0": [0], "age": [41], "column2": ["x"]}),
        ("a,b\n", {"a": [], "b": []}),
        ("a\n1\n\n3\n", {"a": [1, None, 3]}),
        ('a\nx"y\n\n3\n', {"a": ['x"y', None, "3"]}),  # a quote inside a cell opens nothing
    ],
)
def test_columns_without_names_tables_without_rows_and_lines_without_cells_are_read(
    tmp_path: Path, text: str, columns: dict[str, list[Any]]
) -> None:
    (tmp_path / "t.csv").write_text(text)
    frame = read(opened(tmp_path))
    assert {name: cells_of(series) for name, series in frame.items() if name != RECORD} == columns


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty; expected a first line"),
    "a blank first line": (b"\na,b\n1,2\n", "is empty; expected a first line"),
    "too few cells": (b"a,b\n1,2\nsecret\n", "at line 3: expected 2 cells and found 1"),
    "too many cells": (b"a,b\n1,2\n1,secret,3\n", "at line 3: expected 2 cells and found 3"),
    "far down": (b"a,b\n" + b"1,2\n" * 50_000 + b"secret\n", "at line 50002: expected 2"),
    "an open quote": (b'a,b\n1,2\n3,"secret\n', "at line 3: a quote is not closed"),
    "text after a quote": (b'a,b\n1,"secret"x\n', "at line 2: a quote is not closed"),
    "latin letters": ("a,b\n1,süß\n".encode("latin-1"), "at line 2: it is not UTF-8"),
    "a latin header": ("größe,b\n1,2\n".encode("latin-1"), "is not UTF-8 text"),
    "a wide encoding": ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
    "two kinds of line ends": (b"a,b\n1,2\r\n3,4\n", "its line ends (all alike)"),
    "a very long line": (b"a,b\n1," + b"x" * 3_000_000 + b"\n", "longer than 2,000,000 bytes"),
    "the same name twice": (b"a,b,a\n1,2,3\n", "two columns called 'a'"),
    "names that differ in case": (b"Age,age\n1,2\n", "upper and lower case being alike"),
    "the record's name": (b"casemate_record,b\n1,2\n", "rename it"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_malformed_file_is_one_sentence_without_its_values(tmp_path: Path, case: str) -> None:
    content, expected = BROKEN[case]
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(Misconfigured, match=re.escape(expected)) as caught:
        opened(tmp_path)
    sentence = str(caught.value)
    assert sentence.startswith(str(tmp_path / "t.csv"))
    assert "\n" not in sentence and "secret" not in sentence and "xx" not in sentence


def test_a_damaged_archive_and_files_of_other_columns_are_one_sentence(tmp_path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + bytes(str(list(range(40_000))).replace(", ", ",1\n"), "ascii"))
    for content in (b"not an archive", whole[: len(whole) // 2]):
        (tmp_path / "t.csv.gz").write_bytes(content)
        with pytest.raises(Misconfigured, match=r"t\.csv\.gz"):
            opened(tmp_path, "t.csv.gz")
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n1,2\n")
    with pytest.raises(Misconfigured, match=r"2\.csv has other columns than the first file"):
        opened(tmp_path)


# Positions ------------------------------------------------------------------------------------


def test_the_record_is_the_position_in_files_sorted_by_name(tmp_path: Path) -> None:
    for name, cells in (("b.csv", "30\n40\n"), ("a.csv", "10\n20\n"), ("c.csv", "50\n")):
        (tmp_path / name).write_text(f"x\n{cells}")
    frame = read(opened(tmp_path))
    assert list(frame[RECORD].values) == [1, 2, 3, 4, 5]
    assert list(frame["x"].values) == [10, 20, 30, 40, 50]


def test_positions_are_right_in_files_large_enough_to_be_read_in_parallel(tmp_path: Path) -> None:
    for part in range(2):
        rows = range(part * 100_000, (part + 1) * 100_000)
        lines = "".join(f"{row},row number {row} with some more text to fill it\n" for row in rows)
        (tmp_path / f"{part}.csv").write_text("x,y\n" + lines)
    source = opened(tmp_path)
    wrong = f"SELECT COUNT(*) AS n FROM {source.relation()} AS t WHERE x <> {RECORD} - 1"
    assert source.read(wrong)["n"].values[0] == 0
    frame = source.read(f"SELECT {RECORD}, x FROM {source.relation()} AS t WHERE x % 3 = 0")
    assert len(frame["x"].values) == 66_667
    assert bool((frame[RECORD].values == frame["x"].values + 1).all())
    source.close()
