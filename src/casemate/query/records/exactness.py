"""Where every engine computes an expression exactly, by interval arithmetic on types and bounds.

An overflow is NULL, a decimal product is cut to 12 digits after the point and a double absorbs what
is small beside it: there the engine's value is another function of a column than the formula. A
step is exact where, wherever the columns are within their bounds, whole numbers stay in 64 bits,
decimals within the digits that DuckDB and PostgreSQL both keep, and doubles whole and below 2^53.
Of doubles that need not be whole only choosing, negating and multiplying by 1 is exact.

A part that reads nothing private may be anything: everybody can compute what the engine makes of
it, so it counts as a number of its type.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeGuard

from casemate.query.engines.text import written
from casemate.query.language.coercion import LARGEST_INTEGER, NUMBERS
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
    private_columns,
    walk,
)
from casemate.query.language.intervals import Interval
from casemate.query.language.operations import FRACTION_DIGITS, WHOLE_DIGITS
from casemate.table import Column, ColumnType

DIGITS = 38
"""Digits of a decimal in all, on DuckDB."""

WHOLE_DOUBLE = 2**53
"""Whole numbers up to here are doubles, and so are their sums and products up to here."""

LARGEST_DECIMAL = 10**WHOLE_DIGITS - Fraction(1, 10**FRACTION_DIGITS)
RANGES = {
    ColumnType.INTEGER: Interval(Fraction(-LARGEST_INTEGER - 1), Fraction(LARGEST_INTEGER)),
    ColumnType.DECIMAL: Interval(-LARGEST_DECIMAL, LARGEST_DECIMAL),
    ColumnType.DOUBLE: Interval(-Fraction(10**308), Fraction(10**308)),
}
LEAVES = {
    ColumnType.INTEGER: "leave 64 bits",
    ColumnType.DECIMAL: f"have more than {WHOLE_DIGITS} digits before the point",
    ColumnType.DOUBLE: "be rounded as a double",
}


class Inexact(Exception):
    """A step that some engine does not compute exactly; the message says which and why."""

    def __init__(self, step: Expression, why: str) -> None:
        super().__init__(why)
        self.step = step

    def __str__(self) -> str:
        text = written(self.step)
        return f"{text[1:-1] if text.startswith('(') else text} {self.args[0]}"


@dataclass(frozen=True)
class ExactReach:
    """Between which numbers an expression lies, and how fine they are.

    `digits` after the point are enough for each of them (None: not even many are, it is a
    double), and `scale` is how many of them an engine with fixed digits keeps.
    """

    interval: Interval
    digits: int | None
    scale: int = 0
    private: bool = False


def reach(expression: Expression, given: Container[Expression] | None = None) -> ExactReach:
    """What an expression can be where each step is exact, except in parts that are given.

    By default those are given that read nothing private. Raises Inexact where a step is not exact.
    """
    if isinstance(expression, Literal):
        return _constant(expression)
    if isinstance(expression, ColumnRef):
        return _column(expression)
    if not isinstance(expression, Call):
        raise Inexact(expression, "is not part of a row")
    try:
        operands = _operands(expression, given)
        private = any(each.private for each in operands)
        return ExactReach(*RULES[expression.operation](expression, operands), private)
    except KeyError:
        error = Inexact(expression, "is not computed exactly")
    except Inexact as found:
        error = found
    if private_columns(expression) if given is None else expression not in given:
        raise error
    return ExactReach(*_any(expression))


def _operands(call: Call, given: Container[Expression] | None) -> list[ExactReach]:
    """What the operands can be; conditions only choose between the others."""
    chosen = call.operation is Operation.CASE
    last = len(call.arguments) - 1
    return [
        ExactReach(ZERO, 0, private=bool(private_columns(each)))
        if chosen and place % 2 == 0 and place < last
        else reach(each, given)
        for place, each in enumerate(call.arguments)
    ]


def differs(expression: Expression) -> bool:
    """Whether an engine may give something else than the interpreter for a declared value."""
    if not isinstance(expression, Call) or not private_columns(expression):
        return False
    return _differs_here(expression) or any(map(differs, expression.arguments))


def _differs_here(call: Call) -> bool:
    first = call.arguments[0]
    if call.operation in (Operation.LOWER, Operation.UPPER):
        declared = (ref.column.values or () for ref in columns_of(first) if ref.private)
        return not all(str(each).isascii() for values in declared for each in values)
    if call.operation in (Operation.ROUND, Operation.CAST) and first.type is ColumnType.DOUBLE:
        return len(call.arguments) > 1
    decimal = call.type is ColumnType.DECIMAL and call.operation in ARITHMETIC
    return call.operation in TRANSCENDENTAL or (decimal and inexact(call) is not None)


def inexact(expression: Expression) -> str | None:
    """Why an expression of something private is not computed exactly, or None if it is."""
    try:
        reach(expression)
    except Inexact as error:
        return str(error)
    return None


def is_exact_beside(expression: Expression, *coefficients: Expression) -> bool:
    """Whether coefficients are exact but for what the expression itself reads of public parts."""
    given = {each for each in walk(expression) if not private_columns(each)}
    try:
        for each in coefficients:
            reach(each, given)
    except Inexact:
        return False
    return True


# What is given ----------------------------------------------------------------------------------

Found = tuple[Interval, int | None, int]


def _any(expression: Expression) -> Found:
    """Any number of a type; what is not a number lies nowhere, and takes no part."""
    kind = expression.type
    digits = {ColumnType.INTEGER: 0, ColumnType.DECIMAL: FRACTION_DIGITS}.get(kind)
    nowhere = Interval(Fraction(0), Fraction(0))
    return RANGES.get(kind, nowhere), digits, digits or 0


def _constant(literal: Literal) -> ExactReach:
    value = literal.value
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        interval, digits, scale = _any(literal)
        nothing = Interval(Fraction(0), Fraction(0)) if value is None else interval
        return ExactReach(nothing, digits, scale)
    number = Fraction(value)
    if isinstance(value, Decimal):
        digits = max(0, -int(value.as_tuple().exponent))
        fits = abs(value) < 10 ** (DIGITS - digits) if digits <= FRACTION_DIGITS else False
        return ExactReach(Interval(number, number), digits if fits else None, digits)
    return ExactReach(Interval(number, number), 0 if number.denominator == 1 else None)


def _column(reference: ColumnRef) -> ExactReach:
    """A column's bounds, or those of its type."""
    interval, digits, scale = _any(reference)
    if reference.type not in NUMBERS:
        return ExactReach(interval, digits, scale, reference.private)
    low, high = _ends(reference.column)
    within = Interval(
        interval.low if low is None else max(low, interval.low),
        interval.high if high is None else min(high, interval.high),
    )
    if reference.type is ColumnType.DECIMAL and reference.column.digits is not None:
        digits = reference.column.digits
    return ExactReach(within, digits, scale, reference.private)


