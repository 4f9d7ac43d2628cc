"""The contract of every shipped table, and the six patients of the hospital."""

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest

from casemate.errors import Misconfigured
from casemate.table import Column, ColumnType, Role, Value
from casemate.table.shipped import names, shipped_table
from casemate.table.shipped.tables import ShippedTable

SAMPLES = [*names(), "population:1", "population:25000:11"]
PYTHON_TYPES = {ColumnType.TEXT: str, ColumnType.DECIMAL: Decimal, ColumnType.INTEGER: np.int64}


@cache
def table_of(name: str) -> ShippedTable:
    table = shipped_table(name)
    assert table is not None
    return table


def present(table: ShippedTable, name: str) -> Any:
    series = table.columns[name]
    return series.values[~series.missing]


def undeclared(column: Column, values: set[Value]) -> set[Value]:
    """The values that a policy does not foresee; an identifier has nothing to declare."""
    if column.values is not None:
        return values - set(column.values)
    if column.low is None or column.high is None:
        return set() if column.role is Role.IDENTIFIER else values
    return {value for value in values if not column.low <= value <= column.high}  # type: ignore[operator]  # numbers with numbers


# Exactly true, for every table ----------------------------------------------------------------


@pytest.mark.parametrize("name", SAMPLES)
def test_a_table_is_what_its_policy_says(name: str) -> None:
    """Columns in order and of one length, types, domains, NULLs, digits and the key."""
    table, policy = table_of(name), table_of(name).policy
    assert list(table.columns) == [column.name for column in policy.columns]
    arrays = [array for s in table.columns.values() for array in (s.values, s.missing)]
    assert len({array.shape for array in arrays}) == 1
    for column in policy.columns:
        series, values = table.columns[column.name], present(table, column.name)
        assert column.type is not None and series.missing.dtype == np.bool_
        assert series.values.dtype == (np.int64 if column.type is ColumnType.INTEGER else object)
        assert {type(value) for value in values} <= {PYTHON_TYPES[column.type]}
        assert not undeclared(column, set(values.tolist()))
        assert column.nullable or not series.missing.any()
        if column.type is ColumnType.DECIMAL:
            assert len({value.as_tuple().exponent for value in values}) == 1
    if policy.key is not None:
        keys = table.columns[policy.key].values.tolist()
        assert len(set(keys)) == len(keys)
    assert policy.private() and policy.budget is not None
    hidden = {column.name for column in policy.columns if column.role is Role.IDENTIFIER}
    assert {policy.key, policy.person} - {None} <= hidden


def test_the_test_above_would_notice_a_value_that_is_not_declared() -> None:
    table = table_of("hospital")
    sugar, gender = table.policy.column("Blood sugar"), table.policy.column("Gender")
    assert sugar is not None and undeclared(sugar, {Decimal("10.1"), Decimal(10)}) == {
        Decimal("10.1")
    }
    assert gender is not None and undeclared(gender, {"Male", "male"}) == {"male"}


# Names ------------------------------------------------------------------------------------------


SIZES = ["", "x", "0", "-1", "+5", "1_000", " 7", "1.5", "1e3", "٣", "100000001", "9" * 5000]
SEEDS = ["", "x", "-1", str(2**64), "3:4"]


def test_another_name_is_not_ours() -> None:
    for name in ("", "hospitals", "Hospital", "hospital:6", "hospital.csv", ":1"):
        assert shipped_table(name) is None


@pytest.mark.parametrize("size", [*SIZES, *(f"5:{seed}" for seed in SEEDS)])
def test_a_malformed_size_or_seed_is_one_sentence(size: str) -> None:
    with pytest.raises(Misconfigured, match=r"is not a size of the population table; write") as it:
        shipped_table(f"population:{size}")
    assert "\n" not in str(it.value) and "SEED from 0 to" in str(it.value)


@pytest.mark.parametrize(("rows", "seed"), [(1, 0), (500, 2**64 - 1)])
def test_a_population_has_its_size_and_states_its_seed(rows: int, seed: int) -> None:
    table = table_of(f"population:{rows}:{seed}")
    assert len(table.columns["age"].values) == rows
    assert table.policy.source == f"population:{rows}:{seed}"


# The hospital -----------------------------------------------------------------------------------


@pytest.mark.theorem("002: the hospital example (answers of queries 1 to 3)")
def test_the_hospital_gives_the_documents_answers() -> None:
    columns = {name: series.values for name, series in table_of("hospital").columns.items()}
    sugar, female = columns["Blood sugar"], columns["Gender"] == "Female"
    near = (columns["ZIP"] > 32000) & (columns["ZIP"] < 35000)
    assert [sum(sugar), sum(sugar[female]), sum(sugar[near & ~female])] == [
        Decimal("32.1"),
        Decimal("15.5"),
        Decimal("11.4"),
    ]
    exposed = sum(sugar) - sum(sugar[female]) - sum(sugar[near & ~female])
    assert exposed == sugar[columns["Name"] == "Jeremy Doe"].item() == Decimal("5.2")
