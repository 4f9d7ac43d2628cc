"""Expressions over one row: a closed, typed language into which accepted SQL is translated.

Nothing else of SQL exists past the parser. Every node states its type; every operation is one of
`Operation`, so a renderer or an interpreter that knows them all knows the whole language.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property

from casemate.table import Column, ColumnType, Role
from casemate.table.sources import literal, quote_name

Scalar = bool | int | float | Decimal | str | date | datetime | None
"""A value of one cell; None is NULL."""


class Operation(StrEnum):
    """Every operation of the language, each with PostgreSQL's meaning.

    Where PostgreSQL raises (a domain error, an overflow) the value is NULL.
    """

    AND = "and"
    OR = "or"
    NOT = "not"
    EQUAL = "="
    DIFFERENT = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    SAME = "is not distinct from"
    IN = "in"
    LIKE = "like"
    IS_NULL = "is null"
    IS_TRUE = "is true"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"
    POWER = "power"
    ABS = "abs"
    FLOOR = "floor"
    CEIL = "ceil"
    ROUND = "round"
    SQRT = "sqrt"
    LN = "ln"
    EXP = "exp"
    CASE = "case"
    COALESCE = "coalesce"
    NULLIF = "nullif"
    LEAST = "least"
    GREATEST = "greatest"
    CAST = "cast"
    LENGTH = "length"
    LOWER = "lower"
    UPPER = "upper"
    SUBSTRING = "substr"
    EXTRACT = "extract"
    TRUNCATE = "date_trunc"


@dataclass(frozen=True)
class ColumnRef:
    """A column of the protected table (`alias` is empty) or of a joined public one."""

    column: Column
    type: ColumnType
    alias: str = ""

    @property
    def private(self) -> bool:
        """Whether reading it reads something protected."""
        return not self.alias and self.column.role is Role.PRIVATE


@dataclass(frozen=True)
class Literal:
    """A constant; None is NULL of the stated type."""

    value: Scalar
    type: ColumnType


@dataclass(frozen=True)
class Call:
    """An operation on expressions.

    CASE has condition, result, condition, result, ..., and the ELSE last. EXTRACT and TRUNCATE
    have the field as a text literal first. LIKE has the pattern and the escape as literals.
    """

    operation: Operation
    arguments: tuple["Expression", ...]
    type: ColumnType

    @cached_property
    def depth(self) -> int:
        """How many operations stand inside each other."""
        return 1 + max((each.depth for each in self.arguments if isinstance(each, Call)), default=0)

    @cached_property
    def size(self) -> int:
        """How many nodes it has when it is written out."""
        return 1 + sum(each.size if isinstance(each, Call) else 1 for each in self.arguments)


@dataclass(frozen=True)
class ResultRef:
    """The result of the statement's aggregate with this index; only outside row expressions.

    `was_decimal` is set for a double that PostgreSQL would have as a decimal.
    """

    index: int
    type: ColumnType
    was_decimal: bool = False


@dataclass(frozen=True)
class KeyRef:
    """The value of the group key with this index; only outside row expressions."""

    index: int
    type: ColumnType


Expression = ColumnRef | Literal | Call | ResultRef | KeyRef

TRUE = Literal(True, ColumnType.BOOLEAN)
FALSE = Literal(False, ColumnType.BOOLEAN)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The operands of an expression."""
    return expression.arguments if isinstance(expression, Call) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, parents first."""
    pending = [expression]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children(node)))


def columns_of(expression: Expression) -> frozenset[ColumnRef]:
    """Every column the expression reads."""
    return frozenset(node for node in walk(expression) if isinstance(node, ColumnRef))


def private_columns(*expressions: Expression | None) -> frozenset[str]:
    """The names of the private columns that any of these read."""
    return frozenset(
        ref.column.name
        for expression in expressions
        if expression is not None
        for ref in columns_of(expression)
        if ref.private
    )


def substitute(
    expression: Expression, change: Callable[[Expression], Expression | None]
) -> Expression:
    """The expression with every node for which `change` gives another one replaced by it."""
    changed = change(expression)
    if changed is not None:
        return changed
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(substitute(argument, change) for argument in expression.arguments)
    return Call(expression.operation, arguments, expression.type)


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The terms of a conjunction, or the expression alone."""
    if isinstance(expression, Call) and expression.operation is Operation.AND:
        return expression.arguments
    return (expression,)


