"""Conditions in their usual form: of the same value, and the same for many ways to write them."""

from typing import Any

import pytest
from hypothesis import given
from query.predicates import predicates

from casemate.query.canonical import canonical
from casemate.query.expression import Expression
from casemate.query.interpret import evaluate
from casemate.query.sql import parse
from casemate.table.table import Table


def condition(sql: str, table: Table) -> Expression:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {sql}", table.policy)
    return aggregate.predicate


@given(predicates)
def test_the_usual_form_has_the_same_value_on_every_record(
    people: Table, records: list[dict[str, Any]], sql: str
) -> None:
    given_form = condition(sql, people)
    usual = canonical(given_form)
    for record in records:
        read: Any = lambda reference, row=record: row[reference.column.name]  # noqa: E731 - short
        assert evaluate(usual, read) == evaluate(given_form, read)


@given(predicates)
def test_the_usual_form_of_a_usual_form_is_itself(people: Table, sql: str) -> None:
    usual = canonical(condition(sql, people))
    assert canonical(usual) == usual


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("age > 33", "33 < age"),
        ("age > 33", "age >= 34"),
        ("age > 33", "NOT age <= 33"),
        ("age > 33 AND sex = 'f'", "'f' = sex AND 34 <= age"),
        ("sex = 'f' OR sex = 'm'", "sex = 'm' OR sex = 'f' OR sex = 'm'"),
        ("sex IN ('f', 'm')", "sex IN ('m', 'f', 'f')"),
        ("sex IN ('f')", "sex = 'f'"),
        ("NOT (age < 3 OR sex = 'f')", "age >= 3 AND sex <> 'f'"),
        ("NOT (NOT member)", "member"),
        ("age BETWEEN 3 AND 5", "age < 6 AND age > 2"),
    ],
)
def test_two_ways_to_write_a_condition_come_out_the_same(
    people: Table, one: str, other: str
) -> None:
    assert canonical(condition(one, people)) == canonical(condition(other, people))


@pytest.mark.parametrize(
    ("one", "other"),
    [("age > 33", "age > 34"), ("score > 3", "score >= 4"), ("age < 3 OR member", "age < 3")],
)
def test_two_different_conditions_stay_different(people: Table, one: str, other: str) -> None:
    assert canonical(condition(one, people)) != canonical(condition(other, people))
