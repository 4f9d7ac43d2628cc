"""Numbers and dates that cannot be held exactly are refused by name, and never read as missing."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table.stored import DATABASES, store, write_csv

from casemate import Attack, Audit, Misconfigured, OnlineAuditor, Table
from casemate.audit.result import Verdict

SUMS = ["SELECT SUM(x) FROM t", "SELECT SUM(x) FROM t WHERE name <> 'p1'"]
LONG = "7" * 28
NOT_FINITE, SUM, YEARS = "infinite or NaN", "whose sum may be infinite", "outside the years"
LONG_CELL = "digits before the point"
CELLS = {
    "duckdb": [
        ("DECIMAL(38, 0)", LONG, LONG_CELL),
        ("DECIMAL(38, 0)", "9" * 26, "whose sum may have more than 26 digits"),
        ("DECIMAL(38, 20)", "0.1234567890123", "or 12 after it"),
        ("HUGEINT", "9" * 38, LONG_CELL),
        ("UHUGEINT", "3" * 39, LONG_CELL),
        ("DOUBLE", "inf", NOT_FINITE),
        ("FLOAT", "nan", NOT_FINITE),
        ("DOUBLE", "1e308", SUM),
        ("DATE", "10000-01-01", YEARS),
        ("DATE", "0001-12-31 (BC)", YEARS),
        ("TIMESTAMP", "infinity", YEARS),
        ("TIMESTAMPTZ", "-infinity", YEARS),
        ("TIMESTAMPTZ", "0001-01-01 00:00:00+05", YEARS),
        ("TIMESTAMP_NS", "2020-01-01 00:00:00.000000001", "microseconds"),
    ],
    "postgres": [
        ("numeric", "NaN", NOT_FINITE),
        ("numeric", "Infinity", NOT_FINITE),
        ("float8", "-Infinity", NOT_FINITE),
        ("float4", "NaN", NOT_FINITE),
        ("float8", "1e308", SUM),
        ("date", "infinity", YEARS),
        ("date", "10000-01-01", YEARS),
        ("timestamp", "0044-03-15 BC", YEARS),
        ("timestamptz", "0001-01-01 00:00:00+05", YEARS),
    ],
}
FINE = {
    "DECIMAL(38, 0)": "7" * 25,
    "DECIMAL(38, 20)": "123456789012345678.123456789012",
    "HUGEINT": "7" * 25,
    "UBIGINT": str(2**64 - 1),
    "DOUBLE": "1e299",
    "FLOAT": "0.1",
    "DATE": "9999-12-31",
    "TIMESTAMP": "9999-12-31 23:59:59.999999",
    "TIMESTAMP_NS": "2020-01-01 00:00:00.000001",
}


def opened(kind: str, folder: Path, engine_type: str, *cells: str | None, **where: Any) -> Table:
    """A table of a database with these cells in its private column x."""
    types = {"id": "int", "name": "text", "x": engine_type}
    rows = [(place, f"p{place}", cell) for place, cell in enumerate(cells)]
    return Table.open(store(kind, folder, types, rows, **where), private=["x"], key="id")


def as_csv(folder: Path, cells: Sequence[str]) -> Path:
    rows = [(f"p{place}", cell) for place, cell in enumerate(cells)]
    return write_csv(folder / "t.csv", ["name", "x"], rows)


@pytest.mark.parametrize("kind", DATABASES)
def test_what_a_database_holds_and_casemate_does_not_is_refused_by_its_column(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres") if kind == "postgres" else None
    for place, (engine_type, cell, fault) in enumerate(CELLS[kind]):
        with pytest.raises(Misconfigured, match=r"the column 'x' has .* \(2 of them\)") as caught:
            opened(kind, tmp_path, engine_type, None, cell, cell, name=f"t{place}", postgres=url)
        assert fault in str(caught.value)
        assert fault == NOT_FINITE or cell not in str(caught.value)


@pytest.mark.parametrize(("engine_type", "cell"), FINE.items())
def test_what_casemate_holds_too_is_opened_and_read_exactly(
    tmp_path: Path, engine_type: str, cell: str
) -> None:
    with opened("duckdb", tmp_path, engine_type, None, cell) as table:
        shown = table.source.read(f"SELECT x FROM {table.source.relation()} AS t WHERE id = 1")
        assert not shown["x"].missing[0]


def test_rows_of_a_file_are_told_by_their_number(tmp_path: Path) -> None:
    where = as_csv(tmp_path, ["1", "2", LONG, "4", LONG])
    with pytest.raises(Misconfigured, match="2 of them, the first in record 3"):
        Table.open(where, private=["x"])
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT DATE '2020-01-01' + CAST(4_000_000 * i AS INTEGER) AS d "
            f"FROM range(3) AS r(i)) TO '{tmp_path / 'days.parquet'}'"
        )
    with pytest.raises(Misconfigured, match="2 of them, the first in record 2"):
        Table.open(tmp_path / "days.parquet")


@pytest.mark.parametrize(
    "cell", [f"3{'1' * n}{rest}" for n in (25, 27, 37, 39) for rest in ("", ".5")]
)
def test_no_audit_takes_numbers_for_missing_however_long_they_are(
    tmp_path: Path, cell: str
) -> None:
    where = as_csv(tmp_path, [f"{i}{cell}" for i in range(1, 4)])
    if len(cell) >= 38 and "." not in cell:  # labels, which have no sum
        assert Audit.of(SUMS, where, private="x").verdict is Verdict.INCOMPLETE
        return
    with pytest.raises(Misconfigured, match="the column 'x' has numbers") as caught:
        Audit.of(SUMS, where, private="x")
    assert "1111" not in str(caught.value)


def test_without_the_check_an_audit_of_long_numbers_calls_everybody_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = as_csv(tmp_path, [f"{i}{'1' * 27}" for i in range(3, 7)])
    monkeypatch.setattr("casemate.table.table.check_exact", lambda *_: None)
    with Table.open(where, private=["x"]) as table:
        assert Audit.of(SUMS, table).verdict is Verdict.NONE_EXPOSED  # the twin: it is not so


@given(st.lists(st.integers(-(10**25), 10**25), min_size=3, max_size=5), st.integers(0, 12))
@settings(max_examples=6, deadline=None)
def test_what_is_not_refused_is_audited_exactly(
    tmp_path_factory: pytest.TempPathFactory, units: list[int], scale: int
) -> None:
    numbers = [Decimal(each).scaleb(-min(scale, 9)) for each in units]
    where = as_csv(tmp_path_factory.mktemp("t"), [format(each, "f") for each in numbers])
    found = Audit.of(SUMS, where, private="x")
    assert {each.value for each in found.exposed if each.record == 2} == {Fraction(numbers[1])}


@pytest.mark.parametrize("entry", ["audit", "attack", "online"])
def test_every_exact_use_refuses_alike(tmp_path: Path, entry: str) -> None:
    where = as_csv(tmp_path, ["1.5", "inf", "3"])
    uses: dict[str, Callable[[], object]] = {
        "audit": lambda: Audit.of(SUMS, where, private="x"),
        "attack": lambda: Attack.of(SUMS, where, private="x"),
        "online": lambda: OnlineAuditor(where, private="x"),
    }
    online = "the column 'x' is to be read as decimal"  # unless a type is declared
    said = "the column 'x' has numbers that are infinite or NaN"
    with pytest.raises(Misconfigured, match=online if entry == "online" else said):
        uses[entry]()


# Doubles of CSV files -----------------------------------------------------------------------------


@given(st.lists(st.floats(-1e290, 1e290), min_size=1, max_size=8), st.sampled_from(["r", ".17g"]))
@settings(max_examples=12, deadline=None)
def test_a_double_as_any_program_prints_it_is_exact(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], form: str
) -> None:
    cells = [repr(each) if form == "r" else format(each, form) for each in numbers]
    where = as_csv(tmp_path_factory.mktemp("t"), ["1e0", *cells])
    Table.open(where).close()


@pytest.mark.parametrize(
    "cell",
    ["0.123456789012345678", "9007199254740993", "1e-400", "1e400", f"{'1' * 39}.5"],
)
def test_a_number_that_is_no_double_is_not_cut_to_one(tmp_path: Path, cell: str) -> None:
    with pytest.raises(
        Misconfigured, match=r"more digits than a double holds .*record 2"
    ) as caught:
        Table.open(as_csv(tmp_path, ["1e5", cell, "3"]))
    assert cell not in str(caught.value)


# Public columns, and sums of them -------------------------------------------------------------


def test_public_infinities_are_values_like_others_and_long_numbers_are_not(tmp_path: Path) -> None:
    with Table.open(as_csv(tmp_path, ["1.5", "inf", "nan"])) as table:
        assert table.policy.columns[1].type == "double"
    with pytest.raises(Misconfigured, match="the column 'x' has numbers with more than 26"):
        Table.open(as_csv(tmp_path, ["1.5", LONG]))


def test_long_public_numbers_are_added_up_exactly(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "name,x,w\na,1,123456789012345678901.123456789\nb,2,223456789012345678901.123456781\n"
        "c,3,0.000000001\n"
    )
    found = Audit.of(
        ["SELECT SUM(x + w) FROM t", "SELECT SUM(x) FROM t WHERE name <> 'a'"], path, private="x"
    )
    assert [(each.record, each.value) for each in found.exposed] == [(1, 1)]


def test_a_sum_that_leaves_the_engines_digits_is_said_to_be_one(tmp_path: Path) -> None:
    where = as_csv(tmp_path, [f"{i}{'1' * 24}" for i in range(1, 6)])
    huge = "CAST('9' || repeat('0', 37) AS DECIMAL(38, 0))"
    with Table.open(where) as table:
        sql = f"SELECT sum({huge}) AS s FROM {table.source.relation()} AS t"
        with pytest.raises(Misconfigured, match="larger than the data source computes with"):
            table.source.read(sql)


# PostgreSQL -----------------------------------------------------------------------------------


@pytest.mark.postgres
def test_postgresql_adds_up_numbers_of_any_length(postgres: str, tmp_path: Path) -> None:
    cells = [f"{i}{'1' * 60}.{'3' * 60}" for i in range(1, 4)]
    with opened("postgres", tmp_path, "numeric", *cells, postgres=postgres) as table:
        found = Audit.of(SUMS, table)
    assert {each.value for each in found.exposed} == {Fraction(cells[1])}