def conjunction(parts: list[Expression]) -> Expression:
    """AND of any number of parts; none of them is TRUE."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call(Operation.AND, tuple(parts), ColumnType.BOOLEAN)


def all_of(*parts: Expression) -> Expression:
    """AND of the parts, flat, without constants that change nothing."""
    return conjunction([term for part in parts for term in conjuncts(part) if term != TRUE])


def any_of(parts: Sequence[Expression]) -> Expression:
    """OR of any number of parts; none of them is FALSE."""
    if len(parts) < 2:
        return parts[0] if parts else FALSE
    return Call(Operation.OR, tuple(parts), ColumnType.BOOLEAN)


def negate(expression: Expression) -> Expression:
    """NOT, in three-valued logic."""
    return Call(Operation.NOT, (expression,), ColumnType.BOOLEAN)


def present(expression: Expression) -> Expression:
    """The expression is not NULL."""
    return negate(Call(Operation.IS_NULL, (expression,), ColumnType.BOOLEAN))


# In words -----------------------------------------------------------------------------------------

INFIX = (
    *(Operation.AND, Operation.OR, Operation.EQUAL, Operation.DIFFERENT, Operation.SAME),
    *(Operation.LESS, Operation.LESS_EQUAL, Operation.GREATER, Operation.GREATER_EQUAL),
    *(Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY, Operation.DIVIDE, Operation.MODULO),
)


def expression_text(expression: Expression) -> str:
    """An expression in SQL's own words, with parentheses around every operation."""
    if isinstance(expression, ColumnRef):
        prefix = f"{expression.alias}." if expression.alias else ""
        return prefix + quote_name(expression.column.name)
    if isinstance(expression, Literal):
        return _constant_text(expression.value)
    if isinstance(expression, ResultRef):
        return f"result {expression.index + 1}"
    if isinstance(expression, KeyRef):
        return f"key {expression.index + 1}"
    parts = [expression_text(each) for each in expression.arguments]
    if expression.operation in INFIX:
        return f"({f' {expression.operation} '.join(parts)})"
    special = TEXT_RULES.get(expression.operation)
    return special(parts, expression) if special else f"{expression.operation}({', '.join(parts)})"


def _constant_text(value: Scalar) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    if isinstance(value, float):
        return repr(value) if "e" in repr(value) else f"{value!r}e0"
    return str(value) if isinstance(value, int) else literal(value)


def _case_text(parts: list[str], _: Call) -> str:
    *pairs, otherwise = parts
    branches = " ".join(f"when {c} then {r}" for c, r in zip(pairs[::2], pairs[1::2], strict=True))
    return f"case {branches} else {otherwise} end"


def _like_text(parts: list[str], _: Call) -> str:
    escape = "" if parts[2] == r"'\'" else f" escape {parts[2]}"
    return f"({parts[0]} like {parts[1]}{escape})"


def _cast_text(parts: list[str], call: Call) -> str:
    digits = f"({parts[1]})" if len(parts) > 1 else ""
    return f"cast({parts[0]} as {call.type}{digits})"


TEXT_RULES: dict[Operation, Callable[[list[str], Call], str]] = {
    Operation.NOT: lambda parts, _: f"(not {parts[0]})",
    Operation.IN: lambda parts, _: f"({parts[0]} in ({', '.join(parts[1:])}))",
    Operation.LIKE: _like_text,
    Operation.IS_NULL: lambda parts, _: f"({parts[0]} is null)",
    Operation.IS_TRUE: lambda parts, _: f"({parts[0]} is true)",
    Operation.CASE: _case_text,
    Operation.CAST: _cast_text,
    Operation.EXTRACT: lambda parts, _: f"extract({parts[0]} from {parts[1]})",
}
