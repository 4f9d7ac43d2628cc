"""Between which numbers an expression lies, by interval arithmetic on the policy's bounds.

Dependence between the parts of an expression is not followed, so the interval may be wider than
needed (x - x) and is never too narrow. NULL adds nothing to a sum: it counts as 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from operator import add, mul, sub

from casemate.errors import Unsupported
from casemate.query.language.coercion import NUMBERS
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    children,
)
from casemate.query.language.interpret import evaluate
from casemate.table import ColumnType, Point, image, point


@dataclass(frozen=True)
class Interval:
    """All numbers from `low` to `high`."""

    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        """The number halfway."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> Fraction:
        """How far both ends are from the middle."""
        return (self.high - self.low) / 2

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Interval") -> "Interval":
        return Interval(self.low - other.high, self.high - other.low)

    def __mul__(self, other: "Interval") -> "Interval":
        corners = [a * b for a, b in product((self.low, self.high), (other.low, other.high))]
        return Interval(min(corners), max(corners))

    def __abs__(self) -> "Interval":
        ends = (abs(self.low), abs(self.high))
        crosses = self.low <= 0 <= self.high
        return Interval(Fraction(0) if crosses else min(ends), max(ends))

    def union(self, other: "Interval") -> "Interval":
        """The least interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))


ZERO = Interval(Fraction(0), Fraction(0))
Read = Callable[[ColumnRef], Interval]


def declared_interval(reference: ColumnRef) -> Interval:
    """The bounds of a column, or the span of its values."""
    column = reference.column
    ends = (column.low, column.high) if column.values is None else column.values
    numbers = [image(each) for each in ends if each is not None and not isinstance(each, str)]
    if reference.alias or reference.type not in NUMBERS or not numbers:
        raise Unsupported(f"{column.name} has no bounds to add it up within; declare `min`, `max`")
    return Interval(min(numbers), max(numbers))


def interval(expression: Expression, read: Read = declared_interval) -> Interval:
    """An interval that holds the expression wherever its columns are within theirs."""
    if isinstance(expression, Literal):
        return _constant(expression)
    if isinstance(expression, ColumnRef):
        return read(expression)
    if isinstance(expression, Call):
        if expression.operation is Operation.CASE:
            *pairs, otherwise = expression.arguments
            return _around([*pairs[1::2], otherwise], read)
        if expression.operation in (Operation.COALESCE, Operation.LEAST, Operation.GREATEST):
            return _around(list(expression.arguments), read)
        if expression.operation in STEPS:
            return _monotone(expression, read)
        if expression.operation in ALGEBRA:
            operands = (interval(each, read) for each in expression.arguments)
            return ALGEBRA[expression.operation](*operands)
    raise Unsupported("no bounds are known for what is added up here; add up a bounded column")


def _around(parts: list[Expression], read: Read) -> Interval:
    first, *rest = (interval(each, read) for each in parts)
    for each in rest:
        first = first.union(each)
    return first


def _constant(constant: Literal) -> Interval:
    value = constant.value
    if value is None:
        return ZERO
    if isinstance(value, str | bool):
        raise Unsupported("only numbers are added up")
    return Interval(image(value), image(value))


def _monotone(call: Call, read: Read) -> Interval:
    """A step function or a cast, which keeps the order: computed at both ends."""
    first, *rest = call.arguments
    if first.type not in NUMBERS or not all(isinstance(each, Literal) for each in rest):
        raise Unsupported("only numbers are added up")
    inner = interval(first, read)
    ends = sorted(_at(call, first.type, each) for each in (inner.low, inner.high))
    return Interval(ends[0], ends[1])


def _at(call: Call, kind: ColumnType, place: Fraction) -> Fraction:
    arguments = (Literal(point(place, kind), kind), *call.arguments[1:])
    value = evaluate(Call(call.operation, arguments, call.type), _nothing)
    if not isinstance(value, Point) or isinstance(value, str):
        raise Unsupported("no bounds are known for what is added up here; add up a bounded column")
    return image(value)


def _nothing(_: object) -> None:
    raise LookupError("a constant reads nothing")


ALGEBRA: dict[Operation, Callable[..., Interval]] = {
    Operation.ADD: add,
    Operation.SUBTRACT: sub,
    Operation.MULTIPLY: mul,
    Operation.ABS: abs,
}
STEPS = (Operation.FLOOR, Operation.CEIL, Operation.ROUND, Operation.CAST)


# Proofs of range ------------------------------------------------------------------------------

LARGEST_STEP = {
    ColumnType.INTEGER: Fraction(2**63 - 1),
    ColumnType.DECIMAL: Fraction(10**25),  # with 12 digits after the point they are 37 of 38
    ColumnType.DOUBLE: Fraction(10**300),
}
"""What a step of a computation stays within, so that no engine makes an error or NULL of it."""

DECIMAL_DIGITS, MOST_DIGITS = 12, 37
"""Digits of a decimal that every engine keeps: after the point, and in all with one to spare."""

EXACT_STEPS = (
    *(Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.ABS),
    *(Operation.CASE, Operation.COALESCE, Operation.LEAST, Operation.GREATEST, Operation.CAST),
)
"""What every engine computes exactly among whole numbers and decimals of few digits."""


def within_range(expression: Expression, read: Read = declared_interval) -> bool:
    """Whether no step of a number's computation leaves its type, wherever the columns are."""
    return all(_fits(each, interval(each, read)) for each in steps(expression))


