"""What plans for one table share: the secret, its public columns, how queries are written and read.

A private column is asked about by a sum of numbers, or by counts of the values of a category.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.language import Axis, Box, Language, Writer, read_language
from casemate.attack.subjects import private_column
from casemate.errors import Misconfigured, Unsupported, shown_name
from casemate.exact import Certificate, IntegerRows, RowSpace, System, equations
from casemate.published import People, plain
from casemate.query import Aggregate, Function
from casemate.query.language import NUMBERS, Literal, Scalar
from casemate.query.parse import DIALECT, dialect_of, parse
from casemate.query.records import (
    Category,
    Membership,
    Unknown,
    linear_form,
    membership,
    possible_values,
)
from casemate.table import Column, ColumnType, PerPerson, Policy, Table
from casemate.table.sources import Source


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

    def box_statement(self, box: Box, place: int, language: Language, writer: Writer) -> str:
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


# Any set of records as a query ------------------------------------------------------------------
#
# Where a public column tells all records apart, any set of records is a query, `column IN (...)`: a
# larger language than ranges and equalities. A set with too few records is asked for by its
# complement, once the answer for everybody is known.


LONGEST_LIST = 20_000
"""Values in a list: statements with more than 50,000 words and signs are not read."""

Chosen = NDArray[np.bool_]
"""A set of records: for each, whether it is in it."""


def identifying_axis(language: Language) -> Axis | None:
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

    def needs_complement(self, chosen: Chosen) -> bool:
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
            condition = self._list_condition([self.axis.values[i] for i in places.tolist()])
        return self.secret.statement([condition], place, self.writer)

    def _list_condition(self, values: Sequence[Scalar]) -> str:
        kind = self.axis.column.type
        written = [self.writer.constant(value, kind) for value in values]
        name = self.writer.name(self.axis.column.name)
        return (
            f"{name} = {written[0]}" if len(written) == 1 else f"{name} IN ({', '.join(written)})"
        )


# Reading back: what a plan claims is decided on its SQL texts, in exact arithmetic --------------


Combination = Mapping[int, Fraction]
"""Queries by their numbers, from 0, and the coefficient of each."""

RECORDS_PER_CHECK = 256
"""Records that are checked together: they often share queries."""


NO_PLACES = np.zeros(0, np.int64)


@dataclass(frozen=True)
class _QueryPart:
    """A part of a query: so much of an unknown of every record that a predicate selects."""

    unknown: Unknown
    weight: Fraction
    selected: int  # the number of the predicate


@dataclass(frozen=True, eq=False)
class ReadBack:
    """Queries as they are read back: the parts of each, and whom each predicate selects."""

    parts: tuple[tuple[_QueryPart, ...], ...]
    members: Membership

    @classmethod
    def of(cls, queries: Sequence[str], policy: Policy, source: Source, dialect: str) -> "ReadBack":
        """Parse the queries, and decide on public columns alone whom they select."""
        predicates: dict[Aggregate, int] = {}
        parts = [tuple(_parts(sql, policy, dialect, predicates)) for sql in queries]
        return cls(tuple(parts), membership(list(predicates), source))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many records each query selects, as everybody can know it."""
        sizes = self.members.sizes()
        return tuple(int(sizes[parts[0].selected]) if parts else 0 for parts in self.parts)

    def selection(self, query: int) -> NDArray[np.bool_]:
        """The records that a query selects."""
        return self.members.mask(self.parts[query][0].selected)

    def system(self, queries: Sequence[int]) -> tuple[System, list[int], list[Unknown]]:
        """Some of the queries as equations, what each was multiplied by, and the unknowns."""
        unknowns = list(dict.fromkeys(p.unknown for q in queries for p in self.parts[q]))
        count, rows, columns, values, factors = len(self.members.records), [], [], [], []
        for number, query in enumerate(queries):
            factor = math.lcm(1, *(part.weight.denominator for part in self.parts[query]))
            factors.append(factor)
            for part in self.parts[query]:
                places = np.flatnonzero(self.members.mask(part.selected))
                rows.append(np.full(len(places), number))
                columns.append(places + count * unknowns.index(part.unknown))
                values.append(np.full(len(places), int(part.weight * factor)))
        row, column, value = (
            np.concatenate([NO_PLACES, *each]) for each in (rows, columns, values)
        )
        return System(len(queries), count * len(unknowns), row, column, value), factors, unknowns


def _parts(
    sql: str, policy: Policy, dialect: str, predicates: dict[Aggregate, int]
) -> list[_QueryPart]:
    """The parts of a query; the predicates get numbers as they come."""
    (aggregate,) = parse(sql, policy, dialect)
    parts = []
    for term in linear_form(aggregate) or ():
        if term.unknown is None or not isinstance(term.coefficient, Literal):
            raise Unsupported("a query of a plan adds up nothing but secrets", sql)
        counted = Aggregate(Function.COUNT, None, term.predicate)
        number = predicates.setdefault(counted, len(predicates))
        parts.append(_QueryPart(term.unknown, Fraction(str(term.coefficient.value)), number))
    return parts


