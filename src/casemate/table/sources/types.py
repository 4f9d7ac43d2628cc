"""The types of columns as the policy gives them, for answers that must not depend on any cell.

A type is declared, or follows: listed values are of theirs, and bounds of dates and date-times too.
Numeric bounds make a column of exact decimals: only a declared type says that numbers are whole.
Where nothing follows the column has no type, and questions cannot name it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Self

from casemate.table.schema import KINDS, CellFormat, Column, ColumnType, Policy, Value
from casemate.table.sources.source import no_column, quote_name
from casemate.table.toml import toml_key
from casemate.table.universe import FRACTION_DIGITS

WIDE_DIGITS = 38
"""Digits of the widest decimal that every engine computes with."""

NARROW_DIGITS = 18
"""Digits of a decimal that fits a 64-bit word, which engines compare and group fastest."""

LEAST_SCALE = 6
"""Digits after the point that a column in a narrow decimal keeps at least."""

PREFERRED = (
    *(ColumnType.BOOLEAN, ColumnType.INTEGER, ColumnType.DECIMAL),
    *(ColumnType.TEXT, ColumnType.DATE, ColumnType.TIMESTAMP),
)
"""The types that values may be of, the narrowest first."""


@dataclass(frozen=True)
class PolicyType:
    """What cells of a column are read as; decimals have so many digits, and so many of a part."""

    type: ColumnType
    digits: int = WIDE_DIGITS
    scale: int = FRACTION_DIGITS

    @classmethod
    def of(cls, column: Column) -> "PolicyType | None":
        """The type of a column, None where the policy does not tell.

        >>> PolicyType.of(Column("age", low=0, high=120))
        PolicyType(type=<ColumnType.DECIMAL: 'decimal'>, digits=18, scale=12)
        >>> PolicyType.of(Column("age", type=ColumnType.INTEGER, low=0, high=120)).type.value
        'integer'
        >>> PolicyType.of(Column("age")) is None
        True
        """
        type_ = column.type or _implied_type(column)
        if type_ is not ColumnType.DECIMAL:
            return None if type_ is None else cls(type_)
        return cls(type_, *_layout(column))

    @property
    def largest(self) -> Decimal:
        """The largest decimal of so many digits."""
        return Decimal((0, (9,) * self.digits, -self.scale))


@dataclass(frozen=True)
class ByPolicy:
    """How a protected table is read for private answers: each column as its policy's type.

    With `filled` the relation shows each cell's text too, fitting or not: see `written_name`.
    """

    columns: Mapping[str, PolicyType | None]
    format_of: Callable[[str], CellFormat]
    filled: bool = False

    @classmethod
    def of(cls, policy: Policy, *, filled: bool = False) -> Self:
        """The columns that a policy names."""
        types = {each.name: PolicyType.of(each) for each in policy.columns}
        return cls(types, policy.format_of, filled)

    def types(self) -> dict[str, ColumnType]:
        """The columns that questions may name."""
        return {name: each.type for name, each in self.columns.items() if each is not None}

    def expressions(
        self, read: Callable[[str, PolicyType], str], write: Callable[[str], str]
    ) -> dict[str, str]:
        """What to select under which name: the columns, each read by an expression."""
        typed = {name: each for name, each in self.columns.items() if each is not None}
        cells = {quote_name(name): read(name, each) for name, each in typed.items()}
        names = enumerate(self.columns) if self.filled else ()
        return cells | {written_name(place): write(name) for place, name in names}

    def require(self, known: Mapping[str, object]) -> None:
        """Refuse a policy that names a column the table does not have."""
        for name in self.columns:
            if name not in known:
                raise no_column(f"columns.{toml_key(name)}", name, known)


def written_name(place: int) -> str:
    """The column that shows the text of the policy's column of this number, if it has a cell."""
    return f"casemate_written{place}"


def typed_by_policy(policy: Policy) -> Policy:
    """The policy with every type that it gives filled in."""
    types = ByPolicy.of(policy).types()
    columns = tuple(replace(each, type=types.get(each.name)) for each in policy.columns)
    return replace(policy, columns=columns)


def _implied_type(column: Column) -> ColumnType | None:
    """The type that follows from values or bounds."""
    if column.values is not None:
        return type_of_values(column.values)
    if column.low is None or column.high is None:
        return None
    found = type_of_values((column.low, column.high))
    return ColumnType.DECIMAL if found is ColumnType.INTEGER else found


def type_of_values(values: Iterable[Value]) -> ColumnType | None:
    """The narrowest type that holds all of some values."""
    present = {type(value) for value in values}
    return next((each for each in PREFERRED if present <= set(KINDS[each])), None)


def _layout(column: Column) -> tuple[int, int]:
    """The digits of a decimal column, and how many of them stand after the point.

    Bounds and values tell how many stand before it. If that leaves enough of a 64-bit word it is
    used, since whatever has more digits before the point is outside the bounds anyway.
    """
    named = (column.low, column.high, *(column.values or ()))
    numbers = [Decimal(each) for each in named if isinstance(each, int | Decimal)]
    if not numbers:
        return WIDE_DIGITS, FRACTION_DIGITS
    whole = max(len(str(int(abs(each)))) for each in numbers)
    part = max(0, *(-int(each.normalize().as_tuple().exponent) for each in numbers))
    scale = min(FRACTION_DIGITS, NARROW_DIGITS - whole)
    if scale >= max(LEAST_SCALE, min(part, FRACTION_DIGITS)):
        return NARROW_DIGITS, scale
    return WIDE_DIGITS, FRACTION_DIGITS


# What cells of text look like that are read as a policy's type; the same in every engine ---------
#
# Blanks around a cell are ignored, save in text. Whole numbers may be written with a fraction of
# zeros, and dates with a time of zeros, as programs write them that know numbers or moments only.


LONGEST_NUMBER = 255
"""Characters of a number; a longer one is none."""

WHOLE = "[+-]?[0-9]+([.]0*)?"
PLAIN = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
SCIENTIFIC = f"{PLAIN}[eE][+-]?[0-9]{{1,3}}"
INFINITE = "[+-]?([iI][nN][fF]|[iI][nN][fF][iI][nN][iI][tT][yY])"

DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
TIME = "[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
MIDNIGHT = "[ T]00:00(:00([.]0{1,6})?)?"
OFFSET = " ?(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)"

FIRST, LAST = "0001-01-01", "9999-12-31 23:59:59.999999"
"""The moments that Python's calendar holds."""

SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**63 - 1

DOUBLE_DECIMALS = ((10**3, 12), (10**6, 9), (10**9, 6), (10**12, 3))
"""Below each number, how many digits after its point a double is known to: 15 in all."""
