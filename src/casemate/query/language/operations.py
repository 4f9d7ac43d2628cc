"""Typed construction of operations: the only way the parser makes a `Call`.

Each function brings its operands to common types as PostgreSQL would and states the result's;
a call on constants is computed at once. `Mismatch` says what does not go together. `simplify` folds
constants and cuts dead branches after a column has been replaced by a constant.
"""

from collections.abc import Sequence
from decimal import Decimal

from casemate.query.language.coercion import (
    NUMBERS,
    TIMES,
    Mismatch,
    article,
    coerce,
    is_untyped,
    unify,
)
from casemate.query.language.expression import (
    FALSE,
    TRUE,
    Call,
    ColumnRef,
    Expression,
    Literal,
    Operation,
    ResultRef,
    conjunction,
    conjuncts,
)
from casemate.query.language.interpret import FIELDS, UNITS, constant
from casemate.table import ColumnType

BOOLEAN, INTEGER, DECIMAL, DOUBLE, TEXT, DATE, TIMESTAMP = ColumnType
WHOLE_DIGITS, FRACTION_DIGITS = 26, 12
"""Digits of a decimal before and after the point: every engine computes with these."""

MAX_DEPTH, MAX_NODES = 100, 100_000
"""Operations inside each other, and nodes in all, that an expression may be written with."""

REWRITING_FACTOR = 2
"""How many times as many it may have when it has been rewritten: shifted, scaled, clamped."""


def call(operation: Operation, arguments: Sequence[Expression], kind: ColumnType) -> Expression:
    """The operation, or its value when every operand is a constant."""
    made = Call(operation, tuple(arguments), kind)
    check_size(made, REWRITING_FACTOR)
    if all(isinstance(each, Literal) for each in arguments):
        return Literal(constant(made), kind)
    for each in arguments:
        if isinstance(each, Literal) and isinstance(each.value, Decimal):
            check_digits(each.value)
    return made


def check_size(expression: Expression, times: int = 1) -> None:
    """An expression must be short and shallow enough for every engine."""
    if not isinstance(expression, Call):
        return
    if expression.depth > times * MAX_DEPTH or expression.size > times * MAX_NODES:
        raise Mismatch("this is too long or too deeply nested to compute")


def check_digits(value: Decimal) -> None:
    """A decimal constant must have a place on every engine."""
    exponent = value.normalize().as_tuple().exponent
    if abs(value) >= 10**WHOLE_DIGITS or int(exponent) < -FRACTION_DIGITS:
        raise Mismatch(
            f"a decimal has at most {WHOLE_DIGITS} digits before the point and "
            f"{FRACTION_DIGITS} after it"
        )


def boolean(expression: Expression) -> Expression:
    """The expression as a condition."""
    if expression.type is not BOOLEAN and not is_untyped(expression):
        raise Mismatch(f"a condition is needed here, and this is {article(expression.type)}")
    return coerce(expression, BOOLEAN)


def conjoin(operation: Operation, parts: Sequence[Expression]) -> Expression:
    """AND or OR of conditions."""
    conditions = [boolean(part) for part in parts]
    if operation is Operation.AND:
        return conjunction([term for part in conditions for term in conjuncts(part)])
    return call(operation, conditions, BOOLEAN)


def negation(operand: Expression) -> Expression:
    """NOT of a condition."""
    return call(Operation.NOT, [boolean(operand)], BOOLEAN)


def compare(operation: Operation, left: Expression, right: Expression) -> Expression:
    """A comparison of two values of one type."""
    operands, _ = unify([left, right])
    return call(operation, operands, BOOLEAN)


def member(needle: Expression, choices: Sequence[Expression]) -> Expression:
    """IN a list."""
    operands, _ = unify([needle, *choices])
    return call(Operation.IN, operands, BOOLEAN)


def like(text: Expression, pattern: Expression, escape: Expression) -> Expression:
    """LIKE with a constant pattern."""
    if text.type is not TEXT:
        raise Mismatch(f"LIKE compares text, and this is {article(text.type)}")
    check_pattern(constant_text(pattern), constant_text(escape))
    return call(Operation.LIKE, [text, pattern, escape], BOOLEAN)


def constant_text(expression: Expression) -> str:
    """The text of a constant."""
    if not isinstance(expression, Literal) or not isinstance(expression.value, str):
        raise Mismatch("LIKE needs a constant pattern")
    return expression.value


def check_pattern(pattern: str, escape: str) -> None:
    """A pattern must not end inside an escape, and an escape is at most one character."""
    if len(escape) > 1:
        raise Mismatch("ESCAPE takes one character")
    if escape and (len(pattern) - len(pattern.rstrip(escape))) % 2:
        raise Mismatch("this LIKE pattern ends with its escape character")


