"""Constants folded and dead branches cut, after a column has been replaced by a constant."""

from casemate.query.expression import FALSE, TRUE, Call, Expression, Literal, Operation
from casemate.query.operations import call
from casemate.table.schema import ColumnType


def simplify(expression: Expression) -> Expression:
    """An expression of the same value in which constants have been computed."""
    if not isinstance(expression, Call):
        return expression
    operands = tuple(simplify(each) for each in expression.arguments)
    if expression.operation in (Operation.AND, Operation.OR):
        return _junction(expression.operation, operands)
    if expression.operation is Operation.CASE:
        return _case(operands, expression.type)
    return call(expression.operation, operands, expression.type)


def _junction(operation: Operation, operands: tuple[Expression, ...]) -> Expression:
    neutral, absorbing = (TRUE, FALSE) if operation is Operation.AND else (FALSE, TRUE)
    if absorbing in operands:
        return absorbing
    kept = tuple(dict.fromkeys(each for each in operands if each != neutral))
    if not kept:
        return neutral
    return kept[0] if len(kept) == 1 else call(operation, kept, ColumnType.BOOLEAN)


def _case(operands: tuple[Expression, ...], kind: ColumnType) -> Expression:
    *pairs, otherwise = operands
    kept: list[Expression] = []
    for condition, result in zip(pairs[::2], pairs[1::2], strict=True):
        if condition == TRUE:
            otherwise = result
            break
        if not isinstance(condition, Literal):  # false and NULL are never taken
            kept += [condition, result]
    if not kept or all(result == otherwise for result in kept[1::2]):
        return otherwise
    return call(Operation.CASE, [*kept, otherwise], kind)
