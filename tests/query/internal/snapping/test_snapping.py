"""Questions in the universe: what masks and weights read off a histogram is what SQL answers."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cells import snapped
from query import universes

from casemate.errors import Unsupported
from casemate.query.engines import answers
from casemate.query.parse import parse
from casemate.query.snapping import Snapped, Summand, histogram
from casemate.query.snapping.histograms import tally
from casemate.query.snapping.snapping import MOST_PRODUCTS
from casemate.table import AttributeKind, Column, ColumnType, Policy, Table, Universe
from casemate.table.sources import Source

INTEGER, DECIMAL, DOUBLE = ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE


def policy(*columns: Column) -> Policy:
    return Policy("", columns, key="id")


def asked(sql: str, *columns: Column) -> Snapped:
    described = policy(*columns)
    (aggregate,) = parse(sql, described)
    return snapped(aggregate, Universe.of(described))


def counted(where: str, *columns: Column) -> Snapped:
    return asked(f"SELECT COUNT(*) FROM people WHERE {where}", *columns)


def mask(found: Snapped, place: int = 0) -> list[int]:
    return np.flatnonzero(found.masks[place]).tolist()


AGE = Column("age", type=INTEGER, low=0, high=99, bins=10)
SEX = Column("sex", type=ColumnType.TEXT, values=("f", "m"))
RATE = Column("rate", type=DECIMAL, low=0, high=10, bins=4)
SCORE = Column("score", type=DOUBLE, low=0, high=1, bins=10)
BORN = Column(
    "born",
    type=ColumnType.DATE,
    low=date(2001, 1, 1),
    high=date(2004, 12, 31),
    bins=4,
)


# Exactly true ---------------------------------------------------------------------------------


def test_conditions_on_single_columns_become_masks_of_their_cells() -> None:
    found = counted("age >= 20 AND age < 50 AND sex = 'f'", AGE, SEX)
    assert found.exact and not found.notes
    assert found.scope == (0, 1)
    assert mask(found, 0) == [2, 3, 4] and mask(found, 1) == [0]


def test_everybody_needs_no_mask() -> None:
    found = counted("TRUE", AGE, SEX)
    assert found.masks == {} and found.scope == ()
    assert counted("age IS NULL OR age IS NOT NULL", AGE).masks == {}


def test_nobody_needs_no_product() -> None:
    assert counted("FALSE", AGE).products == ()
    assert counted("sex = 'f' AND sex = 'm'", SEX).products == ()


def test_null_and_undeclared_values_are_the_last_cell() -> None:
    assert mask(counted("sex IS NULL", SEX)) == [2]
    assert mask(counted("sex <> 'f'", SEX)) == [1]
    assert counted("sex = 'undeclared'", SEX).products == ()


def test_beyond_the_bounds_there_is_nobody() -> None:
    """Numbers are clamped before they are compared."""
    assert counted("age > 99", AGE).products == ()
    assert mask(counted("age >= 0", AGE)) == list(range(10))


def test_whole_numbers_know_that_nothing_lies_between_them() -> None:
    assert counted("age > 19 AND age <= 49", AGE).exact
    assert counted("age > 19.5", AGE).exact
    assert not counted("rate > 2.5", RATE).exact  # a record may lie on 2.5
    assert counted("rate >= 2.5", RATE).exact


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ("age + 5 >= 25", [2, 3, 4, 5, 6, 7, 8, 9]),
        ("10 - age > -10", [0, 1]),
        ("age * 2 < 40", [0, 1]),
        ("age / 10 = 3", [3]),
        ("age % 100 < 50 AND age IS NOT NULL", [0, 1, 2, 3, 4]),
        ("coalesce(age, 0) < 10", [0, 10]),
        ("CASE WHEN age < 30 THEN 1 ELSE 0 END = 1", [0, 1, 2]),
        ("abs(age - 50) < 10 OR age = 40", [4, 5]),
        ("age IN (0,1,2,3,4,5,6,7,8,9)", [0]),
        ("(age > 19) IS TRUE", [2, 3, 4, 5, 6, 7, 8, 9]),
    ],
)
def test_arithmetic_on_one_column_is_solved_or_tried(where: str, cells: list[int]) -> None:
    found = counted(where, AGE)
    assert mask(found) == cells and found.exact


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ("rate * 2 >= 5", [1, 2, 3]),
        ("rate - 2.5 < 0", [0]),
        ("coalesce(rate, 0) < 2.5", [0, 4]),
        ("5 <= rate", [2, 3]),
    ],
)
def test_arithmetic_on_a_decimal_is_solved(where: str, cells: list[int]) -> None:
    found = counted(where, RATE)
    assert mask(found) == cells and found.exact


@pytest.mark.parametrize(
    ("where", "cells"),
    [
        ("born >= '2002-01-01'", [1, 2, 3]),
        ("born >= TIMESTAMP '2002-01-01 00:00:00'", [1, 2, 3]),
        ("born > TIMESTAMP '2001-12-31 12:00:00'", [1, 2, 3]),
        ("extract(year FROM born) = 2003", [2]),
    ],
)
def test_dates_are_cut_at_days_whatever_they_are_compared_with(
    where: str, cells: list[int]
) -> None:
    found = counted(where, BORN)
    assert mask(found) == cells and found.exact


@pytest.mark.parametrize(
    ("limit", "first"), [(30, 3), (31, 3), (34, 3), (35, 3), (36, 4), (39, 4), (40, 4)]
)
def test_a_limit_inside_a_cell_moves_to_the_nearest_boundary(limit: int, first: int) -> None:
    found = counted(f"age >= {limit}", AGE)
    assert mask(found) == list(range(first, 10))
    assert found.exact == (limit % 10 == 0)


def test_a_cut_cell_is_named_with_the_side_that_the_limit_was_moved_to() -> None:
    found = counted("age < 33 AND sex = 'm'", AGE, SEX)
    assert found.notes == (
        "age: a limit lies inside the cell [30, 40); it was answered as if for values < 30, and "
        "the bounds have room for that cell",
    )


def test_a_cut_cell_is_touched_and_not_inside() -> None:
    found = counted("age < 33 AND sex = 'm'", AGE, SEX)
    (inner,), (outer,) = found.inner, found.outer
    assert np.flatnonzero(inner[0]).tolist() == [0, 1, 2]
    assert np.flatnonzero(outer[0]).tolist() == [0, 1, 2, 3]
    assert np.flatnonzero(inner[1]).tolist() == np.flatnonzero(outer[1]).tolist() == [1]


def test_limits_that_together_cut_nothing_are_exact() -> None:
    assert counted("age < 33 OR age >= 33", AGE).exact


def test_a_union_is_made_of_products_apart_from_each_other() -> None:
    found = counted("age < 50 OR sex = 'f'", AGE, SEX)
    assert len(found.products) == 2
    every = np.ones((11, 3), np.int64)
    assert found.total((0, 1), every) == 5 * 3 + 6
    with pytest.raises(ValueError, match="2 products"):
        found.masks


def test_a_sum_weighs_cells_by_their_middle_and_says_how_far_off_that_may_be() -> None:
    found = asked("SELECT SUM(rate) FROM people WHERE sex = 'f'", RATE, SEX)
    assert found.weights is not None and found.slack is not None
    assert found.weights[0].tolist() == [1.25, 3.75, 6.25, 8.75, 0]
    assert found.slack[0].tolist() == [1.25] * 4 + [0]
    assert mask(found, 1) == [0] and found.scope == (0, 1)


def test_a_sum_of_single_values_has_no_slack() -> None:
    kinds = Column("kinds", type=INTEGER, low=1, high=3)
    found = asked("SELECT SUM(kinds * kinds) FROM people", kinds)
    assert found.weights is not None and found.slack is not None
    assert found.weights[0].tolist() == [1, 4, 9, 0] and not found.slack[0].any()


def test_a_sum_over_a_case_is_a_sum_over_its_condition() -> None:
    one = asked("SELECT SUM(CASE WHEN sex = 'f' THEN age ELSE 0 END) FROM people", AGE, SEX)
    other = asked("SELECT SUM(age) FROM people WHERE sex = 'f'", AGE, SEX)
    assert mask(one, 1) == mask(other, 1)
    assert one.weights is not None and other.weights is not None
    assert (one.weights[0] == other.weights[0]).all()
    conditional = "CASE WHEN age < 50 AND sex = 'f' THEN 1 END"
    counts = asked(f"SELECT COUNT({conditional}) FROM people", AGE, SEX)
    assert mask(counts, 0) == [0, 1, 2, 3, 4] and mask(counts, 1) == [0]


def test_counting_a_column_leaves_out_its_reserved_cell() -> None:
    assert mask(asked("SELECT COUNT(age) FROM people", AGE)) == list(range(10))
    assert mask(asked("SELECT COUNT(age + 1) FROM people", AGE)) == list(range(10))


NAME = Column("name", type=ColumnType.TEXT)
WIDE = Column("wide", type=INTEGER, low=0, high=10**6, bins=10)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT COUNT(*) FROM people WHERE age > wide", "compares age and wide with each other"),
        ("SELECT COUNT(*) FROM people WHERE name = 'x'", "name has no cells; declare its `values`"),
        ("SELECT COUNT(*) FROM people WHERE wide % 7 = 1", "compare wide with constants"),
        ("SELECT COUNT(*) FROM people WHERE sqrt(score) > 0.5", "compare score with constants"),
        ("SELECT AVG(age) FROM people", "avg is not a sum over cells"),
        ("SELECT SUM(age + wide) FROM people", "age and wide are added up together"),
        ("SELECT SUM(wide % 7) FROM people", "no bounds are known"),
    ],
)
def test_what_has_no_cells_is_refused_with_its_reason(sql: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        asked(sql, AGE, SEX, NAME, WIDE, SCORE)


def test_a_join_is_refused(people: Table) -> None:
    sql = "SELECT COUNT(*) FROM people p JOIN areas a ON p.area = a.area WHERE a.region = 'north'"
    (aggregate,) = parse(sql, people.policy)
    with pytest.raises(Unsupported, match="joined table"):
        snapped(aggregate, Universe.of(people.policy))


def test_too_many_alternatives_are_refused() -> None:
    several = [Column(f"c{i}", type=INTEGER, low=0, high=63) for i in range(3)]
    apart = " OR ".join(f"(c0 = {i} AND c1 = {i} AND c2 <> {i})" for i in range(MOST_PRODUCTS + 1))
    with pytest.raises(Unsupported, match="too many alternatives"):
        counted(apart, *several)


# Against the engine, for every policy, table and predicate ---------------------------------------


def read(found: Snapped, universe: Universe, source: Source) -> int:
    return found.total(found.scope, histogram(universe, found.scope, source))


@given(st.data())
@settings(max_examples=60)
def test_on_boundaries_masks_give_the_true_answer(people: Table, data: st.DataObject) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    atoms = st.sampled_from(universe.attributes).flatmap(universes.on_boundaries)
    aggregate = universes.counting(data.draw(universes.combined(atoms)), described)
    found = snapped(aggregate, universe)
    assert found.exact
    assert read(found, universe, people.source) == universes.truly(aggregate, people.source)


@given(st.data())
@settings(max_examples=60)
def test_whole_and_touched_cells_bracket_the_true_answer_and_the_snapped_one(
    people: Table, data: st.DataObject
) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    binned = [each for each in universe.attributes if each.kind is AttributeKind.BINS]
    atoms = st.sampled_from(binned).flatmap(universes.anywhere)
    aggregate = universes.counting(data.draw(universes.combined(atoms)), described)
    found = snapped(aggregate, universe)
    inner, nearest, outer = (
        read(Snapped(union), universe, people.source)
        for union in (found.inner, found.products, found.outer)
    )
    truth = universes.truly(aggregate, people.source)
    assert inner <= truth <= outer and inner <= nearest <= outer
    assert truth == nearest or not found.exact


@given(st.data())
@settings(max_examples=30)
def test_a_sum_is_within_its_slack_and_exact_in_units(people: Table, data: st.DataObject) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    atoms = st.sampled_from(universe.attributes).flatmap(universes.on_boundaries)
    where = data.draw(universes.combined(atoms))
    added = data.draw(st.sampled_from(['"Height"', "age", "age * 2 - 5", "coalesce(weight, 3)"]))
    (aggregate,) = parse(f"SELECT SUM({added}) FROM people WHERE {where}", described)
    found = snapped(aggregate, universe)
    assert found.weights is not None and found.slack is not None and aggregate.argument is not None
    truth = Fraction(universes.truly(aggregate, people.source))
    units = Summand(aggregate.argument, -(10**6), 10**6, scale=100)
    counted = tally(universe, found.scope, people.source, [units])
    assert found.total(found.scope, counted.sums[0]) == 100 * truth
    (place,) = found.weights
    middle, slack = (
        weighed(found, counted.counts, weights[place], place)
        for weights in (found.weights, found.slack)
    )
    assert abs(middle - float(truth)) <= slack + 1e-9


def weighed(found: Snapped, counts: Any, weights: Any, place: int) -> float:
    axis = found.scope.index(place)
    shape = [-1 if i == axis else 1 for i in range(counts.ndim)]
    total = 0.0
    for product in found.products:
        sizes = zip(found.scope, counts.shape, strict=True)
        masks = [product.get(each, np.ones(size, np.bool_)) for each, size in sizes]
        inside = np.zeros(counts.shape, np.bool_)
        inside[np.ix_(*masks)] = True
        total += float((counts * inside * weights.reshape(shape)).sum())
    return total


def test_where_data_keep_to_the_policy_the_question_is_the_analysts_own(people: Table) -> None:
    """No clamping and nothing undeclared: the text as it stands, answered by the engine."""
    wide = {"age": (-5, 120, 25), "Height": (-3, 3, 12), "income": (0, 1000, 20)}
    columns = tuple(
        replace(each, low=wide[each.name][0], high=wide[each.name][1], bins=wide[each.name][2])
        if each.name in wide
        else each
        for each in people.policy.columns
    )
    described = replace(people.policy, columns=columns)
    universe = Universe.of(described)
    for where in (
        "age >= 30 AND sex IN ('f', 'x')",
        "income < 500 OR (member AND diagnosis = 'flu')",
        "\"Height\" >= 0.5 AND NOT (age < 65 AND sex <> 'm')",
        "sex IS NULL OR age IS NULL",
    ):
        aggregate = universes.counting(where, described)
        found = snapped(aggregate, universe)
        assert found.exact
        assert read(found, universe, people.source) == answers([aggregate], people.source)[0][()]


def test_a_decimal_limit_on_a_double_is_the_double_it_is_written_for() -> None:
    for tenth in range(1, 10):
        found = counted(f"score >= {Decimal(tenth).scaleb(-1)}", SCORE)
        assert found.exact and mask(found) == list(range(tenth, 10))
