"""DuckDB's dialect: TRY turns errors into NULL, and infinities are folded into NULL after it.

A rule writes each operand once: written twice, the text would double at every level. `let` names
what a rule needs twice; NULLIF, which the engine itself writes out as a CASE, is done with it too.

Departure  A decimal here has 38 digits, and multiplying adds up the digits after the point; so a
           product keeps 12 of them, and is NULL where less than that is left before the point.
"""

from casemate.query.engines.rendering import (
    SHARED,
    Rule,
    SqlDialect,
    Write,
    comparisons,
    digits_of,
    field_of,
    text,
)
from casemate.query.language.expression import Call, Expression, Operation
from casemate.query.language.interpret import PLAIN_NUMBERS
from casemate.table import ColumnType

TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DECIMAL: "DECIMAL(38, 12)",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}

WIDE = "CAST(1 AS DECIMAL(38, 0))"
"""Times this, a decimal has 38 digits: two of up to 18 would be computed in 64 bits otherwise."""


def let(result: str, operand: str) -> str:
    """A result in which the operand, written once, goes by the name v."""
    return f"list_transform([{operand}], lambda v: {result})[1]"


def finite(written: str) -> str:
    """A double, or NULL for what is not a number to compute with."""
    return let("CASE WHEN isfinite(v) THEN v END", written)


def operands(call: Call, write: Write) -> list[str]:
    """The operands of arithmetic; a double computed from decimals takes them as doubles."""
    return [
        f"CAST({write(each)} AS DOUBLE)"
        if call.type is ColumnType.DOUBLE and each.type is ColumnType.DECIMAL
        else write(each)
        for each in call.arguments
    ]


def _finite(unchecked: Rule) -> Rule:
    """A rule with errors as NULL, and infinities too where there are any."""

    def rule(call: Call, write: Write) -> str:
        written = f"TRY({unchecked(call, write)})"
        return finite(written) if call.type is ColumnType.DOUBLE else written

    return rule


def _arithmetic(sign: str, integer_sign: str | None = None) -> Rule:
    """Arithmetic; division by zero is NULL, or infinite and so NULL."""

    def rule(call: Call, write: Write) -> str:
        left, right = operands(call, write)
        left = f"{WIDE} * {left}" if call.type is ColumnType.DECIMAL else left
        chosen = integer_sign if integer_sign and call.type is ColumnType.INTEGER else sign
        return f"({left} {chosen} {right})"

    return rule


def _absorbing(sign: str) -> Rule:
    """Arithmetic that makes nothing finite of what is not: its operands need no check of theirs."""

    def rule(call: Call, write: Write) -> str:
        def loosely(each: Expression) -> str:
            checked = isinstance(each, Call) and each.type is call.type is ColumnType.DOUBLE
            unchecked = UNCHECKED.get(each.operation) if isinstance(each, Call) else None
            if checked and unchecked is not None and isinstance(each, Call):
                return unchecked(each, write)
            return write(each)

        return _arithmetic(sign)(call, loosely)

    return rule


def _real(name: str) -> Rule:
    return lambda call, write: f"{name}({', '.join(operands(call, write))})"


UNCHECKED: dict[Operation, Rule] = {
    Operation.ADD: _absorbing("+"),
    Operation.SUBTRACT: _absorbing("-"),
    Operation.MULTIPLY: _absorbing("*"),
    Operation.DIVIDE: _arithmetic("/", "//"),
    Operation.MODULO: _arithmetic("%"),
    Operation.POWER: _real("power"),
    Operation.SQRT: _real("sqrt"),
    Operation.LN: _real("ln"),
    Operation.EXP: _real("exp"),
}
"""What may come to something that is not finite."""


def _product(call: Call, write: Write) -> str:
    written = _finite(UNCHECKED[Operation.MULTIPLY])(call, write)
    return f"TRY_CAST({written} AS DECIMAL(38, 12))" if call.type is ColumnType.DECIMAL else written


