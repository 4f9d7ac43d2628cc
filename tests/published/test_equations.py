"""A publication as equations: what is read, what is refused, and that the truth satisfies all."""

from fractions import Fraction
from typing import Any

import pytest
from query import golden_files

from casemate.published import Equations, Publication, equations, publication
from casemate.query.parse import Logged, Unread
from casemate.query.records import Category
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")
WEIGHTED = "SELECT SUM(CASE WHEN age > 30 THEN 0.5 ELSE 1.25 END * income) FROM people"


def published(table: Table, *sqls: str) -> Publication:
    return publication([Logged(sql, 1) for sql in sqls], table.policy)


def read(table: Table, *sqls: str) -> Equations:
    found = published(table, *sqls)
    return equations(found.columns, table.policy, table.source, found.there)


def assert_true(found: Equations, records: list[dict[str, Any]]) -> None:
    truth = [
        found.unknowns[unknown].of(records[record][found.unknowns[unknown].column])
        for record, unknown in zip(found.record, found.unknown, strict=True)
    ]
    totals = [Fraction(0)] * found.system.rows
    entries = zip(found.system.row, found.system.column, found.system.value, strict=True)
    for row, column, value in entries:
        totals[row] += int(value) * truth[column]
    for total, low, high in zip(totals, found.low, found.high, strict=True):
        slack = Fraction(1, 10**6)  # sums of doubles are not exact
        assert low - slack <= total
        assert high is None or total <= high + slack


@pytest.mark.parametrize("golden", [*ACCEPTED, golden_files.Golden(WEIGHTED, ())], ids=str)
def test_the_truth_satisfies_every_equation(
    golden: golden_files.Golden, people: Table, records: list[dict[str, Any]]
) -> None:
    assert_true(read(people, golden.sql), records)


def test_the_documents_three_sums_are_three_equations() -> None:
    with Table.open("hospital") as table:
        found = read(
            table,
            'SELECT SUM("Blood sugar") FROM t',
            "SELECT SUM(\"Blood sugar\") FROM t WHERE Gender = 'Female'",
            "SELECT SUM(\"Blood sugar\") FROM t WHERE ZIP / 1000 IN (32, 33) AND Gender = 'Male'",
        )
    assert found.system.dense() == [[1, 1, 1, 1, 1, 1], [0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 0]]
    assert found.low == found.high == (Fraction("32.1"), Fraction("15.5"), Fraction("11.4"))
    assert found.system.right == found.low


def test_a_rounded_average_is_known_to_half_a_unit() -> None:
    with Table.open("hospital") as table:
        found = read(table, "SELECT ROUND(AVG(\"Blood sugar\"), 1) FROM t WHERE Gender = 'Male'")
    assert found.system.value.tolist() == [1, 1, 1]
    assert (found.low, found.high) == ((Fraction("16.35"),), (Fraction("16.65"),))
    assert found.system.right is None


def test_an_integer_division_is_known_to_one_unit(people: Table) -> None:
    found = read(people, "SELECT SUM(income) / COUNT(*) FROM people")
    assert found.high[0] == found.low[0] + 60


def test_the_last_value_of_a_category_is_one_less_the_others(people: Table) -> None:
    found = read(people, "SELECT COUNT(*) FROM people WHERE diagnosis = 'gout' AND age = 30")
    assert set(found.system.value.tolist()) == {-1}
    named = {found.unknowns[each].category for each in found.unknown}
    assert named == {Category("none"), Category("flu")}


def test_a_cell_of_a_private_key_that_is_not_shown_is_known_to_be_empty(people: Table) -> None:
    found = read(people, "SELECT diagnosis, COUNT(*) FROM people WHERE age = 64 GROUP BY 1")
    assert len(found.places) == 3


def test_what_cannot_be_read_is_named_and_the_rest_is_audited(people: Table) -> None:
    log: list[Logged | Unread] = [
        Logged("SELECT SUM(income) FROM people", 1),
        Logged("SELECT SUM(salary) FROM people", 2),
        Unread("SELECT COUNT(*)", 3, "the answer is not a number"),
        Logged("SELECT MAX(bonus), MAX(bonus * 2), SUM(income), 0 * SUM(income) FROM people", 4),
        Logged("SELECT MAX(age) FROM people", 5),
        Logged("SELECT SUM(income) / SUM(bonus) FROM people", 6),
        Logged("SELECT sex, SUM(income) FROM people GROUP BY sex HAVING SUM(income) > 3", 7),
    ]
    found = publication(log, people.policy)
    assert found.queries == 7
    assert [each.query for each in found.columns] == [1, 4]
    assert [(each.query, each.output.name) for each in found.ordered] == [(4, "max")]
    assert [(each.query, each.reason) for each in found.refused] == [
        (2, "there is no column salary"),
        (3, "the answer is not a number"),
        (4, "the column max: it is not linear in what is secret"),
        (6, "the column ?column?: it divides by something secret that is not a count"),
        (7, "HAVING decides by something secret"),
    ]


