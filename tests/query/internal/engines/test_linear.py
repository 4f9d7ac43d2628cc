"""Aggregates as linear forms in what is secret."""

from fractions import Fraction

import pytest

from casemate.query.language.expression import expression_text
from casemate.query.parse import parse
from casemate.query.records import Category, Cut, Unknown, counting, linear_form
from casemate.table import Table

Shown = list[tuple[Unknown | None, str, str]]


def form(sql: str, table: Table) -> list[tuple[Unknown | None, str, str, list[str]]] | None:
    (aggregate,) = parse(sql, table.policy)
    terms = linear_form(aggregate)
    if terms is None:
        return None
    return [
        (
            *(each.unknown, expression_text(each.coefficient), expression_text(each.predicate)),
            [expression_text(key) for key in each.keys],
        )
        for each in terms
    ]


INCOME, BONUS = Unknown("income"), Unknown("bonus")
PRESENT = Unknown("bonus", Cut(None))
NONE, FLU, GOUT = (Unknown("diagnosis", Category(each)) for each in ("none", "flu", "gout"))
ELDER = '("age" > 3)'
WEIGHED = '(not ("weight" is null))'


def income(value: int) -> Unknown:
    return Unknown("income", Cut(Fraction(value)))


def bonus(value: str, strict: bool = False) -> Unknown:
    return Unknown("bonus", Cut(Fraction(value), strict))


NUMBERS: list[tuple[str, Shown]] = [
    ("SELECT SUM(income)", [(INCOME, "1", "true")]),
    ("SELECT SUM(2 * income)", [(INCOME, "2", "true")]),
    (
        "SELECT SUM(weight * income) WHERE age > 3",
        [(INCOME, '"weight"', f"({ELDER} and {WEIGHED})")],
    ),
    ("SELECT SUM(income * 2 + 1)", [(INCOME, "2", "true"), (None, "1", "true")]),
    ("SELECT SUM(bonus)", [(BONUS, "1", "true")]),
    ("SELECT SUM(bonus + 1)", [(BONUS, "1", "true"), (PRESENT, "1", "true")]),
    ("SELECT COUNT(bonus)", [(PRESENT, "1", "true")]),
]
"""A private number has a public coefficient; a missing one counts as nothing."""

CATEGORIES: list[tuple[str, Shown]] = [
    ("SELECT COUNT(*) WHERE diagnosis = 'flu'", [(FLU, "1", "true")]),
    (
        "SELECT COUNT(*) WHERE diagnosis IN ('flu', 'gout') AND age > 3",
        [(FLU, "1", ELDER), (GOUT, "1", ELDER)],
    ),
    (
        "SELECT COUNT(*) WHERE diagnosis = 'none' OR age > 3",
        [(NONE, "1", "true"), (FLU, "1", ELDER), (GOUT, "1", ELDER)],
    ),
]
"""A condition on a private category is a sum of its values."""

COMPARISONS: list[tuple[str, Shown]] = [
    ("income > 500", [(income(501), "1", "true")]),
    ("income >= 500.5 AND age > 3", [(income(501), "1", ELDER)]),
    ("500 > income", [(None, "1", "true"), (income(500), "-1", "true")]),
    ("income = 500", [(income(500), "1", "true"), (income(501), "-1", "true")]),
    ("income BETWEEN 3 AND 5", [(income(3), "1", "true"), (income(6), "-1", "true")]),
    ("100 - 2 * income < 1", [(income(50), "1", "true")]),
    ("income IS NULL", []),
    ("bonus IS NOT NULL", [(PRESENT, "1", "true")]),
    ("bonus > 0.5", [(bonus("0.5", strict=True), "1", "true")]),
    ("bonus < 0.5", [(PRESENT, "1", "true"), (bonus("0.5"), "-1", "true")]),
]
"""Whole numbers are past 500 from 501 on; others are only known to be more than it."""

COMPARED = [(f"SELECT COUNT(*) WHERE {condition}", terms) for condition, terms in COMPARISONS]
CHOSEN: Shown = [(None, "1", "true"), (income(4), '"weight"', WEIGHED), (income(4), "-1", "true")]
CHOICE = ("SELECT SUM(CASE WHEN income > 3 THEN weight ELSE 1 END)", CHOSEN)


@pytest.mark.parametrize(("sql", "terms"), [*NUMBERS, *CATEGORIES, *COMPARED, CHOICE])
def test_an_aggregate_is_a_sum_of_these_terms(sql: str, terms: Shown, people: Table) -> None:
    assert form(sql, people) == [(*term, []) for term in terms]


def test_grouping_by_something_private_puts_each_value_in_its_cell(people: Table) -> None:
    """And what changes at a cut is taken from the cell before it."""
    assert form("SELECT diagnosis, COUNT(*) GROUP BY 1", people) == [
        (NONE, "1", "true", ["'none'"]),
        (FLU, "1", "true", ["'flu'"]),
        (GOUT, "1", "true", ["'gout'"]),
    ]
    assert form("SELECT income > 3, COUNT(*) GROUP BY 1", people) == [
        (None, "1", "true", ["false"]),
        (income(4), "1", "true", ["true"]),
        (income(4), "-1", "true", ["false"]),
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


@pytest.mark.parametrize(
    ("sql", "secret"),
    [
        ("SELECT AVG(income) WHERE age > 3", None),
        ("SELECT AVG(CASE WHEN diagnosis = 'flu' THEN 1 ELSE 0 END)", None),
        ("SELECT AVG(CASE WHEN income > 3 THEN 1 ELSE 0 END)", None),
        ("SELECT AVG(bonus)", PRESENT),
        ("SELECT AVG(age) WHERE diagnosis = 'flu'", FLU),
    ],
)
def test_the_count_below_an_average_is_public_unless_a_secret_decides_it(
    sql: str, secret: Unknown | None, people: Table
) -> None:
    (aggregate,) = parse(sql, people.policy)
    terms = linear_form(counting(aggregate))
    assert terms is not None
    assert [each.unknown for each in terms] == [secret]
