"""GROUP BY in the universe: every declared key, in order, whoever is there."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cells import snapped
from query import universes

from casemate.errors import Unsupported
from casemate.query import Aggregate, Function, Select
from casemate.query.engines import answers
from casemate.query.parse import parse_statement
from casemate.query.snapping import KeyGroups, cells_of, histogram
from casemate.query.snapping.histograms import as_declared
from casemate.table import Column, ColumnType, Policy, Table, Universe

AGE = Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10)
SEX = Column("sex", type=ColumnType.TEXT, values=("m", "f"))
KIDS = Column("kids", type=ColumnType.INTEGER, low=0, high=2)
MEMBER = Column("member", type=ColumnType.BOOLEAN)
RATE = Column("rate", type=ColumnType.DECIMAL, low=0, high=10, bins=4)
BORN = Column("born", type=ColumnType.DATE, low=date(2001, 1, 1), high=date(2004, 12, 31), bins=4)
POLICY = Policy("", (AGE, SEX, KIDS, MEMBER, RATE, BORN))


def read(keys: str, policy: Policy = POLICY) -> tuple[Select, Universe]:
    statement = parse_statement(f"SELECT {keys}, COUNT(*) FROM people GROUP BY {keys}", policy)
    return statement.selects[0], Universe.of(policy)


def grouped(keys: str) -> KeyGroups:
    return cells_of(*read(keys))


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
    ],
)
def test_every_declared_key_is_a_group_in_order(key: str, values: list[object]) -> None:
    found = grouped(key)
    assert keys_of(found) == values and found.exact


def test_two_keys_are_every_combination_of_their_values() -> None:
    found = grouped("sex, kids")
    assert len(found.groups) == 12
    assert keys_of(found)[:4] == [("m", 0), ("m", 1), ("m", 2), ("m", None)]
    assert keys_of(found)[-1] == (None, None)


def test_combinations_that_cannot_be_are_no_groups() -> None:
    assert keys_of(grouped("kids, kids / 2")) == [(0, 0), (1, 0), (2, 1), (None, None)]


def test_the_groups_of_a_key_share_all_cells_among_them() -> None:
    for key in ("sex", "age / 50", "CASE WHEN rate < 5 THEN 1 END"):
        found = grouped(key)
        masks = [mask for each in found.groups for mask in each.cells.values()]
        assert (np.sum(masks, axis=0) == 1).all()


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
    assert [each.cells[0].sum() for each in found.groups] == [2, 9]


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


def test_too_many_groups_are_refused() -> None:
    many = tuple(Column(f"c{i}", type=ColumnType.INTEGER, low=0, high=63) for i in range(3))
    with pytest.raises(Unsupported, match="more than 100,000 groups"):
        cells_of(*read("c0, c1, c2", Policy("", many)))


@given(st.data())
@settings(max_examples=30)
def test_groups_read_off_a_histogram_are_those_of_the_engine(
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
    ours = {}
    for group in cells_of(select, universe).groups:
        one = question.within(group.snapped)
        ours[group.key] = one.total(one.scope, histogram(universe, one.scope, people.source))
    declared = tuple(as_declared(each) for each in select.keys)
    asked = Aggregate(Function.COUNT, None, as_declared(select.predicate), declared)
    theirs = answers([asked], people.source)[0]
    assert {key: count for key, count in ours.items() if count} == theirs
