"""Markers of missing values and formats of numbers: declared once, read alike in every source."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table.stored import DATABASES, FILES, cells_of, store

from casemate.errors import Misconfigured
from casemate.table import (
    CellFormat,
    Column,
    ColumnType,
    Policy,
    Role,
    Table,
    draft,
    load_policy,
    plain_source,
    review_policy,
    why_text,
)
from casemate.table.sources import RECORD

SOURCES = pytest.mark.parametrize("kind", [*FILES, *DATABASES])
TEXTS = {"id": "varchar", "pay": "varchar", "due": "varchar", "won": "varchar", "note": "varchar"}
ROWS = [
    ("1", "$5", "1.234,50 €", "1,234", "$5"),
    ("2", " N ", "7,5 €", "12", "N"),
    ("3", "-$7.25", "NA", "-9", "1,234"),
    ("4", "$ -1,000,000", "-3 €", "0", "a,b"),
]
FORMATS = {
    "pay": CellFormat(("N", "NA"), ",", ".", "$"),
    "due": CellFormat(("NA",), ".", ",", "€"),
    "won": CellFormat(("-9",), ","),
    "note": CellFormat(("N",), ",", ".", "$"),
}
READ: dict[str, list[Any]] = {
    "pay": [5, None, Decimal("-7.25"), -1_000_000],
    "due": [Decimal("1234.5"), Decimal("7.5"), None, -3],
    "won": [1234, 12, None, 0],
    "note": ["$5", None, "1,234", "a,b"],
}
TYPES = {
    "pay": ColumnType.DECIMAL,
    "due": ColumnType.DECIMAL,
    "won": ColumnType.INTEGER,
    "note": ColumnType.TEXT,
}


def stored(kind: str, folder: Path, request: pytest.FixtureRequest, types: Any, rows: Any) -> str:
    where = {"postgres": request.getfixturevalue("postgres")} if kind == "postgres" else {}
    return store(kind, folder, types, rows, **where)


def read(table: Table, *names: str) -> dict[str, list[Any]]:
    listed = ", ".join(f'"{name}"' for name in names)
    found = table.source.read(f"SELECT {RECORD} AS r, {listed} FROM {table.source.relation()} AS t")
    order = sorted(range(len(ROWS)), key=lambda place: int(found["r"].values[place]))
    return {name: [cells_of(found[name])[place] for place in order] for name in names}


# The contract of every source -------------------------------------------------------------------


@SOURCES
@pytest.mark.parametrize("by_policy", [False, True])
def test_every_source_reads_what_is_declared_whether_types_are_its_own_or_the_policys(
    kind: str, by_policy: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    source = stored(kind, tmp_path, request, TEXTS, ROWS)
    columns = tuple(
        Column(name, type=TYPES[name] if by_policy else None, format=form)
        for name, form in FORMATS.items()
    )
    with Table.open(Policy(source, columns, key="id"), by_policy=by_policy) as table:
        assert {each.name: each.type for each in table.policy.columns} == TYPES
        assert read(table, *FORMATS) == READ
        total = table.source.read(f"SELECT SUM(pay) AS x FROM {table.source.relation()} AS t")
        assert total["x"].values[0] == Decimal("-1000002.25")


@SOURCES
def test_numbers_of_a_source_are_missing_where_they_equal_a_marker(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    types = {"id": "integer", "a": "integer", "b": "decimal(9,2)", "c": "double precision"}
    rows = [(1, -9, "999999.00", -9), (2, 5, "1.50", "0.5"), (3, 6, "2.25", 1), (4, 7, "3", 2)]
    source = stored(kind, tmp_path, request, types, rows)
    place = plain_source(source, key="id", missing_markers=["-9", "999999", "999999.00", "N"])
    with Table.open(place) as table:
        found = read(table, "a", "b", "c")
    assert found["a"] == [None, 5, 6, 7] and found["c"] == [None, 0.5, 1, 2]
    assert found["b"] == [None, Decimal("1.5"), Decimal("2.25"), 3]


@SOURCES
def test_for_private_answers_a_cell_outside_its_format_is_null_and_never_an_error(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cells = ["1.5", "1.23", "€€1", "1,2,3"]
    rows = [(str(place), cell) for place, cell in enumerate(cells)]
    source = stored(kind, tmp_path, request, {"id": "varchar", "due": "varchar"}, rows)
    due = Column("due", Role.PRIVATE, ColumnType.DECIMAL, 0, 9, format=FORMATS["due"])
    with Table.open(Policy(source, (due,), key="id"), by_policy=True) as table:
        assert read(table, "due") == {"due": [None] * 4}
    with pytest.raises(Misconfigured, match=r"due|integer|decimal"):
        Table.open(Policy(source, (due,), key="id"))


@SOURCES
def test_every_source_says_why_a_column_of_numbers_is_text(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with Table.open(stored(kind, tmp_path, request, TEXTS, ROWS), key="id") as table:
        columns = {each.name: each for each in table.policy.columns}
        why = {name: why_text(table.source, columns[name]) for name in ("pay", "due", "won")}
        assert all(found and not found.unexplained for found in why.values())
        assert why["due"] and why["due"].sentence == (
            'due is text because 4 of 4 cells are not numbers (currency "€", thousands ".", '
            'decimal ",", marker "NA"); declare missing_markers = ["NA"], thousands = ".", '
            'decimal = ",", currency = "€" in the policy or say --currency \'€\' --thousands . '
            "--decimal , --missing-marker NA"
        )


@pytest.mark.parametrize("kind", ["csv", "parquet", *DATABASES])
def test_a_first_policy_declares_formats_itself_and_opens(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with Table.open(stored(kind, tmp_path, request, TEXTS, ROWS), key="id") as table:
        (tmp_path / "casemate.toml").write_text(draft(table), encoding="utf-8")
    with Table.open(tmp_path / "casemate.toml") as table:
        assert read(table, "pay", "due") == {name: READ[name] for name in ("pay", "due")}
        assert table.policy.format_of("due") == FORMATS["due"]
        assert "missing_markers" in (tmp_path / "casemate.toml").read_text(encoding="utf-8")
    _, found = review_policy(tmp_path / "casemate.toml")
    assert not any(each.misfits for each in found.columns)


# Numbers in any format --------------------------------------------------------------------------


@given(
    number=st.decimals(-(10**9), 10**9, places=2, allow_nan=False),
    marks=st.sampled_from([(",", "."), (".", ","), (" ", ","), ("'", "."), (None, ",")]),
    currency=st.sampled_from(["{}", "$ {}", "{} kr.", "{}€"]),
)
def test_a_number_in_its_format_is_read_exactly(
    number: Decimal,
    marks: tuple[str | None, str],
    currency: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    thousands, decimal = marks
    text = f"{number:,.2f}".translate({ord(","): thousands or "", ord("."): decimal})
    path = tmp_path_factory.mktemp("numbers") / "t.csv"
    path.write_text(f'x,y\n"{currency.format(text)}",1\n', encoding="utf-8")
    sign = currency.replace("{}", "").strip() or None
    form = CellFormat((), thousands, decimal, sign)
    with Table.open(Policy(str(path), (Column("x", format=form),))) as table:
        assert table.policy.columns[0].type in (ColumnType.DECIMAL, ColumnType.INTEGER)
        assert cells_of(table.source.read("SELECT x FROM casemate_table")["x"]) == [number]


@pytest.mark.parametrize("cell", ["1,23", "12,34,567", "1,2345", "$$5", "5$5", "5 USD", "(5)"])
def test_what_is_no_number_in_its_format_leaves_the_column_text(cell: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f'x,y\n"{cell}",1\n5,2\n')
    place = plain_source(str(tmp_path / "t.csv"), thousands=",", currency="$")
    with Table.open(place) as table:
        assert table.policy.columns[0].type is ColumnType.TEXT
        assert cells_of(table.source.read("SELECT x FROM casemate_table")["x"]) == [cell, "5"]


# What is said, and what is not ------------------------------------------------------------------


def explained(folder: Path, cells: list[str]) -> str | None:
    (folder / "t.csv").write_text("x,y\n" + "".join(f'"{cell}",1\n' for cell in cells))
    with Table.open(folder / "t.csv") as table:
        found = why_text(table.source, table.policy.columns[0])
    return None if found is None else found.sentence


def test_short_repeated_texts_are_markers_and_others_are_counted_and_never_quoted(
    tmp_path: Path,
) -> None:
    said = explained(tmp_path, [*map(str, range(50)), *["xx"] * 5, "Ann Smith", "bob"])
    assert said == (
        'x is text because 7 of 57 cells are not numbers (marker "xx"); declare missing_markers = '
        '["xx"] in the policy or say --missing-marker xx, and correct the 2 cells that hold other '
        "text"
    )
    said = explained(tmp_path, [*map(str, range(50)), *["Ann Smith"] * 20, "bob"])
    assert said and not re.search("Ann|Smith|bob", said) and "21 of 71" in said


@pytest.mark.parametrize(
    "cells", [["a", "b", "a"], ["Ann", "1", "Bob", "Eve"], ["25-1", "25-2"], ["ID1", "ID2"]]
)
def test_text_that_is_not_numbers_for_the_most_part_is_text(
    cells: list[str], tmp_path: Path
) -> None:
    assert explained(tmp_path, cells) is None


def test_a_declared_type_that_fails_says_what_to_declare(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n5,1\n-,2\n7,3\n")
    x = Column("x", Role.PRIVATE, ColumnType.INTEGER, 0, 9)
    policy = Policy(str(tmp_path / "t.csv"), (x,))
    with pytest.raises(Misconfigured, match=r'\(marker "-"\); declare missing_markers = \["-"\]'):
        Table.open(policy)
    assert any('marker "-"' in each for each in review_policy(policy)[1].warnings)
    declared = replace(policy, columns=(replace(x, format=CellFormat(("-",))),))
    _, found = review_policy(declared)
    assert found.columns[0].nulls == 1 and not found.columns[0].misfits


# The policy -------------------------------------------------------------------------------------


def test_a_column_overrides_the_tables_format_key_by_key(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "p.toml").write_text(
        '[table]\nsource = "t.csv"\nmissing_markers = ["NA", -9]\ndecimal = ","\n'
        '[columns.a]\n[columns.b]\nmissing_markers = []\nthousands = "."\ncurrency = "€"\n'
    )
    policy = load_policy(tmp_path / "p.toml")
    assert policy.format_of("a") == policy.format == CellFormat(("NA", "-9"), None, ",")
    assert policy.format_of("b") == CellFormat((), ".", ",", "€")


@pytest.mark.parametrize(
    ("said", "key", "sentence"),
    [
        ('thousands = "."', "thousands", "must not be the decimal mark"),
        ('thousands = "7"', "thousands", "must be one mark"),
        ('decimal = ",,"', "decimal", "must be one mark"),
        ('currency = "5$"', "currency", "without digits"),
        ("missing_markers = [true]", "missing_markers", "strings"),
        ('missing_markers = "N"', "missing_markers", "an array"),
    ],
)
def test_a_format_that_makes_no_sense_is_one_sentence(
    said: str, key: str, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").touch()
    (tmp_path / "p.toml").write_text(f'[table]\nsource = "t.csv"\n[columns.a]\n{said}\n')
    with pytest.raises(Misconfigured, match=f"`columns.a.{key}` .*{sentence}"):
        load_policy(tmp_path / "p.toml")
