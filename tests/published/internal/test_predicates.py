"""Equations out of predicates: decided again each pass, or stored, they are the same equations."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from query import slow
from query.internal.sketch.test_sketch import GROUPED, selections
from query.predicates import predicates

from casemate.exact import Passes, Rows, System
from casemate.published import fitting
from casemate.published import predicates as module
from casemate.published.predicates import BitRows, Predicates, RangeRows
from casemate.query.parse import parse
from casemate.query.sketch import Selection
from casemate.table import Table


def selection(predicate: str, table: Table) -> Selection:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM people WHERE {predicate}", table.policy)
    return Selection(aggregate.predicate)


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


@pytest.mark.parametrize("records_at_a_time", [7, module.MIN_RECORDS_PER_CHUNK])
def test_the_cells_of_a_group_by_are_equations_however_many_records_are_taken_at_a_time(
    people: Table,
    records: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    records_at_a_time: int,
) -> None:
    monkeypatch.setattr(module, "WORDS_PER_CHUNK", 1)
    monkeypatch.setattr(module, "MIN_RECORDS_PER_CHUNK", records_at_a_time)
    listed = [selection(f"age > {i} AND weight <> {i % 7}", people) for i in range(70)]
    listed += [each for sql in GROUPED for each in selections(sql, people)]
    found = Predicates.of(listed, people.source)
    for form in (found, found.rows(), fitting(listed, people.source)):
        assert_same(form, slowly(listed, records))


# Which form fits --------------------------------------------------------------------------------


def test_ranges_of_one_column_are_ranges_and_two_at_once_are_not(
    people: Table, records: list[dict[str, Any]]
) -> None:
    texts = [f"age BETWEEN {low} AND {low + 15}" for low in range(-5, 70)]
    for asked, are_ranges in (
        ([*texts, "age IS NULL", "age > 1000", "TRUE"], True),
        (["age < 20 OR age > 40", "age > 30"], False),
    ):
        listed = [selection(text, people) for text in asked]
        found = fitting(listed, people.source)
        assert isinstance(found, RangeRows) is are_ranges
        assert_same(found, slowly(listed, records))


def test_few_records_are_stored_many_are_bits_and_too_many_are_decided_again(people: Table) -> None:
    few = [selection(f"weight + age = {total}", people) for total in range(20, 60)]
    many = [selection(f"age > {age} OR sex = 'f'", people) for age in range(20, 60)]
    assert isinstance(fitting(few, people.source), Rows)
    assert isinstance(fitting(many, people.source), BitRows)
    for listed in (few, many):
        assert isinstance(fitting(listed, people.source, most_stored=10), Predicates)
