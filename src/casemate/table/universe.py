"""The universe: a grid of cells that the policy draws, into one of which each record falls.

Each usable column is an attribute with a fixed list of cells; a cell of the universe is one cell
of each attribute. Numbers and dates outside their bounds are clamped to them. The last cell of an
attribute is reserved: NULL and every undeclared value share it. Nothing here depends on data, so
the grid is public and may be printed, stored and compared.

Values of an ordered column have an image among the rational numbers: a number is itself, a date
the number of its day, a timestamp its microseconds. Cells of equal width are drawn in the image;
a cut is the least value of the column's type that belongs to the cell above it, a constant that
every engine compares alike.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, localcontext
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from casemate.table.schema import ORDERED, Column, ColumnType, Policy, Role, Value

Point = Value | float
"""A value of a column; policies name no floats, but columns hold them."""

EPOCH = datetime(1970, 1, 1)
WHOLE = (ColumnType.INTEGER, ColumnType.DATE, ColumnType.TIMESTAMP)
"""Types between two of whose neighbouring values there is nothing."""

FRACTION_DIGITS = 12
"""Digits after the point of a decimal cut: as many as every engine computes with."""

PRECISE = Context(prec=76)


def image(value: Point) -> Fraction:
    """The number that a number, a date or a timestamp stands for.

    >>> image(Decimal("0.5")), image(date(1, 1, 3))
    (Fraction(1, 2), Fraction(3, 1))
    """
    if isinstance(value, datetime):
        return Fraction((value - EPOCH) // timedelta(microseconds=1))
    if isinstance(value, date):
        return Fraction(value.toordinal())
    if isinstance(value, str):
        raise ValueError("text has no image among the numbers")
    return Fraction(value)


def point(place: Fraction, kind: ColumnType) -> Point:
    """The least value of a type whose image is not below a place; the nearest one of doubles.

    >>> point(Fraction(7, 2), ColumnType.INTEGER), point(Fraction(1, 3), ColumnType.DECIMAL)
    (4, Decimal('0.333333333334'))
    """
    if kind is ColumnType.DOUBLE:
        return float(place)
    if kind is ColumnType.DECIMAL:
        with localcontext(PRECISE):
            grid = Decimal(math.ceil(place * 10**FRACTION_DIGITS)).scaleb(-FRACTION_DIGITS)
            return grid.normalize() + 0
    above = math.ceil(place)
    if kind is ColumnType.DATE:
        return date.fromordinal(above)
    return EPOCH + timedelta(microseconds=above) if kind is ColumnType.TIMESTAMP else above


def column_value(value: Value, kind: ColumnType) -> Point:
    """A value that a policy names, as the column holds it."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        if kind is ColumnType.DOUBLE:
            return float(value)
        return Decimal(value) if kind is ColumnType.DECIMAL else value
    return value


def whole_values(low: Value, high: Value, kind: ColumnType) -> int | None:
    """How many values a type has between two bounds; None where there is no telling."""
    return int(image(high) - image(low)) + 1 if kind in WHOLE else None


def cuts(low: Value, high: Value, bins: int, kind: ColumnType) -> tuple[Point, ...]:
    """The least value of each cell but the first; no cell is left without a value.

    >>> cuts(0, 10, 4, ColumnType.INTEGER), cuts(0, 2, 9, ColumnType.INTEGER)
    ((3, 5, 8), (1, 2))
    """
    count = min(bins, whole_values(low, high, kind) or bins)
    first, width = image(low), image(high) - image(low)
    places = (first + width * step / count for step in range(1, count))
    drawn = dict.fromkeys(point(place, kind) for place in places)
    bottom, top = image(low), image(high)
    return tuple(each for each in drawn if bottom < image(each) <= top)


# Attributes and their cells ----------------------------------------------------------------------


MOST_EXACT = 64
"""Whole numbers and days without bins get a cell each if there are no more of them."""

USUAL_BINS = 16
"""Bins of any other column with bounds that declares none."""


class AttributeKind(StrEnum):
    """What the cells of an attribute are: declared values, or bins between two bounds."""

    VALUES = "values"
    BINS = "bins"


