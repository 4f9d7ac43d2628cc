"""One way to write a condition: so that what was asked before is recognised however it is written.

Every step keeps the value, NULL included. Not every pair of equal conditions comes out the same;
those that differ in sides, order, repetition, negation or the limit of a whole number do.
"""

from collections.abc import Callable

from casemate.query.expression import Call, Expression, Literal, Operation, children, negate
from casemate.table.schema import ColumnType

TURNED = {Operation.GREATER: Operation.LESS, Operation.GREATER_EQUAL: Operation.LESS_EQUAL}
NEGATED = {
    Operation.EQUAL: Operation.DIFFERENT,
    Operation.DIFFERENT: Operation.EQUAL,
    Operation.AND: Operation.OR,
    Operation.OR: Operation.AND,
}
UNORDERED = (Operation.EQUAL, Operation.DIFFERENT, Operation.SAME)


def canonical(expression: Expression) -> Expression:
    """The same condition, written in the usual way."""
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(canonical(each) for each in expression.arguments)
    plain = Call(expression.operation, arguments, expression.type)
    rule = RULES.get(plain.operation)
    return plain if rule is None else rule(plain)


def _junction(call: Call) -> Expression:
    """Terms of terms are terms; each is there once, in order."""
    flat = [term for each in call.arguments for term in _terms(each, call.operation)]
    terms = sorted(dict.fromkeys(flat), key=repr)
    return terms[0] if len(terms) == 1 else Call(call.operation, tuple(terms), call.type)


def _terms(expression: Expression, operation: Operation) -> tuple[Expression, ...]:
    inner = isinstance(expression, Call) and expression.operation is operation
    return children(expression) if inner else (expression,)


def _turned(call: Call) -> Expression:
    return _below(Call(TURNED[call.operation], call.arguments[::-1], call.type))


def _below(call: Call) -> Expression:
    """Up to a whole number is below the next one."""
    low, high = call.arguments
    whole = all(each.type is ColumnType.INTEGER for each in call.arguments)
    if call.operation is not Operation.LESS_EQUAL or not whole:
        return call
    if isinstance(high, Literal) and isinstance(high.value, int):
        return Call(Operation.LESS, (low, Literal(high.value + 1, high.type)), call.type)
    if isinstance(low, Literal) and isinstance(low.value, int):
        return Call(Operation.LESS, (Literal(low.value - 1, low.type), high), call.type)
    return call


def _unordered(call: Call) -> Expression:
    return Call(call.operation, tuple(sorted(call.arguments, key=repr)), call.type)


def _listed(call: Call) -> Expression:
    needle, *choices = call.arguments
    kept = sorted(dict.fromkeys(choices), key=repr)
    if len(kept) == 1:
        return _unordered(Call(Operation.EQUAL, (needle, kept[0]), call.type))
    return Call(Operation.IN, (needle, *kept), call.type)


def _denied(call: Call) -> Expression:
    """NOT goes inside as far as it can."""
    (inner,) = call.arguments
    if not isinstance(inner, Call):
        return call
    if inner.operation is Operation.NOT:
        return inner.arguments[0]
    if inner.operation in (Operation.LESS, Operation.LESS_EQUAL):
        other = Operation.LESS_EQUAL if inner.operation is Operation.LESS else Operation.LESS
        return _below(Call(other, inner.arguments[::-1], inner.type))
    if inner.operation not in NEGATED:
        return call
    negated = NEGATED[inner.operation]
    if inner.operation in UNORDERED:
        return Call(negated, inner.arguments, inner.type)
    terms = tuple(canonical(negate(each)) for each in inner.arguments)
    return _junction(Call(negated, terms, inner.type))


RULES: dict[Operation, Callable[[Call], Expression]] = {
    Operation.AND: _junction,
    Operation.OR: _junction,
    Operation.NOT: _denied,
    Operation.IN: _listed,
    Operation.LESS_EQUAL: _below,
    **dict.fromkeys(TURNED, _turned),
    **dict.fromkeys(UNORDERED, _unordered),
}
