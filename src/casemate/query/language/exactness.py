"""What proves that every engine computes an expression exactly, as its formula says.

An overflow is NULL, a decimal product is cut to 12 digits after the point and a double absorbs what
is small beside it: there the engine's value is another function of a column than the formula. A
step is exact where, wherever the columns are within their bounds, whole numbers stay in 64 bits,
decimals within the digits that DuckDB and PostgreSQL both keep, and doubles whole and below 2^53.
Of doubles that need not be whole only choosing, negating and multiplying by 1 is exact. A part that
reads nothing private may be anything: everybody can compute what the engine makes of it, so it
counts as a number of its type.

`reach` follows the steps of an expression of something private; `within_range` and `exact` are
the quick yes or no about a number within declared bounds.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce

from casemate.query.language.coercion import LARGEST_INTEGER, NUMBERS
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    columns_of,
    expression_text,
    private_columns,
    walk,
)
from casemate.query.language.intervals import (
    ALGEBRA,
    CHOICES,
    ZERO,
    Interval,
    interval,
    operands_of,
    span_of,
)
from casemate.query.language.operations import FRACTION_DIGITS, WHOLE_DIGITS
from casemate.table import ColumnType, Value

# Proofs of range ------------------------------------------------------------------------------

LARGEST_STEP = {
    ColumnType.INTEGER: Fraction(2**63 - 1),
    ColumnType.DECIMAL: Fraction(10**25),  # with 12 digits after the point they are 37 of 38
    ColumnType.DOUBLE: Fraction(10**300),
}
"""What a step of a computation stays within, so that no engine makes an error or NULL of it."""

MAX_DECIMAL_DIGITS = 37
"""Digits of a decimal that every engine keeps in all, with one to spare."""

EXACT_STEPS = (*ALGEBRA, *CHOICES, Operation.CAST)
"""What every engine computes exactly among whole numbers and decimals of few digits."""


def within_range(expression: Expression) -> bool:
    """Whether no step of a number's computation leaves its type, wherever the columns are."""
    return all(_fits(each, interval(each)) for each in steps(expression))


def exact(expression: Expression) -> bool:
    """Whether every engine computes a number without rounding, given that it stays in range."""
    return all(_is_exact(each) for each in steps(expression))


def steps(expression: Expression) -> Iterator[Expression]:
    """The numbers that a number is computed from, itself included."""
    yield expression
    for each in operands_of(expression):
        yield from steps(each)


def _fits(step: Expression, span: Interval) -> bool:
    top = max(abs(span.low), abs(span.high))
    if step.type not in NUMBERS or top > LARGEST_STEP[step.type]:
        return False
    product = isinstance(step, Call) and step.operation is Operation.MULTIPLY
    if not product or step.type is not ColumnType.DECIMAL:
        return True
    digits = sum(min(FRACTION_DIGITS, _fraction_digits(each)) for each in operands_of(step))
    return (
        top < 10 ** (MAX_DECIMAL_DIGITS - digits) and _fraction_digits(step) <= MAX_DECIMAL_DIGITS
    )


def _is_exact(step: Expression) -> bool:
    if step.type not in (ColumnType.INTEGER, ColumnType.DECIMAL):
        return False
    if not isinstance(step, Call):
        return True
    narrow = _fraction_digits(step) <= FRACTION_DIGITS
    plain = step.operation is not Operation.CAST or len(step.arguments) == 1
    return step.operation in EXACT_STEPS and narrow and plain


def _fraction_digits(step: Expression) -> int:
    """Digits after the point that a number has at most, where it is computed exactly."""
    if step.type is ColumnType.INTEGER:
        return 0
    if isinstance(step, Literal):
        whole = not isinstance(step.value, Decimal)
        return 0 if whole else max(0, -int(step.value.normalize().as_tuple().exponent))  # type: ignore[union-attr]  # a decimal
    digits = [_fraction_digits(each) for each in operands_of(step)]
    if isinstance(step, Call) and step.operation is Operation.MULTIPLY:
        return sum(digits)
    return max(digits, default=FRACTION_DIGITS)


# Proofs step by step ----------------------------------------------------------------------------

DUCKDB_DECIMAL_DIGITS = 38
"""Digits of a decimal in all, on DuckDB."""

MAX_WHOLE_DOUBLE = 2**53
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
        text = expression_text(self.step)
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


def reach(expression: Expression, given: Container[Expression] | None = None) -> ExactReach:
    """What an expression can be where each step is exact, except in parts that are given.

    By default those are given that read nothing private. Raises Inexact where a step is not exact.
    """
    if isinstance(expression, Literal):
        return _exact_constant(expression)
    if isinstance(expression, ColumnRef):
        return _column(expression)
    if not isinstance(expression, Call):
        raise Inexact(expression, "is not part of a row")
    try:
        operands = [reach(each, given) for each in operands_of(expression)]
        return RULES[expression.operation](expression, operands)
    except KeyError:
        error = Inexact(expression, "is not computed exactly")
    except Inexact as found:
        error = found
    if private_columns(expression) if given is None else expression not in given:
        raise error
    return _any(expression)


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


def _any(expression: Expression) -> ExactReach:
    """Any number of a type; what is not a number lies nowhere, and takes no part."""
    kind = expression.type
    digits = {ColumnType.INTEGER: 0, ColumnType.DECIMAL: FRACTION_DIGITS}.get(kind)
    return ExactReach(RANGES.get(kind, ZERO), digits, digits or 0)


