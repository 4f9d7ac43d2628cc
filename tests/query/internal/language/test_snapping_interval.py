"""Interval arithmetic: no value of a column leads out of it, and simple ones reach its ends."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Unsupported
from casemate.query.language import ColumnRef, Expression, Interval, evaluate
from casemate.query.language.intervals import interval
from casemate.query.parse import parse
from casemate.table import Column, ColumnType, Policy

X = Column("x", type=ColumnType.INTEGER, low=-7, high=12, bins=4)
Y = Column("y", type=ColumnType.DECIMAL, low=Decimal("-0.5"), high=3, bins=4)
Z = Column("z", type=ColumnType.INTEGER, values=(2, 40, 5))
FREE = Column("free", type=ColumnType.INTEGER)
POLICY = Policy("", (X, Y, Z, FREE))


def added(text: str) -> Expression:
    (aggregate,) = parse(f"SELECT SUM({text}) FROM t", POLICY)
    assert aggregate.argument is not None
    return aggregate.argument


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("x", -7, 12),
        ("z", 2, 40),
        ("x + 1", -6, 13),
        ("2 * x - y", -17, Fraction(49, 2)),
        ("-x", -12, 7),
        ("x * x", -84, 144),
        ("abs(x)", 0, 12),
        ("abs(z - 50)", 10, 48),
        ("CASE WHEN z > 3 THEN x ELSE 100 END", -7, 100),
        ("coalesce(x, -20)", -20, 12),
        ("greatest(x, y)", -7, 12),
        ("round(y)", -1, 3),
        ("floor(y)", -1, 3),
        ("CAST(y AS integer)", -1, 3),
        ("CASE WHEN x > 0 THEN 5 END", 0, 5),
        ("3", 3, 3),
    ],
)
def test_bounds_follow_from_those_of_the_columns(
    text: str, low: int | Fraction, high: int | Fraction
) -> None:
    assert interval(added(text)) == Interval(Fraction(low), Fraction(high))


TEXTS = ["x * y - z", "abs(x - 3) * 2", "round(y * 3) - x", "coalesce(x, y) + z", "least(x, z) * y"]


@given(
    st.sampled_from(TEXTS),
    st.integers(-7, 12),
    st.decimals(Decimal("-0.5"), 3, places=2),
    st.sampled_from([2, 40, 5]),
)
def test_no_value_leads_out_of_it(text: str, x: int, y: Decimal, z: int) -> None:
    values: dict[str, int | Decimal] = {"x": x, "y": y, "z": z}

    def read(reference: object) -> int | Decimal:
        assert isinstance(reference, ColumnRef)
        return values[reference.column.name]

    found = evaluate(added(text), read)
    assert isinstance(found, int | Decimal)
    span = interval(added(text))
    assert span.low <= Fraction(found) <= span.high


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("free", "free has no bounds to add it up within"),
        ("x % 3", "no bounds are known"),
        ("sqrt(x)", "no bounds are known"),
    ],
)
def test_what_has_no_bounds_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        interval(added(text))


def test_the_middle_and_the_half_make_the_interval() -> None:
    found = Interval(Fraction(-1), Fraction(4))
    assert (found.middle - found.half, found.middle + found.half) == (found.low, found.high)
