"""Types of expressions: PostgreSQL's rules for literals, mixed operands and results.

Departure  PostgreSQL divides decimals, and takes their roots, in decimal arithmetic of a
           precision that depends on the digits of the operands; here both are done in double
           precision, on every engine, so that two engines agree. Rounding such a double still
           takes halves away from zero, as PostgreSQL rounds decimals.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal

from casemate.errors import Unsupported
from casemate.query.language.expression import Call, Expression, Literal, Operation, Scalar
from casemate.table import ColumnType

NUMBERS = (ColumnType.INTEGER, ColumnType.DECIMAL, ColumnType.DOUBLE)
TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
LARGEST_INTEGER = 2**63 - 1
TRUE_WORDS = ("t", "true", "yes", "on", "1")
FALSE_WORDS = ("f", "false", "no", "off", "0")
WHOLE = re.compile(r"[-+]?[0-9]+")
NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,4})?")
MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8})([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
)
"""What a literal may look like: what Python and PostgreSQL both read, and read alike."""


class Mismatch(Unsupported):
    """Operands that do not go together, or too many of them; the parser adds the place."""


def article(kind: ColumnType) -> str:
    """A type with its article, for messages."""
    return f"an {kind}" if kind is ColumnType.INTEGER else f"a {kind}"


def is_untyped(expression: Expression) -> bool:
    """A quoted literal or NULL, which takes the type of its surroundings."""
    return (
        isinstance(expression, Literal)
        and expression.type is ColumnType.TEXT
        and (expression.value is None or isinstance(expression.value, str))
    )


def number(text: str) -> Literal:
    """The literal an unquoted number means: an integer if it fits 64 bits, a decimal otherwise."""
    value = plain_decimal(text)
    if "." not in text and "e" not in text.lower() and abs(value) <= LARGEST_INTEGER:
        return Literal(int(value), ColumnType.INTEGER)
    return Literal(value, ColumnType.DECIMAL)


def plain_decimal(text: str) -> Decimal:
    """A number as it is written, neither too large nor too small for a double."""
    value = Decimal(text) if NUMBER.fullmatch(text) else Decimal("NaN")
    if not value.is_finite() or abs(value.adjusted()) > 300:
        raise Mismatch("this is not a number to compute with")
    return value


def unify(expressions: Sequence[Expression]) -> tuple[tuple[Expression, ...], ColumnType]:
    """Bring operands to their common type; quoted literals follow the others."""
    typed = [each.type for each in expressions if not is_untyped(each)]
    target = common_type(typed) if typed else ColumnType.TEXT
    return tuple(coerce(each, target) for each in expressions), target


def common_type(types: Sequence[ColumnType]) -> ColumnType:
    """The type in which values of these types meet."""
    if len(set(types)) == 1:
        return types[0]
    for family in (NUMBERS, TIMES):
        if all(each in family for each in types):
            return max(types, key=family.index)
    names = " and ".join(sorted(set(types)))
    raise Mismatch(f"{names} do not go together; cast one of them")


def coerce(expression: Expression, target: ColumnType) -> Expression:
    """The expression as `target`; only conversions that PostgreSQL makes by itself."""
    if expression.type is target:
        return expression
    if isinstance(expression, Literal):
        return Literal(convert(expression.value, expression.type, target), target)
    if expression.type in NUMBERS and target in NUMBERS and widens(expression.type, target):
        return Call(Operation.CAST, (expression,), target)
    if expression.type is ColumnType.DATE and target is ColumnType.TIMESTAMP:
        return Call(Operation.CAST, (expression,), target)
    raise Mismatch(f"{expression.type} does not become {target} by itself; cast it")


def widens(source: ColumnType, target: ColumnType) -> bool:
    """Whether a number of one type becomes the other without being asked."""
    return NUMBERS.index(source) <= NUMBERS.index(target)


def convert(value: Scalar, source: ColumnType, target: ColumnType) -> Scalar:
    """A literal's value in another type."""
    if value is None or source is target:
        return value
    if isinstance(value, str):
        return from_text(value.strip(), target)
    if source in NUMBERS and target in NUMBERS:
        return convert_number(value, target)
    if isinstance(value, date) and target is ColumnType.TIMESTAMP:
        return datetime(value.year, value.month, value.day)
    if isinstance(value, datetime) and target is ColumnType.DATE:
        return value.date()
    raise Mismatch(f"this {source} does not become {target}")


def convert_number(value: Scalar, target: ColumnType) -> Scalar:
    """A number as another kind of number, rounded as PostgreSQL's casts round."""
    if not isinstance(value, int | float | Decimal):
        raise Mismatch("a number is needed here")
    if target is ColumnType.DOUBLE:
        return float(value)
    if target is ColumnType.DECIMAL:
        return Decimal(str(value))
    rounded = int(round(value) if isinstance(value, float) else round_away(Decimal(value)))
    return rounded if abs(rounded) <= LARGEST_INTEGER else None


def round_away(value: Decimal, digits: int = 0) -> Decimal:
    """Round half away from zero, as PostgreSQL rounds decimals."""
    unit = Decimal(1).scaleb(-digits)
    return value.quantize(unit, rounding="ROUND_HALF_UP")


def from_text(text: str, target: ColumnType) -> Scalar:
    """What a quoted literal means where a `target` is expected."""
    try:
        return PARSERS[target](text)
    except (ValueError, Mismatch):
        raise Mismatch(f"this text is not {article(target)}") from None


def whole(text: str) -> int:
    if not WHOLE.fullmatch(text) or len(text) > 20 or abs(int(text)) > LARGEST_INTEGER:
        raise ValueError("not a whole number of 64 bits")
    return int(text)


def truth(text: str) -> bool:
    if text.lower() not in TRUE_WORDS + FALSE_WORDS:
        raise ValueError("neither true nor false")
    return text.lower() in TRUE_WORDS


def moment(text: str) -> datetime:
    if not MOMENT.fullmatch(text):
        raise ValueError("not a date and a time of day without a zone")
    return datetime.fromisoformat(text)


PARSERS: dict[ColumnType, Callable[[str], Scalar]] = {
    ColumnType.TEXT: str,
    ColumnType.INTEGER: whole,
    ColumnType.DECIMAL: plain_decimal,
    ColumnType.DOUBLE: lambda text: float(plain_decimal(text)),
    ColumnType.BOOLEAN: truth,
    ColumnType.DATE: lambda text: moment(text).date(),
    ColumnType.TIMESTAMP: moment,
}
