"""A publication as equations: the truth satisfies every one of them."""

from fractions import Fraction
from typing import Any

import pytest
from query import golden_files

from casemate.published import Equations, equations, publication
from casemate.query.parse import Logged, Unread
from casemate.query.records import Category
from casemate.table import Table

ACCEPTED = golden_files.read("accepted.sql")


def read(table: Table, *sqls: str) -> Equations:
    found = publication([Logged(sql, 1) for sql in sqls], table.policy)
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


@pytest.mark.parametrize("golden", ACCEPTED, ids=str)
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
        Logged("SELECT MAX(bonus), MAX(income), SUM(income), 0 * SUM(income) FROM people", 4),
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
