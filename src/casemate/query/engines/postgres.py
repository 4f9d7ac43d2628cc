"""PostgreSQL's dialect: every operation that could raise is guarded where it stands.

PostgreSQL has no TRY. A guard needs its operand twice, and writing it twice would double the text
at every level, so operands are named once in a subquery without a table: `let`. OFFSET 0 keeps
the planner from writing them twice after all, which takes exponential time.
"""

from casemate.query.engines.rendering import (
    Rule,
    SqlDialect,
    Write,
    comparisons,
    digits_of,
    field_of,
    text,
)
from casemate.query.language.expression import Call, Operation
from casemate.query.language.interpret import PLAIN_NUMBERS
from casemate.table import ColumnType

TYPES = {
    ColumnType.BOOLEAN: "boolean",
    ColumnType.INTEGER: "bigint",
    ColumnType.DECIMAL: "numeric",
    ColumnType.DOUBLE: "double precision",
    ColumnType.TEXT: "text",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
}
INTEGERS = "BETWEEN -9223372036854775808 AND 9223372036854775807"
LARGEST = 709.1962  # ln(1e308): larger doubles are overflow
SMALLEST = -744.4  # ln of the smallest double: less is zero


def let(result: str, **operands: str) -> str:
    """A result in which each operand, written once, goes by its name."""
    named = ", ".join(f"{written} AS {name}" for name, written in operands.items())
    return f"(SELECT {result} FROM (SELECT {named} OFFSET 0) AS x)"


def integer(written: str) -> str:
    """A whole decimal as an integer, or NULL where it does not fit 64 bits."""
    return let(f"CASE WHEN v {INTEGERS} THEN CAST(v AS bigint) END", v=written)


def numeric(written: str) -> str:
    return f"CAST({written} AS numeric)"


def order(written: str) -> str:
    return f'({written} COLLATE "C")'


def operands(call: Call, write: Write) -> list[str]:
    """The operands of arithmetic; a double computed from decimals takes them as doubles."""
    return [
        f"CAST({write(each)} AS double precision)"
        if call.type is ColumnType.DOUBLE and each.type is ColumnType.DECIMAL
        else write(each)
        for each in call.arguments
    ]


def _sum(sign: str) -> Rule:
    def rule(call: Call, write: Write) -> str:
        left, right = (write(each) for each in call.arguments)
        if call.type is ColumnType.INTEGER:
            return integer(f"{numeric(left)} {sign} {numeric(right)}")
        if call.type is ColumnType.DECIMAL:
            return f"({left} {sign} {right})"
        apart = f"(a < 0) {'<>' if sign == '+' else '='} (b < 0)"
        finite = "abs(a) < 'Infinity' AND abs(b) < 'Infinity'"
        guard = f"{finite} AND ({apart} OR abs(a) <= 1e308 - abs(b))"  # half of a might underflow
        checked = f"CASE WHEN abs(a {sign} b) <= 1e308 THEN a {sign} b END"
        return let(f"CASE WHEN {guard} THEN {checked} END", a=left, b=right)

    return rule


def scaled(sign: str, exponent: str) -> str:
    """A product or quotient of doubles that neither overflows nor underflows."""
    return (
        f"CASE WHEN a = 0 THEN 0 WHEN {exponent} > {LARGEST} THEN NULL "
        f"WHEN {exponent} < {SMALLEST} THEN 0 ELSE a {sign} b END"
    )


