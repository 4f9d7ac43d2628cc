"""COUNT(DISTINCT c) of a column that differs in every row counts rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from casemate.published import publication
from casemate.published.statements import counted_once, unique_columns
from casemate.query import Aggregate, Function
from casemate.query.parse import Logged, Unread, parse_statement
from casemate.table import Table

DISTINCT = "SELECT COUNT(DISTINCT id) FROM t WHERE status = 'C'"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    text = "id,area,gap,own,status\n1,5,,7,C\n2,5,7,8,D\n3,6,8,9,C\n"
    (tmp_path / "t.csv").write_text(text)
    with Table.open(tmp_path / "t.csv", private=["own", "status"]) as opened:
        yield opened


def test_a_public_column_is_unique_when_no_value_is_there_twice_or_missing(table: Table) -> None:
    assert unique_columns([Logged(DISTINCT, 1)], table.policy, table.source) == {"id"}


def test_a_log_that_counts_nothing_distinct_is_not_looked_up(table: Table) -> None:
    unread = Unread("SELECT DISTINCT", 2, "no statement")
    plain: list[Logged | Unread] = [Logged("SELECT COUNT(*) FROM t", 1), unread]
    assert unique_columns(plain, table.policy, table.source) == frozenset()


@pytest.mark.parametrize("column", ["id", "area", "gap"])
def test_counting_a_unique_column_becomes_counting_rows(column: str, table: Table) -> None:
    statement = parse_statement(f"SELECT COUNT(DISTINCT {column}) FROM t", table.policy)
    found = counted_once(statement, {"id"})
    assert (found == statement) == (column != "id")
    if column == "id":
        assert found.aggregates == [Aggregate(Function.COUNT, None)]


def test_only_so_does_a_publication_use_it(table: Table) -> None:
    columns = (
        replace(each, values=("C", "D")) if each.name == "status" else each
        for each in table.policy.columns
    )
    policy = replace(table.policy, columns=tuple(columns))
    assert publication([Logged(DISTINCT, 1)], policy).columns == ()
    assert len(publication([Logged(DISTINCT, 1)], policy, unique={"id"}).columns) == 1
