"""Equations out of predicates: decided again each pass, or stored, they are the same equations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query import slow
from query.predicates import predicates

from casemate.attack.solvers.least_squares import least_squares
from casemate.exact import Floats, Passes, Rows, System
from casemate.published import fitting
from casemate.published import predicates as module
from casemate.published.predicates import BitRows, Predicates, RangeRows
from casemate.query import Aggregate, Function
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.query.sketch import Selection
from casemate.table import Table

GROUPED = [
    "SELECT sex, SUM(income) FROM people GROUP BY 1",
    "SELECT area, member, age / 10, SUM(income) FROM people WHERE weight > 2 GROUP BY 1, 2, 3",
]


def selection(predicate: str, table: Table) -> Selection:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {predicate}", table.policy)
    return Selection(aggregate.predicate)


def cells(sql: str, table: Table) -> list[Selection]:
    (aggregate,) = parse(sql, table.policy)
    counted = Aggregate(Function.COUNT, None, aggregate.predicate, aggregate.keys)
    return [
        Selection(aggregate.predicate, aggregate.keys, key)
        for key in answers([counted], table.source)[0]
    ]


def slowly(listed: list[Selection], records: list[dict[str, Any]]) -> Rows:
    """Row by row, record by record, in plain Python."""
    lines = []
    for each in listed:
        inside = [
            slow.value(each.predicate, {"": record}) is True
            and tuple(slow.value(key, {"": record}) for key in each.keys) == each.key
            for record in records
        ]
        lines.append([int(one) for one in inside])
    return Rows.of(System.of(lines))


def assert_same(found: Passes, expected: Rows) -> None:
    rng = np.random.default_rng(0)
    assert (found.height, found.width) == (expected.height, expected.width)
    np.testing.assert_allclose(found.lengths, expected.lengths)
    point, weights = rng.normal(size=found.width), rng.normal(size=found.height)
    np.testing.assert_allclose(found.times(point), expected.times(point), atol=1e-11)
    np.testing.assert_allclose(
        found.transpose_times(weights), expected.transpose_times(weights), atol=1e-11
    )


@given(st.lists(predicates, min_size=1, max_size=70))
@settings(max_examples=8)
def test_every_form_of_random_predicates_is_what_the_slow_interpreter_says(
    people: Table, records: list[dict[str, Any]], texts: list[str]
) -> None:
    listed = [selection(text, people) for text in [*texts, texts[0]]]  # one of them twice
    expected, found = slowly(listed, records), Predicates.of(listed, people.source)
    assert found.records.tolist() == [each["id"] for each in records]
    for form in (found, found.rows(), found.bits(), fitting(listed, people.source)):
        assert_same(form, expected)


def test_some_records_at_a_time_are_as_good_as_all(
    people: Table, records: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORDS_PER_CHUNK", 1)
    monkeypatch.setattr(module, "MIN_RECORDS_PER_CHUNK", 7)
    listed = [selection(f"age > {i} AND weight <> {i % 7}", people) for i in range(70)]
    listed += cells(GROUPED[1], people)
    found = Predicates.of(listed, people.source)
    for form in (found, found.rows()):
        assert_same(form, slowly(listed, records))


def test_the_cells_of_a_group_by_are_equations(
    people: Table, records: list[dict[str, Any]]
) -> None:
    listed = [each for sql in GROUPED for each in cells(sql, people)]
    listed.append(selection("age > 30", people))
    found = Predicates.of(listed, people.source)
    for form in (found, found.rows(), fitting(listed, people.source)):
        assert_same(form, slowly(listed, records))


# Which form fits --------------------------------------------------------------------------------


def test_ranges_of_one_column_are_ranges(people: Table, records: list[dict[str, Any]]) -> None:
    texts = [f"age BETWEEN {low} AND {low + 15}" for low in range(-5, 70)]
    listed = [selection(text, people) for text in [*texts, "age IS NULL", "age > 1000", "TRUE"]]
    found = fitting(listed, people.source)
    assert isinstance(found, RangeRows)
    assert_same(found, slowly(listed, records))


def test_two_ranges_at_once_are_not_a_range(people: Table, records: list[dict[str, Any]]) -> None:
    listed = [selection("age < 20 OR age > 40", people), selection("age > 30", people)]
    found = fitting(listed, people.source)
    assert not isinstance(found, RangeRows)
    assert_same(found, slowly(listed, records))


def test_few_records_are_stored_many_are_bits_and_too_many_are_decided_again(people: Table) -> None:
    few = [selection(f"weight + age = {total}", people) for total in range(20, 60)]
    many = [selection(f"age > {age} OR sex = 'f'", people) for age in range(20, 60)]
    assert isinstance(fitting(few, people.source), Rows)
    assert isinstance(fitting(many, people.source), BitRows)
    for listed in (few, many):
        assert isinstance(fitting(listed, people.source, most_stored=10), Predicates)


def test_least_squares_is_the_same_over_every_form(people: Table) -> None:
    listed = [selection(f"age <= {i} OR weight = {i % 9}", people) for i in range(1, 61)]
    found = Predicates.of(listed, people.source)
    truth: Floats = np.arange(60, dtype=np.float64)
    right = found.times(truth) * found.lengths
    forms = (found, found.rows(), found.bits())
    one, other, third = (least_squares(form, right, tolerance=1e-10).values for form in forms)
    np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(one, third, atol=1e-5)