def _ends(column: Column) -> tuple[Fraction | None, Fraction | None]:
    """The least and the greatest declared number, where there are any."""
    if column.values is None:
        low, high = (
            Fraction(end) if _is_number(end) else None for end in (column.low, column.high)
        )
        return low, high
    numbers = [Fraction(each) for each in column.values if _is_number(each)]
    return min(numbers, default=None), max(numbers, default=None)


def _is_number(value: object) -> TypeGuard[int | Decimal]:
    return isinstance(value, int | Decimal) and not isinstance(value, bool)


# The rules --------------------------------------------------------------------------------------


def _fitting(call: Call, interval: Interval, digits: int | None, scale: int) -> Found:
    """A result, where its type has a place for all of it."""
    kind, within = call.type, RANGES[call.type]
    if kind is ColumnType.DOUBLE:
        within = Interval(Fraction(-WHOLE_DOUBLE), Fraction(WHOLE_DOUBLE))
        if digits != 0:
            raise Inexact(call, "is rounded as a double")
    if not within.low <= interval.low <= interval.high <= within.high:
        raise Inexact(call, f"may {LEAVES[kind]}")
    if digits is None or (kind is ColumnType.DECIMAL and digits > FRACTION_DIGITS):
        raise Inexact(call, f"may have more than {FRACTION_DIGITS} digits after the point")
    return interval, digits, scale


