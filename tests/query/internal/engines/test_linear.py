"""Aggregates as linear forms in what is secret."""

from fractions import Fraction

import pytest

from casemate.query.language.expression import expression_text
from casemate.query.parse import parse
from casemate.query.records import Category, Cut, Unknown, counting, linear_form
from casemate.table import Table

Shown = list[tuple[Unknown | None, str, str]]


def form(sql: str, table: Table) -> Shown | None:
    (aggregate,) = parse(sql, table.policy)
    terms = linear_form(aggregate)
    if terms is None:
        return None
    return [
        (each.unknown, expression_text(each.coefficient), expression_text(each.predicate))
        for each in terms
    ]


INCOME = Unknown("income")
BONUS = Unknown("bonus")
PRESENT = Unknown("bonus", Cut(None))


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
    assert [(each.unknown, [expression_text(key) for key in each.keys]) for each in terms] == [
        (diagnosis("none"), ["'none'"]),
        (diagnosis("flu"), ["'flu'"]),
        (diagnosis("gout"), ["'gout'"]),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(income * income)",
        "SELECT SUM(income) WHERE diagnosis = 'flu'",
        "SELECT SUM(round(bonus))",
        "SELECT SUM(income / 2)",
        "SELECT MIN(bonus)",
        "SELECT COUNT(DISTINCT age)",
        "SELECT SUM(income) WHERE income > 500",
        "SELECT COUNT(*) WHERE income > age",
        "SELECT COUNT(*) WHERE income > 500 AND diagnosis = 'flu'",
        "SELECT COUNT(*) WHERE income / 2 > 500",
        "SELECT COUNT(*) WHERE income * CAST(0.1 AS float8) > 500",
        "SELECT COUNT(*) WHERE abs(income) > 500",
        "SELECT COUNT(*) WHERE 500 IN (income, 3)",
        "SELECT MAX(weight) WHERE income > 500",
    ],
)
def test_what_is_not_linear_is_said_not_to_be(sql: str, people: Table) -> None:
    assert form(sql, people) is None


def income(value: int) -> Unknown:
    return Unknown("income", Cut(Fraction(value)))


def bonus(value: str, strict: bool = False) -> Unknown:
    return Unknown("bonus", Cut(Fraction(value), strict))


@pytest.mark.parametrize(
    ("condition", "terms"),
    [
        ("income > 500", [(income(501), "1", "true")]),
        ("income >= 500.5 AND age > 3", [(income(501), "1", '("age" > 3)')]),
        ("500 > income", [(None, "1", "true"), (income(500), "-1", "true")]),
        ("income = 500", [(income(500), "1", "true"), (income(501), "-1", "true")]),
        ("income BETWEEN 3 AND 5", [(income(3), "1", "true"), (income(6), "-1", "true")]),
        ("100 - 2 * income < 1", [(income(50), "1", "true")]),
        ("income IS NULL", []),
        ("bonus IS NOT NULL", [(PRESENT, "1", "true")]),
        ("bonus > 0.5", [(bonus("0.5", strict=True), "1", "true")]),
        ("bonus < 0.5", [(PRESENT, "1", "true"), (bonus("0.5"), "-1", "true")]),
    ],
)
def test_a_comparison_is_one_unknown_for_each_constant(
    condition: str, terms: Shown, people: Table
) -> None:
    """Whole numbers are past 500 from 501 on; others are only known to be more than it."""
    assert form(f"SELECT COUNT(*) WHERE {condition}", people) == terms


def test_what_a_comparison_decides_changes_at_the_cut(people: Table) -> None:
    assert form("SELECT SUM(CASE WHEN income > 3 THEN weight ELSE 1 END)", people) == [
        (None, "1", "true"),
        (income(4), '"weight"', '(not ("weight" is null))'),
        (income(4), "-1", "true"),
    ]
    (aggregate,) = parse("SELECT income > 3, COUNT(*) GROUP BY 1", people.policy)
    terms = linear_form(aggregate)
    assert terms is not None
    assert [
        (each.unknown, expression_text(each.coefficient), expression_text(each.keys[0]))
        for each in terms
    ] == [
        (None, "1", "false"),
        (income(4), "1", "true"),
        (income(4), "-1", "false"),
    ]


def test_a_missing_number_counts_as_nothing_in_a_sum(people: Table) -> None:
    assert form("SELECT SUM(bonus)", people) == [(BONUS, "1", "true")]
    assert form("SELECT SUM(bonus + 1)", people) == [(BONUS, "1", "true"), (PRESENT, "1", "true")]
    assert form("SELECT COUNT(bonus)", people) == [(PRESENT, "1", "true")]


@pytest.mark.parametrize(
    ("sql", "secret"),
    [
        ("SELECT AVG(income) WHERE age > 3", None),
        ("SELECT AVG(CASE WHEN diagnosis = 'flu' THEN 1 ELSE 0 END)", None),
        ("SELECT AVG(CASE WHEN income > 3 THEN 1 ELSE 0 END)", None),
        ("SELECT AVG(bonus)", PRESENT),
        ("SELECT AVG(age) WHERE diagnosis = 'flu'", diagnosis("flu")),
    ],
)
def test_the_count_below_an_average_is_public_unless_a_secret_decides_it(
    sql: str, secret: Unknown | None, people: Table
) -> None:
    (aggregate,) = parse(sql, people.policy)
    terms = linear_form(counting(aggregate))
    assert terms is not None
    assert [each.unknown for each in terms] == [secret]