def _product(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    if call.type is ColumnType.INTEGER:
        return integer(f"{numeric(left)} * {numeric(right)}")
    if call.type is ColumnType.DECIMAL:
        return f"({left} * {right})"
    whole = scaled("*", "ln(abs(a)) + ln(abs(b))")
    return let(f"CASE WHEN a = 0 OR b = 0 THEN a * 0 + b * 0 ELSE {whole} END", a=left, b=right)


def _quotient(call: Call, write: Write) -> str:
    left, right = operands(call, write)
    if call.type is ColumnType.INTEGER:
        return integer(f"div({numeric(left)}, nullif({numeric(right)}, 0))")
    whole = scaled("/", "ln(abs(a)) - ln(abs(b))")
    return let(f"CASE WHEN b <> 0 THEN {whole} END", a=left, b=right)


def _remainder(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    written = f"mod({numeric(left)}, nullif({numeric(right)}, 0))"
    return f"CAST({written} AS {TYPES[call.type]})"


def _guarded(condition: str, result: str) -> Rule:
    def rule(call: Call, write: Write) -> str:
        return let(f"CASE WHEN {condition} THEN {result} END", v=operands(call, write)[0])

    return rule


def _power(call: Call, write: Write) -> str:
    base, exponent = operands(call, write)
    size = "b * ln(abs(a))"
    return let(
        "CASE WHEN b = 0 THEN 1 WHEN a = 0 THEN CASE WHEN b > 0 THEN 0 END "
        "WHEN a < 0 AND b <> floor(b) THEN NULL "
        f"WHEN {size} > {LARGEST} THEN NULL WHEN {size} < {SMALLEST} THEN 0 "
        "ELSE power(a, b) END",
        a=base,
        b=exponent,
    )


def _abs(call: Call, write: Write) -> str:
    value = write(call.arguments[0])
    whole = call.type is ColumnType.INTEGER
    return integer(f"abs({numeric(value)})") if whole else f"abs({value})"


def _round(call: Call, write: Write) -> str:
    value, digits = write(call.arguments[0]), digits_of(call)
    if call.type is ColumnType.DECIMAL:
        return f"round({value}, {digits or 0})"
    if digits is None:
        return f"round({value})"
    return f"CAST(round({numeric(value)}, {digits}) AS double precision)"


def _cast(call: Call, write: Write) -> str:
    operand, digits = call.arguments[0], digits_of(call)
    value, source, target = write(operand), operand.type, call.type
    if source is ColumnType.TEXT and target is not ColumnType.TEXT:
        pattern = text(f"^(?:{PLAIN_NUMBERS[target].pattern})$")
        value = let(f"CASE WHEN v ~ {pattern} THEN CAST(v AS numeric) END", v=value)
    if target is ColumnType.DECIMAL:
        return numeric(value) if digits is None else f"round({numeric(value)}, {digits})"
    if target is ColumnType.INTEGER and source is ColumnType.DOUBLE:
        inside = "v >= -9223372036854775808 AND v < 9223372036854775808"
        return let(f"CASE WHEN {inside} THEN CAST(round(v) AS bigint) END", v=value)
    if target is ColumnType.INTEGER and source is not ColumnType.BOOLEAN:
        return integer(f"round({numeric(value)})")
    if target is ColumnType.INTEGER:
        value = f"CAST({value} AS integer)"
    if target is ColumnType.BOOLEAN and source is ColumnType.INTEGER:
        return f"({value} <> 0)"
    return f"CAST({value} AS {TYPES[target]})"


def _extract(call: Call, write: Write) -> str:
    return f"extract({field_of(call)} FROM CAST({write(call.arguments[1])} AS timestamp))"


def _truncate(call: Call, write: Write) -> str:
    return f"date_trunc('{field_of(call)}', CAST({write(call.arguments[1])} AS timestamp))"


def _extreme(name: str) -> Rule:
    def rule(call: Call, write: Write) -> str:
        first, *rest = (write(each) for each in call.arguments)
        first = order(first) if call.type is ColumnType.TEXT else first
        return f"{name}({', '.join((first, *rest))})"

    return rule


POSTGRES = SqlDialect(
    types=TYPES,
    rules={
        **comparisons(order),
        Operation.LEAST: _extreme("least"),
        Operation.GREATEST: _extreme("greatest"),
        Operation.ADD: _sum("+"),
        Operation.SUBTRACT: _sum("-"),
        Operation.MULTIPLY: _product,
        Operation.DIVIDE: _quotient,
        Operation.MODULO: _remainder,
        Operation.POWER: _power,
        Operation.SQRT: _guarded("v >= 0", "sqrt(v)"),
        Operation.LN: _guarded("v > 0", "ln(v)"),
        Operation.EXP: _guarded(
            f"v <= {LARGEST}", f"CASE WHEN v < {SMALLEST} THEN 0 ELSE exp(v) END"
        ),
        Operation.ABS: _abs,
        Operation.FLOOR: lambda call, write: f"floor({write(call.arguments[0])})",
        Operation.CEIL: lambda call, write: f"ceil({write(call.arguments[0])})",
        Operation.ROUND: _round,
        Operation.CAST: _cast,
        Operation.EXTRACT: _extract,
        Operation.TRUNCATE: _truncate,
    },
    order=order,
    nan="CAST('NaN' AS numeric)",
)
