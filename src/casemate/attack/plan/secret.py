"""How a private column is asked about: a sum of numbers, or counts of the values of a category.

Any set of records as a query: a list of values of a public column that tells all records apart.

This is a larger language than ranges and equalities: `column IN (...)`. A set with too few records
is asked for by its complement, once the answer for everybody is known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.language import Axis, Box, Language, Writer
from casemate.attack.private_column import private_column
from casemate.errors import Misconfigured
from casemate.query.language import NUMBERS, Scalar
from casemate.query.records import Category, Unknown, possible_values
from casemate.table import Column, ColumnType, Policy


@dataclass(frozen=True)
class PlanSecret:
    """A private column and what stands for its value: a number, or the place among `values`.

    A number that is missing counts as 0. A category is asked about with one count for each of its
    values but the first, and the place of the value is what they add up to, each times its place.
    """

    column: Column
    values: tuple[Scalar, ...] | None = None

    @property
    def asked(self) -> tuple[int, ...]:
        """The places of the values that are counted; a single 1 for a sum."""
        return (1,) if self.values is None else tuple(range(1, len(self.values)))

    @property
    def bits(self) -> bool:
        """Whether every value is 0 or 1, or one of two."""
        if self.values is not None:
            return len(self.values) == 2
        column = self.column
        whole = column.type is ColumnType.INTEGER or set(column.values or ()) == {0, 1}
        return whole and self.bounds == (Fraction(0), Fraction(1))

    @property
    def bounds(self) -> tuple[Fraction, Fraction] | None:
        """Between which numbers the value lies; None where nobody says."""
        column = self.column
        if self.values is not None:
            return Fraction(0), Fraction(len(self.values) - 1)
        ends = (column.low, column.high) if column.values is None else _ends(column.values)
        if ends[0] is None or ends[1] is None:
            return None
        low, high = Fraction(str(ends[0])), Fraction(str(ends[1]))
        return (min(low, Fraction(0)), max(high, Fraction(0))) if column.nullable else (low, high)

    @property
    def unknown(self) -> Mapping[Unknown, Fraction]:
        """What a plan finds, in the unknowns that queries are made of."""
        name, kinds = self.column.name, possible_values(self.column)
        if self.values is not None:
            return {Unknown(name, Category(self.values[i])): Fraction(i) for i in self.asked}
        if kinds is None:
            return {Unknown(name): Fraction(1)}
        numbers = {value: Fraction(str(value)) for value in kinds if value is not None}
        return {Unknown(name, Category(v)): number for v, number in numbers.items() if number}

    def statement(self, conditions: Sequence[str], place: int, writer: Writer) -> str:
        """The query that sums a number, or counts the value in a place, under some conditions."""
        name = writer.name(self.column.name)
        if self.values is None:
            return writer.query(f"SUM({name})", conditions)
        value = writer.constant(self.values[place], self.column.type)
        return writer.query("COUNT(*)", [*conditions, f"{name} = {value}"])

    def written(self, box: Box, place: int, language: Language, writer: Writer) -> str:
        """A query with the conditions of a box."""
        parts = [writer.condition(language.axes[n], span) for n, span in sorted(box.items())]
        return self.statement(parts, place, writer)


def _ends(values: Sequence[Scalar]) -> tuple[Scalar, Scalar]:
    numbers = sorted(values, key=lambda value: Fraction(str(value)))
    return numbers[0], numbers[-1]


def read_secret(policy: Policy, private: str | None) -> PlanSecret:
    """The private column to plan for; with several, it has to be named."""
    column = private_column(policy, private)
    if column.type in NUMBERS:
        return PlanSecret(column)
    values = possible_values(column)
    if values is not None and len(values) < 2:
        raise Misconfigured(
            f"the private column {column.name!r} has one possible value, so there is nothing to "
            f"find out; declare the others in the policy"
        )
    if values is None:
        raise Misconfigured(
            f"the private column {column.name!r} is neither a number nor a category; "
            f"list its `values` in a policy"
        )
    return PlanSecret(column, (None, *values[:-1]) if column.nullable else values)


# Plan subsets -----------------------------------------------------------------------------------


LONGEST_LIST = 20_000
"""Values in a list: statements with more than 50,000 words and signs are not read."""

Chosen = NDArray[np.bool_]
"""A set of records: for each, whether it is in it."""


def telling_axis(language: Language) -> Axis | None:
    """A public column that has another value in every record; the shortest to write."""
    found = [
        axis for axis in language.axes if len(axis.values) == language.count and not axis.has_null
    ]
    return min(found, key=lambda axis: len("".join(map(str, axis.values))), default=None)


@dataclass(frozen=True, eq=False, repr=False)
class Subsets:
    """Queries about any set of at least `least` records."""

    axis: Axis
    least: int
    secret: PlanSecret
    writer: Writer

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.axis.places)

    @property
    def everybody(self) -> Chosen:
        """The set of all records."""
        return np.ones(self.count, np.bool_)

    @property
    def any_set(self) -> bool:
        """Whether every set, or its complement, may be asked for."""
        return all(self.can_ask(size) for size in range(1, self.count))

    def can_ask(self, size: int) -> bool:
        """Whether a set of so many records, or its complement, may be asked for."""
        return any(self.least <= each <= LONGEST_LIST for each in (size, self.count - size))

    def turned(self, chosen: Chosen) -> bool:
        """Whether a set has to be asked for by its complement."""
        size = int(chosen.sum())
        return not self.least <= size <= LONGEST_LIST and size < self.count

    def statement(self, chosen: Chosen) -> str:
        """The query that adds up the secrets of a set as it is."""
        (place,) = self.secret.asked
        if chosen.all():
            return self.secret.statement([], place, self.writer)
        places = np.sort(self.axis.places[chosen])
        first, last = int(places[0]), int(places[-1])
        if self.axis.ordered and last - first + 1 == len(places):
            condition = self.writer.condition(self.axis, (first, last))
        else:
            condition = self._among([self.axis.values[i] for i in places.tolist()])
        return self.secret.statement([condition], place, self.writer)

    def _among(self, values: Sequence[Scalar]) -> str:
        kind = self.axis.column.type
        written = [self.writer.constant(value, kind) for value in values]
        name = self.writer.name(self.axis.column.name)
        return (
            f"{name} = {written[0]}" if len(written) == 1 else f"{name} IN ({', '.join(written)})"
        )
