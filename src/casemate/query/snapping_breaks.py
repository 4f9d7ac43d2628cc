"""Where along a column an expression of it may change: the constants that it is compared with.

Between two neighbouring breaks every comparison in the expression has one value, so one value of
the column decides for all of them. Only arithmetic that every engine does exactly is solved for
the column; `Unbroken` says that the breaks are not known.
"""

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction

from casemate.query.expression import Call, ColumnRef, Expression, Literal, Operation, columns_of
from casemate.table.schema import ColumnType
from casemate.table.universe_cuts import image

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
LARGEST = 2**31
"""Constants up to this are taken to leave a bounded column within 64 bits."""

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
    if call.type not in EXACT:
        raise Unbroken
    return solved(call.arguments[0], value) | solved(call.arguments[0], -value)


def _nearest(value: Fraction) -> Breaks:
    """A constant among doubles: the double that it is written for."""
    return frozenset({Fraction(float(value))})


def _widened(call: Call, value: Fraction) -> Breaks:
    """A cast that loses nothing; a date is the first moment of its day."""
    inner = call.arguments[0]
    if len(call.arguments) > 1 or call.type not in WIDENED.get(inner.type, ()):
        raise Unbroken
    days = inner.type is ColumnType.DATE
    return solved(inner, value / DAY + FIRST_DAY if days else value)


def _unwound(call: Call, value: Fraction) -> Breaks:
    """Plus, minus or times a constant, in exact arithmetic."""
    if call.type not in EXACT or len(call.arguments) != 2:
        raise Unbroken
    left, right = call.arguments
    if any(isinstance(each, Literal) and abs(_image(each)) > LARGEST for each in call.arguments):
        raise Unbroken
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
