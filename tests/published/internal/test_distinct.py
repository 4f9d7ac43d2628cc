"""COUNT(DISTINCT c) of a column that differs in every row counts rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from casemate.published import publication
from casemate.published.statements import counted_once, unique_columns
from casemate.query import Function
from casemate.query.parse import Logged, Unread, parse_statement
from casemate.table import Table

DISTINCT = "SELECT COUNT(DISTINCT id) FROM t WHERE status = 'C'"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    (tmp_path / "t.csv").write_text("id,area,gap,status\n1,5,,C\n2,5,7,D\n3,6,8,C\n")
    with Table.open(tmp_path / "t.csv", private=["status"]) as opened:
        yield opened


def test_a_column_is_unique_when_no_value_is_there_twice_or_missing(table: Table) -> None:
    assert unique_columns([Logged(DISTINCT, 1)], table.policy, table.source) == {"id"}


def test_a_log_that_counts_nothing_distinct_is_not_looked_up(table: Table) -> None:
    unread = Unread("SELECT DISTINCT", 2, "no statement")
    plain: list[Logged | Unread] = [Logged("SELECT COUNT(*) FROM t", 1), unread]
    assert unique_columns(plain, table.policy, table.source) == frozenset()


def test_private_columns_are_never_looked_at(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,1\n1,2\n")
    with Table.open(tmp_path / "t.csv", private=["b"]) as opened:
        log = [Logged("SELECT COUNT(DISTINCT b) FROM t", 1)]
        assert unique_columns(log, opened.policy, opened.source) == frozenset()


def test_counting_a_unique_column_becomes_counting_rows(table: Table) -> None:
    statement = parse_statement(DISTINCT, table.policy)
    (counted,) = counted_once(statement, {"id"}).selects[0].aggregates
    assert counted.function is Function.COUNT and counted.argument is None


@pytest.mark.parametrize("column", ["area", "gap"])
def test_counting_another_column_stays_what_it_is(column: str, table: Table) -> None:
    statement = parse_statement(f"SELECT COUNT(DISTINCT {column}) FROM t", table.policy)
    assert counted_once(statement, {"id"}) == statement


def test_only_so_does_a_publication_use_it(table: Table) -> None:
    columns = (
        replace(each, values=("C", "D")) if each.name == "status" else each
        for each in table.policy.columns
    )
    policy = replace(table.policy, columns=tuple(columns))
    assert publication([Logged(DISTINCT, 1)], policy).columns == ()
    assert len(publication([Logged(DISTINCT, 1)], policy, unique={"id"}).columns) == 1
