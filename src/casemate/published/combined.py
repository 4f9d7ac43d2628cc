"""Shown columns that combine several private results: is what is shown a function of the sum?

What is computed from one result, in whatever way, says no more than the result. Of several it may:
in `(SUM(a) + 9e18) - SUM(b)` an overflow says something of SUM(a) alone, and the equation that
stands for the column is about the difference. So such a column is read only where every step is
exact. Before anything is rounded or divided, that is: what follows is computed from one number
again, or from the quotient of two.
"""

from casemate.published.shown import shown_as
from casemate.query.aggregate import Aggregate, Function, Output, Select
from casemate.query.coercion import NUMBERS, coerce
from casemate.query.exactness import inexact
from casemate.query.expression import (
    Call,
    Expression,
    Literal,
    Operation,
    ResultRef,
    walk,
)
from casemate.query.expression import replace as substitute
from casemate.table.schema import ColumnType

ROWS = Literal(10**9, ColumnType.INTEGER)
"""As many as a result may come from."""

SEVERAL = (
    "it combines several results by steps that may overflow or be rounded, which says more than "
    "their sum; publish the results one by one, or declare bounds (--bounds LO:HI)"
)
ZERO = Literal(0, ColumnType.INTEGER)
FOLLOWING = (Operation.ROUND, Operation.CAST, Operation.DIVIDE, Operation.COALESCE)
"""Steps after which it is one number, or one by a count, if they read a constant or a result."""


def inexact_combination(select: Select, output: Output) -> str | None:
    """Why what a column shows is not a function of its linear form, or None if it is."""
    expression = combination(select, output)
    exact = expression is None or inexact(expression) is None
    return None if exact else SEVERAL


def combination(select: Select, output: Output) -> Expression | None:
    """What a column combines of several private results, as a formula of a row; or None."""
    form, expression = shown_as(output.expression), _before(output.expression, select)
    private = _private(expression, select)
    shown = set() if form is None else {select.aggregates[index] for index, _ in form.weights}
    if form is None or (len(private) < 2 and private <= shown) or _is_one_step(expression):
        return None
    return substitute(expression, lambda node: _as_row(node, select))


def _before(expression: Expression, select: Select) -> Expression:
    """What is computed before everything is rounded, or divided by a result."""
    while isinstance(expression, Call) and expression.operation in FOLLOWING:
        first, *others = expression.arguments
        if not all(isinstance(each, ResultRef) or not _private(each, select) for each in others):
            break
        expression = first
    return expression


def _private(expression: Expression, select: Select) -> set[Aggregate]:
    used = (node for node in walk(expression) if isinstance(node, ResultRef))
    found = {select.aggregates[node.index] for node in used}
    return {each for each in found if each.private_argument or each.private_predicate}


def _is_one_step(expression: Expression) -> bool:
    """Whether two results are added or subtracted, which rounds what the sum of both is.

    Whole numbers may overflow even so.
    """
    return (
        isinstance(expression, Call)
        and expression.operation in (Operation.ADD, Operation.SUBTRACT)
        and expression.type in (ColumnType.DOUBLE, ColumnType.DECIMAL)
        and all(isinstance(each, ResultRef) for each in expression.arguments)
    )


def _as_row(node: Expression, select: Select) -> Expression | None:
    """A result as something that a row could be: its argument, as many times as there are rows."""
    if not isinstance(node, ResultRef):
        return None
    aggregate = select.aggregates[node.index]
    if aggregate.function is Function.COUNT:
        return Call(Operation.CASE, (aggregate.membership, ROWS, ZERO), ColumnType.INTEGER)
    argument = aggregate.argument or ZERO
    operation = Operation.MULTIPLY if aggregate.function is Function.SUM else Operation.DIVIDE
    rows = coerce(ROWS, argument.type) if argument.type in NUMBERS else ROWS
    most = Call(operation, (argument, rows), node.type)
    return Call(Operation.COALESCE, (most, coerce(ZERO, node.type)), node.type)
