"""The contract of every shipped table, and the six patients of the hospital."""

from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.table import Column, ColumnType, Provenance, Role, Value
from casemate.table.shipped import names, shipped
from casemate.table.shipped.tables import ShippedTable

SAMPLES = [*names(), "population:1", "population:25000:11"]
PYTHON_TYPES = {ColumnType.TEXT: str, ColumnType.DECIMAL: Decimal, ColumnType.INTEGER: np.int64}


@cache
def table_of(name: str) -> ShippedTable:
    table = shipped(name)
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
def test_the_columns_are_the_policys_in_its_order_and_of_one_length(name: str) -> None:
    table = table_of(name)
    assert list(table.columns) == [column.name for column in table.policy.columns]
    shapes = {array.shape for s in table.columns.values() for array in (s.values, s.missing)}
    assert len(shapes) == 1
    assert all(series.missing.dtype == np.bool_ for series in table.columns.values())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_value_has_the_type_the_policy_states(name: str) -> None:
    table = table_of(name)
    for column in table.policy.columns:
        assert column.type is not None
        stored = np.int64 if column.type is ColumnType.INTEGER else object
        assert table.columns[column.name].values.dtype == stored
        assert {type(value) for value in present(table, column.name)} <= {PYTHON_TYPES[column.type]}


@pytest.mark.parametrize("name", SAMPLES)
def test_no_value_is_outside_what_the_policy_declares(name: str) -> None:
    table = table_of(name)
    for column in table.policy.columns:
        assert not undeclared(column, set(present(table, column.name).tolist()))


def test_the_test_above_would_notice_a_value_that_is_not_declared() -> None:
    table = table_of("hospital")
    sugar, gender = table.policy.column("Blood sugar"), table.policy.column("Gender")
    assert sugar is not None and undeclared(sugar, {Decimal("10.1"), Decimal(10)}) == {
        Decimal("10.1")
    }
    assert gender is not None and undeclared(gender, {"Male", "male"}) == {"male"}


@pytest.mark.parametrize("name", SAMPLES)
def test_only_a_nullable_column_has_missing_values(name: str) -> None:
    table = table_of(name)
    for column in table.policy.columns:
        assert column.nullable or not table.columns[column.name].missing.any()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_key_is_unique(name: str) -> None:
    table = table_of(name)
    if table.policy.key is not None:
        keys = table.columns[table.policy.key].values.tolist()
        assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_decimal_column_has_one_number_of_places(name: str) -> None:
    table = table_of(name)
    for column in table.policy.columns:
        if column.type is ColumnType.DECIMAL:
            assert len({value.as_tuple().exponent for value in present(table, column.name)}) == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_a_policy_protects_something_and_its_key_is_not_asked_about(name: str) -> None:
    policy = table_of(name).policy
    assert policy.private() and policy.budget is not None
    hidden = {column.name for column in policy.columns if column.role is Role.IDENTIFIER}
    assert {policy.key, policy.person} - {None} <= hidden


# Names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "hospitals", "Hospital", "hospital:6", "hospital.csv", ":1"])
def test_another_name_is_not_ours(name: str) -> None:
    assert shipped(name) is None


@pytest.mark.parametrize(
    "size", ["", "x", "0", "-1", "+5", "1_000", " 7", "1.5", "1e3", "٣", "100000001", "9" * 5000]
)
def test_a_malformed_size_is_one_sentence(size: str) -> None:
    with pytest.raises(Misconfigured, match=r"is not a size of the population table; write") as it:
        shipped(f"population:{size}")
    assert "\n" not in str(it.value)


@pytest.mark.parametrize("seed", ["", "x", "-1", str(2**64), "3:4"])
def test_a_malformed_seed_is_one_sentence(seed: str) -> None:
    with pytest.raises(Misconfigured, match="SEED from 0 to"):
        shipped(f"population:5:{seed}")


@given(st.integers(1, 500), st.integers(0, 2**64 - 1))
def test_a_population_has_its_size_and_states_its_seed(rows: int, seed: int) -> None:
    table = shipped(f"population:{rows}:{seed}")
    assert table is not None and len(table.columns["age"].values) == rows
    assert table.policy.source == f"population:{rows}:{seed}"


def test_a_population_without_a_size_or_a_seed_has_the_stated_ones() -> None:
    assert table_of("population").policy.source == "population:10000:0"
    assert table_of("population:1").policy.source == "population:1:0"


def test_both_spellings_of_rand_hie_are_one_table() -> None:
    dashed = shipped("rand-hie")
    assert dashed is not None and dashed.policy == table_of("rand_hie").policy


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


def test_the_hospital_has_the_documents_roles_and_bounds() -> None:
    policy = table_of("hospital").policy
    assert {column.name: column.role for column in policy.columns} == {
        "id": Role.IDENTIFIER,
        "Name": Role.IDENTIFIER,
        "ZIP": Role.PUBLIC,
        "Gender": Role.PUBLIC,
        "Blood sugar": Role.PRIVATE,
    }
    sugar = policy.column("Blood sugar")
    assert sugar is not None and (sugar.low, sugar.high) == (3, 10)
    assert sugar.provenance is Provenance.PUBLIC