def arithmetic(operation: Operation, left: Expression, right: Expression) -> Expression:
    """Plus, minus, times, divided by, remainder."""
    operands, kind = unify([left, right])
    if kind not in NUMBERS:
        raise Mismatch(f"arithmetic needs numbers, and this is {article(kind)}")
    if operation is Operation.MODULO and kind is DOUBLE:
        raise Mismatch("the remainder of doubles is not defined; cast them to numeric")
    if operation is Operation.DIVIDE and kind is DECIMAL:
        return decimal_constant(call(operation, operands, DOUBLE), kind)
    return call(operation, operands, kind)


def decimal_constant(result: Expression, kind: ColumnType) -> Expression:
    """A double computed from decimals; a constant one is a decimal again."""
    if kind is not DECIMAL or not isinstance(result, Literal) or result.value is None:
        return result
    return cast(result, DECIMAL, FRACTION_DIGITS)


def numeric(operand: Expression) -> Expression:
    """The operand, which must be a number; a quoted one is read as a double."""
    if is_untyped(operand):
        return coerce(operand, DOUBLE)
    if operand.type not in NUMBERS:
        raise Mismatch(f"a number is needed here, and this is {article(operand.type)}")
    return operand


def magnitude(operand: Expression) -> Expression:
    """The absolute value."""
    value = numeric(operand)
    return call(Operation.ABS, [value], value.type)


def negative(operand: Expression) -> Expression:
    """The number with its sign changed."""
    value = numeric(operand)
    return arithmetic(Operation.SUBTRACT, Literal(0, INTEGER), value)


def floor_or_ceil(operation: Operation, operand: Expression) -> Expression:
    """FLOOR or CEIL: decimals stay decimals, other numbers become doubles."""
    value = numeric(operand)
    value = value if value.type is DECIMAL else coerce(value, DOUBLE)
    return call(operation, [value], value.type)


def round_number(operand: Expression, digits: Expression | None) -> Expression:
    """ROUND, with or without a constant number of digits."""
    if digits is None and not was_decimal(operand):
        return floor_or_ceil(Operation.ROUND, operand)
    digits = digits or Literal(0, INTEGER)
    if not isinstance(digits, Literal) or not isinstance(digits.value, int):
        raise Mismatch("ROUND needs a constant number of digits")
    if not -15 <= digits.value <= 15:
        raise Mismatch("ROUND takes between -15 and 15 digits")
    value = numeric(operand)
    value = coerce(value, DECIMAL) if value.type is INTEGER else value
    return call(Operation.ROUND, [value, digits], value.type)


def real(operation: Operation, *operands: Expression) -> Expression:
    """A function computed in double precision."""
    values, kind = unify([numeric(each) for each in operands])
    if kind is INTEGER:
        values = tuple(coerce(each, DOUBLE) for each in values)
    return decimal_constant(call(operation, values, DOUBLE), kind)


def was_decimal(expression: Expression) -> bool:
    """Whether a double is a decimal in PostgreSQL, where halves are rounded away from zero."""
    if isinstance(expression, ResultRef):
        return expression.was_decimal
    if not isinstance(expression, Call) or expression.type is not DOUBLE:
        return False
    if expression.operation is Operation.CAST:
        return False
    if any(each.type is DECIMAL for each in expression.arguments):
        return True
    doubles = [each for each in expression.arguments if each.type is DOUBLE]
    meeting = [
        each for each in doubles if not isinstance(each, Literal) and not _is_widening_cast(each)
    ]
    return bool(meeting) and all(was_decimal(each) for each in meeting)


def _is_widening_cast(expression: Expression) -> bool:
    """Whether an exact number became a double because it met one."""
    cast_to = isinstance(expression, Call) and expression.operation is Operation.CAST
    return cast_to and isinstance(expression, Call) and expression.arguments[0].type is not DOUBLE


def choice(pairs: Sequence[tuple[Expression, Expression]], otherwise: Expression) -> Expression:
    """CASE WHEN condition THEN result ... ELSE otherwise END."""
    results, kind = unify([*(result for _, result in pairs), otherwise])
    conditions = [boolean(condition) for condition, _ in pairs]
    flat = [part for pair in zip(conditions, results, strict=False) for part in pair]
    return call(Operation.CASE, [*flat, results[-1]], kind)


def among(operation: Operation, operands: Sequence[Expression]) -> Expression:
    """COALESCE, LEAST or GREATEST."""
    if not operands:
        raise Mismatch(f"{operation} needs at least one argument")
    values, kind = unify(operands)
    return call(operation, values, kind)


