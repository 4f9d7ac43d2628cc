"""Where a column's range is cut into cells: typed constants that every engine compares alike.

Values of an ordered column have an image among the rational numbers: a number is itself, a date
the number of its day, a timestamp its microseconds. Cells of equal width are drawn in the image;
a cut is the least value of the column's type that belongs to the cell above it.
"""

import math
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from fractions import Fraction

from casemate.table.schema import ColumnType, Value

Point = Value | float
"""A value of a column; policies name no floats, but columns hold them."""

EPOCH = datetime(1970, 1, 1)
WHOLE = (ColumnType.INTEGER, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types between two of whose neighbouring values there is nothing."""

FRACTION_DIGITS = 12
"""Digits after the point of a decimal cut: as many as every engine computes with."""

PRECISE = Context(prec=76)


def image(value: Point) -> Fraction:
    """The number that a number, a date or a timestamp stands for.

    >>> image(Decimal("0.5")), image(date(1, 1, 3))
    (Fraction(1, 2), Fraction(3, 1))
    """
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return Fraction(value.toordinal())
    if isinstance(value, str):
        raise ValueError("text has no image among the numbers")
    return Fraction(value)


def point(place: Fraction, kind: ColumnType) -> Point:
    """The least value of a type whose image is not below a place; the nearest one of doubles.

    >>> point(Fraction(7, 2), ColumnType.INTEGER), point(Fraction(1, 3), ColumnType.DECIMAL)
    (4, Decimal('0.333333333334'))
    """
    if kind is ColumnType.DOUBLE:
        return float(place)
    if kind is ColumnType.DECIMAL:
        with localcontext(PRECISE):
            grid = Decimal(math.ceil(place * 10**FRACTION_DIGITS)).scaleb(-FRACTION_DIGITS)
            return grid.normalize() + 0
    above = math.ceil(place)
    if kind is ColumnType.DATE:
        return date.fromordinal(above)
    return EPOCH + timedelta(microseconds=above) if kind is ColumnType.TIMESTAMP else above


def typed(value: Value, kind: ColumnType) -> Point:
    """A value that a policy names, as the column holds it."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        if kind is ColumnType.DOUBLE:
            return float(value)
        return Decimal(value) if kind is ColumnType.DECIMAL else value
    return value


def whole_values(low: Value, high: Value, kind: ColumnType) -> int | None:
    """How many values a type has between two bounds; None where there is no telling."""
    return int(image(high) - image(low)) + 1 if kind in WHOLE else None


def cuts(low: Value, high: Value, bins: int, kind: ColumnType) -> tuple[Point, ...]:
    """The least value of each cell but the first; no cell is left without a value.

    >>> cuts(0, 10, 4, ColumnType.INTEGER), cuts(0, 2, 9, ColumnType.INTEGER)
    ((3, 5, 8), (1, 2))
    """
    count = min(bins, whole_values(low, high, kind) or bins)
    first, width = image(low), image(high) - image(low)
    places = (first + width * step / count for step in range(1, count))
    drawn = dict.fromkeys(point(place, kind) for place in places)
    bottom, top = image(low), image(high)
    return tuple(each for each in drawn if bottom < image(each) <= top)
