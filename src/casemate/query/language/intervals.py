"""Between which numbers an expression lies: interval arithmetic on the policy's bounds.

Dependence between the parts of an expression is not followed, so an interval may be wider than
needed (x - x) and is never too narrow. NULL adds nothing to a sum: it counts as 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
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
from casemate.query.language.interpret import constant
from casemate.table import Point, image, point


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
    if not isinstance(expression, Call) or expression.operation not in SPANS:
        raise Unsupported(UNKNOWN)
    if expression.operation in ROUNDING:
        _check_numbers(expression)
    return span_of(expression, [interval(each, read) for each in operands_of(expression)])


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The numbers that a step is computed from: no conditions of CASE, and no digits."""
    arguments = children(expression)
    if isinstance(expression, Call) and expression.operation is Operation.CASE:
        return (*arguments[1::2], arguments[-1])
    if isinstance(expression, Call) and expression.operation in ROUNDING:
        return arguments[:1]
    return arguments


def _constant(literal: Literal) -> Interval:
    value = literal.value
    if value is None:
        return ZERO
    if isinstance(value, str | bool):
        raise Unsupported("only numbers are added up")
    return Interval(image(value), image(value))


def span_of(call: Call, operands: Sequence[Interval]) -> Interval:
    """The interval of a step, from those of the numbers that it is computed from."""
    if call.operation in ALGEBRA:
        return ALGEBRA[call.operation](*operands)
    if call.operation in CHOICES:
        return reduce(Interval.union, operands)
    (inner,) = operands  # of a step function or a cast, which keeps the order
    ends = sorted(_at(call, each) for each in (inner.low, inner.high))
    return Interval(ends[0], ends[1])


def _check_numbers(call: Call) -> None:
    first, *rest = call.arguments
    if first.type not in NUMBERS or not all(isinstance(each, Literal) for each in rest):
        raise Unsupported("only numbers are added up")


def _at(call: Call, place: Fraction) -> Fraction:
    kind = call.arguments[0].type
    arguments = (Literal(point(place, kind), kind), *call.arguments[1:])
    value = constant(Call(call.operation, arguments, call.type))
    if not isinstance(value, Point) or isinstance(value, str):
        raise Unsupported(UNKNOWN)
    return image(value)


UNKNOWN = "no bounds are known for what is added up here; add up a bounded column"
ALGEBRA: dict[Operation, Callable[..., Interval]] = {
    Operation.ADD: add,
    Operation.SUBTRACT: sub,
    Operation.MULTIPLY: mul,
    Operation.ABS: abs,
}
CHOICES = (Operation.CASE, Operation.COALESCE, Operation.LEAST, Operation.GREATEST)
ROUNDING = (Operation.FLOOR, Operation.CEIL, Operation.ROUND, Operation.CAST)
SPANS = (*ALGEBRA, *CHOICES, *ROUNDING)
