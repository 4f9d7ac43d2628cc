"""The dialects of DuckDB and PostgreSQL: what they write differently from each other.

DuckDB  TRY turns errors into NULL, and infinities are folded into NULL after it. A rule writes each
        operand once: written twice, the text would double at every level. `let_v` names what a rule
        needs twice; NULLIF, which the engine itself writes out as a CASE, is done with it too.
PostgreSQL  Every operation that could raise is guarded where it stands, for there is no TRY. A
        guard needs its operand twice, so operands are named once in a subquery without a table:
        `let`. OFFSET 0 keeps the planner from writing them twice after all, which takes
        exponential time.

Departure  A decimal of DuckDB's has 38 digits, and multiplying adds up the digits after the point;
           so a product keeps 12 of them, and is NULL where less than that is left before the point.
"""

from casemate.query.engines.rendering import (
    SHARED,
    Rule,
    SqlDialect,
    Write,
    digits_of,
    operands,
    template,
    temporal,
)
from casemate.query.language.expression import Call, Expression, Operation
from casemate.query.language.interpret import FLIPPED, PLAIN_NUMBERS
from casemate.table import ColumnType
from casemate.table.sources import literal

# DuckDB -----------------------------------------------------------------------------------------

DUCKDB_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DECIMAL: "DECIMAL(38, 12)",
    ColumnType.DOUBLE: "DOUBLE",
    ColumnType.TEXT: "VARCHAR",
    ColumnType.DATE: "DATE",
    ColumnType.TIMESTAMP: "TIMESTAMP",
}

DECIMAL_38_ONE = "CAST(1 AS DECIMAL(38, 0))"
"""Times this, a decimal has 38 digits: two of up to 18 would be computed in 64 bits otherwise."""


def let_v(result: str, operand: str) -> str:
    """A result in which the operand, written once, goes by the name v."""
    return f"list_transform([{operand}], lambda v: {result})[1]"


def finite(written: str) -> str:
    """A double, or NULL for what is not a number to compute with."""
    return let_v("CASE WHEN isfinite(v) THEN v END", written)


def _finite(unchecked: Rule) -> Rule:
    """A rule with errors as NULL, and infinities too where there are any."""

    def rule(call: Call, write: Write) -> str:
        written = f"TRY({unchecked(call, write)})"
        return finite(written) if call.type is ColumnType.DOUBLE else written

    return rule


def _duckdb_arithmetic(sign: str, integer_sign: str | None = None) -> Rule:
    """Arithmetic; division by zero is NULL, or infinite and so NULL."""

    def rule(call: Call, write: Write) -> str:
        left, right = operands(call, write, DUCKDB_TYPES)
        left = f"{DECIMAL_38_ONE} * {left}" if call.type is ColumnType.DECIMAL else left
        chosen = integer_sign if integer_sign and call.type is ColumnType.INTEGER else sign
        return f"({left} {chosen} {right})"

    return rule


def _propagate_nonfinite(sign: str) -> Rule:
    """Arithmetic that makes nothing finite of what is not: its operands need no check of theirs."""

    def rule(call: Call, write: Write) -> str:
        def write_unchecked(each: Expression) -> str:
            checked = isinstance(each, Call) and each.type is call.type is ColumnType.DOUBLE
            unchecked = UNCHECKED.get(each.operation) if isinstance(each, Call) else None
            if checked and unchecked is not None and isinstance(each, Call):
                return unchecked(each, write)
            return write(each)

        return _duckdb_arithmetic(sign)(call, write_unchecked)

    return rule


def _real(name: str) -> Rule:
    return lambda call, write: f"{name}({', '.join(operands(call, write, DUCKDB_TYPES))})"


UNCHECKED: dict[Operation, Rule] = {
    Operation.ADD: _propagate_nonfinite("+"),
    Operation.SUBTRACT: _propagate_nonfinite("-"),
    Operation.MULTIPLY: _propagate_nonfinite("*"),
    Operation.DIVIDE: _duckdb_arithmetic("/", "//"),
    Operation.MODULO: _duckdb_arithmetic("%"),
    Operation.POWER: _real("power"),
    Operation.SQRT: _real("sqrt"),
    Operation.LN: _real("ln"),
    Operation.EXP: _real("exp"),
}
"""What may come to something that is not finite."""


def _duckdb_product(call: Call, write: Write) -> str:
    written = _finite(UNCHECKED[Operation.MULTIPLY])(call, write)
    return f"TRY_CAST({written} AS DECIMAL(38, 12))" if call.type is ColumnType.DECIMAL else written


def _duckdb_round(call: Call, write: Write) -> str:
    value, digits = write(call.arguments[0]), digits_of(call)
    if call.type is ColumnType.DECIMAL:
        return f"TRY(round({value}, {digits or 0}))"
    if digits is None:
        return f"round_even({value}, 0)"
    return f"CAST(TRY(round(TRY_CAST({value} AS DECIMAL(38, 15)), {digits})) AS DOUBLE)"


