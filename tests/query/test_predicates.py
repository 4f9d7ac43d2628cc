"""Random predicates: parsed, and then decided in four ways that must agree."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from query import slow
from query.internal.engines.test_golden import assert_adds_up
from query.predicates import predicates

from casemate.errors import Unsupported
from casemate.query import Aggregate
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.query.records import lineage, membership
from casemate.table import Table


def counting(predicate: str, table: Table) -> Aggregate:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {predicate}", table.policy)
    return aggregate


def slowly(aggregate: Aggregate, records: list[dict[str, Any]]) -> list[int]:
    return [position for position, _ in slow.selected(aggregate, records)]


def assert_agree(batch: list[str], people: Table, records: list[dict[str, Any]]) -> None:
    """In lineage a category is replaced by its values, a compared number by what cuts change."""
    aggregates = [counting(each, people) for each in batch]
    expected = [slowly(each, records) for each in aggregates]
    found = membership(aggregates, people.source)
    assert found.records.tolist() == [each["id"] for each in records]
    selected = [found.mask(i).nonzero()[0].tolist() for i in range(len(batch))]
    assert selected == expected
    assert found.sizes().tolist() == list(map(len, expected))
    assert [cells[()] for cells in answers(aggregates, people.source)] == list(map(len, expected))
    assert_adds_up(aggregates, lineage(aggregates, people.source), records)


@given(st.lists(predicates, min_size=1, max_size=5))
def test_membership_answers_and_lineage_say_what_the_slow_interpreter_says(
    people: Table, records: list[dict[str, Any]], batch: list[str]
) -> None:
    assert_agree(batch, people, records)


MANY = [f"age >= {i % 40} AND weight <> {i % 7}" for i in range(200)]
TOO_WIDE = " AND ".join(f"(age = {i} OR weight <> {i})" for i in range(9))


@pytest.mark.parametrize("batch", [MANY, [TOO_WIDE]], ids=["more than a word has bits", "a union"])
def test_so_they_do_of_many_predicates_and_of_a_union_too_wide_to_expand(
    people: Table, records: list[dict[str, Any]], batch: list[str]
) -> None:
    assert_agree(batch, people, records)


def test_a_record_in_several_cells_at_once_is_refused(people: Table) -> None:
    sql = "SELECT offer, COUNT(*) FROM people p JOIN offers o ON p.area = o.area GROUP BY 1"
    with pytest.raises(Unsupported, match="several rows"):
        membership(parse(sql, people.policy), people.source)


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
    assert ours.records[ours.mask(0)].tolist() == selected
    try:
        query = f"SELECT id FROM people WHERE {predicate} ORDER BY id"
        theirs = connection.execute(query.encode()).fetchall()
    except psycopg.errors.DivisionByZero:
        return  # PostgreSQL raises where we have NULL
    assert [row[0] for row in theirs] == selected
