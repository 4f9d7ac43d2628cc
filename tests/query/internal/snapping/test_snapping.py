"""Questions in the universe: what masks and weights read off a histogram is what SQL answers."""

from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import cells
from oracles.cells import SnappedSum, snapped
from query import universes

from casemate.errors import Unsupported
from casemate.query import Aggregate, Function, Select
from casemate.query.engines import answers
from casemate.query.language import TRUE
from casemate.query.parse import parse, parse_statement
from casemate.query.snapping import KeyGroups, cells_of, histogram, unconditional
from casemate.query.snapping.histograms import as_declared
from casemate.query.snapping.snapping import MAX_PRODUCTS
from casemate.table import AttributeKind, Column, ColumnType, Policy, Table, Universe
from casemate.table.sources import Source

INTEGER, DECIMAL, DOUBLE = ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE


def policy(*columns: Column) -> Policy:
    return Policy("", columns, key="id")


def asked(sql: str, *columns: Column) -> SnappedSum:
    described = policy(*columns)
    (aggregate,) = parse(sql, described)
    return snapped(aggregate, Universe.of(described))


def counted(where: str, *columns: Column) -> SnappedSum:
    return asked(f"SELECT COUNT(*) FROM people WHERE {where}", *columns)


def mask(found: SnappedSum, place: int = 0) -> list[int]:
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


