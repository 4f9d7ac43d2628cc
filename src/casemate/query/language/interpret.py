"""The meaning of the language, one value at a time: slow, obvious, and the reference.

It folds constants while parsing, computes what a statement shows from its aggregates' results,
and is what the engines' renderings are tested against.
"""

import math
import operator
import re
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from typing import Any

from casemate.query.language.coercion import LARGEST_INTEGER, convert_number, round_away
from casemate.query.language.expression import (
    Call,
    ColumnRef,
    Expression,
    KeyRef,
    Literal,
    Operation,
    ResultRef,
    Scalar,
)
from casemate.table import ColumnType

LARGEST_DOUBLE = 1e308
"""Doubles past this are overflow: a round number just below the format's own limit."""

Reader = Callable[[ColumnRef | ResultRef | KeyRef], Scalar]

DECIMAL_CONTEXT = Context(prec=76)


def evaluate(expression: Expression, read: Reader) -> Scalar:
    """The value of an expression where `read` gives the values of what it refers to."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, ColumnRef | ResultRef | KeyRef):
        return read(expression)
    special = LAZY.get(expression.operation)
    if special is not None:
        return special(expression, lambda each: evaluate(each, read))
    values = [evaluate(each, read) for each in expression.arguments]
    return apply(expression.operation, values, expression.type)


def constant(expression: Expression) -> Scalar:
    """The value of an expression that reads nothing."""

    def read(_: object) -> Scalar:
        raise LookupError("a constant reads nothing")

    return evaluate(expression, read)


def apply(operation: Operation, values: Sequence[Scalar], kind: ColumnType) -> Scalar:
    """A strict operation on values: NULL in, NULL out, and NULL for anything out of range."""
    if any(value is None for value in values):
        return None
    if kind is ColumnType.DOUBLE:  # a quotient or a root of decimals is a double
        values = [float(each) if isinstance(each, Decimal) else each for each in values]
    try:
        with localcontext(DECIMAL_CONTEXT):
            return within_range(STRICT[operation](*values), kind)
    except (ArithmeticError, ValueError):
        return None


def within_range(value: Any, kind: ColumnType) -> Scalar:
    """The value, or NULL where its type cannot hold it."""
    if value is None:
        return None
    if kind is ColumnType.INTEGER:
        return int(value) if -LARGEST_INTEGER - 1 <= value <= LARGEST_INTEGER else None
    if kind is ColumnType.DOUBLE:
        value = float(value) + 0.0  # one zero: minus zero becomes plain
        return value if abs(value) <= LARGEST_DOUBLE else None
    return value  # type: ignore[no-any-return]  # the operation gives its declared type


# Operations that may ignore an operand -----------------------------------------------------


def _and(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    seen = [value(each) for each in call.arguments]
    return False if False in seen else None if None in seen else True


def _or(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    seen = [value(each) for each in call.arguments]
    return True if True in seen else None if None in seen else False


def _same(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    left, right = (value(each) for each in call.arguments)
    return left == right if left is not None and right is not None else left is right


def _in(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    needle, *choices = (value(each) for each in call.arguments)
    if needle is None:
        return None
    return (
        True
        if needle in [each for each in choices if each is not None]
        else (None if None in choices else False)
    )


def _case(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    *pairs, otherwise = call.arguments
    for condition, result in zip(pairs[::2], pairs[1::2], strict=True):
        if value(condition) is True:
            return value(result)
    return value(otherwise)


def _coalesce(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    return next((seen for each in call.arguments if (seen := value(each)) is not None), None)


def _nullif(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
    left, right = (value(each) for each in call.arguments)
    return None if left is not None and left == right else left


def _extreme(choose: Callable[[Any], Any]) -> Callable[..., Scalar]:
    def extreme(call: Call, value: Callable[[Expression], Scalar]) -> Scalar:
        seen = [each for each in map(value, call.arguments) if each is not None]
        return choose(seen) if seen else None

    return extreme


LAZY: dict[Operation, Callable[[Call, Callable[[Expression], Scalar]], Scalar]] = {
    Operation.AND: _and,
    Operation.OR: _or,
    Operation.SAME: _same,
    Operation.IN: _in,
    Operation.CASE: _case,
    Operation.COALESCE: _coalesce,
    Operation.NULLIF: _nullif,
    Operation.LEAST: _extreme(min),
    Operation.GREATEST: _extreme(max),
    Operation.IS_NULL: lambda call, value: value(call.arguments[0]) is None,
    Operation.IS_TRUE: lambda call, value: value(call.arguments[0]) is True,
    Operation.CAST: lambda call, value: cast_value(value(call.arguments[0]), call),
}


# Strict operations --------------------------------------------------------------------------


def divide(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def modulo(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return int(math.copysign(1, left)) * (abs(left) % abs(right))
    return left % right  # a Decimal's remainder has the sign of the dividend


def round_half(value: Any, digits: int | None = None) -> Any:
    if isinstance(value, Decimal):
        return round_away(value, digits or 0)
    if digits is None:
        return float(round(value))  # doubles round half to even
    return float(round_away(Decimal(repr(float(value))), digits))


def exponential(value: Any) -> Any:
    return math.exp(value) if value > -740 else 0.0


def matches(text: str, pattern: str, escape: str) -> bool:
    return re.fullmatch(like_to_regex(pattern, escape), text, re.DOTALL) is not None


def like_to_regex(pattern: str, escape: str) -> str:
    """A LIKE pattern as a regular expression."""
    parts, characters = [], iter(pattern)
    for character in characters:
        if escape and character == escape:
            parts.append(re.escape(next(characters, "")))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return "".join(parts)


def one_letter(letter: str, changed: str) -> str:
    """A letter in the other case, unless that takes several letters."""
    return changed if len(changed) == 1 else letter


def substring(text: str, start: int, length: int | None = None) -> str:
    """Characters from a 1-based start; positions before the text count against the length."""
    end = len(text) if length is None else start - 1 + length
    if length is not None and length < 0:
        raise ValueError("negative length")
    return text[max(0, start - 1) : max(0, end)]


def as_moment(value: date) -> datetime:
    if isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day)


def truncate(unit: str, moment: date) -> datetime:
    """The start of the unit of time that contains the moment."""
    value = as_moment(moment)
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return midnight - timedelta(days=midnight.weekday())
    if unit == "quarter":
        return midnight.replace(month=3 * ((value.month - 1) // 3) + 1, day=1)
    kept = ("year", "month", "day", "hour", "minute", "second").index(unit) + 1
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second)
    return datetime(*(*parts[:kept], *(1, 1, 1, 0, 0, 0)[kept:]))  # type: ignore[arg-type]  # six


FIELDS: dict[str, Callable[[date], int]] = {
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month - 1) // 3 + 1,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar().week,
    "day": lambda moment: moment.day,
    "dow": lambda moment: moment.isoweekday() % 7,
    "isodow": lambda moment: moment.isoweekday(),
    "doy": lambda moment: moment.timetuple().tm_yday,
    "hour": lambda moment: as_moment(moment).hour,
    "minute": lambda moment: as_moment(moment).minute,
}
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

COMPARE: dict[Operation, Callable[[Any, Any], Any]] = {
    Operation.EQUAL: operator.eq,
    Operation.DIFFERENT: operator.ne,
    Operation.LESS: operator.lt,
    Operation.LESS_EQUAL: operator.le,
    Operation.GREATER: operator.gt,
    Operation.GREATER_EQUAL: operator.ge,
}
FLIPPED = {
    Operation.LESS: Operation.GREATER,
    Operation.LESS_EQUAL: Operation.GREATER_EQUAL,
    Operation.GREATER: Operation.LESS,
    Operation.GREATER_EQUAL: Operation.LESS_EQUAL,
}
"""The comparisons that order, each with what it is when its sides change places."""

STRICT: dict[Operation, Callable[..., Any]] = {
    Operation.NOT: operator.not_,
    **COMPARE,
    Operation.LIKE: matches,
    Operation.ADD: operator.add,
    Operation.SUBTRACT: operator.sub,
    Operation.MULTIPLY: operator.mul,
    Operation.DIVIDE: divide,
    Operation.MODULO: modulo,
    Operation.POWER: math.pow,
    Operation.ABS: abs,
    Operation.FLOOR: lambda value: (
        value.to_integral_value("ROUND_FLOOR") if isinstance(value, Decimal) else math.floor(value)
    ),
    Operation.CEIL: lambda value: (
        value.to_integral_value("ROUND_CEILING") if isinstance(value, Decimal) else math.ceil(value)
    ),
    Operation.ROUND: round_half,
    Operation.SQRT: math.sqrt,
    Operation.LN: math.log,
    Operation.EXP: exponential,
    Operation.LENGTH: len,
    Operation.LOWER: lambda text: "".join(map(one_letter, text, map(str.lower, text))),
    Operation.UPPER: lambda text: "".join(map(one_letter, text, map(str.upper, text))),
    Operation.SUBSTRING: substring,
    Operation.EXTRACT: lambda field, moment: Decimal(FIELDS[field](moment)),
    Operation.TRUNCATE: truncate,
}


# Casts --------------------------------------------------------------------------------------

PLAIN_NUMBERS = {
    ColumnType.INTEGER: re.compile(r"[ ]*[-+]?[0-9]{1,18}[ ]*"),
    ColumnType.DECIMAL: re.compile(r"[ ]*[-+]?([0-9]{1,18}(\.[0-9]{0,12})?|\.[0-9]{1,12})[ ]*"),
    ColumnType.DOUBLE: re.compile(r"[ ]*[-+]?([0-9]{1,18}(\.[0-9]{0,12})?|\.[0-9]{1,12})[ ]*"),
}
"""Text that casts to a number: what every engine reads alike. Anything else becomes NULL."""


def cast_value(value: Scalar, call: Call) -> Scalar:
    """A value in another type, or NULL where it has no place there."""
    if isinstance(value, str):
        value = number_from_text(value, call.type)
    if value is None:
        return None
    try:
        with localcontext(DECIMAL_CONTEXT):
            return within_range(_convert(value, call), call.type)
    except (ArithmeticError, ValueError):
        return None


def _convert(value: Scalar, call: Call) -> Any:
    converted = CASTS[call.type](value)
    digits = [each.value for each in call.arguments[1:] if isinstance(each, Literal)]
    return round_away(converted, *digits) if digits else converted  # type: ignore[arg-type]  # one integer


def number_from_text(text: str, target: ColumnType) -> Scalar:
    """Text as a number of the target type, or as it is when the target is text."""
    if target is ColumnType.TEXT:
        return text
    return Decimal(text.strip()) if PLAIN_NUMBERS[target].fullmatch(text) else None


def to_text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return format(value, "f") if isinstance(value, Decimal) else str(value)


CASTS: dict[ColumnType, Callable[[Any], Any]] = {
    ColumnType.TEXT: to_text,
    ColumnType.BOOLEAN: bool,
    ColumnType.INTEGER: lambda value: (
        int(value) if isinstance(value, bool) else convert_number(value, ColumnType.INTEGER)
    ),
    ColumnType.DECIMAL: lambda value: (
        Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    ),
    ColumnType.DOUBLE: float,
    ColumnType.DATE: lambda value: value.date() if isinstance(value, datetime) else value,
    ColumnType.TIMESTAMP: as_moment,
}
