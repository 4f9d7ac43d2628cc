"""Which secrets, with which coefficients, enter each cell of the published aggregates.

COUNT(DISTINCT c) of a column that differs in every row is COUNT(c), and so an equation.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.published.people import People
from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.engines import Key, quote
from casemate.query.language import ColumnRef
from casemate.query.parse import Logged, Unread
from casemate.query.records import Category, Cell, Lineage, Unknown, possible_values
from casemate.table import Policy, Role
from casemate.table.sources import Source

MOST_DIGITS = 200_000
"""Of a decimal of PostgreSQL's: Python cuts sums to 28 digits unless it is told not to."""


class Secrets:
    """The lineage of all aggregates, cell by cell, with the last value of categories replaced."""

    def __init__(
        self, found: Lineage, aggregates: Sequence[Aggregate], policy: Policy, people: People
    ) -> None:
        self.people, self.count = people, len(found.records)
        self._index = {aggregate: i for i, aggregate in enumerate(aggregates)}
        self.unknowns: list[Unknown] = list(found.unknowns)
        self._others = {i: self._siblings(u, policy) for i, u in enumerate(found.unknowns)}
        order = np.argsort(found.cell, kind="stable")
        ends = np.searchsorted(found.cell[order], np.arange(len(found.cells) + 1))
        self._slices = {cell: order[ends[i] : ends[i + 1]] for i, cell in enumerate(found.cells)}
        self._found = found

    def _siblings(self, unknown: Unknown, policy: Policy) -> list[int] | None:
        """For the last value of a category, the positions of the others; None for anything else."""
        column = policy.column(unknown.column)
        if not isinstance(unknown.category, Category) or column is None:
            return None
        values = possible_values(column) or ()
        if unknown.category.value != values[-1] or len(values) == 1:
            return None
        return [self.position(Unknown(unknown.column, Category(each))) for each in values[:-1]]

    def position(self, unknown: Unknown) -> int:
        """The number of an unknown, which may be one that no sum is about."""
        if unknown not in self.unknowns:
            self.unknowns.append(unknown)
        return self.unknowns.index(unknown)

    def keys(self, aggregates: Sequence[Aggregate]) -> list[Key]:
        """The keys of the cells in which any secret of these aggregates has a coefficient."""
        wanted = {self._index[each] for each in aggregates}
        return list(dict.fromkeys(c.key for c in self._slices if c.aggregate in wanted))

    def cell(self, aggregate: Aggregate, key: Key) -> tuple[NDArray[np.int64], NDArray[Any], Any]:
        """Codes and coefficients of the secrets in a cell, and the part that is public."""
        entries = self._slices.get(Cell(self._index[aggregate], key))
        if entries is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
        with localcontext(prec=MOST_DIGITS):
            return self._cell(entries)

    def _cell(self, entries: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any], Any]:
        record, unknown = self._found.record[entries], self._found.unknown[entries]
        values = self._found.coefficient[entries]
        constant = _sum(values[unknown < 0])
        parts_of_codes, parts_of_values = [], []
        for which in np.unique(unknown[unknown >= 0]).tolist():
            here = unknown == which
            others, owners = self._others[which], self.people.owners(self.unknowns[which].column)
            whose = record[here] if owners is None else owners[record[here]]
            for position, sign in [(which, 1)] if others is None else [(o, -1) for o in others]:
                parts_of_codes.append(position * self.count + whose)
                parts_of_values.append(multiplied(values[here], sign))
            constant = constant + (_sum(values[here]) if others is not None else 0)
        empty = np.zeros(0, np.int64)
        return (
            np.concatenate([empty, *parts_of_codes]),
            np.concatenate([empty, *parts_of_values]),
            constant,
        )


def merged(
    codes: NDArray[np.int64], values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Each secret once, with its coefficients added up, and none of them 0."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    if len(distinct) == len(codes):
        order = np.argsort(codes)
        codes, values = codes[order], values[order]
    else:
        codes, values = distinct, _totals(inverse, values, len(distinct))
    kept = values != 0
    return codes[kept], values[kept]


def _totals(place: NDArray[np.int64], values: NDArray[Any], count: int) -> NDArray[Any]:
    """The sum of the values at each place, without overflow."""
    most = int(np.bincount(place).max())
    if values.dtype == np.int64 and largest_size(values) * most >= 2**62:
        values = values.astype(object)
    total = np.zeros(count, values.dtype)
    np.add.at(total, place, values)
    return total


def integers(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Exact numbers as integers over one denominator."""
    if values.dtype == np.int64:
        return values, 1
    fractions = [Fraction(each) for each in values.tolist()]
    scale = math.lcm(1, *(each.denominator for each in fractions))
    return np.array([int(each * scale) for each in fractions], object), scale


def multiplied(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Integers times an integer, without overflow."""
    if values.dtype == np.int64 and largest_size(values) * abs(factor) >= 2**62:
        return values.astype(object) * factor
    return values * factor


def largest_size(values: NDArray[Any]) -> int:
    """The largest size of an integer; that of the least one of 64 bits is none of 64 bits."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


def _sum(values: NDArray[Any]) -> Any:
    """What numbers of one kind add up to, exactly."""
    if values.dtype == np.int64 and largest_size(values) * len(values) < 2**62:
        return int(values.sum())
    if values.dtype == np.float64:
        return sum(map(Fraction, values.tolist()), Fraction(0))
    return sum(values.tolist())


# Distinct ---------------------------------------------------------------------------------------


def unique_columns(
    log: Iterable[Logged | Unread], policy: Policy, source: Source
) -> frozenset[str]:
    """The public columns that differ in every row, if the log counts anything distinct."""
    counted = any(isinstance(each, Logged) and "distinct" in each.sql.lower() for each in log)
    names = [column.name for column in policy.columns if column.role is Role.PUBLIC]
    if not counted or not names:
        return frozenset()
    asked = ", ".join(f"count(DISTINCT t.{quote(name)}) AS d{i}" for i, name in enumerate(names))
    frame = source.read(f"SELECT count(*) AS n, {asked} FROM {source.relation()} AS t")
    rows = int(frame["n"].values[0])
    return frozenset(name for i, name in enumerate(names) if int(frame[f"d{i}"].values[0]) == rows)


def counted_once(statement: Statement, unique: Collection[str]) -> Statement:
    """The statement with a plain count wherever nothing could be counted twice."""
    return replace(statement, selects=tuple(_select(each, unique) for each in statement.selects))


def _select(select: Select, unique: Collection[str]) -> Select:
    return replace(select, aggregates=tuple(_aggregate(each, unique) for each in select.aggregates))


def _aggregate(aggregate: Aggregate, unique: Collection[str]) -> Aggregate:
    argument = aggregate.argument
    if (
        aggregate.function is Function.COUNT_DISTINCT
        and not aggregate.joins
        and isinstance(argument, ColumnRef)
        and argument.column.name in unique
    ):
        return replace(aggregate, function=Function.COUNT, argument=None)
    return aggregate
