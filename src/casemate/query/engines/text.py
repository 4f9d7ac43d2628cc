"""Aggregates and expressions in words: how reports, messages and golden files write them."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from casemate.query.aggregate import Aggregate, Function
from casemate.query.engines.rendering import plain, quote
from casemate.query.language.expression import (
    TRUE,
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
)

INFIX = {
    Operation.AND: " and ",
    Operation.OR: " or ",
    **{
        operation: f" {operation.value} "
        for operation in (
            Operation.EQUAL,
            Operation.DIFFERENT,
            Operation.LESS,
            Operation.LESS_EQUAL,
            Operation.GREATER,
            Operation.GREATER_EQUAL,
            Operation.SAME,
            Operation.ADD,
            Operation.SUBTRACT,
            Operation.MULTIPLY,
            Operation.DIVIDE,
            Operation.MODULO,
        )
    },
}


def describe(aggregate: Aggregate) -> str:
    """An aggregate as one line, for example: sum("income") where "age" > 30 by "region"."""
    if aggregate.argument is None:
        head = "count(*)"
    elif aggregate.function is Function.COUNT_DISTINCT:
        head = f"count(distinct {written(aggregate.argument)})"
    elif aggregate.fraction is not None:
        kind = "quantile_disc" if aggregate.discrete else "quantile_cont"
        head = f"{kind}({written(aggregate.argument)}, {decimal(aggregate.fraction)})"
    else:
        head = f"{aggregate.function}({written(aggregate.argument)})"
    joins = "".join(f" join {quote(join.public)} {join.alias}" for join in aggregate.joins)
    where = "" if aggregate.predicate == TRUE else f" where {_bare(aggregate.predicate)}"
    by = f" by {', '.join(map(written, aggregate.keys))}" if aggregate.keys else ""
    return f"{head}{joins}{where}{by}"


def decimal(fraction: Fraction) -> str:
    """A fraction in decimal notation, which shares of quantiles have.

    >>> decimal(Fraction(1, 4)), decimal(Fraction(1)), decimal(Fraction(1, 10**6))
    ('0.25', '1', '0.000001')
    """
    return f"{Decimal(fraction.numerator) / Decimal(fraction.denominator):f}"


def written(expression: Expression) -> str:
    """An expression in SQL's own words, with parentheses around every operation."""
    if isinstance(expression, ColumnRef):
        prefix = f"{expression.alias}." if expression.alias else ""
        return prefix + quote(expression.column.name)
    if isinstance(expression, Literal):
        return "null" if expression.value is None else _constant(expression)
    if isinstance(expression, ResultRef):
        return f"result {expression.index + 1}"
    if isinstance(expression, KeyRef):
        return f"key {expression.index + 1}"
    return _call(expression)


def _constant(literal: Literal) -> str:
    value = literal.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return str(value) if isinstance(value, int) else plain(value)


def _bare(expression: Expression) -> str:
    text = written(expression)
    wrapped = isinstance(expression, Call) and expression.operation in (*INFIX, *WRAPPED)
    return text[1:-1] if wrapped else text


def _call(call: Call) -> str:
    parts = [written(each) for each in call.arguments]
    sign = INFIX.get(call.operation)
    if sign is not None:
        return f"({sign.join(parts)})"
    special = SPECIAL.get(call.operation)
    return special(parts, call) if special else f"{call.operation}({', '.join(parts)})"


def _case(parts: list[str], _: Call) -> str:
    *pairs, otherwise = parts
    branches = " ".join(f"when {c} then {r}" for c, r in zip(pairs[::2], pairs[1::2], strict=True))
    return f"case {branches} else {otherwise} end"


def _like(parts: list[str], _: Call) -> str:
    escape = "" if parts[2] == r"'\'" else f" escape {parts[2]}"
    return f"({parts[0]} like {parts[1]}{escape})"


def _cast(parts: list[str], call: Call) -> str:
    digits = f"({parts[1]})" if len(parts) > 1 else ""
    return f"cast({parts[0]} as {call.type}{digits})"


WRAPPED = (
    Operation.NOT,
    Operation.IN,
    Operation.LIKE,
    Operation.IS_NULL,
    Operation.IS_TRUE,
)
"""Operations that stand in parentheses unless they stand alone."""

SPECIAL: dict[Operation, Callable[[list[str], Call], str]] = {
    Operation.NOT: lambda parts, _: f"(not {parts[0]})",
    Operation.IN: lambda parts, _: f"({parts[0]} in ({', '.join(parts[1:])}))",
    Operation.LIKE: _like,
    Operation.IS_NULL: lambda parts, _: f"({parts[0]} is null)",
    Operation.IS_TRUE: lambda parts, _: f"({parts[0]} is true)",
    Operation.CASE: _case,
    Operation.CAST: _cast,
    Operation.EXTRACT: lambda parts, _: f"extract({parts[0]} from {parts[1]})",
}
