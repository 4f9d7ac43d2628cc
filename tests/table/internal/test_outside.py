"""A table as an outsider sees it: the private columns are there, and what they hold is filler."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from casemate.errors import Misconfigured
from casemate.table import Column, ColumnType, OutsideSource, Role, Table
from casemate.table.table import unseen

POLICY = """
[table]
source = "seen.csv"
[columns.id]
role = "public"
[columns.status]
role = "private"
values = ["C", "D"]
[columns.pay]
role = "private"
min = 3
max = 9.5
[columns.ill]
role = "private"
unbounded = true
nullable = true
"""


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    (tmp_path / "seen.csv").write_text("id,area\n1,5\n2,6\n3,6\n")
    return tmp_path / "seen.csv"


def test_a_missing_private_column_is_there_with_one_filler_text_where_it_is_compared_with_some(
    seen: Path,
) -> None:
    with Table.open(seen, private=["pay", "s"], outsider=True, texts=["s"]) as table:
        assert isinstance(table.source, OutsideSource)
        types = {each.name: each.type for each in table.policy.private()}
        assert types == {"pay": ColumnType.DOUBLE, "s": ColumnType.TEXT}
        assert {name: table.source.fields()[name] for name in types} == types
        frame = table.source.read(f"SELECT id, area, pay FROM {table.source.relation()} AS t")
        assert frame["id"].values.tolist() == [1, 2, 3]
        assert len(set(frame["pay"].values.tolist())) == 1


def test_a_policy_says_what_the_columns_are_that_the_source_has_not(tmp_path: Path) -> None:
    (tmp_path / "seen.csv").write_text("id\n1\n2\n")
    (tmp_path / "p.toml").write_text(POLICY)
    with Table.open(tmp_path / "p.toml", outsider=True) as table:
        found = {each.name: each for each in table.policy.private()}
        assert found["status"].type is ColumnType.TEXT and found["status"].values == ("C", "D")
        assert found["pay"].low == 3 and found["pay"].type is ColumnType.DOUBLE
        assert found["ill"].type is ColumnType.DOUBLE and found["ill"].nullable
        frame = table.source.read(f"SELECT status FROM {table.source.relation()} AS t")
        assert set(frame["status"].values.tolist()) == {"C"}


def test_an_outsider_who_has_the_columns_sees_the_table_itself(seen: Path) -> None:
    with Table.open(seen, private=["area"], outsider=True) as table:
        assert not isinstance(table.source, OutsideSource)
        frame = table.source.read(f"SELECT area FROM {table.source.relation()} AS t")
        assert frame["area"].values.tolist() == [5, 6, 6]


def test_anybody_else_must_have_them_and_public_columns_must_be_there_for_everybody(
    seen: Path,
) -> None:
    with pytest.raises(Misconfigured, match="pay"):
        Table.open(seen, private=["pay"])
    seen.write_text("area\n1\n")
    policy = seen.with_name("p.toml")
    policy.write_text(POLICY)
    with pytest.raises(Misconfigured, match="id"):
        Table.open(policy, outsider=True)


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (Column("x", Role.PRIVATE, values=(0, 1)), ColumnType.INTEGER),
        (Column("x", Role.PRIVATE, ColumnType.INTEGER, low=0, high=1), ColumnType.INTEGER),
        (Column("x", Role.PRIVATE, ColumnType.DECIMAL), ColumnType.DECIMAL),
        (Column("x", Role.PRIVATE, low=3, high=10), ColumnType.DOUBLE),
        (Column("x", Role.PRIVATE, values=(True, False)), ColumnType.BOOLEAN),
        (Column("x", Role.PRIVATE, values=("a",)), ColumnType.TEXT),
        (Column("x", Role.PRIVATE, values=(0, Decimal("0.5"))), ColumnType.DECIMAL),
        (Column("x", Role.PRIVATE, ColumnType.TEXT), ColumnType.TEXT),
        (Column("x", Role.PRIVATE), ColumnType.DOUBLE),
    ],
)
def test_values_tell_the_type_and_bounds_do_not(column: Column, type_: ColumnType) -> None:
    assert unseen(column).type is type_


@pytest.mark.parametrize(
    "column",
    [
        Column("born", Role.PRIVATE, ColumnType.DATE),
        Column("born", Role.PRIVATE, values=(date(2020, 1, 1),)),
    ],
)
def test_a_type_that_cannot_be_filled_in_is_refused(column: Column) -> None:
    with pytest.raises(Misconfigured, match="of type date cannot stand in"):
        unseen(column)
