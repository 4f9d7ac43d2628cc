"""The universe: cells drawn by the policy alone, one reserved for what it does not declare."""

from bisect import bisect_right
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.table import (
    Attribute,
    AttributeKind,
    Column,
    ColumnType,
    Policy,
    Role,
    Universe,
    image,
    point,
)
from casemate.table.universe import MOST_EXACT, USUAL_BINS, cuts

INTEGER, DECIMAL, DOUBLE = ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE
NEW_YEAR = datetime(2000, 1, 1)
DATE, TIMESTAMP, TEXT = ColumnType.DATE, ColumnType.TIMESTAMP, ColumnType.TEXT


def attribute(**settings: Any) -> Attribute:
    (found,) = Universe.of(Policy("", (Column("x", **settings),))).attributes
    return found


def left_out(**settings: Any) -> str:
    (found,) = Universe.of(Policy("", (Column("x", **settings),))).left_out
    return found.reason


# Which columns, and how many cells ---------------------------------------------------------------


def test_every_usable_column_is_an_attribute_and_identifiers_never_are() -> None:
    columns = (
        Column("id", Role.IDENTIFIER, INTEGER),
        Column("age", Role.PUBLIC, INTEGER, low=0, high=99, bins=10),
        Column("sex", Role.PUBLIC, TEXT, values=("f", "m")),
        Column("ill", Role.PRIVATE, ColumnType.BOOLEAN),
        Column("name", Role.PUBLIC, TEXT),
    )
    universe = Universe.of(Policy("", columns))
    assert [each.name for each in universe.attributes] == ["age", "sex", "ill"]
    assert [each.role for each in universe.attributes] == [Role.PUBLIC, Role.PUBLIC, Role.PRIVATE]
    assert [each.kind for each in universe.attributes] == [
        AttributeKind.BINS,
        AttributeKind.VALUES,
        AttributeKind.VALUES,
    ]
    assert universe.shape == (11, 3, 3) and universe.cells == 99
    assert universe.index("ill") == 2
    assert [each.name for each in universe.left_out] == ["name"]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"type": TEXT}, "x has no cells; declare its `values` in the policy"),
        ({"type": INTEGER}, "x has no cells; declare `min`, `max` and `bins` in the policy"),
        ({"type": INTEGER, "unbounded": True}, "declare `min`, `max` and `bins`"),
        ({"low": 0, "high": 5}, "the type of x is not known; declare `type` for it"),
    ],
)
def test_a_column_without_cells_is_left_out_with_the_reason(
    settings: dict[str, Any], reason: str
) -> None:
    assert reason in left_out(**settings)


DAY = date(2020, 1, 1)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"type": DOUBLE, "low": 0, "high": 1}, USUAL_BINS + 1),
        ({"type": INTEGER, "low": 0, "high": MOST_EXACT}, USUAL_BINS + 1),
        ({"type": INTEGER, "low": -1, "high": 3}, 6),  # few whole numbers have a cell each
        ({"type": INTEGER, "low": 0, "high": 3, "bins": 100}, 5),  # and no more than that
        ({"type": DATE, "low": DAY, "high": date(2020, 1, 2), "bins": 7}, 3),
        ({"type": DECIMAL, "low": 0, "high": 3, "bins": 100}, 101),
        *(
            ({"type": kind, "low": 3, "high": 3, "bins": 1}, 2)
            for kind in (INTEGER, DECIMAL, DOUBLE)
        ),
    ],
)
def test_a_column_has_as_many_cells_as_bins_or_values_and_one_more(
    settings: dict[str, Any], size: int
) -> None:
    assert attribute(**settings).size == size


def test_a_persons_rows_are_limited_even_where_their_key_is_the_person() -> None:
    column = (Column("x", type=INTEGER, low=0, high=3),)
    assert Universe.of(Policy("", column, None, None, 1)).person is None
    assert Universe.of(Policy("", column, "id", "id", 1)).person == "id"  # nobody checked the key
    assert Universe.of(Policy("", column, "id", "who", 2)).person == "who"


