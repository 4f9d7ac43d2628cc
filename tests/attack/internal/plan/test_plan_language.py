"""Queries as sets and as text: what a box selects is what its SQL selects."""

from random import Random

import numpy as np
import pytest

from casemate.attack.plan.language import (
    Box,
    Language,
    Writer,
    lowest,
    one_by_one,
    packed,
    read_language,
    unpacked,
)
from casemate.attack.plan.secret import PlanSecret
from casemate.query import Aggregate, Function
from casemate.query.parse import parse
from casemate.query.records import membership
from casemate.table import Role, Table

DIALECTS = (
    *("postgres", "duckdb", "mysql", "bigquery", "spark", "tsql", "sqlite", "snowflake"),
    *("oracle", "clickhouse", "redshift", "trino"),
)


@pytest.fixture(scope="module")
def language(people: Table) -> Language:
    return read_language(people.policy, people.source)


def any_box(language: Language, rng: Random) -> Box:
    """A condition on each of a few axes, of every shape."""
    box = {}
    for number in rng.sample(range(len(language.axes)), rng.randint(0, 3)):
        axis = language.axes[number]
        places = sorted(rng.choices(range(axis.last + 1), k=2))
        box[number] = (places[0], places[1] if axis.ordered else places[0])
    return box


def test_only_public_columns_are_used(language: Language, people: Table) -> None:
    public = {column.name for column in people.policy.columns if column.role is Role.PUBLIC}
    assert {axis.column.name for axis in language.axes} == public


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_text_of_a_query_selects_what_the_query_selects(
    dialect: str, language: Language, people: Table, rng: Random
) -> None:
    column = people.policy.column("income")
    assert column is not None
    secret, writer = PlanSecret(column), Writer(dialect)
    boxes = [any_box(language, rng) for _ in range(60)]
    every = [
        {number: (place, place)}
        for number, axis in enumerate(language.axes)
        for place in range(axis.last + 1)
    ]
    boxes += rng.sample(every, 60)
    texts = [secret.written(box, 1, language, writer) for box in boxes]
    parsed = [parse(text, people.policy, dialect)[0] for text in texts]
    counted = [Aggregate(Function.COUNT, None, each.predicate) for each in parsed]
    found = membership(counted, people.source)
    for number, box in enumerate(boxes):
        assert packed(found.selected(number)) == language.members(box), texts[number]


def test_records_that_agree_in_every_public_column_are_twins(people: Table) -> None:
    axes = read_language(people.policy, people.source).axes
    few = Language(axes[:1], np.arange(len(axes[0].places)))
    groups = {tuple(sorted([place, *few.twins(place)])) for place in range(few.count)}
    assert sorted(place for group in groups for place in group) == list(range(few.count))
    assert set(one_by_one(few.alone)) == {group[0] for group in groups if len(group) == 1}


def test_a_set_of_records_is_the_bits_of_a_number(rng: Random) -> None:
    for size in (1, 7, 8, 9, 300):
        chosen = np.array([rng.random() < 0.5 for _ in range(size)])
        bits = packed(chosen)
        assert unpacked(bits, size).tolist() == chosen.tolist()
        assert list(one_by_one(bits)) == np.flatnonzero(chosen).tolist()
        assert not bits or lowest(bits) == np.flatnonzero(chosen)[0]