def _sum(call: Call, operands: list[ExactReach]) -> Found:
    left, right = operands
    added = call.operation is Operation.ADD
    interval = left.interval + right.interval if added else left.interval - right.interval
    if call.type is ColumnType.DOUBLE and left.interval == ZERO and not added:
        return interval, right.digits, 0  # its negative, which every double has
    digits, scale = _finer(left.digits, right.digits), max(left.scale, right.scale)
    return _fitting(call, interval, digits, scale)


def _product(call: Call, operands: list[ExactReach]) -> Found:
    left, right = operands
    interval = left.interval * right.interval
    for one, other in ((left, right), (right, left)):
        if call.type is ColumnType.DOUBLE and one.interval == UNIT:
            return interval, other.digits, 0
    both = None if left.digits is None or right.digits is None else left.digits + right.digits
    if call.type is not ColumnType.DECIMAL:
        return _fitting(call, interval, both, 0)
    most = 10 ** (DIGITS - left.scale - right.scale) if left.scale + right.scale < DIGITS else 0
    if max(abs(interval.low), abs(interval.high)) >= most:
        raise Inexact(call, f"may have more than {DIGITS} digits")
    return _fitting(call, interval, both, FRACTION_DIGITS)


def _choice(call: Call, operands: list[ExactReach]) -> Found:
    *pairs, otherwise = operands
    return _one_of(call, [*pairs[1::2], otherwise])


def _one_of(call: Call, results: list[ExactReach]) -> Found:
    """One of several results; decimals are brought under one roof."""
    interval, digits = results[0].interval, results[0].digits
    for each in results[1:]:
        interval, digits = interval.union(each.interval), _finer(digits, each.digits)
    if call.type is ColumnType.DOUBLE:
        return interval, digits, 0
    if call.type not in NUMBERS:
        return _any(call)
    return _fitting(
        call, interval, digits, FRACTION_DIGITS if call.type is ColumnType.DECIMAL else 0
    )


def _cast(call: Call, operands: list[ExactReach]) -> Found:
    """A cast between exact numbers that keeps all digits, or of whole numbers to doubles."""
    first, source = operands[0], call.arguments[0].type
    if source is call.type is ColumnType.DOUBLE:
        return first.interval, first.digits, 0
    kept = _kept_digits(call)
    exact = source in EXACT and not (
        source is ColumnType.DECIMAL and call.type is ColumnType.DOUBLE
    )
    if not exact or first.digits is None or kept is None:
        raise Inexact(call, "is rounded")
    if first.digits > kept:
        raise Inexact(call, "may lose digits after the point")
    return _fitting(call, first.interval, first.digits, kept if len(operands) > 1 else first.scale)


def _kept_digits(call: Call) -> int | None:
    """How many digits after the point a cast keeps."""
    if call.type is not ColumnType.DECIMAL:
        return 0 if call.type in NUMBERS else None
    if len(call.arguments) == 1:
        return FRACTION_DIGITS
    digits = call.arguments[1]
    return digits.value if isinstance(digits, Literal) and isinstance(digits.value, int) else None


def _finer(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else max(one, other)


ARITHMETIC = (Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY)
TRANSCENDENTAL = (Operation.POWER, Operation.LN, Operation.EXP)
EXACT = (ColumnType.INTEGER, ColumnType.DECIMAL)
ZERO, UNIT = (Interval(Fraction(end), Fraction(end)) for end in (0, 1))
RULES: dict[Operation, Callable[[Call, list[ExactReach]], Found]] = {
    Operation.ADD: _sum,
    Operation.SUBTRACT: _sum,
    Operation.MULTIPLY: _product,
    Operation.CASE: _choice,
    Operation.COALESCE: _one_of,
    Operation.CAST: _cast,
}