def nullif(left: Expression, right: Expression) -> Expression:
    """NULLIF: NULL where the two are equal; of a date and a timestamp the first keeps its type."""
    if left.type in TIMES and right.type in TIMES:
        return choice([(compare(Operation.EQUAL, left, right), Literal(None, left.type))], left)
    operands, kind = unify([left, right])
    return call(Operation.NULLIF, operands, kind)


def textual(operation: Operation, operand: Expression, *rest: Expression) -> Expression:
    """A function of text; what follows the text are constant integers."""
    if operand.type is not TEXT:
        raise Mismatch(f"{operation} needs text, and this is {article(operand.type)}")
    for each in rest:
        if not isinstance(each, Literal) or not isinstance(each.value, int):
            raise Mismatch(f"{operation} needs constant positions")
        if abs(each.value) >= 2**31:
            raise Mismatch(f"{operation} takes positions below 2^31")
    kind = INTEGER if operation is Operation.LENGTH else TEXT
    return call(operation, [operand, *rest], kind)


def temporal(operation: Operation, field: str, operand: Expression) -> Expression:
    """EXTRACT or DATE_TRUNC of a date or timestamp."""
    known = tuple(FIELDS) if operation is Operation.EXTRACT else UNITS
    if field not in known:
        raise Mismatch(f"{operation} knows {', '.join(known)}")
    value = coerce(operand, TIMESTAMP) if is_untyped(operand) else operand
    if value.type not in TIMES:
        raise Mismatch(f"{operation} needs a date or timestamp, and this is {article(value.type)}")
    kind = DECIMAL if operation is Operation.EXTRACT else TIMESTAMP
    return call(operation, [Literal(field, TEXT), value], kind)


def is_null(operand: Expression) -> Expression:
    """IS NULL."""
    return call(Operation.IS_NULL, [operand], BOOLEAN)


def is_truth(operand: Expression, truth: bool) -> Expression:
    """IS TRUE or IS FALSE."""
    condition = boolean(operand)
    return call(Operation.IS_TRUE, [condition if truth else negation(condition)], BOOLEAN)


ALLOWED_CASTS = {
    BOOLEAN: (BOOLEAN, INTEGER, TEXT),
    INTEGER: (*NUMBERS, BOOLEAN, TEXT),
    DECIMAL: (*NUMBERS, TEXT),
    DOUBLE: NUMBERS,
    TEXT: (TEXT, *NUMBERS),
    DATE: (*TIMES, TEXT),
    TIMESTAMP: (*TIMES, TEXT),
}


def cast(operand: Expression, target: ColumnType, digits: int | None = None) -> Expression:
    """CAST; `digits` after the point for numeric(p, s)."""
    value = coerce(operand, target) if is_untyped(operand) else operand
    _check_cast(value, target)
    if target is INTEGER and was_decimal(value):
        value = round_number(value, None)  # a cast of a double would round halves to even
    scale = _scale(value.type, target, digits)
    if not scale and _needs_no_cast(value, target):
        return value
    return call(Operation.CAST, [value, *scale], target)


def _check_cast(value: Expression, target: ColumnType) -> None:
    """Refuse a cast that engines do in different ways, or not at all."""
    if target not in ALLOWED_CASTS[value.type]:
        raise Mismatch(f"a cast from {value.type} to {target} is not accepted")
    if target is TEXT and value.type is DECIMAL and not _has_digits(value):
        raise Mismatch("how many digits this decimal has is not fixed; round it before the cast")


def _scale(source: ColumnType, target: ColumnType, digits: int | None) -> list[Literal]:
    """The digits after the point that a cast fixes, where it fixes any."""
    if digits is None and target is DECIMAL and source in (DOUBLE, TEXT):
        digits = FRACTION_DIGITS
    return [] if digits is None else [Literal(digits, INTEGER)]


def _needs_no_cast(value: Expression, target: ColumnType) -> bool:
    """Whether the value has the type already, in PostgreSQL too."""
    return value.type is target and not (target is DOUBLE and was_decimal(value))


def _has_digits(operand: Expression) -> bool:
    """Whether every engine writes the decimal with the same digits after the point."""
    if not isinstance(operand, Call):
        return isinstance(operand, ColumnRef | Literal)
    fixed = operand.operation in (Operation.CAST, Operation.ROUND) and len(operand.arguments) == 2
    whole = operand.operation in (Operation.FLOOR, Operation.CEIL, Operation.EXTRACT)
    return fixed or whole or operand.operation is Operation.ROUND


# Simplification ----------------------------------------------------------------------------------


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