def _duckdb_cast(call: Call, write: Write) -> str:
    operand, digits = call.arguments[0], digits_of(call)
    value, source = write(operand), operand.type
    if source is ColumnType.TEXT and call.type is not ColumnType.TEXT:
        pattern = literal(f"^(?:{PLAIN_NUMBERS[call.type].pattern})$")
        value = f"trim(regexp_extract({value}, {pattern}))"  # empty, so not a number, if no match
    if call.type is ColumnType.DECIMAL:
        return _duckdb_to_decimal(value, source, digits)
    if call.type is ColumnType.INTEGER and source is ColumnType.DECIMAL:
        value = f"round({value}, 0)"
    if call.type is ColumnType.INTEGER and source is ColumnType.DOUBLE:
        value = f"round_even({value}, 0)"
    return f"TRY_CAST({value} AS {DUCKDB_TYPES[call.type]})"


def _duckdb_to_decimal(value: str, source: ColumnType, digits: int | None) -> str:
    if digits is None:
        return f"CAST({value} AS DECIMAL(19, 0))" if source is ColumnType.INTEGER else value
    if source is ColumnType.DOUBLE:
        value = f"TRY_CAST({value} AS DECIMAL(38, 15))"
    if source in (ColumnType.DOUBLE, ColumnType.DECIMAL):
        value = f"round({value}, {digits})"
    return f"TRY_CAST({value} AS DECIMAL(38, {digits}))"


def _unify_decimals(operation: Operation) -> Rule:
    """Decimals under one roof, all of one type: the engine's own choice may cut digits off."""

    def rule(call: Call, write: Write) -> str:
        def widen(each: Expression) -> str:
            decimal = each.type is ColumnType.DECIMAL
            return (
                f"TRY_CAST({write(each)} AS {DUCKDB_TYPES[each.type]})" if decimal else write(each)
            )

        return SHARED[operation](call, widen)

    return rule