@pytest.mark.parametrize(
    ("column", "where", "chosen"),
    [
        (AGE, "age > 19 AND age <= 49", [2, 3, 4]),  # nothing lies between whole numbers
        (AGE, "age > 19.5", [2, 3, 4, 5, 6, 7, 8, 9]),
        (RATE, "rate >= 2.5", [1, 2, 3]),
        (SEX, "sex IS NULL", [2]),
        (SEX, "sex <> 'f'", [1]),
        (SEX, "sex = 'undeclared'", None),
        (SEX, "sex = 'f' AND sex = 'm'", None),
        (AGE, "age > 99", None),  # numbers are clamped before they are compared
        (AGE, "age >= 0", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (AGE, "age IS NULL OR age IS NOT NULL", []),
        (AGE, "age < 33 OR age >= 33", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (AGE, "age + 5 >= 25", [2, 3, 4, 5, 6, 7, 8, 9]),
        (AGE, "10 - age > -10", [0, 1]),
        (AGE, "age * 2 < 40", [0, 1]),
        (AGE, "age / 10 = 3", [3]),
        (AGE, "age % 100 < 50 AND age IS NOT NULL", [0, 1, 2, 3, 4]),
        (AGE, "coalesce(age, 0) < 10", [0, 10]),
        (AGE, "CASE WHEN age < 30 THEN 1 ELSE 0 END = 1", [0, 1, 2]),
        (AGE, "abs(age - 50) < 10 OR age = 40", [4, 5]),
        (AGE, "age IN (0,1,2,3,4,5,6,7,8,9)", [0]),
        (AGE, "(age > 19) IS TRUE", [2, 3, 4, 5, 6, 7, 8, 9]),
        (RATE, "rate * 2 >= 5", [1, 2, 3]),
        (RATE, "rate - 2.5 < 0", [0]),
        (RATE, "coalesce(rate, 0) < 2.5", [0, 4]),
        (RATE, "5 <= rate", [2, 3]),
        (BORN, "born >= '2002-01-01'", [1, 2, 3]),
        (BORN, "born >= TIMESTAMP '2002-01-01 00:00:00'", [1, 2, 3]),
        (BORN, "born > TIMESTAMP '2001-12-31 12:00:00'", [1, 2, 3]),
        (BORN, "extract(year FROM born) = 2003", [2]),
        *((SCORE, f"score >= 0.{tenth}", list(range(tenth, 10))) for tenth in range(1, 10)),
    ],
    ids=str,
)
def test_a_condition_on_one_column_is_a_mask_of_its_cells(
    column: Column, where: str, chosen: list[int] | None
) -> None:
    found = counted(where, column)
    assert found.exact
    if chosen:
        assert mask(found) == chosen
    else:
        assert found.products == (() if chosen is None else ({},))


@pytest.mark.parametrize(
    ("column", "where", "first", "exact"),
    [
        *((AGE, f"age >= {limit}", 3, limit == 30) for limit in (30, 31, 34, 35)),
        *((AGE, f"age >= {limit}", 4, limit == 40) for limit in (36, 39, 40)),
        (AGE, "age >= 95", 9, False),  # the last cell has its end
        (RATE, "rate > 1.25", 0, False),
        (RATE, "rate > 1.26", 1, False),
        (RATE, "rate > 2.5", 1, False),  # a record may lie on 2.5
    ],
    ids=str,
)
def test_a_limit_inside_a_cell_moves_to_the_nearest_boundary(
    column: Column, where: str, first: int, exact: bool
) -> None:
    found = counted(where, column)
    assert mask(found) == list(range(first, {AGE: 10, RATE: 4}[column]))
    assert found.exact is exact


def test_a_cut_cell_is_named_with_the_side_that_the_limit_was_moved_to() -> None:
    found = counted("age < 33 AND sex = 'm'", AGE, SEX)
    assert found.notes == (
        "age: a limit lies inside the cell [30, 40); it was answered as if for values < 30, and "
        "the bounds have room for that cell",
    )


def test_a_union_is_made_of_products_apart_from_each_other() -> None:
    found = counted("age < 50 OR sex = 'f'", AGE, SEX)
    assert len(found.products) == 2
    every = np.ones((11, 3), np.int64)
    assert found.total(every) == 5 * 3 + 6


def test_a_sum_weighs_cells_by_their_middle_and_says_how_far_off_that_may_be() -> None:
    found = asked("SELECT SUM(rate) FROM people WHERE sex = 'f'", RATE, SEX)
    assert found.weights is not None and found.slack is not None
    assert found.weights[0].tolist() == [1.25, 3.75, 6.25, 8.75, 0]
    assert found.slack[0].tolist() == [1.25] * 4 + [0]
    assert mask(found, 1) == [0] and found.scope == (0, 1)


@pytest.mark.parametrize(
    ("function", "otherwise", "folded"),
    [
        *(("SUM", "0", True), ("SUM", "NULL", True), ("SUM", "1", False)),
        *(("COUNT", "NULL", True), ("COUNT", "0", False)),
    ],
)
def test_a_case_is_a_condition_where_it_adds_nothing_elsewhere(
    function: str, otherwise: str, folded: bool
) -> None:
    case = f"CASE WHEN sex = 'f' THEN age ELSE {otherwise} END"
    (aggregate,) = parse(f"SELECT {function}({case}) FROM people", policy(AGE, SEX))
    assert (unconditional(aggregate).predicate != TRUE) is folded


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


# Against the engine, for every policy, table and predicate ---------------------------------------


class Reading:
    """What sets of cells hold in one source, each scope counted once."""

    def __init__(self, universe: Universe, source: Source) -> None:
        self._count = cache(lambda scope: histogram(universe, scope, source))

    def total(self, found: SnappedSum) -> int:
        return found.total(self._count(found.scope))


@given(st.data())
def test_whole_and_touched_cells_bracket_the_true_answer_and_the_snapped_one(
    people: Table, data: st.DataObject
) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    binned = [each for each in universe.attributes if each.kind is AttributeKind.BINS]
    atoms = st.sampled_from(binned).flatmap(universes.anywhere)
    aggregate = universes.counting(data.draw(universes.combined(atoms)), described)
    found = snapped(aggregate, universe)
    unions = (found.inner, found.products, found.outer)
    inner, nearest, outer = map(Reading(universe, people.source).total, map(SnappedSum, unions))
    truth = universes.truly(aggregate, people.source)
    assert inner <= truth <= outer and inner <= nearest <= outer
    assert truth == nearest or not found.exact


@given(st.data())
def test_a_sum_is_within_its_slack(people: Table, data: st.DataObject) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    atoms = st.sampled_from(universe.attributes).flatmap(universes.on_boundaries)
    where = data.draw(universes.combined(atoms))
    added = data.draw(st.sampled_from(['"Height"', "age", "age * 2 - 5", "coalesce(weight, 3)"]))
    (aggregate,) = parse(f"SELECT SUM({added}) FROM people WHERE {where}", described)
    found = snapped(aggregate, universe)
    assert found.weights is not None and found.slack is not None and aggregate.argument is not None
    truth = Fraction(universes.truly(aggregate, people.source))
    counts = histogram(universe, found.scope, people.source)
    (place,) = found.weights
    axis = [-1 if each == place else 1 for each in found.scope]
    middle, slack = (
        found.total(counts * weights[place].reshape(axis) * 10**6) / 10**6
        for weights in (found.weights, found.slack)
    )
    assert abs(middle - float(truth)) <= slack + 1e-4


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
        total = Reading(universe, people.source).total(found)
        assert total == answers([aggregate], people.source)[0][()]


# GROUP BY: every declared key, in order, whoever is there ----------------------------------------

KIDS = Column("kids", type=INTEGER, low=0, high=2)
MEMBER = Column("member", type=ColumnType.BOOLEAN)
POLICY = Policy("", (AGE, replace(SEX, values=("m", "f")), KIDS, MEMBER, RATE, BORN))


def keyed(keys: str, policy: Policy = POLICY) -> tuple[Select, Universe]:
    statement = parse_statement(f"SELECT {keys}, COUNT(*) FROM people GROUP BY {keys}", policy)
    return statement.selects[0], Universe.of(policy)


def grouped(keys: str) -> KeyGroups:
    return cells_of(*keyed(keys))


def keys_of(found: KeyGroups) -> list[object]:
    return [each.key[0] if len(each.key) == 1 else each.key for each in found.groups]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("sex", ["m", "f", None]),
        ("kids", [0, 1, 2, None]),
        ("member", [False, True, None]),
        ("age / 50", [0, 1, None]),
        ("CASE WHEN age < 20 THEN 'young' WHEN age >= 70 THEN 'old' END", ["young", "old", None]),
        ("coalesce(sex, '?')", ["m", "f", "?"]),
        ("CASE WHEN rate < 5 THEN 'low' ELSE 'high' END", ["low", "high"]),
        ("extract(year FROM born)", [2001, 2002, 2003, 2004, None]),
        ("sex, kids", list(product(["m", "f", None], [0, 1, 2, None]))),
        ("kids, kids / 2", [(0, 0), (1, 0), (2, 1), (None, None)]),  # others cannot be
    ],
)
def test_every_declared_key_is_a_group_in_order(key: str, values: list[object]) -> None:
    found = grouped(key)
    assert keys_of(found) == values and found.exact


