"""One audit while it is being decided: the equations, what is known, and what they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from casemate.exact import Box, Region, System
from casemate.published import (
    Equations,
    Knowledge,
    Publication,
    ShownColumn,
    box_of,
    record_name,
    region_of,
)
from casemate.query import Aggregate, Function
from casemate.query.language import Scalar
from casemate.query.records import Cut, Unknown, possible_values
from casemate.table import Policy
from casemate.table.sources import Source

OrderKind = Literal["max", "min", "median"]
KINDS: dict[Function, OrderKind] = {
    Function.MIN: "min",
    Function.MAX: "max",
    Function.MEDIAN: "median",
}


def name_of(column: ShownColumn) -> str:
    """The private number of which a column shows an extreme or a median."""
    (name,) = aggregate_of(column).private_argument
    return name


def private_names(column: ShownColumn) -> set[str]:
    """The private columns that a shown column reads, or chooses its rows by."""
    read = (column.select.aggregates[index] for index, _ in column.form.weights)
    return {name for each in read for name in (*each.private_argument, *each.private_predicate)}


def aggregate_of(column: ShownColumn) -> Aggregate:
    """The extreme or median that a column shows."""
    return column.select.aggregates[column.form.weights[0][0]]


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """The published numbers of one table as equations, with everything known beside them."""

    equations: Equations
    policy: Policy
    knowledge: Knowledge
    publication: Publication
    source: Source
    rounded: frozenset[int] = frozenset()  # equations of rounded numbers, made exact or not
    assumed: tuple[str, ...] = ()  # what was taken for granted about private numbers

    @cached_property
    def box(self) -> Box:
        """What is known of every secret before anything is published."""
        return box_of(self.equations, self.policy, self.knowledge)

    @cached_property
    def region(self) -> Region:
        """What is known of the secrets, types and bounds and published numbers together."""
        return region_of(self.equations, self.box, self.policy, self.knowledge)

    @cached_property
    def exact(self) -> "ExactRows":
        """The equations that hold exactly."""
        return exact_rows(self.equations)

    def name(self, column: int) -> Scalar:
        """The record whose secret a column is."""
        return record_name(self.equations, column)

    def person(self, column: int) -> Scalar:
        """Whose secret a column is."""
        return self.equations.people.person(int(self.equations.record[column]))

    def unknown(self, column: int) -> Unknown:
        """Which secret of its record a column is."""
        return self.equations.unknowns[int(self.equations.unknown[column])]

    def secret(self, column: int) -> str:
        """The private column of the table to which a column of the equations belongs."""
        return self.unknown(column).column

    def is_number(self, column: int) -> bool:
        """Whether a column is a number, and not one value of a category."""
        return self.unknown(column).category is None

    def declared_values(self, name: str) -> tuple[Scalar, ...]:
        """The values that a private category may have."""
        column = self.policy.column(name)
        return () if column is None else possible_values(column) or ()

    def may_be_missing(self, column: int) -> bool:
        """Whether a number may be missing for all that was known before anything was published."""
        presence = self.presence(column)
        return presence is not None and self.box.low[presence] == 0

    def presence(self, column: int) -> int | None:
        """The column that says whether a number is there; None where it cannot be missing."""
        unknowns, there = self.equations.unknowns, Unknown(self.secret(column), Cut(None))
        if there not in unknowns:
            return None
        mine = self.equations.unknown == unknowns.index(there)
        (place,) = np.flatnonzero(mine & (self.equations.record == self.equations.record[column]))
        return int(place)

    def is_known_beforehand(self, column: int) -> bool:
        """Whether a value was known before anything was published."""
        low, high = self.box.low[column], self.box.high[column]
        return low is not None and low == high


@dataclass(frozen=True, eq=False, repr=False)
class ExactRows:
    """The equations whose right sides are exact, and their numbers among all."""

    system: System
    rows: tuple[int, ...]


def exact_rows(found: Equations) -> ExactRows:
    """Leave out rounded numbers: they are ranges, and only bounds can use them."""
    kept = [i for i in range(found.system.rows) if found.low[i] == found.high[i]]
    system = rows_of(found.system, kept, tuple(found.low[i] for i in kept))
    return ExactRows(system, tuple(kept))


def rows_of(
    system: System, kept: Sequence[int], right: tuple[Fraction, ...] | None = None
) -> System:
    """Some of the equations, in this order, with these right sides."""
    place = np.full(system.rows, -1, np.int64)
    place[list(kept)] = np.arange(len(kept))
    inside = place[system.row] >= 0
    entries = place[system.row[inside]], system.column[inside], system.value[inside]
    return System(len(kept), system.columns, *entries, right)