def _nullif(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    pair = f"{{'a': {left}, 'b': {right}}}"  # v.a would be looked for in a column named v
    return let_v("CASE WHEN v['a'] = v['b'] THEN NULL ELSE v['a'] END", pair)


UNIFYING = (Operation.CASE, Operation.COALESCE, Operation.LEAST, Operation.GREATEST)


DUCKDB = SqlDialect(
    types=DUCKDB_TYPES,
    rules={
        **{operation: _finite(rule) for operation, rule in UNCHECKED.items()},
        Operation.MULTIPLY: _duckdb_product,
        Operation.ABS: template("TRY(abs({}))"),
        Operation.ROUND: _duckdb_round,
        Operation.NULLIF: _nullif,
        **{operation: _unify_decimals(operation) for operation in UNIFYING},
        Operation.CAST: _duckdb_cast,
        Operation.EXTRACT: temporal(
            "CAST(extract({} FROM CAST({} AS TIMESTAMP)) AS DECIMAL(19, 0))"
        ),
        Operation.TRUNCATE: temporal("CAST(date_trunc('{}', CAST({} AS TIMESTAMP)) AS TIMESTAMP)"),
    },
    order=lambda written: written,
    nan="CAST(NULL AS DECIMAL(38, 12))",
    guard=lambda written: (
        f"coalesce({written}, FALSE)"
    ),  # else the optimiser may take NULL for true
)


# PostgreSQL -------------------------------------------------------------------------------------

POSTGRES_TYPES = {
    ColumnType.BOOLEAN: "boolean",
    ColumnType.INTEGER: "bigint",
    ColumnType.DECIMAL: "numeric",
    ColumnType.DOUBLE: "double precision",
    ColumnType.TEXT: "text",
    ColumnType.DATE: "date",
    ColumnType.TIMESTAMP: "timestamp",
}
BIGINT_RANGE = "BETWEEN -9223372036854775808 AND 9223372036854775807"
LN_LARGEST_DOUBLE = 709.1962  # ln(1e308): larger doubles are overflow
LN_SMALLEST_DOUBLE = -744.4  # ln of the smallest double: less is zero


def let(result: str, **operands: str) -> str:
    """A result in which each operand, written once, goes by its name."""
    named = ", ".join(f"{written} AS {name}" for name, written in operands.items())
    return f"(SELECT {result} FROM (SELECT {named} OFFSET 0) AS x)"


def integer(written: str) -> str:
    """A whole decimal as an integer, or NULL where it does not fit 64 bits."""
    return let(f"CASE WHEN v {BIGINT_RANGE} THEN CAST(v AS bigint) END", v=written)


def numeric(written: str) -> str:
    return f"CAST({written} AS numeric)"


def order(written: str) -> str:
    return f'({written} COLLATE "C")'


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


def within_double_range(sign: str, exponent: str) -> str:
    """A product or quotient of doubles that neither overflows nor underflows."""
    return (
        f"CASE WHEN a = 0 THEN 0 WHEN {exponent} > {LN_LARGEST_DOUBLE} THEN NULL "
        f"WHEN {exponent} < {LN_SMALLEST_DOUBLE} THEN 0 ELSE a {sign} b END"
    )


def _postgres_product(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    if call.type is ColumnType.INTEGER:
        return integer(f"{numeric(left)} * {numeric(right)}")
    if call.type is ColumnType.DECIMAL:
        return f"({left} * {right})"
    whole = within_double_range("*", "ln(abs(a)) + ln(abs(b))")
    return let(f"CASE WHEN a = 0 OR b = 0 THEN a * 0 + b * 0 ELSE {whole} END", a=left, b=right)


def _quotient(call: Call, write: Write) -> str:
    left, right = operands(call, write, POSTGRES_TYPES)
    if call.type is ColumnType.INTEGER:
        return integer(f"div({numeric(left)}, nullif({numeric(right)}, 0))")
    whole = within_double_range("/", "ln(abs(a)) - ln(abs(b))")
    return let(f"CASE WHEN b <> 0 THEN {whole} END", a=left, b=right)


def _remainder(call: Call, write: Write) -> str:
    left, right = (write(each) for each in call.arguments)
    written = f"mod({numeric(left)}, nullif({numeric(right)}, 0))"
    return f"CAST({written} AS {POSTGRES_TYPES[call.type]})"


def _guard(condition: str, result: str) -> Rule:
    def rule(call: Call, write: Write) -> str:
        return let(
            f"CASE WHEN {condition} THEN {result} END", v=operands(call, write, POSTGRES_TYPES)[0]
        )

    return rule


def _power(call: Call, write: Write) -> str:
    base, exponent = operands(call, write, POSTGRES_TYPES)
    size = "b * ln(abs(a))"
    return let(
        "CASE WHEN b = 0 THEN 1 WHEN a = 0 THEN CASE WHEN b > 0 THEN 0 END "
        "WHEN a < 0 AND b <> floor(b) THEN NULL "
        f"WHEN {size} > {LN_LARGEST_DOUBLE} THEN NULL WHEN {size} < {LN_SMALLEST_DOUBLE} THEN 0 "
        "ELSE power(a, b) END",
        a=base,
        b=exponent,
    )


def _abs(call: Call, write: Write) -> str:
    value = write(call.arguments[0])
    whole = call.type is ColumnType.INTEGER
    return integer(f"abs({numeric(value)})") if whole else f"abs({value})"


def _postgres_round(call: Call, write: Write) -> str:
    value, digits = write(call.arguments[0]), digits_of(call)
    if call.type is ColumnType.DECIMAL:
        return f"round({value}, {digits or 0})"
    if digits is None:
        return f"round({value})"
    return f"CAST(round({numeric(value)}, {digits}) AS double precision)"


def _postgres_cast(call: Call, write: Write) -> str:
    operand, digits = call.arguments[0], digits_of(call)
    value, source, target = write(operand), operand.type, call.type
    if source is ColumnType.TEXT and target is not ColumnType.TEXT:
        pattern = literal(f"^(?:{PLAIN_NUMBERS[target].pattern})$")
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
    return f"CAST({value} AS {POSTGRES_TYPES[target]})"


def _by_code_points(operation: Operation) -> Rule:
    """What orders its operands, text by code points: one with a collation decides for all."""

    def rule(call: Call, write: Write) -> str:
        first = call.arguments[0]

        def collate(each: Expression) -> str:
            text = each is first and each.type is ColumnType.TEXT
            return order(write(each)) if text else write(each)

        return SHARED[operation](call, collate)

    return rule


EXTREMES = (Operation.LEAST, Operation.GREATEST)
POSTGRES = SqlDialect(
    types=POSTGRES_TYPES,
    rules={
        **{each: _by_code_points(each) for each in (*FLIPPED, *EXTREMES)},
        Operation.ADD: _sum("+"),
        Operation.SUBTRACT: _sum("-"),
        Operation.MULTIPLY: _postgres_product,
        Operation.DIVIDE: _quotient,
        Operation.MODULO: _remainder,
        Operation.POWER: _power,
        Operation.SQRT: _guard("v >= 0", "sqrt(v)"),
        Operation.LN: _guard("v > 0", "ln(v)"),
        Operation.EXP: _guard(
            f"v <= {LN_LARGEST_DOUBLE}",
            f"CASE WHEN v < {LN_SMALLEST_DOUBLE} THEN 0 ELSE exp(v) END",
        ),
        Operation.ABS: _abs,
        Operation.ROUND: _postgres_round,
        Operation.CAST: _postgres_cast,
        Operation.EXTRACT: temporal("extract({} FROM CAST({} AS timestamp))"),
        Operation.TRUNCATE: temporal("date_trunc('{}', CAST({} AS timestamp))"),
    },
    order=order,
    nan="CAST('NaN' AS numeric)",
)
