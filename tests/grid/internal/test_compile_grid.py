"""Sums on a grid: whole weights of bounded size, and slack that has room for every mistake."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from grid.compiled_world import POLICY, UNIVERSE
from hypothesis import given
from hypothesis import strategies as st

from casemate.grid.sums import centre_of, grid_of, summand_of
from casemate.query import Aggregate
from casemate.query.language import Interval, columns_of
from casemate.query.parse import parse
from casemate.query.snapping import MAX_UNITS_PER_ROW
from casemate.table import ColumnType

ends = st.one_of(
    st.integers(-100, 100).map(Fraction),
    st.integers(-(10**15), 10**15).map(Fraction),
    st.floats(-1e6, 1e6).map(Fraction),
    st.floats(-1e-6, 1e-6).map(Fraction),
    st.decimals(-100, 100, places=2).map(Fraction),
)
spans = st.tuples(ends, ends).map(lambda pair: Interval(min(pair), max(pair)))


@given(st.lists(spans, min_size=1, max_size=6), st.floats(0, 1))
def test_whatever_a_record_adds_is_within_the_slack_of_its_weight(
    cells: list[Interval], share: float
) -> None:
    found = grid_of(cells)
    assert (found.weights == np.round(found.weights)).all()
    assert (found.slack == np.round(found.slack)).all()
    assert (
        np.abs(found.weights).max() <= MAX_UNITS_PER_ROW and found.slack.max() <= MAX_UNITS_PER_ROW
    )
    for cell, weight, slack in zip(cells, found.weights, found.slack, strict=True):
        true = cell.low + (cell.high - cell.low) * Fraction(share)
        written = Fraction(1, 2**49) * max(abs(cell.low), abs(cell.high))
        assert abs(true - Fraction(weight) * found.unit) <= Fraction(slack) * found.unit + written


@given(st.lists(st.integers(-1000, 1000).map(Fraction), min_size=1, max_size=5))
def test_single_whole_numbers_need_no_slack(values: list[Fraction]) -> None:
    found = grid_of([Interval(each, each) for each in values])
    assert found.exact and found.unit == 1 and found.weights.tolist() == values


def test_doubles_are_the_numbers_that_they_are_written_for() -> None:
    found = grid_of(
        [Interval(Fraction(0.1), Fraction(0.1)), Interval(Fraction(0.25), Fraction(0.25))]
    )
    assert found.exact and found.unit == Fraction(1, 20) and found.weights.tolist() == [2, 5]


def test_bins_of_whole_numbers_are_counted_in_halves() -> None:
    found = grid_of([Interval(Fraction(0), Fraction(9)), Interval(Fraction(10), Fraction(19))])
    assert found.unit == Fraction(1, 2)
    assert found.weights.tolist() == [9, 29] and found.slack.tolist() == [9, 9]


def test_numbers_too_large_for_their_unit_get_a_coarser_one_and_slack_for_it() -> None:
    found = grid_of([Interval(Fraction(10**12 + 1), Fraction(10**12 + 1))])
    assert found.unit > 1 and not found.exact and found.slack.tolist() == [1]


def argument(sql: str) -> Aggregate:
    (found,) = parse(f"SELECT SUM({sql}) FROM people", POLICY)
    return found


@pytest.mark.parametrize(
    ("sql", "low", "high", "unit", "bounds"),
    [
        ("weight", 0, 9, Fraction(1), (0, 9)),
        ("bonus", -100, 100, Fraction(1, 10**7), (-(10**9), 10**9)),
        ("weight * 1000000000000", 0, 9 * 10**12, Fraction(2**13), (0, 1098632813)),
    ],
)
def test_direct_sums_are_in_the_finest_unit_that_keeps_them_small(
    sql: str, low: int, high: int, unit: Fraction, bounds: tuple[int, int]
) -> None:
    expression = argument(sql).argument
    assert expression is not None
    (column,) = columns_of(expression)
    attribute = UNIVERSE.attributes[UNIVERSE.index(column.column.name)]
    spans = [Interval(Fraction(low), Fraction(high))]
    summand, found = summand_of(expression, attribute, spans)
    assert found == unit and (summand.low, summand.high) == bounds


def test_the_centre_of_a_range_is_a_constant_of_its_type() -> None:
    cells = [Interval(Fraction(0), Fraction(1)), Interval(Fraction(1), Fraction(9))]
    assert centre_of(cells, ColumnType.INTEGER) == Fraction(9, 2)
    third = [Interval(Fraction(0), Fraction(2, 3))]
    assert centre_of(third, ColumnType.DECIMAL) == Fraction(Decimal("0.333333333"))
    assert centre_of(third, ColumnType.DOUBLE) == Fraction(1 / 3)
