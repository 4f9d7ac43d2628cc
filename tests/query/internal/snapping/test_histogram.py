"""Records by cell: the engine's codes are those of the slow way, and nothing is lost."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.cells import codes
from query import universes

from casemate.query.engines import rows, values
from casemate.query.language import TRUE, ColumnRef
from casemate.query.snapping import Summand, histogram
from casemate.table import Column, ColumnType, Policy, Table, Universe
from casemate.table.sources import Series
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.files import ColumnsInMemory

KEY = b"a secret of the dataset"


ENGINES = ["people", pytest.param("people_in_postgres", marks=pytest.mark.postgres)]
scopes = st.lists(st.integers(0, 9), max_size=3, unique=True).map(tuple)


@pytest.mark.parametrize("engine", ENGINES)
@given(policy=universes.policies, scope=scopes)
def test_an_engine_codes_records_as_the_slow_way_does_and_counts_each_in_its_cell(
    request: pytest.FixtureRequest,
    records: list[dict[str, Any]],
    engine: str,
    policy: Policy,
    scope: tuple[int, ...],
) -> None:
    source, universe = request.getfixturevalue(engine).source, Universe.of(policy)
    found = codes(universe, source)
    slowly = [[each.cell(one[each.name]) for each in universe.attributes] for one in records]
    assert found.tolist() == slowly
    expected = np.zeros(universe.sizes(scope), np.int64)
    for record in found:
        expected[tuple(record[list(scope)])] += 1
    assert (histogram(universe, scope, source) == expected).all()


# Sums -------------------------------------------------------------------------------------------


def column(table: Table, name: str) -> ColumnRef:
    found = table.policy.column(name)
    assert found is not None and found.type is not None
    return ColumnRef(found, found.type)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_adds_whole_units_clamped_and_null_adds_nothing(
    request: pytest.FixtureRequest, engine: str, records: list[dict[str, Any]]
) -> None:
    """Halves are rounded away from zero."""
    table = request.getfixturevalue(engine)
    bonus, income = column(table, "bonus"), column(table, "income")
    added = {
        "a": Summand(bonus, -500, 500, scale=10).units,
        "b": Summand(income, 100, 900).units,
    }
    frame = table.source.read(rows(table.source, (), TRUE, added))
    given = {each["id"]: each for each in records}
    for record, tenths, whole in zip(
        values(frame["r"]), values(frame["a"]), values(frame["b"]), strict=True
    ):
        units = 10 * (given[record]["bonus"] or Decimal(0))
        nearest = int(units.quantize(Decimal(1), rounding="ROUND_HALF_UP"))
        assert (tenths or 0) == min(max(nearest, -500), 500)
        assert whole == min(max(given[record]["income"], 100), 900)


@pytest.mark.parametrize(
    ("low", "high", "scale"), [(0, 2**31 + 1, 1), (-(2**31) - 1, 0, 1), (3, 2, 1), (0, 1, 0)]
)
def test_a_row_adds_a_bounded_number_of_units(
    people: Table, low: int, high: int, scale: int
) -> None:
    with pytest.raises(ValueError, match="take a coarser unit"):
        Summand(column(people, "income"), low, high, scale)


# Numbers that are none, and columns with odd names ----------------------------------------------


def in_memory(values: list[float | None], name: str) -> DuckDBSource:
    missing = np.array([each is None for each in values])
    numbers = np.array([0.0 if each is None else each for each in values])
    series = {name: Series(numbers, missing)}
    return DuckDBSource(ColumnsInMemory("memory", series, {name: ColumnType.DOUBLE}))


NONE = [-math.inf, math.inf, math.nan, None, 0.25, 1.0]


@pytest.mark.parametrize(
    ("column", "values", "counts"),
    [
        (Column("x", type=ColumnType.DOUBLE, low=0, high=1, bins=4), NONE, [1, 1, 0, 2, 2]),
        *(
            (Column(name, type=ColumnType.DOUBLE, values=(1, 2)), [1, 2, 2, 3, None], [1, 2, 2])
            for name in ("k0", "n", "c0", "r", 'a "b"', "t")
        ),
    ],
)
def test_infinities_are_clamped_what_is_no_number_is_missing_and_any_name_will_do(
    column: Column, values: list[float | None], counts: list[int]
) -> None:
    source = in_memory(values, column.name)
    assert histogram(Universe.of(Policy("", (column,))), (0,), source).tolist() == counts


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
