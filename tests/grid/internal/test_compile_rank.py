"""Steps of what is ranked: in order, apart, and as wide as their cells."""

from datetime import date, datetime

import pytest
from grid.compiled_world import POLICY

from casemate.grid.ranks import Rank, RankedCells, rank_of
from casemate.query.parse import parse
from casemate.table import Column, ColumnType, Policy, Universe

BORN = Column("born", type=ColumnType.DATE, low=date(2001, 1, 1), high=date(2004, 12, 31), bins=4)
RATE = Column("rate", type=ColumnType.DECIMAL, low=0, high=10, bins=4)
SEEN = Column(
    "seen", type=ColumnType.TIMESTAMP, low=datetime(2020, 1, 1), high=datetime(2020, 1, 3), bins=2
)


def ranked(expression: str, *columns: Column) -> Rank:
    policy = Policy("", columns) if columns else POLICY
    (found,) = parse(f"SELECT MAX({expression}) FROM people", policy)
    assert found.argument is not None
    return rank_of(found.argument, Universe.of(policy))


def ends(rank: Rank) -> list[tuple[object, object]]:
    return [(step.low, step.high) for step in rank.steps]


def test_steps_are_the_cells_in_order_without_null() -> None:
    assert ends(ranked("weight")) == [(each, each) for each in range(10)]
    assert ends(ranked("age"))[:2] == [(0, 9), (10, 19)]
    assert ends(ranked("rate", RATE)) == [(0, 2.5), (2.5, 5), (5, 7.5), (7.5, 10)]
    assert ranked("area").step_of == (2, 1, 0, None), "declared values are sorted"


def test_arithmetic_that_keeps_or_turns_the_order_is_understood() -> None:
    assert ends(ranked("2 * age - 1"))[0] == (-1, 17)
    assert ends(ranked("0 - age"))[0] == (-99, -90)


def test_equal_values_are_one_step() -> None:
    rank = ranked("CASE WHEN weight < 5 THEN 0 ELSE 1 END")
    assert [int(step.cells.sum()) for step in rank.steps] == [5, 6]
    assert rank.up_to(1).sum() == 11


def test_dates_and_times_have_steps_of_their_own() -> None:
    assert ends(ranked("born", BORN))[0] == (date(2001, 1, 1), date(2001, 12, 31))
    assert ends(ranked("seen", SEEN))[1] == (datetime(2020, 1, 2), datetime(2020, 1, 3))


@pytest.mark.parametrize(
    ("step", "share", "value"),
    [
        ((10, 19), 0.0, 10.0),
        ((10, 19), 0.55, 15.0),
        ((10, 19), 1.0, 19.0),
        ((0.0, 2.5), 0.5, 1.25),
        ((date(2001, 1, 1), date(2001, 1, 11)), 0.5, date(2001, 1, 6)),
        (("flu", "flu"), 0.5, "flu"),
    ],
)
def test_values_inside_a_step_are_spread_evenly(step: tuple, share: float, value: object) -> None:  # type: ignore[type-arg]  # any two values
    assert RankedCells(ranked("weight").steps[0].cells, *step).at(share) == value
