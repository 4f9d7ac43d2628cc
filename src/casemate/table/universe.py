"""The universe: a grid of cells that the policy draws, into one of which each record falls.

Each usable column is an attribute with a fixed list of cells; a cell of the universe is one cell
of each attribute. Numbers and dates outside their bounds are clamped to them. The last cell of an
attribute is reserved: NULL and every undeclared value share it. Nothing here depends on data, so
the grid is public and may be printed, stored and compared.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

from casemate.table.domain import ORDERED
from casemate.table.schema import Column, ColumnType, Policy, Role
from casemate.table.universe_cuts import Point, cuts, image, typed, whole_values

MOST_EXACT = 64
"""Whole numbers and days without bins get a cell each if there are no more of them."""

USUAL_BINS = 16
"""Bins of any other column with bounds that declares none."""


class Kind(StrEnum):
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
    kind: Kind
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
        return len(self.points) + (2 if self.kind is Kind.BINS else 1)

    @property
    def reserved(self) -> int:
        """The cell of NULL and of everything undeclared, which is the last."""
        return self.size - 1

    @cached_property
    def edges(self) -> tuple[Point, ...]:
        """The bounds of the bins: bin i goes from edge i up to edge i + 1, the last one closed."""
        if self.column.low is None or self.column.high is None or self.kind is Kind.VALUES:
            raise ValueError(f"the cells of {self.name} are single values and have no edges")
        low, high = (typed(each, self.type) for each in (self.column.low, self.column.high))
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
        if self.kind is Kind.VALUES:
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

        >>> from casemate.table.hospital import policy
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
        values = dict.fromkeys(typed(each, kind) for each in column.values)
        return Attribute(column, kind, Kind.VALUES, tuple(values))
    if kind is ColumnType.BOOLEAN:
        return Attribute(column, kind, Kind.VALUES, (False, True))
    if column.low is None or column.high is None:
        wanted = "`min`, `max` and `bins`" if kind in ORDERED else "its `values`"
        return LeftOut(column.name, f"{column.name} has no cells; declare {wanted} in the policy")
    count = whole_values(column.low, column.high, kind)
    exact = count if count is not None and count <= MOST_EXACT else USUAL_BINS
    drawn = cuts(column.low, column.high, column.bins or exact, kind)
    return Attribute(column, kind, Kind.BINS, drawn)
