"""What a statement tells besides its numbers, and what of it cannot be read."""

import pytest

from casemate.published import Equations, Publication, equations, publication
from casemate.query.parse import Logged
from casemate.table import Table


def read(table: Table, *log: str) -> Publication:
    return publication([Logged(sql, 1) for sql in log], table.policy)


def rows(table: Table, sql: str) -> Equations:
    found = read(table, sql)
    assert found.refused == ()
    return equations(found.columns, table.policy, table.source, found.there)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING SUM(income) > 3", "HAVING"),
        ("SELECT diagnosis, COUNT(*) FROM people GROUP BY 1 HAVING COUNT(*) > 3", "HAVING"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY SUM(income)", "ORDER BY"),
        ("SELECT sex, SUM(income) FROM people GROUP BY sex ORDER BY 2 LIMIT 1", "LIMIT"),
        (
            "SELECT SUM(age) FILTER (WHERE diagnosis = 'flu')"
            " - SUM(age) FILTER (WHERE diagnosis = 'gout') FROM people",
            "several secrets decide whether it is NULL",
        ),
        ("SELECT COALESCE(SUM(age), 7) FROM people WHERE diagnosis = 'flu'", "COALESCE hides"),
        ("SELECT SUM(income) / SUM(bonus) FROM people", "secret that is not a count"),
        ("SELECT AVG(bonus) + SUM(income) FROM people", "an average of secretly many"),
        ("SELECT ROUND(ROUND(AVG(income), 2), 1) FROM people", "linear combination"),
        ("SELECT COALESCE(SUM(income), MAX(age)) FROM people", "linear combination"),
        ("SELECT MEDIAN(bonus) FROM people", "not linear"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(
    sql: str, reason: str, people: Table
) -> None:
    (refused,) = read(people, sql).refused
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
    assert read(people, sql).refused == ()


def test_a_row_that_is_there_has_somebody_in_it_and_one_that_is_not_has_nobody(
    people: Table,
) -> None:
    """Three values could be shown; sums of ages do not say how many people are behind them."""
    shown = rows(people, "SELECT diagnosis, SUM(age) FROM people WHERE age = 64 GROUP BY 1")
    unnamed = [i for i, place in enumerate(shown.places) if place.column == ""]
    assert len(unnamed) == 3
    assert all(shown.high[i] in (None, shown.low[i]) for i in unnamed)
    there = {place.key for i, place in enumerate(shown.places) if shown.high[i] is None}
    assert there == {place.key for place in shown.places if place.column == "sum"}


def test_a_count_needs_no_row_to_say_that_somebody_is_in_it(people: Table) -> None:
    shown = rows(people, "SELECT diagnosis, COUNT(*) FROM people GROUP BY 1")
    assert {place.column for place in shown.places} == {"count"}


def test_a_sum_that_is_null_says_that_nobody_is_behind_it(people: Table) -> None:
    """Of whoever is 200 that is no news; of those who are 64 somebody might have gout."""
    sql = "SELECT SUM(age) FROM people WHERE diagnosis = '{}' AND age = {}"
    assert rows(people, sql.format("gout", 200)).system.rows == 0
    nobody, somebody = (rows(people, sql.format(value, 64)) for value in ("gout", "flu"))
    assert (nobody.system.rows, nobody.low) == (1, nobody.high)
    assert list(somebody.low[1:]) == [1]
    assert list(somebody.high[1:]) == [None]


def test_a_sum_of_nobody_that_is_shown_as_0_is_an_equation(people: Table) -> None:
    sql = "SELECT COALESCE(SUM(age), 0) FROM people WHERE diagnosis = 'gout' AND age = {}"
    assert rows(people, sql.format(200)).system.columns == 0
    shown = rows(people, sql.format(64))
    assert (shown.system.rows, shown.low) == (1, shown.high)
    assert shown.system.columns > 0


def test_an_average_of_secretly_many_is_two_inequalities_and_a_count(people: Table) -> None:
    shown = rows(people, "SELECT AVG(age) FROM people WHERE diagnosis = 'none'")
    assert shown.high == (None, None, None)
    assert list(shown.low[2:]) == [1]