# What a statement tells besides its numbers, and what of it cannot be read -----------------------


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT diagnosis, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 3", "HAVING"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY SUM(income)", "ORDER BY"),
        ("SELECT sex, SUM(income) FROM people GROUP BY sex ORDER BY 2 LIMIT 1", "LIMIT"),
        (
            "SELECT SUM(age) FILTER (WHERE diagnosis = 'flu')"
            " - SUM(age) FILTER (WHERE diagnosis = 'gout') FROM people",
            "several secrets decide whether it is NULL",
        ),
        ("SELECT COALESCE(SUM(age), 7) FROM people WHERE diagnosis = 'flu'", "COALESCE hides"),
        ("SELECT AVG(bonus) + SUM(income) FROM people", "an average of secretly many"),
        ("SELECT ROUND(ROUND(AVG(income), 2), 1) FROM people", "linear combination"),
        ("SELECT COALESCE(SUM(income), MAX(age)) FROM people", "linear combination"),
        ("SELECT MEDIAN(bonus + income) FROM people", "not linear"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    sql: str, reason: str, people: Table
) -> None:
    (refused,) = published(people, sql).refused
    assert reason in refused.reason


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sex, SUM(income) FROM people GROUP BY sex ORDER BY 2, 1",
        "SELECT SUM(income) FROM people LIMIT 1",
        "SELECT diagnosis, SUM(age) FROM people GROUP BY 1 HAVING diagnosis <> 'flu'",
        "SELECT COALESCE(SUM(age), 0) FROM people WHERE diagnosis = 'flu'",
        "SELECT AVG(age) FROM people WHERE diagnosis = 'flu'",
        "SELECT SUM(age) / COUNT(age) FROM people WHERE diagnosis = 'flu'",
        "SELECT ROUND(AVG(bonus), 1), COUNT(bonus) FROM people",
    ],
)
def test_what_can_be_read_is(sql: str, people: Table) -> None:
    assert published(people, sql).refused == ()


def test_a_row_that_is_there_has_somebody_in_it_and_one_that_is_not_has_nobody(
    people: Table,
) -> None:
    """Three values could be shown; sums of ages do not say how many people are behind them."""
    shown = read(people, "SELECT diagnosis, SUM(age) FROM people WHERE age = 64 GROUP BY 1")
    unnamed = [i for i, place in enumerate(shown.places) if place.column == ""]
    assert len(unnamed) == 3
    assert all(shown.high[i] in (None, shown.low[i]) for i in unnamed)
    there = {place.key for i, place in enumerate(shown.places) if shown.high[i] is None}
    assert there == {place.key for place in shown.places if place.column == "sum"}


def test_a_count_needs_no_row_to_say_that_somebody_is_in_it(people: Table) -> None:
    shown = read(people, "SELECT diagnosis, COUNT(*) FROM people GROUP BY 1")
    assert {place.column for place in shown.places} == {"count"}


def test_a_sum_that_is_null_says_that_nobody_is_behind_it(people: Table) -> None:
    """Of whoever is 200 that is no news; of those who are 64 somebody might have gout."""
    sql = "SELECT SUM(age) FROM people WHERE diagnosis = '{}' AND age = {}"
    assert read(people, sql.format("gout", 200)).system.rows == 0
    nobody, somebody = (read(people, sql.format(value, 64)) for value in ("gout", "flu"))
    assert (nobody.system.rows, nobody.low) == (1, nobody.high)
    assert list(somebody.low[1:]) == [1]
    assert list(somebody.high[1:]) == [None]


def test_a_sum_of_nobody_that_is_shown_as_0_is_an_equation(people: Table) -> None:
    sql = "SELECT COALESCE(SUM(age), 0) FROM people WHERE diagnosis = 'gout' AND age = {}"
    assert read(people, sql.format(200)).system.columns == 0
    shown = read(people, sql.format(64))
    assert (shown.system.rows, shown.low) == (1, shown.high)
    assert shown.system.columns > 0


def test_an_average_of_secretly_many_is_two_inequalities_and_a_count(people: Table) -> None:
    shown = read(people, "SELECT AVG(age) FROM people WHERE diagnosis = 'none'")
    assert shown.high == (None, None, None)
    assert list(shown.low[2:]) == [1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT income, COUNT(*) - COUNT(*) FROM people GROUP BY income",
        "SELECT income, COUNT(*) * 0 + 1 FROM people GROUP BY income",
        "SELECT 0 * SUM(age) FROM people WHERE income > 1000",
        "SELECT SUM(age) FILTER (WHERE income > 1000) * 0 FROM people",
        "SELECT MAX(age) - MAX(age) FROM people WHERE income > 1000",
    ],
)
def test_a_sum_that_is_taken_away_again_still_tells_by_its_row_or_by_null(
    sql: str, people: Table
) -> None:
    (refused,) = published(people, sql).refused
    assert "takes all of a sum away again" in refused.reason