def verify(
    reading: ReadBack, secret: PlanSecret, wanted: Sequence[tuple[int, Combination]], least: int
) -> bool:
    """Whether every query is large enough, and every combination is the secret of its record."""
    if not wanted or any(count < least for count in reading.counts):
        return False
    groups = (wanted[i : i + RECORDS_PER_CHECK] for i in range(0, len(wanted), RECORDS_PER_CHECK))
    return all(_verify_group(reading, secret, group) for group in groups)


def _verify_group(
    reading: ReadBack, secret: PlanSecret, wanted: Sequence[tuple[int, Combination]]
) -> bool:
    queries = sorted({query for _, combination in wanted for query in combination})
    system, factors, unknowns = reading.system(queries)
    if not set(secret.unknown) <= set(unknowns):
        return False
    lines, count = IntegerRows(system), len(reading.members.records)
    row = {query: i for i, query in enumerate(queries)}
    columns = {unknowns.index(each): share for each, share in secret.unknown.items()}
    for record, combination in wanted:
        target = {record + count * k: share for k, share in columns.items()}
        scaled = {row[q]: weight / factors[row[q]] for q, weight in combination.items()}
        if not lines.proves(_certificate(target, scaled)):
            return False
    return len(wanted) > 1 or _rank_agrees(system, wanted[0][0], columns, count)


def _certificate(target: Mapping[int, Fraction], weights: Mapping[int, Fraction]) -> Certificate:
    """A combination of equations as a certificate in integers."""
    scale = math.lcm(1, *(share.denominator for share in target.values()))
    divisor = math.lcm(1, *(weight.denominator for weight in weights.values()))
    return Certificate(
        {column: int(share * scale) for column, share in target.items()},
        {row: int(weight * divisor * scale) for row, weight in weights.items()},
        divisor,
    )


def _rank_agrees(system: System, record: int, columns: Mapping[int, Fraction], count: int) -> bool:
    """Whether the rank test, too, finds a single unknown determined."""
    if len(columns) > 1:
        return True  # a sum of unknowns, of which none need be determined
    (kind,), space = columns, RowSpace(system.columns)
    for equation in equations(system):
        space.add(equation)
    return record + count * kind in space.determined


# The setting ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class PlanSetting:
    """An open table, the private column to find out, and the least count of a query."""

    table: Table
    secret: PlanSecret
    language: Language
    least: int
    writer: Writer

    @classmethod
    def of(
        cls, table: Table, private: str | None, min_count: int, dialect: str = DIALECT
    ) -> "PlanSetting":
        """Read the public columns of a table."""
        dialect_of(dialect)  # an unknown one is refused before any work is done
        secret = read_secret(table.policy, private)
        language = read_language(table.policy, table.source)
        if not 1 <= min_count <= language.count:
            raise Misconfigured(
                f"a minimum count of {min_count} does not suit a table of {language.count} "
                f"records; give one from 1 to {language.count}"
            )
        taken = {each.name for each in table.policy.public_tables}
        name = next(
            name for name in ("t", *(f"t{i}" for i in range(len(taken)))) if name not in taken
        )
        return cls(table, secret, language, min_count, Writer(dialect, name))

    @cached_property
    def sure(self) -> bool:
        """Whether what the queries cannot do cannot be done.

        Not where several rows of one person have one secret, because plans take each row for
        itself; nor where a public column has infinite numbers, because queries leave it out then.
        """
        policy = self.table.policy
        constant = self.secret.column.per_person is PerPerson.CONSTANT
        shared = constant and policy.person not in (None, policy.key)
        return not shared and self.language.whole

    @cached_property
    def subsets(self) -> Subsets | None:
        """Queries about any set of records, where a public column tells all of them apart."""
        axis = identifying_axis(self.language)
        if axis is None or len(self.secret.asked) > 1:
            return None
        return Subsets(axis, self.least, self.secret, self.writer)

    def name(self, place: int) -> Scalar:
        """The key or row number of the record in a place."""
        return plain(self.language.records[place])

    def place(self, record: Scalar) -> int:
        """The place of a record."""
        everybody = np.arange(self.language.count)
        found = People(self.language.records, everybody).place(record)
        if found is None:
            raise Misconfigured(
                f"there is no record {shown_name(record)}; give the key of one, or its row "
                f"number, or all"
            )
        return found

    def queries(self, boxes: Sequence[Box]) -> tuple[str, ...]:
        """The queries of some boxes: a sum for each, or a count for each value."""
        places = self.secret.asked
        return tuple(
            self.secret.box_statement(box, place, self.language, self.writer)
            for box in boxes
            for place in places
        )

    def read(self, queries: Sequence[str]) -> ReadBack:
        """Queries read back from their texts."""
        return ReadBack.of(queries, self.table.policy, self.table.source, self.writer.dialect)

    def bound(self, at_least: int) -> int:
        """A number of queries that no plan is below, if it has at least so many boxes.

        Of a category with v values, the queries about any two values have to tell the record, so
        v / 2 times as many are needed as for a number; and one for each value but one.
        """
        asked = len(self.secret.asked)
        if not self.sure:
            return asked
        return at_least if asked == 1 else max(asked, math.ceil((asked + 1) * at_least / 2))