def _round(call: Call, write: Write) -> str:
    value, digits = write(call.arguments[0]), digits_of(call)
    if call.type is ColumnType.DECIMAL:
        return f"TRY(round({value}, {digits or 0}))"
    if digits is None:
        return f"round_even({value}, 0)"
    return f"CAST(TRY(round(TRY_CAST({value} AS DECIMAL(38, 15)), {digits})) AS DOUBLE)"


def _cast(call: Call, write: Write) -> str:
    operand, digits = call.arguments[0], digits_of(call)
    value, source = write(operand), operand.type
    if source is ColumnType.TEXT and call.type is not ColumnType.TEXT:
        pattern = text(f"^(?:{PLAIN_NUMBERS[call.type].pattern})$")
        value = f"trim(regexp_extract({value}, {pattern}))"  # empty, so not a number, if no match
    if call.type is ColumnType.DECIMAL:
        return _to_decimal(value, source, digits)
    if call.type is ColumnType.INTEGER and source is ColumnType.DECIMAL:
        value = f"round({value}, 0)"
    if call.type is ColumnType.INTEGER and source is ColumnType.DOUBLE:
        value = f"round_even({value}, 0)"
    return f"TRY_CAST({value} AS {TYPES[call.type]})"


def _to_decimal(value: str, source: ColumnType, digits: int | None) -> str:
    if digits is None:
        return f"CAST({value} AS DECIMAL(19, 0))" if source is ColumnType.INTEGER else value
    if source is ColumnType.DOUBLE:
        value = f"TRY_CAST({value} AS DECIMAL(38, 15))"
    if source in (ColumnType.DOUBLE, ColumnType.DECIMAL):
        value = f"round({value}, {digits})"
    return f"TRY_CAST({value} AS DECIMAL(38, {digits}))"


def _extract(call: Call, write: Write) -> str:
    moment = f"CAST({write(call.arguments[1])} AS TIMESTAMP)"
    return f"CAST(extract({field_of(call)} FROM {moment}) AS DECIMAL(19, 0))"


def _truncate(call: Call, write: Write) -> str:
    moment = f"CAST({write(call.arguments[1])} AS TIMESTAMP)"
    return f"CAST(date_trunc('{field_of(call)}', {moment}) AS TIMESTAMP)"


def _unified(operation: Operation) -> Rule:
    """Decimals under one roof, all of one type: the engine's own choice may cut digits off."""

    def rule(call: Call, write: Write) -> str:
        def widened(each: Expression) -> str:
            decimal = each.type is ColumnType.DECIMAL
            return f"TRY_CAST({write(each)} AS {TYPES[each.type]})" if decimal else write(each)

        return SHARED[operation](call, widened)

    return rule


def _nullif(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    pair = f"{{'a': {left}, 'b': {right}}}"  # v.a would be looked for in a column named v
    return let("CASE WHEN v['a'] = v['b'] THEN NULL ELSE v['a'] END", pair)


UNIFYING = (Operation.CASE, Operation.COALESCE, Operation.LEAST, Operation.GREATEST)


def _stepped(name: str) -> Rule:
    return lambda call, write: f"{name}({write(call.arguments[0])})"


DUCKDB = SqlDialect(
    types=TYPES,
    rules={
        **comparisons(lambda written: written),
        **{operation: _finite(rule) for operation, rule in UNCHECKED.items()},
        Operation.MULTIPLY: _product,
        Operation.ABS: lambda call, write: f"TRY(abs({write(call.arguments[0])}))",
        Operation.FLOOR: _stepped("floor"),
        Operation.CEIL: _stepped("ceil"),
        Operation.ROUND: _round,
        Operation.NULLIF: _nullif,
        **{operation: _unified(operation) for operation in UNIFYING},
        Operation.CAST: _cast,
        Operation.EXTRACT: _extract,
        Operation.TRUNCATE: _truncate,
    },
    order=lambda written: written,
    nan="CAST(NULL AS DECIMAL(38, 12))",
    guard=lambda written: (
        f"coalesce({written}, FALSE)"
    ),  # else the optimiser may take NULL for true
)
