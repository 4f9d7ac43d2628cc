"""Aggregates as linear forms in what is secret."""

import pytest

from casemate.query.linear import Category, Unknown, counting, linear_form
from casemate.query.sql import parse
from casemate.query.text import written
from casemate.table.table import Table

Shown = list[tuple[Unknown | None, str, str]]


def form(sql: str, table: Table) -> Shown | None:
    (aggregate,) = parse(sql, table.policy)
    terms = linear_form(aggregate)
    if terms is None:
        return None
    return [(each.unknown, written(each.coefficient), written(each.predicate)) for each in terms]


INCOME = Unknown("income")
BONUS = Unknown("bonus")


def diagnosis(value: str) -> Unknown:
    return Unknown("diagnosis", Category(value))


def test_a_private_number_is_one_unknown_with_a_public_coefficient(people: Table) -> None:
    assert form("SELECT SUM(income)", people) == [(INCOME, "1", "true")]
    assert form("SELECT SUM(2 * income)", people) == [(INCOME, "2", "true")]
    assert form("SELECT SUM(weight * income) WHERE age > 3", people) == [
        (INCOME, '"weight"', '(("age" > 3) and (not ("weight" is null)))')
    ]


def test_what_is_added_to_it_is_public(people: Table) -> None:
    assert form("SELECT SUM(income * 2 + 1)", people) == [
        (INCOME, "2", "true"),
        (None, "1", "true"),
    ]


def test_a_condition_on_a_private_category_is_a_sum_of_its_values(people: Table) -> None:
    assert form("SELECT COUNT(*) WHERE diagnosis = 'flu'", people) == [
        (diagnosis("flu"), "1", "true")
    ]
    assert form("SELECT COUNT(*) WHERE diagnosis IN ('flu', 'gout') AND age > 3", people) == [
        (diagnosis("flu"), "1", '("age" > 3)'),
        (diagnosis("gout"), "1", '("age" > 3)'),
    ]
    assert form("SELECT COUNT(*) WHERE diagnosis = 'none' OR age > 3", people) == [
        (diagnosis("none"), "1", "true"),
        (diagnosis("flu"), "1", '("age" > 3)'),
        (diagnosis("gout"), "1", '("age" > 3)'),
    ]


def test_grouping_by_a_private_category_puts_each_value_in_its_cell(people: Table) -> None:
    (aggregate,) = parse("SELECT diagnosis, SUM(weight) GROUP BY 1", people.policy)
    terms = linear_form(aggregate)
    assert terms is not None
    assert [(each.unknown, [written(key) for key in each.keys]) for each in terms] == [
        (diagnosis("none"), ["'none'"]),
        (diagnosis("flu"), ["'flu'"]),
        (diagnosis("gout"), ["'gout'"]),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) WHERE income > 500",
        "SELECT SUM(income * income)",
        "SELECT SUM(income) WHERE diagnosis = 'flu'",
        "SELECT SUM(round(bonus))",
        "SELECT SUM(income / 2)",
        "SELECT COUNT(bonus)",
        "SELECT SUM(bonus + 1)",
        "SELECT MIN(bonus)",
        "SELECT COUNT(DISTINCT age)",
        "SELECT SUM(CASE WHEN income > 3 THEN 1 ELSE 0 END)",
    ],
)
def test_what_is_not_linear_is_said_not_to_be(sql: str, people: Table) -> None:
    assert form(sql, people) is None


def test_a_missing_number_counts_as_nothing_in_a_sum(people: Table) -> None:
    assert form("SELECT SUM(bonus)", people) == [(BONUS, "1", "true")]


def test_the_count_below_an_average_is_public_unless_the_number_may_be_missing(
    people: Table,
) -> None:
    (income,) = parse("SELECT AVG(income) WHERE age > 3", people.policy)
    terms = linear_form(counting(income))
    assert terms is not None
    assert [each.unknown for each in terms] == [None]
    (bonus,) = parse("SELECT AVG(bonus)", people.policy)
    assert linear_form(counting(bonus)) is None
