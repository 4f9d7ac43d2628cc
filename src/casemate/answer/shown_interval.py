"""Between which numbers a column of a statement lies, when its results lie between theirs.

Dependence between results is not followed, so bounds may be wider than needed and are never too
narrow. NULL has no bounds: they are those of the number, where there is one.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal

from casemate.answer.shown_number import Band
from casemate.query.coercion import NUMBERS
from casemate.query.expression import (
    Call,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
)
from casemate.query.interpret import apply, cast
from casemate.table.schema import ColumnType

Read = Callable[[KeyRef | ResultRef], Band]


class Unbounded(Exception):
    """No bounds follow for this expression."""


def bounds(expression: Expression, read: Read) -> Band:
    """The bounds of an expression over results and keys; `Unbounded` where none follow."""
    if isinstance(expression, Literal):
        return constant(expression.value)
    if isinstance(expression, KeyRef | ResultRef):
        return read(expression)
    if not isinstance(expression, Call):
        raise Unbounded
    branches = _branches(expression)
    if branches is not None:
        return _around(branches, read)
    rule = RULES.get(expression.operation)
    if rule is None:
        raise Unbounded
    found = rule(expression, [bounds(each, read) for each in expression.arguments])
    if not all(math.isfinite(end) for end in found):
        raise Unbounded
    return found


def constant(value: Scalar) -> Band:
    """A number is its own bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise Unbounded
    return float(value), float(value)


def _branches(call: Call) -> Sequence[Expression] | None:
    """The parts of which the call is always one."""
    if call.operation is Operation.CASE:
        return (*call.arguments[1:-1:2], call.arguments[-1])
    if call.operation is Operation.NULLIF:
        return call.arguments[:1]
    if call.operation in (Operation.COALESCE, Operation.LEAST, Operation.GREATEST):
        return call.arguments
    return None


def _around(branches: Sequence[Expression], read: Read) -> Band:
    """Around all branches but those that are always NULL."""
    found = [
        bounds(each, read)
        for each in branches
        if not isinstance(each, Literal) or each.value is not None
    ]
    if not found:
        raise Unbounded
    return min(low for low, _ in found), max(high for _, high in found)


def _sum(_: Call, ends: Sequence[Band]) -> Band:
    (a, b), (c, d) = ends
    return a + c, b + d


def _difference(_: Call, ends: Sequence[Band]) -> Band:
    (a, b), (c, d) = ends
    return a - d, b - c


def _product(_: Call, ends: Sequence[Band]) -> Band:
    corners = [a * b for a in ends[0] for b in ends[1]]
    return min(corners), max(corners)


def _quotient(call: Call, ends: Sequence[Band]) -> Band:
    if ends[1][0] <= 0 <= ends[1][1]:
        raise Unbounded
    corners = [a / b for a in ends[0] for b in ends[1]]
    if call.type is ColumnType.INTEGER:  # which cuts towards zero, and so keeps the order
        corners = [float(math.trunc(each)) for each in corners]
    return min(corners), max(corners)


def _magnitude(_: Call, ends: Sequence[Band]) -> Band:
    low, high = ends[0]
    return 0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def _rising(call: Call, ends: Sequence[Band]) -> Band:
    """A function that keeps the order, computed at both ends."""
    low, high = (_at(call, end) for end in ends[0])
    return low, high


def _at(call: Call, end: float) -> float:
    first, *rest = call.arguments
    number: Scalar = Decimal(repr(end)) if first.type is ColumnType.DECIMAL else end
    if call.type not in NUMBERS or not all(isinstance(each, Literal) for each in rest):
        raise Unbounded
    extra = [each.value for each in rest if isinstance(each, Literal)]
    found = (
        cast(number, call)
        if call.operation is Operation.CAST
        else apply(call.operation, [number, *extra], call.type)
    )
    return constant(found)[0]


RULES: dict[Operation, Callable[[Call, Sequence[Band]], Band]] = {
    Operation.ADD: _sum,
    Operation.SUBTRACT: _difference,
    Operation.MULTIPLY: _product,
    Operation.DIVIDE: _quotient,
    Operation.ABS: _magnitude,
    **dict.fromkeys(
        (
            *(Operation.FLOOR, Operation.CEIL, Operation.ROUND, Operation.CAST),
            *(Operation.SQRT, Operation.LN, Operation.EXP),
        ),
        _rising,
    ),
}
