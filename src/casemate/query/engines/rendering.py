"""Expressions to SQL text that means the same on every engine.

The shared part is here; what engines disagree about (integer division, rounding, overflow, text
order) is in `dialects`. No text of the user's reaches an engine: names and constants are quoted,
everything else is written here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
)
from casemate.query.language.interpret import COMPARE
from casemate.table import ColumnType
from casemate.table.sources import literal, quote_name

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
        return constant(expression, engine)
    if isinstance(expression, ColumnRef):
        return column(expression, engine)
    if not isinstance(expression, Call):
        raise ValueError("results and keys are not part of a row")
    rule = engine.rules.get(expression.operation) or SHARED[expression.operation]
    return rule(expression, lambda each: render(each, engine))


def column(reference: ColumnRef, engine: SqlDialect) -> str:
    """A column, as wide as the language computes with."""
    name = quote_name(reference.alias or PROTECTED, reference.column.name)
    if reference.type in (ColumnType.INTEGER, ColumnType.DOUBLE):
        return f"CAST({name} AS {engine.types[reference.type]})"
    return name


def constant(expression: Literal, engine: SqlDialect) -> str:
    """A constant of a stated type."""
    kind = engine.types[expression.type]
    if expression.value is None:
        return f"CAST(NULL AS {kind})"
    if expression.type in (ColumnType.INTEGER, ColumnType.DOUBLE):
        return f"CAST({literal(repr(expression.value))} AS {kind})"
    if isinstance(expression.value, Decimal) and expression.value.is_nan():
        return engine.nan
    return literal(expression.value)


def template(text: str) -> Rule:
    """A rule that puts the operands into a text."""
    return lambda call, write: text.format(*map(write, call.arguments))


def temporal(text: str) -> Rule:
    """A rule that puts the field and the moment of EXTRACT or DATE_TRUNC into a text."""

    def rule(call: Call, write: Write) -> str:
        field, moment = call.arguments
        return text.format(field.value if isinstance(field, Literal) else "", write(moment))

    return rule


def _infix(word: str) -> Rule:
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


def _substring(call: Call, write: Write) -> str:
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


def operands(call: Call, write: Write, engine_types: Mapping[ColumnType, str]) -> list[str]:
    """The operands of arithmetic; a double computed from decimals takes them as doubles."""
    return [
        f"CAST({write(each)} AS {engine_types[call.type]})"
        if call.type is ColumnType.DOUBLE and each.type is ColumnType.DECIMAL
        else write(each)
        for each in call.arguments
    ]


def digits_of(call: Call) -> int | None:
    """The constant number of digits after the operand, if there is one."""
    if len(call.arguments) < 2:
        return None
    given = call.arguments[1]
    return given.value if isinstance(given, Literal) and isinstance(given.value, int) else 0


SHARED: dict[Operation, Rule] = {
    Operation.AND: _infix("AND"),
    Operation.OR: _infix("OR"),
    Operation.NOT: template("(NOT {})"),
    Operation.SAME: _infix("IS NOT DISTINCT FROM"),
    Operation.IN: _in,
    **{word: _infix(word.value) for word in COMPARE},
    Operation.LIKE: template("({} LIKE {} ESCAPE {})"),
    Operation.IS_NULL: template("({} IS NULL)"),
    Operation.IS_TRUE: template("coalesce({}, FALSE)"),
    Operation.CASE: _case,
    Operation.COALESCE: _function("coalesce"),
    Operation.NULLIF: _function("nullif"),
    Operation.LEAST: _function("least"),
    Operation.GREATEST: _function("greatest"),
    Operation.LENGTH: _function("length"),
    Operation.LOWER: _function("lower"),
    Operation.UPPER: _function("upper"),
    Operation.SUBSTRING: _substring,
    Operation.FLOOR: template("floor({})"),
    Operation.CEIL: template("ceil({})"),
}
