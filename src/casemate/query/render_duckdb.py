"""DuckDB's dialect: TRY turns errors into NULL, and infinities are folded into NULL after it."""

from casemate.query.expression import Call, Operation
from casemate.query.interpret import PLAIN_NUMBERS
from casemate.query.render import Engine, Rule, Write, comparisons, digits_of, field_of, text
from casemate.table.schema import ColumnType

TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DECIMAL: "DECIMAL(38, 12)",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}


def finite(written: str) -> str:
    """A double, or NULL for what is not a number to compute with."""
    for outside in ("inf", "-inf", "nan"):
        written = f"nullif({written}, CAST('{outside}' AS DOUBLE))"
    return written


def _arithmetic(sign: str, integer_sign: str | None = None, guard: bool = False) -> Rule:
    def rule(call: Call, write: Write) -> str:
        left, right = (write(each) for each in call.arguments)
        right = f"nullif({right}, 0)" if guard else right
        chosen = integer_sign if integer_sign and call.type is ColumnType.INTEGER else sign
        written = f"TRY({left} {chosen} {right})"
        return finite(written) if call.type is ColumnType.DOUBLE else written

    return rule


def _real(name: str) -> Rule:
    def rule(call: Call, write: Write) -> str:
        return finite(f"TRY({name}({', '.join(write(each) for each in call.arguments)}))")

    return rule


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
        pattern = text(PLAIN_NUMBERS[call.type].pattern)
        value = f"CASE WHEN regexp_full_match({value}, {pattern}) THEN trim({value}) END"
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


def _stepped(name: str) -> Rule:
    return lambda call, write: f"{name}({write(call.arguments[0])})"


DUCKDB = Engine(
    types=TYPES,
    rules={
        **comparisons(lambda written: written),
        Operation.ADD: _arithmetic("+"),
        Operation.SUBTRACT: _arithmetic("-"),
        Operation.MULTIPLY: _arithmetic("*"),
        Operation.DIVIDE: _arithmetic("/", "//", guard=True),
        Operation.MODULO: _arithmetic("%", guard=True),
        Operation.POWER: _real("power"),
        Operation.SQRT: _real("sqrt"),
        Operation.LN: _real("ln"),
        Operation.EXP: _real("exp"),
        Operation.ABS: lambda call, write: f"TRY(abs({write(call.arguments[0])}))",
        Operation.FLOOR: _stepped("floor"),
        Operation.CEIL: _stepped("ceil"),
        Operation.ROUND: _round,
        Operation.CAST: _cast,
        Operation.EXTRACT: _extract,
        Operation.TRUNCATE: _truncate,
    },
    order=lambda written: written,
)
