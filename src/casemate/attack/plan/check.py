"""Whether a plan does what it says: its SQL texts read again, and their sum in exact arithmetic.

Nothing of how the plan was found is believed. Each text is parsed as any query is, as a linear form
in what is secret; which records it selects is decided on the table's public columns; and the
combination has to add up to the record's secret and nothing else, in integers. For one record the
rank test of the audit has to say the same.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan.secret import PlanSecret
from casemate.errors import Unsupported
from casemate.exact import Certificate, IntegerRows, RowSpace, System, equations
from casemate.query import Aggregate, Function
from casemate.query.language import Literal
from casemate.query.parse import parse
from casemate.query.records import Membership, Unknown, linear_form, membership
from casemate.table import Policy
from casemate.table.sources import Source

Combination = Mapping[int, Fraction]
"""Queries by their numbers, from 0, and the coefficient of each."""

TOGETHER = 256
"""Records that are checked together: they often share queries."""


EMPTY = np.zeros(0, np.int64)


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

    def selected(self, query: int) -> NDArray[np.bool_]:
        """The records that a query selects."""
        return self.members.selected(self.parts[query][0].selected)

    def system(self, queries: Sequence[int]) -> tuple[System, list[int], list[Unknown]]:
        """Some of the queries as equations, what each was multiplied by, and the unknowns."""
        unknowns = list(dict.fromkeys(p.unknown for q in queries for p in self.parts[q]))
        count, rows, columns, values, factors = len(self.members.records), [], [], [], []
        for number, query in enumerate(queries):
            factor = math.lcm(1, *(part.weight.denominator for part in self.parts[query]))
            factors.append(factor)
            for part in self.parts[query]:
                places = np.flatnonzero(self.members.selected(part.selected))
                rows.append(np.full(len(places), number))
                columns.append(places + count * unknowns.index(part.unknown))
                values.append(np.full(len(places), int(part.weight * factor)))
        row, column, value = (np.concatenate([EMPTY, *each]) for each in (rows, columns, values))
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


def proved(
    reading: ReadBack, secret: PlanSecret, wanted: Sequence[tuple[int, Combination]], least: int
) -> bool:
    """Whether every query is large enough, and every combination is the secret of its record."""
    if not wanted or any(count < least for count in reading.counts):
        return False
    groups = (wanted[i : i + TOGETHER] for i in range(0, len(wanted), TOGETHER))
    return all(_group_proved(reading, secret, group) for group in groups)


def _group_proved(
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
