"""What a statement shows, as a linear form in the results of its aggregates.

A column such as `SUM(a) - SUM(b)`, `ROUND(AVG(x), 2)` or `SUM(x) / COUNT(*)` is an equation in the
sums behind it; anything that is not is left to the caller to refuse.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from casemate.query.expression import Call, Expression, Literal, Operation, ResultRef
from casemate.table.schema import ColumnType


@dataclass(frozen=True)
class Shown:
    """(sum of weight * result + constant) / divisor, known up to `half_unit` on either side.

    `divisor` is the index of a result, or None for 1. `cut` says that the quotient was cut to a
    whole number, as the division of two integers is.
    """

    weights: tuple[tuple[int, Fraction], ...]
    constant: Fraction = Fraction(0)
    divisor: int | None = None
    half_unit: Fraction = Fraction(0)
    cut: bool = False


def shown_as(expression: Expression) -> Shown | None:
    """The linear form that a column shows, or None."""
    if isinstance(expression, ResultRef):
        return Shown(((expression.index, Fraction(1)),))
    if isinstance(expression, Literal):
        return _constant(expression)
    rule = RULES.get(expression.operation) if isinstance(expression, Call) else None
    return rule(expression) if rule is not None and isinstance(expression, Call) else None


def _constant(literal: Literal) -> Shown | None:
    if isinstance(literal.value, bool) or not isinstance(literal.value, int | float | Decimal):
        return None
    return Shown((), Fraction(literal.value))


def _is_plain(form: Shown | None) -> bool:
    return form is not None and form.divisor is None and not form.half_unit and not form.cut


def _sum(call: Call) -> Shown | None:
    left, right = (shown_as(each) for each in call.arguments)
    if left is None or right is None or not _is_plain(left) or not _is_plain(right):
        return None
    sign = 1 if call.operation is Operation.ADD else -1
    weights = dict(left.weights)
    for index, weight in right.weights:
        weights[index] = weights.get(index, Fraction(0)) + sign * weight
    kept = tuple((index, weight) for index, weight in weights.items() if weight)
    return Shown(kept, left.constant + sign * right.constant)


def _product(call: Call) -> Shown | None:
    left, right = (shown_as(each) for each in call.arguments)
    if left is None or right is None:
        return None
    if left.weights and right.weights:
        return None
    form, factor = (left, right.constant) if not right.weights else (right, left.constant)
    return _scaled(form, factor) if _is_plain(right if form is left else left) else None


def _scaled(form: Shown, factor: Fraction) -> Shown | None:
    if form.cut:
        return None
    weights = tuple((index, weight * factor) for index, weight in form.weights if factor)
    return Shown(weights, form.constant * factor, form.divisor, form.half_unit * abs(factor))


def _quotient(call: Call) -> Shown | None:
    top, bottom = (shown_as(each) for each in call.arguments)
    if top is None or bottom is None or not _is_plain(top) or not _is_plain(bottom):
        return None
    cut = call.type is ColumnType.INTEGER
    if not bottom.weights:
        scaled = _scaled(top, 1 / bottom.constant) if bottom.constant else None
        return scaled if scaled is None or not cut else _cut(scaled)
    ((index, weight), *more) = bottom.weights
    if more or weight != 1 or bottom.constant:
        return None
    return Shown(top.weights, top.constant, index, cut=cut)


def _cut(form: Shown) -> Shown:
    return Shown(form.weights, form.constant, form.divisor, form.half_unit, cut=True)


def _rounded(call: Call) -> Shown | None:
    form = shown_as(call.arguments[0])
    digits = call.arguments[1] if len(call.arguments) > 1 else Literal(0, ColumnType.INTEGER)
    if form is None or form.cut or not isinstance(digits, Literal):
        return None
    half = Fraction(1, 2) / Fraction(10) ** int(str(digits.value))
    return Shown(form.weights, form.constant, form.divisor, form.half_unit + half)


def _same_value(call: Call) -> Shown | None:
    """A cast to a wider number, or a COALESCE that only names what stands for nothing."""
    if call.operation is Operation.CAST and len(call.arguments) > 1:
        return _rounded(call)
    narrowing = call.operation is Operation.CAST and call.type is ColumnType.INTEGER
    widened = call.arguments[0].type is ColumnType.INTEGER
    return shown_as(call.arguments[0]) if not narrowing or widened else None


RULES = {
    Operation.ADD: _sum,
    Operation.SUBTRACT: _sum,
    Operation.MULTIPLY: _product,
    Operation.DIVIDE: _quotient,
    Operation.ROUND: _rounded,
    Operation.CAST: _same_value,
    Operation.COALESCE: _same_value,
}