def exact(expression: Expression) -> bool:
    """Whether every engine computes a number without rounding, given that it stays in range."""
    return all(_is_exact(each) for each in steps(expression))


def steps(expression: Expression) -> Iterator[Expression]:
    """The numbers that a number is computed from, itself included; conditions of CASE are none."""
    yield expression
    for each in _operands(expression):
        yield from steps(each)


def _operands(expression: Expression) -> tuple[Expression, ...]:
    arguments = children(expression)
    if isinstance(expression, Call) and expression.operation is Operation.CASE:
        return (*arguments[1::2], arguments[-1])
    if isinstance(expression, Call) and expression.operation in (Operation.ROUND, Operation.CAST):
        return arguments[:1]  # digits follow
    return arguments


def _fits(step: Expression, span: Interval) -> bool:
    top = max(abs(span.low), abs(span.high))
    if step.type not in NUMBERS or top > LARGEST_STEP[step.type]:
        return False
    product = isinstance(step, Call) and step.operation is Operation.MULTIPLY
    if not product or step.type is not ColumnType.DECIMAL:
        return True
    digits = sum(min(DECIMAL_DIGITS, _fraction_digits(each)) for each in _operands(step))
    return top < 10 ** (MOST_DIGITS - digits) and _fraction_digits(step) <= MOST_DIGITS


def _is_exact(step: Expression) -> bool:
    if step.type not in (ColumnType.INTEGER, ColumnType.DECIMAL):
        return False
    if not isinstance(step, Call):
        return True
    narrow = _fraction_digits(step) <= DECIMAL_DIGITS
    plain = step.operation is not Operation.CAST or len(step.arguments) == 1
    return step.operation in EXACT_STEPS and narrow and plain


def _fraction_digits(step: Expression) -> int:
    """Digits after the point that a number has at most, where it is computed exactly."""
    if step.type is ColumnType.INTEGER:
        return 0
    if isinstance(step, Literal):
        whole = not isinstance(step.value, Decimal)
        return 0 if whole else max(0, -int(step.value.normalize().as_tuple().exponent))  # type: ignore[union-attr]  # a decimal
    digits = [_fraction_digits(each) for each in _operands(step)]
    if isinstance(step, Call) and step.operation is Operation.MULTIPLY:
        return sum(digits)
    return max(digits, default=DECIMAL_DIGITS)
