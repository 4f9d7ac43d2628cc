"""Breaks: between two neighbours of them a condition does not change."""

from datetime import date
from fractions import Fraction

import pytest

from casemate.query.language import Expression
from casemate.query.parse import parse
from casemate.query.snapping import breaks
from casemate.query.snapping.cells import UnknownBreaks
from casemate.table import Column, ColumnType, Policy

POLICY = Policy(
    "",
    (
        Column("x", type=ColumnType.INTEGER, low=-1000, high=1000),
        Column("y", type=ColumnType.DECIMAL, low=-1000, high=1000),
        Column("w", type=ColumnType.DOUBLE),
        Column("d", type=ColumnType.DATE),
        Column("far", type=ColumnType.INTEGER, low=-(2**63) + 1, high=2**63 - 1),
        Column("z", type=ColumnType.INTEGER),
    ),
)


def condition(text: str) -> Expression:
    (aggregate,) = parse(f"SELECT COUNT(*) FROM t WHERE {text}", POLICY)
    return aggregate.predicate


DAY = date(2020, 1, 1).toordinal()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("x > 5", {5}),
        ("5.5 >= x", {Fraction(11, 2)}),
        ("x IN (1, 2, NULL)", {1, 2}),
        ("x IS NULL", set()),
        ("x + 1 IS NULL", {-1}),
        ("x BETWEEN 2 AND 7 OR NOT x = 9", {2, 7, 9}),
        ("(3 - 2 * x) < 9", {-3}),
        ("y * 3 = 1", {Fraction(1, 3)}),
        ("abs(y - 1) < 2", {-1, 3}),
        ("CASE WHEN x < 4 THEN x ELSE 8 END > 2", {4, 2}),
        ("w < 0.1", {Fraction(0.1)}),
        ("d < '2020-01-01'", {DAY}),
        ("d < TIMESTAMP '2020-01-01 12:00:00'", {DAY + Fraction(1, 2)}),
        ("(x > 1) IS TRUE", {1}),
        ("x + 9000000000 > 1", {1 - 9_000_000_000}),
        ("far > 9000000000", {9_000_000_000}),
        ("abs(far) < 7", {7, -7}),
    ],
)
def test_a_condition_changes_only_at_its_constants(text: str, places: set[Fraction]) -> None:
    assert breaks(condition(text)) == {Fraction(each) for each in places}


@pytest.mark.parametrize(
    "text",
    [
        "x % 2 = 1",
        "x > y",
        "w * 2 > 1",
        "x * 0 = 0",
        "far + 1 > 1",
        "far * 2 IS NULL",
        "z + 1 > 1",
        "sqrt(w) > 1",
        "y / 2 > 1",
    ],
)
def test_what_cannot_be_solved_exactly_has_no_known_breaks(text: str) -> None:
    with pytest.raises(UnknownBreaks):
        breaks(condition(text))
