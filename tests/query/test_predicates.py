"""Random predicates: parsed, and then decided in four ways that must agree."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from query import slow
from query.predicates import predicates

from casemate.query import Aggregate
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.query.records import lineage, membership
from casemate.table import Table

batches = st.lists(predicates, min_size=1, max_size=5)


def counting(predicate: str, table: Table) -> Aggregate:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {predicate}", table.policy)
    return aggregate


def slowly(aggregate: Aggregate, records: list[dict[str, Any]]) -> list[int]:
    return [position for position, _ in slow.selected(aggregate, records)]


@given(batches)
def test_membership_is_what_the_slow_interpreter_says(
    people: Table, records: list[dict[str, Any]], batch: list[str]
) -> None:
    aggregates = [counting(each, people) for each in batch]
    found = membership(aggregates, people.source)
    assert found.records.tolist() == [each["id"] for each in records]
    for index, aggregate in enumerate(aggregates):
        assert found.selected(index).nonzero()[0].tolist() == slowly(aggregate, records)
    assert found.sizes().tolist() == [len(slowly(each, records)) for each in aggregates]


@given(batches)
def test_duckdb_counts_what_the_slow_interpreter_selects(
    people: Table, records: list[dict[str, Any]], batch: list[str]
) -> None:
    aggregates = [counting(each, people) for each in batch]
    counted = [cells[()] for cells in answers(aggregates, people.source)]
    assert counted == [len(slowly(each, records)) for each in aggregates]


@given(predicates)
def test_lineage_counts_what_the_slow_interpreter_selects(
    people: Table, records: list[dict[str, Any]], predicate: str
) -> None:
    """A category is replaced by its values, a compared number by what changes at each cut."""
    aggregate = counting(predicate, people)
    found = lineage([aggregate], people.source)
    total = 0
    for record, unknown, coefficient in zip(
        found.record, found.unknown, found.coefficient, strict=True
    ):
        secret = found.unknowns[unknown] if unknown >= 0 else None
        total += coefficient * (1 if secret is None else secret.of(records[record][secret.column]))
    assert found.opaque or total == len(slowly(aggregate, records))


@pytest.fixture(scope="module")
def connection(people_in_postgres: Table, people_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(people_url, autocommit=True) as opened:
        yield opened


@pytest.mark.postgres
@given(predicates)
def test_postgres_selects_the_same_by_its_own_reading_and_by_ours(
    people_in_postgres: Table,
    connection: psycopg.Connection[Any],
    records: list[dict[str, Any]],
    predicate: str,
) -> None:
    aggregate = counting(predicate, people_in_postgres)
    selected = [records[position]["id"] for position in slowly(aggregate, records)]
    ours = membership([aggregate], people_in_postgres.source)
    assert ours.records[ours.selected(0)].tolist() == selected
    try:
        query = f"SELECT id FROM people WHERE {predicate} ORDER BY id"
        theirs = connection.execute(query.encode()).fetchall()
    except psycopg.errors.DivisionByZero:
        return  # PostgreSQL raises where we have NULL
    assert [row[0] for row in theirs] == selected