def test_a_key_that_changes_within_a_cell_is_moved_and_says_so() -> None:
    found = grouped("CASE WHEN age < 18 THEN 'minor' ELSE 'adult' END")
    assert not found.exact
    assert found.notes == (
        "age: a group ends inside the cell [10, 20); it was counted whole as minor, and the "
        "bounds have room for that cell",
    )
    minor, adult = (each.snapped for each in found.groups)
    assert [one[0].sum() for one in (*minor.inner, *minor.outer)] == [1, 2]
    assert [one[0].sum() for one in (*adult.inner, *adult.outer)] == [9, 10]
    assert [each.snapped.products[0][0].sum() for each in found.groups] == [2, 9]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("age", "age is known by bins of several values"),
        ("rate", "rate is known by bins of several values"),
        ("age % 2", "narrower than its cells"),
        ("age + kids", "computed from age and kids together"),
    ],
)
def test_groups_finer_than_cells_are_refused(key: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        grouped(key)


MANY = tuple(Column(f"c{i}", type=INTEGER, low=0, high=63) for i in range(3))


def test_too_many_groups_and_too_many_alternatives_are_refused() -> None:
    with pytest.raises(Unsupported, match="more than 100,000 groups"):
        cells_of(*keyed("c0, c1, c2", Policy("", MANY)))
    points = [f"(c0 = {i} AND c1 = {i} AND c2 <> {i})" for i in range(MAX_PRODUCTS + 1)]
    starts = [(i, 7 * i % 31, 11 * i % 29) for i in range(MAX_PRODUCTS // 2)]
    box = "(c0 BETWEEN {0} AND {0} + 30 AND c1 BETWEEN {1} AND {1} + 30 AND c2 >= {2})"
    for alternatives in (points, [box.format(*each) for each in starts]):
        with pytest.raises(Unsupported, match="too many alternatives"):
            counted(" OR ".join(alternatives), *MANY)


@given(st.data())
def test_on_boundaries_masks_and_groups_give_the_answers_of_the_engine(
    people: Table, data: st.DataObject
) -> None:
    described = data.draw(universes.policies)
    universe = Universe.of(described)
    names = st.lists(st.sampled_from(["sex", "area", "member", "note"]), min_size=1, max_size=2)
    keys = ", ".join(data.draw(names))
    atoms = st.sampled_from(universe.attributes).flatmap(universes.on_boundaries)
    where = data.draw(universes.combined(atoms))
    sql = f"SELECT {keys}, COUNT(*) FROM people WHERE {where} GROUP BY {keys}"
    (select,) = parse_statement(sql, described).selects
    question = snapped(select.aggregates[0], universe)
    reading = Reading(universe, people.source)
    ours = {
        group.key: reading.total(cells.counted(question.within(group.snapped)))
        for group in cells_of(select, universe).groups
    }
    declared = tuple(as_declared(each) for each in select.keys)
    whole = Aggregate(Function.COUNT, None, as_declared(select.predicate), declared)
    theirs = answers([whole], people.source)[0]
    assert {key: count for key, count in ours.items() if count} == theirs
    assert question.exact and reading.total(question) == sum(ours.values())