# Which cell ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "values", "cells"),
    [
        (
            {"type": INTEGER, "low": -1, "high": 3},
            [-9, -1, 0, 3, 99, None],
            [0, 0, 1, 4, 4, 5],
        ),
        ({"type": DOUBLE, "low": 3, "high": 3, "bins": 1}, [7.0, -7.0, None], [0, 0, 1]),
        (
            {"type": DECIMAL, "low": 3, "high": 10, "bins": 2},
            [Decimal("2.9"), Decimal("6.49"), Decimal("6.5"), Decimal(10), Decimal(11), None],
            [0, 0, 1, 1, 1, 2],
        ),
        (
            {"type": DATE, "low": date(2001, 1, 1), "high": date(2004, 12, 31), "bins": 4},
            [date(1999, 1, 1), date(2001, 12, 31), date(2002, 1, 1), date(2030, 1, 1), None],
            [0, 0, 1, 3, 4],
        ),
        (
            {"type": TIMESTAMP, "low": NEW_YEAR, "high": datetime(2000, 1, 3), "bins": 2},
            [datetime(2000, 1, 1, 23, 59), datetime(2000, 1, 2), None],
            [0, 1, 2],
        ),
        ({"type": TEXT, "values": ("b", "a")}, ["b", "a", "c", None], [0, 1, 2, 2]),
        ({"type": ColumnType.BOOLEAN}, [False, True, None], [0, 1, 2]),
        ({"type": ColumnType.BOOLEAN, "values": (True,)}, [False, True, None], [1, 0, 1]),
    ],
)
def test_values_fall_into_their_cells(
    settings: dict[str, Any], values: list[Any], cells: list[int]
) -> None:
    found = attribute(**settings)
    assert [found.cell(value) for value in values] == cells


ranges = st.tuples(st.integers(-1000, 1000), st.integers(1, 1000), st.integers(1, 50))


@given(ranges, st.integers(-2500, 2500))
def test_bins_of_whole_numbers_have_equal_width_and_the_last_is_closed(
    drawn: tuple[int, int, int], value: int
) -> None:
    low, width, bins = drawn
    found = attribute(type=INTEGER, low=low, high=low + width, bins=bins)
    count = min(bins, width + 1)
    clamped = min(max(value, low), low + width)
    assert found.size == count + 1
    assert found.cell(value) == min((clamped - low) * count // width, count - 1)


@given(ranges, st.decimals(-2500, 2500, places=3))
def test_bins_of_decimals_have_equal_width_up_to_the_last_digit_kept(
    drawn: tuple[int, int, int], value: Decimal
) -> None:
    low, width, bins = drawn
    found = attribute(type=DECIMAL, low=low, high=low + width, bins=bins)
    clamped = min(max(Fraction(value), Fraction(low)), Fraction(low + width))
    assert found.cell(value) == min(int((clamped - low) * bins / width), bins - 1)


@given(ranges, st.sampled_from([INTEGER, DECIMAL, DOUBLE]))
def test_cuts_rise_and_no_cell_is_empty(drawn: tuple[int, int, int], kind: ColumnType) -> None:
    low, width, bins = drawn
    found = cuts(low, low + width, bins, kind)
    places = [image(each) for each in found]
    assert places == sorted(set(places))
    assert all(low < each <= low + width for each in places)
    cells = {bisect_right(places, each) for each in (Fraction(low), *places)}
    assert cells == set(range(len(places) + 1))


@given(st.integers(-(10**6), 10**6))
def test_a_whole_place_is_the_image_of_its_point(place: int) -> None:
    for kind in (INTEGER, DECIMAL, DOUBLE, TIMESTAMP):
        assert image(point(Fraction(place), kind)) == place
    assert image(point(Fraction(abs(place) + 1), DATE)) == abs(place) + 1
