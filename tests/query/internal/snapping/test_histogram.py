"""Records by cell: the engine's codes are those of the slow way, and nothing is lost."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.cells import codes
from query import universes

from casemate.query.language import ColumnRef
from casemate.query.snapping import Summand, histogram
from casemate.query.snapping.histograms import tally
from casemate.table import Column, ColumnType, Policy, Role, Table, Universe
from casemate.table.sources import Series, Source
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import ColumnsInMemory

KEY = b"a secret of the dataset"


def slowly(universe: Universe, records: list[dict[str, Any]]) -> list[list[int]]:
    """One record and one attribute at a time."""
    return [[each.cell(record[each.name]) for each in universe.attributes] for record in records]


def assert_codes(policy: Policy, source: Source, records: list[dict[str, Any]]) -> None:
    universe = Universe.of(policy)
    assert codes(universe, source).tolist() == slowly(universe, records)


def assert_histogram(policy: Policy, source: Source, scope: tuple[int, ...]) -> None:
    universe = Universe.of(policy)
    expected = np.zeros(universe.sizes(scope), np.int64)
    for record in codes(universe, source):
        expected[tuple(record[list(scope)])] += 1
    assert (histogram(universe, scope, source) == expected).all()


scopes = st.lists(st.integers(0, 9), max_size=3, unique=True).map(tuple)


@given(universes.policies)
@settings(max_examples=30)
def test_the_engine_codes_records_as_the_slow_way_does(
    people: Table, records: list[dict[str, Any]], policy: Policy
) -> None:
    assert_codes(policy, people.source, records)


@given(universes.policies, scopes)
@settings(max_examples=40)
def test_a_histogram_counts_each_record_in_its_cell(
    people: Table, policy: Policy, scope: tuple[int, ...]
) -> None:
    assert_histogram(policy, people.source, scope)


@pytest.mark.postgres
@given(universes.policies, scopes)
@settings(max_examples=40)
def test_postgres_codes_and_counts_alike(
    people_in_postgres: Table,
    records: list[dict[str, Any]],
    policy: Policy,
    scope: tuple[int, ...],
) -> None:
    assert_codes(policy, people_in_postgres.source, records)
    assert_histogram(policy, people_in_postgres.source, scope)


def test_the_empty_scope_is_everybody(people: Table) -> None:
    assert histogram(Universe.of(people.policy), (), people.source) == 60


def test_one_statement_is_sent_for_counts_and_sums(people: Table) -> None:
    sent: list[str] = []

    class Listening:
        dialect = people.source.dialect
        relation, fields, close = people.source.relation, people.source.fields, people.source.close

        def read(self, sql: str) -> Any:
            sent.append(sql)
            return people.source.read(sql)

    universe = Universe.of(people.policy)
    income = column(people, "income")
    tally(universe, (0, 1), Listening(), [Summand(income, 0, 1000), Summand(income, 0, 10)])
    assert len(sent) == 1


# Sums -------------------------------------------------------------------------------------------


def column(table: Table, name: str) -> ColumnRef:
    found = table.policy.column(name)
    assert found is not None and found.type is not None
    return ColumnRef(found, found.type)


def assert_sums(table: Table, records: list[dict[str, Any]]) -> None:
    """Clamped, rounded to units with halves away from zero, NULL as nothing."""
    universe = Universe.of(table.policy)
    place = universe.index("sex")
    bonus, income = column(table, "bonus"), column(table, "income")
    summands = [Summand(bonus, -500, 500, scale=10), Summand(income, 100, 900)]
    found = tally(universe, (place,), table.source, summands)
    expected = np.zeros((2, 4), np.int64)
    for record in records:
        cell = universe.attributes[place].cell(record["sex"])
        units = 10 * (record["bonus"] or Decimal(0))
        whole = int(units.quantize(Decimal(1), rounding="ROUND_HALF_UP"))
        if record["bonus"] is not None:
            expected[0, cell] += min(max(whole, -500), 500)
        expected[1, cell] += min(max(record["income"], 100), 900)
    assert [each.tolist() for each in found.sums] == expected.tolist()


def test_sums_are_of_whole_units_clamped(people: Table, records: list[dict[str, Any]]) -> None:
    assert_sums(people, records)


@pytest.mark.postgres
def test_sums_in_postgres_are_the_same(
    people_in_postgres: Table, records: list[dict[str, Any]]
) -> None:
    assert_sums(people_in_postgres, records)


def test_bounds_in_units_follow_from_the_policy(people: Table) -> None:
    income, bonus = column(people, "income"), column(people, "bonus")
    assert Summand.of(income) == Summand(income, 0, 1000)
    assert Summand.of(bonus, scale=100) == Summand(bonus, -10_000, 10_000, scale=100)


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(0, 2**31 + 1, 1), (-(2**31) - 1, 0, 1), (3, 2, 1), (0, 1, 0)]
)
def test_a_row_adds_a_bounded_number_of_units(
    people: Table, low: int, high: int, scale: int
) -> None:
    with pytest.raises(ValueError, match="take a coarser unit"):
        Summand(column(people, "income"), low, high, scale)


# Numbers that are none, and columns with odd names ----------------------------------------------


def in_memory(values: list[float | None], name: str = "x") -> DuckDBSource:
    missing = np.array([each is None for each in values])
    numbers = np.array([0.0 if each is None else each for each in values])
    series = {name: Series(numbers, missing)}
    return DuckDBSource(ColumnsInMemory("memory", series, {name: ColumnType.DOUBLE}))


def test_infinities_are_clamped_and_what_is_no_number_is_missing() -> None:
    described = Policy("", (Column("x", type=ColumnType.DOUBLE, low=0, high=1, bins=4),))
    source = in_memory([-math.inf, math.inf, math.nan, None, 0.25, 1.0])
    assert histogram(Universe.of(described), (0,), source).tolist() == [1, 1, 0, 2, 2]


@pytest.mark.parametrize("name", ["k0", "n", "c0", "r", 'a "b"', "t"])
def test_a_column_may_have_any_name(name: str) -> None:
    described = Policy("", (Column(name, type=ColumnType.DOUBLE, values=(1, 2)),))
    source = in_memory([1.0, 2.0, 2.0, 3.0, None], name)
    assert histogram(Universe.of(described), (0,), source).tolist() == [1, 2, 2]


# At most so many rows of each person ------------------------------------------------------------


def test_a_person_with_many_rows_counts_so_often(people: Table) -> None:
    described = replace(people.policy, person="area", rows_per_person=3)
    universe = Universe.of(described)
    place = universe.index("sex")
    with Table.open(described) as table:
        counts = histogram(universe, (place,), table.source, key=KEY)
        assert counts.sum() == 4 * 3
        assert len(codes(universe, table.source, key=KEY)) == 4 * 3


def test_without_a_key_the_rows_of_a_person_are_not_counted(people: Table) -> None:
    universe = Universe.of(replace(people.policy, person="area", rows_per_person=3))
    with pytest.raises(ValueError, match="needs the dataset's key"):
        histogram(universe, (), people.source)


def test_where_a_row_is_a_person_every_row_counts(people: Table) -> None:
    described = replace(people.policy, person="id", rows_per_person=1)
    assert described.key == "id"
    with Table.open(described) as table:
        assert histogram(Universe.of(described), (), table.source, key=KEY) == 60


def test_roles_do_not_change_the_cells() -> None:
    one = Column("x", Role.PUBLIC, ColumnType.INTEGER, low=0, high=9, bins=5)
    for role in (Role.PUBLIC, Role.PRIVATE):
        assert Universe.of(Policy("", (replace(one, role=role),))).shape == (6,)