def _exact_constant(literal: Literal) -> ExactReach:
    value = literal.value
    if value is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        found = _any(literal)
        return replace(found, interval=ZERO) if value is None else found
    number = Fraction(value)
    if isinstance(value, Decimal):
        digits = max(0, -int(value.as_tuple().exponent))
        fits = (
            abs(value) < 10 ** (DUCKDB_DECIMAL_DIGITS - digits)
            if digits <= FRACTION_DIGITS
            else False
        )
        return ExactReach(Interval(number, number), digits if fits else None, digits)
    return ExactReach(Interval(number, number), 0 if number.denominator == 1 else None)


def _column(reference: ColumnRef) -> ExactReach:
    """A column's bounds, or those of its type."""
    found, column = _any(reference), reference.column
    if reference.type not in NUMBERS:
        return found
    lows, highs = ([column.low], [column.high]) if column.values is None else [column.values] * 2
    low = max(found.interval.low, min(_numbers(lows), default=found.interval.low))
    high = min(found.interval.high, max(_numbers(highs), default=found.interval.high))
    known = reference.type is ColumnType.DECIMAL and column.digits is not None
    return ExactReach(Interval(low, high), column.digits if known else found.digits, found.scale)


def _numbers(values: Iterable[Value | None]) -> list[Fraction]:
    numbers = (each for each in values if isinstance(each, int | Decimal))
    return [Fraction(each) for each in numbers if not isinstance(each, bool)]


# The rules --------------------------------------------------------------------------------------


def _fitting(call: Call, interval: Interval, digits: int | None, scale: int) -> ExactReach:
    """A result, where its type has a place for all of it."""
    kind, within = call.type, RANGES[call.type]
    if kind is ColumnType.DOUBLE:
        within = Interval(Fraction(-MAX_WHOLE_DOUBLE), Fraction(MAX_WHOLE_DOUBLE))
        if digits != 0:
            raise Inexact(call, "is rounded as a double")
    if not within.low <= interval.low <= interval.high <= within.high:
        raise Inexact(call, f"may {LEAVES[kind]}")
    if digits is None or (kind is ColumnType.DECIMAL and digits > FRACTION_DIGITS):
        raise Inexact(call, f"may have more than {FRACTION_DIGITS} digits after the point")
    return ExactReach(interval, digits, scale)


def _sum_reach(call: Call, operands: list[ExactReach]) -> ExactReach:
    left, right = operands
    interval = span_of(call, [left.interval, right.interval])
    negated = call.operation is Operation.SUBTRACT and left.interval == ZERO
    if negated and call.type is ColumnType.DOUBLE:  # which every double has
        return ExactReach(interval, right.digits)
    digits, scale = _finer(left.digits, right.digits), max(left.scale, right.scale)
    return _fitting(call, interval, digits, scale)


def _product_reach(call: Call, operands: list[ExactReach]) -> ExactReach:
    left, right = operands
    interval = span_of(call, [left.interval, right.interval])
    for one, other in ((left, right), (right, left)):
        if call.type is ColumnType.DOUBLE and one.interval == UNIT:
            return ExactReach(interval, other.digits)
    both = None if left.digits is None or right.digits is None else left.digits + right.digits
    if call.type is not ColumnType.DECIMAL:
        return _fitting(call, interval, both, 0)
    scale = left.scale + right.scale
    most = 10 ** (DUCKDB_DECIMAL_DIGITS - scale) if scale < DUCKDB_DECIMAL_DIGITS else 0
    if max(abs(interval.low), abs(interval.high)) >= most:
        raise Inexact(call, f"may have more than {DUCKDB_DECIMAL_DIGITS} digits")
    return _fitting(call, interval, both, FRACTION_DIGITS)


def _choice_reach(call: Call, results: list[ExactReach]) -> ExactReach:
    """One of several results; decimals are brought under one roof."""
    if call.type not in NUMBERS:
        return _any(call)
    interval = span_of(call, [each.interval for each in results])
    digits = reduce(_finer, (each.digits for each in results))
    if call.type is ColumnType.DOUBLE:
        return ExactReach(interval, digits)
    return _fitting(
        call, interval, digits, FRACTION_DIGITS if call.type is ColumnType.DECIMAL else 0
    )


def _cast_reach(call: Call, operands: list[ExactReach]) -> ExactReach:
    """A cast between exact numbers that keeps all digits, or of whole numbers to doubles."""
    first, source = operands[0], call.arguments[0].type
    if source is call.type is ColumnType.DOUBLE:
        return ExactReach(first.interval, first.digits)
    kept = _kept_digits(call)
    exact = source in EXACT and not (
        source is ColumnType.DECIMAL and call.type is ColumnType.DOUBLE
    )
    if not exact or first.digits is None or kept is None:
        raise Inexact(call, "is rounded")
    if first.digits > kept:
        raise Inexact(call, "may lose digits after the point")
    return _fitting(
        call, first.interval, first.digits, kept if len(call.arguments) > 1 else first.scale
    )


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
UNIT = Interval(Fraction(1), Fraction(1))
RULES: dict[Operation, Callable[[Call, list[ExactReach]], ExactReach]] = {
    Operation.ADD: _sum_reach,
    Operation.SUBTRACT: _sum_reach,
    Operation.MULTIPLY: _product_reach,
    Operation.CASE: _choice_reach,
    Operation.COALESCE: _choice_reach,
    Operation.CAST: _cast_reach,
}