@dataclass(frozen=True)
class Attribute:
    """One column as the universe sees it.

    `points` are the declared values, a cell each, or the least value of each bin but the first.
    """

    column: Column
    type: ColumnType
    kind: AttributeKind
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def role(self) -> Role:
        """Who knows the column."""
        return self.column.role

    @property
    def size(self) -> int:
        """How many cells there are, the reserved one included."""
        return len(self.points) + (2 if self.kind is AttributeKind.BINS else 1)

    @property
    def reserved(self) -> int:
        """The cell of NULL and of everything undeclared, which is the last."""
        return self.size - 1

    @property
    def may_be_missing(self) -> bool:
        """Whether the policy itself says that a record may be in the reserved cell.

        Listed values are all that a column may hold, and what is beyond bounds is counted as the
        bound: so it is where values may be missing, or cells stand for missing ones.
        """
        return self.column.nullable or bool(self.column.format.markers)

    @property
    def single(self) -> bool:
        """Whether each cell is one value."""
        if self.kind is AttributeKind.VALUES:
            return True
        return self.type in WHOLE and self.images[-1] - self.images[0] == len(self.points)

    @cached_property
    def edges(self) -> tuple[Point, ...]:
        """The bounds of the bins: bin i goes from edge i up to edge i + 1, the last one closed."""
        if self.column.low is None or self.column.high is None or self.kind is AttributeKind.VALUES:
            raise ValueError(f"the cells of {self.name} are single values and have no edges")
        low, high = (column_value(each, self.type) for each in (self.column.low, self.column.high))
        return (low, *self.points, high)

    @cached_property
    def images(self) -> tuple[Fraction, ...]:
        """The images of the edges among the numbers."""
        return tuple(image(each) for each in self.edges)

    def cell(self, value: Point | None) -> int:
        """The cell that a value falls into.

        >>> age = Universe.of(Policy("", (Column("age", type=ColumnType.INTEGER, low=0, high=99,
        ...     bins=10),))).attributes[0]
        >>> [age.cell(value) for value in (0, 9, 10, 99, 200, -1, None)]
        [0, 0, 1, 9, 9, 0, 10]
        """
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return self.reserved
        if self.kind is AttributeKind.VALUES:
            return self.points.index(value) if value in self.points else self.reserved
        ordered: Any = self.points  # all of the type that the value is of
        return bisect_right(ordered, value)


@dataclass(frozen=True)
class LeftOut:
    """A column that has no cells, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Universe:
    """Every combination of the attributes' cells, and whose rows are counted how often.

    A column that is an identifier is not an attribute; one that cannot be is in `left_out`.
    `person` is None where every row is a person of its own. `keyed` says whether rows have names,
    and `columns` are those that questions may read, on the grid or not.
    """

    attributes: tuple[Attribute, ...]
    left_out: tuple[LeftOut, ...] = ()
    person: str | None = None
    rows_per_person: int = 1
    keyed: bool = False
    columns: tuple[Column, ...] = ()

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """The universe of a policy whose columns' types are known.

        >>> from casemate.table.shipped.tables import policy
        >>> Universe.of(policy()).shape
        (17, 3, 17)
        """
        usable = [each for each in policy.columns if each.role is not Role.IDENTIFIER]
        found = [_attribute(column) for column in usable]
        return cls(
            tuple(each for each in found if isinstance(each, Attribute)),
            tuple(each for each in found if isinstance(each, LeftOut)),
            policy.person,
            policy.rows_per_person,
            policy.key is not None,
            tuple(column for column in usable if column.type is not None),
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many cells each attribute has."""
        return tuple(each.size for each in self.attributes)

    @property
    def cells(self) -> int:
        """How many cells there are in all."""
        return math.prod(self.shape)

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each attribute, by name."""
        return {each.name: place for place, each in enumerate(self.attributes)}

    def index(self, name: str) -> int:
        """The position of an attribute; a ValueError says why there is none of this name."""
        if name not in self.places:
            raise ValueError(self.why_not(name))
        return self.places[name]

    def why_not(self, name: str) -> str:
        """Why a column is no attribute, in one sentence."""
        reasons = {each.name: each.reason for each in self.left_out}
        return reasons.get(name, f"{name} is not a column that questions may use")

    def sizes(self, scope: tuple[int, ...]) -> tuple[int, ...]:
        """How many cells each attribute of a scope has."""
        return tuple(self.attributes[place].size for place in scope)


def _attribute(column: Column) -> Attribute | LeftOut:
    kind = column.type
    if kind is None:
        return LeftOut(
            column.name, f"the type of {column.name} is not known; declare `type` for it"
        )
    if column.values is not None:
        values = dict.fromkeys(column_value(each, kind) for each in column.values)
        return Attribute(column, kind, AttributeKind.VALUES, tuple(values))
    if kind is ColumnType.BOOLEAN:
        return Attribute(column, kind, AttributeKind.VALUES, (False, True))
    if column.low is None or column.high is None:
        wanted = "`min`, `max` and `bins`" if kind in ORDERED else "its `values`"
        return LeftOut(column.name, f"{column.name} has no cells; declare {wanted} in the policy")
    count = whole_values(column.low, column.high, kind)
    exact = count if count is not None and count <= MOST_EXACT else USUAL_BINS
    drawn = cuts(column.low, column.high, column.bins or exact, kind)
    return Attribute(column, kind, AttributeKind.BINS, drawn)
