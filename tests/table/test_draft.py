import csv
import io
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table.stored import run_in

from casemate.table import (
    Column,
    ColumnType,
    Missing,
    Policy,
    Provenance,
    Role,
    Table,
    Value,
    draft,
    load_policy,
)


def drafted(folder: Path, source: str, key: str | None = None) -> tuple[str, Policy]:
    """The text of a first policy, and the policy as it loads."""
    with Table.open(source, key=key) as table:
        text = draft(table)
    (folder / "casemate.toml").write_text(text, encoding="utf-8")
    return text, load_policy(folder / "casemate.toml")


@pytest.fixture
def people(tmp_path: Path) -> str:
    rows = [
        ("id", "Name", "Gender", 'odd "x"\n', "Sugar", "Ratio", "Day", "At", "Ill", "Empty"),
        (10, "Ann", "f", 1, "4.3", "nan", "2020-01-01", "2020-01-01 10:00", "true", ""),
        (30, "Bob", "m", 1, "", "0.5", "2020-12-31", "2020-01-02 10:00", "false", ""),
        (999, "Cyd", "f", 1, "5.25", "-1e300", "2020-02-01", "2020-01-02 11:00", "false", ""),
    ]
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    (tmp_path / "people.csv").write_text(buffer.getvalue(), newline="")
    return str(tmp_path / "people.csv")


def test_a_first_policy_says_what_the_data_say(tmp_path: Path, people: str) -> None:
    _, policy = drafted(tmp_path, people)
    data = Provenance.DATA
    assert policy.source == people

    def bounded(name: str, type_: ColumnType, low: Value, high: Value, **more: Any) -> Column:
        return Column(name, Role.PUBLIC, type_, low, high, bins=16, provenance=data, **more)

    ten, eleven = datetime(2020, 1, 1, 10), datetime(2020, 1, 2, 11)
    assert policy.columns == (
        bounded("id", ColumnType.INTEGER, 10, 999),
        Column("Name", type=ColumnType.TEXT),
        Column("Gender", type=ColumnType.TEXT, values=("f", "m"), provenance=data),
        Column('odd "x"\n', type=ColumnType.INTEGER, low=1, high=1, provenance=data),
        bounded(
            "Sugar", ColumnType.DECIMAL, Decimal("4.30"), Decimal("5.25"), missing=Missing.SECRET
        ),
        bounded("Ratio", ColumnType.DOUBLE, Decimal("-1e300"), Decimal("0.5")),
        bounded("Day", ColumnType.DATE, date(2020, 1, 1), date(2020, 12, 31)),
        bounded("At", ColumnType.TIMESTAMP, ten, eleven),
        Column("Ill", type=ColumnType.BOOLEAN, values=(False, True)),
        Column("Empty", type=ColumnType.TEXT, missing=Missing.SECRET),
    )


def test_nothing_is_private_by_itself_and_names_are_suggested_and_never_listed(
    tmp_path: Path, people: str
) -> None:
    text, policy = drafted(tmp_path, people)
    assert all(column.role is Role.PUBLIC for column in policy.columns)
    assert "Nothing is private yet" in text
    assert 'from = "data" were read off the data and are not private' in text
    assert "casemate policy check" in text and "Cyd" not in text
    name = text.partition("[columns.Name]")[2].partition("[columns.")[0]
    assert '# It is different in every row: role = "identifier"' in name


@pytest.mark.parametrize(
    ("cells", "values", "bins"),
    [
        ([f"v{number:03}" for number in range(64)] * 2, True, None),
        ([f"v{number:03}" for number in range(65)] * 2, False, None),
        (["0", "1", "0"], False, 2),
        (["0", "63", "0"], False, 64),
        (["0", "64", "0"], False, 16),
    ],
)
def test_only_a_few_values_are_listed_and_a_few_whole_numbers_get_a_bin_each(
    tmp_path: Path, cells: list[str], values: bool, bins: int | None
) -> None:
    (tmp_path / "t.csv").write_text("x\n" + "\n".join(cells))
    _, policy = drafted(tmp_path, str(tmp_path / "t.csv"))
    assert (policy.columns[0].values is not None) is values
    assert policy.columns[0].bins == bins


@pytest.mark.parametrize("name", ["hospital", "population:200"])
def test_a_shipped_table_has_a_first_policy_that_opens(tmp_path: Path, name: str) -> None:
    _, policy = drafted(tmp_path, name)
    with Table.open(policy) as table:
        assert table.policy.source.startswith(name)
        assert not table.policy.private()


def test_a_table_of_a_database_keeps_its_key(tmp_path: Path) -> None:
    made = "CREATE TABLE t (id INTEGER PRIMARY KEY, x HUGEINT)"
    run_in(tmp_path / "a b.db", made, "INSERT INTO t VALUES (1, 5), (2, 6)")
    _, policy = drafted(tmp_path, f"duckdb:///{tmp_path}/a b.db#t")
    assert policy.key == "id"
    with Table.open(policy) as table:
        assert table.policy.columns[1].high == 6


@pytest.mark.postgres
@pytest.mark.parametrize("asked", ["postgres:hunter2@", "postgres:@"])
def test_the_password_of_a_database_is_not_written_down(
    tmp_path: Path, postgres: str, asked: str
) -> None:
    made = "CREATE TABLE t (id int PRIMARY KEY, x numeric, y float8)"
    run_in(postgres, made, "INSERT INTO t VALUES (1, NULL, NULL), (2, 1.5, -1e300)")
    with_password = postgres.replace("postgres:@", asked)
    if "hunter2" not in with_password:
        with_password += "&password=hunter2&p%61ssword=hunter2"
    text, policy = drafted(tmp_path, f"{with_password}#t")
    assert "hunter2" not in text and "PGPASSWORD" in text
    assert policy.key == "id"
    assert policy.columns[1].type is ColumnType.DECIMAL
    assert policy.columns[2].low == policy.columns[2].high == Decimal("-1e300")


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), min_size=1)


@settings(max_examples=10)
@given(name=texts, cells=st.lists(texts, min_size=1, max_size=20))
def test_any_name_and_any_text_is_written_so_that_it_loads(
    tmp_path_factory: pytest.TempPathFactory, name: str, cells: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("d")
    buffer = io.StringIO()
    rows = [(f"x{name}", "y"), *((cell, "z") for cell in cells * 2)]
    csv.writer(buffer, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    (folder / "t.csv").write_text(buffer.getvalue(), encoding="utf-8", newline="")
    _, policy = drafted(folder, str(folder / "t.csv"))
    column = policy.columns[0]
    assert column.name == f"x{name}"
    if column.type is ColumnType.TEXT:
        assert column.values is not None and set(column.values) == set(cells)
