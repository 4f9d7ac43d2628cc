"""Where along a column an expression of it may change: the constants that it is compared with.

Between two neighbouring breaks every comparison in the expression has one value, so one value of
the column decides for all of them. Only arithmetic that every engine does exactly is solved for
the column, and only where the column's declared bounds keep every step of it within its type, for
past that it is NULL; `Unbroken` says that the breaks are not known.
"""

import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction

from casemate.errors import Unsupported
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
)
from casemate.query.language.intervals import within_range
from casemate.table import ColumnType, image

Breaks = frozenset[Fraction]
NONE: Breaks = frozenset()

EXACT = (ColumnType.INTEGER, ColumnType.DECIMAL)
CONNECTIVES = (Operation.AND, Operation.OR, Operation.NOT, Operation.IS_TRUE)
COMPARISONS = (
    *(Operation.EQUAL, Operation.DIFFERENT, Operation.SAME, Operation.IN),
    *(Operation.LESS, Operation.LESS_EQUAL, Operation.GREATER, Operation.GREATER_EQUAL),
)
WIDENED = {
    ColumnType.INTEGER: (ColumnType.DECIMAL, ColumnType.DOUBLE),
    ColumnType.DECIMAL: (ColumnType.DOUBLE,),
    ColumnType.DATE: (ColumnType.TIMESTAMP,),
}
DAY = 86_400_000_000  # microseconds
FIRST_DAY = date(1970, 1, 1).toordinal()


class Unbroken(Exception):
    """The places where an expression changes cannot be told from its text."""


def breaks(expression: Expression) -> Breaks:
    """The images of the column at which the expression may change its value."""
    if not columns_of(expression):
        return NONE
    if not isinstance(expression, Call):
        raise Unbroken
    if expression.operation in COMPARISONS:
        return _compared(expression)
    if expression.operation is Operation.IS_NULL:
        return _missing(expression.arguments[0])
    if expression.operation in CONNECTIVES:
        return _united(expression.arguments, breaks)
    if expression.operation is Operation.CASE:
        return _case(expression, breaks)
    raise Unbroken


def _missing(tested: Expression) -> Breaks:
    """Where something becomes NULL: only where a condition in it changes."""
    return NONE if isinstance(tested, ColumnRef) else solved(tested, Fraction(0))


def _united(parts: tuple[Expression, ...], each: Callable[[Expression], Breaks]) -> Breaks:
    return NONE.union(*(each(part) for part in parts))


def _case(call: Call, result: Callable[[Expression], Breaks]) -> Breaks:
    *pairs, otherwise = call.arguments
    return _united(tuple(pairs[::2]), breaks) | _united((*pairs[1::2], otherwise), result)


def _compared(call: Call) -> Breaks:
    """A side that reads the column, compared with constants."""
    constants = [each for each in call.arguments if isinstance(each, Literal)]
    sides = [each for each in call.arguments if not isinstance(each, Literal)]
    if len(sides) != 1:
        raise Unbroken
    known = [_image(each) for each in constants if each.value is not None]
    return NONE.union(*(solved(sides[0], each) for each in known))


def _image(constant: Literal) -> Fraction:
    value = constant.value
    if value is None or isinstance(value, str | bool):
        raise Unbroken
    return image(Decimal(repr(value))) if isinstance(value, float) else image(value)


def solved(expression: Expression, value: Fraction) -> Breaks:
    """The images of the column at which a number computed from it reaches a value."""
    if isinstance(expression, Literal):
        return NONE
    if isinstance(expression, ColumnRef):
        return _nearest(value) if expression.type is ColumnType.DOUBLE else frozenset({value})
    if not isinstance(expression, Call):
        raise Unbroken
    return SOLVERS.get(expression.operation, _unwound)(expression, value)


def _magnitude(call: Call, value: Fraction) -> Breaks:
    _check_exact(call)
    return solved(call.arguments[0], value) | solved(call.arguments[0], -value)


def _check_exact(call: Call) -> None:
    """Arithmetic must be without rounding or overflow wherever the column is within bounds."""
    try:
        if call.type in EXACT and within_range(call):
            return
    except Unsupported:
        pass
    raise Unbroken


def _nearest(value: Fraction) -> Breaks:
    """A constant among doubles: the double that it is written for."""
    return frozenset({Fraction(float(value))})


def _widened(call: Call, value: Fraction) -> Breaks:
    """A cast that keeps the order; a date is the first moment of its day."""
    inner = call.arguments[0]
    if len(call.arguments) > 1 or call.type not in WIDENED.get(inner.type, ()):
        raise Unbroken
    if call.type is ColumnType.DOUBLE:
        return _united_at(inner, _rounded_to(value))
    days = inner.type is ColumnType.DATE
    return solved(inner, value / DAY + FIRST_DAY if days else value)


def _rounded_to(value: Fraction) -> Breaks:
    """A double, and the places halfway to its neighbours: what is between is rounded to it."""
    middle = float(value)
    ends = (math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf))
    return frozenset({value, *((Fraction(middle) + Fraction(end)) / 2 for end in ends)})


def _united_at(inner: Expression, values: Breaks) -> Breaks:
    return NONE.union(*(solved(inner, each) for each in values))


def _unwound(call: Call, value: Fraction) -> Breaks:
    """Plus, minus or times a constant, in exact arithmetic."""
    if len(call.arguments) != 2:
        raise Unbroken
    _check_exact(call)
    left, right = call.arguments
    if isinstance(right, Literal):
        return solved(left, _inverse(call.operation, value, _image(right)))
    if not isinstance(left, Literal):
        raise Unbroken
    if call.operation is Operation.SUBTRACT:
        return solved(right, _image(left) - value)
    return solved(right, _inverse(call.operation, value, _image(left)))


def _inverse(operation: Operation, value: Fraction, constant: Fraction) -> Fraction:
    if operation is Operation.ADD:
        return value - constant
    if operation is Operation.SUBTRACT:
        return value + constant
    if operation is Operation.MULTIPLY and constant:
        return value / constant
    raise Unbroken


SOLVERS: dict[Operation, Callable[[Call, Fraction], Breaks]] = {
    Operation.CAST: _widened,
    Operation.CASE: lambda call, value: _case(call, lambda each: solved(each, value)),
    Operation.COALESCE: lambda call, value: _united(
        call.arguments, lambda each: solved(each, value)
    ),
    Operation.ABS: _magnitude,
}
