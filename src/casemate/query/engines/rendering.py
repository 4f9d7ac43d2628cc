"""Expressions to SQL text that means the same on every engine.

The shared part is here; what engines disagree about (integer division, rounding, overflow, text
order) is in `render_duckdb` and `render_postgres`. No text of the user's reaches an engine: names
and constants are quoted here, everything else is written here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    Scalar,
)
from casemate.table import ColumnType

PROTECTED = "t"
"""The alias of the protected table in every statement that is sent to an engine."""

Write = Callable[[Expression], str]
Rule = Callable[[Call, Write], str]


@dataclass(frozen=True)
class SqlDialect:
    """How one engine writes what the others write differently."""

    types: Mapping[ColumnType, str]
    rules: Mapping[Operation, Rule]
    order: Callable[[str], str]
    """Text as it is compared: by code points, whatever the database's locale."""
    nan: str
    """What is not a number among decimals; NULL where every decimal is a number."""
    guard: Callable[[str], str] = str
    """A condition as it is safe in WHERE, unless it compares columns and constants alone."""


def render(expression: Expression, engine: SqlDialect) -> str:
    """The SQL text of an expression."""
    if isinstance(expression, Literal):
        return literal(expression, engine)
    if isinstance(expression, ColumnRef):
        return column(expression, engine)
    if not isinstance(expression, Call):
        raise ValueError("results and keys are not part of a row")
    rule = engine.rules.get(expression.operation) or SHARED[expression.operation]
    return rule(expression, lambda each: render(each, engine))


def quote(name: str) -> str:
    """An identifier, quoted."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text constant, quoted."""
    return "'" + value.replace("'", "''") + "'"


def column(reference: ColumnRef, engine: SqlDialect) -> str:
    """A column, as wide as the language computes with."""
    name = f"{quote(reference.alias or PROTECTED)}.{quote(reference.column.name)}"
    if reference.type in (ColumnType.INTEGER, ColumnType.DOUBLE):
        return f"CAST({name} AS {engine.types[reference.type]})"
    return name


def literal(expression: Literal, engine: SqlDialect) -> str:
    """A constant of a stated type."""
    kind = engine.types[expression.type]
    if expression.value is None:
        return f"CAST(NULL AS {kind})"
    if expression.type in (ColumnType.INTEGER, ColumnType.DOUBLE):
        return f"CAST({text(repr(expression.value))} AS {kind})"
    if isinstance(expression.value, Decimal) and expression.value.is_nan():
        return engine.nan
    return plain(expression.value)


def plain(value: Scalar) -> str:
    """A constant whose text already says its type."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, Decimal):
        return f"({value:f})" if value < 0 else f"{value:f}"
    if isinstance(value, datetime):
        return f"TIMESTAMP {text(value.isoformat(' '))}"
    if isinstance(value, date):
        return f"DATE {text(value.isoformat())}"
    return text(str(value))


def _joined(word: str) -> Rule:
    return lambda call, write: "(" + f" {word} ".join(write(each) for each in call.arguments) + ")"


def _function(name: str) -> Rule:
    return lambda call, write: f"{name}({', '.join(write(each) for each in call.arguments)})"


def _case(call: Call, write: Write) -> str:
    *pairs, otherwise = (write(each) for each in call.arguments)
    branches = zip(pairs[::2], pairs[1::2], strict=True)
    written = " ".join(f"WHEN {condition} THEN {result}" for condition, result in branches)
    return f"(CASE {written} ELSE {otherwise} END)"


def _in(call: Call, write: Write) -> str:
    needle, *choices = (write(each) for each in call.arguments)
    return f"({needle} IN ({', '.join(choices)}))"


def _like(call: Call, write: Write) -> str:
    subject, pattern, escape = (write(each) for each in call.arguments)
    return f"({subject} LIKE {pattern} ESCAPE {escape})"


def substring(call: Call, write: Write) -> str:
    """SUBSTR with a start of at least 1, which every engine reads alike."""
    start, *rest = (each.value for each in call.arguments[1:] if isinstance(each, Literal))
    subject = write(call.arguments[0])
    if not isinstance(start, int):
        return "CAST(NULL AS VARCHAR)"
    first = max(1, start)
    if not rest:
        return f"substr({subject}, {first})"
    length = rest[0]
    if not isinstance(length, int) or length < 0:
        return "CAST(NULL AS VARCHAR)"
    return f"substr({subject}, {first}, {max(0, start + length - first)})"


def ordered(word: str, engine_order: Callable[[str], str]) -> Rule:
    """A comparison that orders; text is compared by code points."""

    def write_comparison(call: Call, write: Write) -> str:
        left, right = (write(each) for each in call.arguments)
        if call.arguments[0].type is ColumnType.TEXT:
            left = engine_order(left)
        return f"({left} {word} {right})"

    return write_comparison


def comparisons(engine_order: Callable[[str], str]) -> dict[Operation, Rule]:
    """The four comparisons that order."""
    words = (
        Operation.LESS,
        Operation.LESS_EQUAL,
        Operation.GREATER,
        Operation.GREATER_EQUAL,
    )
    return {word: ordered(word.value, engine_order) for word in words}


def digits_of(call: Call) -> int | None:
    """The constant number of digits after the operand, if there is one."""
    if len(call.arguments) < 2:
        return None
    constant = call.arguments[1]
    return (
        constant.value if isinstance(constant, Literal) and isinstance(constant.value, int) else 0
    )


def field_of(call: Call) -> str:
    """The field or unit that stands first in EXTRACT and DATE_TRUNC."""
    constant = call.arguments[0]
    return str(constant.value) if isinstance(constant, Literal) else ""


SHARED: dict[Operation, Rule] = {
    Operation.AND: _joined("AND"),
    Operation.OR: _joined("OR"),
    Operation.NOT: lambda call, write: f"(NOT {write(call.arguments[0])})",
    Operation.EQUAL: _joined("="),
    Operation.DIFFERENT: _joined("<>"),
    Operation.SAME: _joined("IS NOT DISTINCT FROM"),
    Operation.IN: _in,
    Operation.LIKE: _like,
    Operation.IS_NULL: lambda call, write: f"({write(call.arguments[0])} IS NULL)",
    Operation.IS_TRUE: lambda call, write: f"coalesce({write(call.arguments[0])}, FALSE)",
    Operation.CASE: _case,
    Operation.COALESCE: _function("coalesce"),
    Operation.NULLIF: _function("nullif"),
    Operation.LEAST: _function("least"),
    Operation.GREATEST: _function("greatest"),
    Operation.LENGTH: _function("length"),
    Operation.LOWER: _function("lower"),
    Operation.UPPER: _function("upper"),
    Operation.SUBSTRING: substring,
}
