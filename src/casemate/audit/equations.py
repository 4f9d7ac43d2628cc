"""A publication as equations: one row for each published number, one column for each secret.

A private number of a record is one column. A private category is one column for each declared
value but the last, because its 0/1 unknowns add up to 1: the last is 1 less the others.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.cells import ShownCell, empty_cells, exact, shown_cells
from casemate.audit.publication import Column
from casemate.query.aggregate import Aggregate, Select
from casemate.query.answers import Key
from casemate.query.expression import KeyRef, Scalar
from casemate.query.lineage import Cell, Lineage, lineage
from casemate.query.linear import Category, Unknown, possible_values
from casemate.solve.system import System
from casemate.table.schema import Policy
from casemate.table.source import Source


@dataclass(frozen=True)
class Place:
    """Where an equation was published: the statement, the column, and the keys of its cell."""

    query: int
    column: str
    key: tuple[tuple[str, Scalar], ...] | None


@dataclass(frozen=True, eq=False)
class Equations:
    """The system, and what its rows and columns stand for.

    Row i says low[i] <= (coefficients of row i) . x <= high[i]; the two are equal unless the
    number was rounded. `factor[i]` is what the published number was multiplied by to make the
    coefficients whole. Column j is the secret `unknowns[unknown[j]]` of `records[record[j]]`.
    """

    system: System
    low: tuple[Fraction, ...]
    high: tuple[Fraction, ...]
    factor: tuple[Fraction, ...]
    places: tuple[Place, ...]
    records: NDArray[Any]
    record: NDArray[np.int64]
    unknown: NDArray[np.int64]
    unknowns: tuple[Unknown, ...]


@dataclass(frozen=True)
class _Row:
    """One equation while it is being put together: integer coefficients of coded secrets."""

    place: Place
    codes: NDArray[np.int64]
    values: NDArray[Any]
    low: Fraction
    high: Fraction
    factor: Fraction


def equations(columns: Sequence[Column], policy: Policy, source: Source) -> Equations:
    """Every published number of the columns as an equation in the records' secrets."""
    needed = list(dict.fromkeys(a for c in columns for a in _summed(c)))
    secrets = _Secrets(lineage(needed, source), needed, policy)
    shown = {s: shown_cells(s, source) for s in dict.fromkeys(c.select for c in columns)}
    rows = [row for c in columns for row in _column_rows(c, secrets, shown[c.select])]
    return _assembled(rows, secrets)


def _summed(column: Column) -> list[Aggregate]:
    return [column.select.aggregates[index] for index, _ in column.form.weights]


# The secrets and their coefficients -----------------------------------------------------------


class _Secrets:
    """The lineage of all aggregates, cell by cell, with the last value of categories replaced."""

    def __init__(self, found: Lineage, aggregates: Sequence[Aggregate], policy: Policy) -> None:
        self.records, self.count = found.records, len(found.records)
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
        if unknown.category is None or column is None:
            return None
        values = possible_values(column) or ()
        if unknown.category.value != values[-1] or len(values) == 1:
            return None
        return [self._position(Unknown(unknown.column, Category(each))) for each in values[:-1]]

    def _position(self, unknown: Unknown) -> int:
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
        record, unknown = self._found.record[entries], self._found.unknown[entries]
        values = self._found.coefficient[entries]
        constant = values[unknown < 0].sum() if (unknown < 0).any() else 0
        parts_of_codes, parts_of_values = [], []
        for which in np.unique(unknown[unknown >= 0]).tolist():
            here = unknown == which
            others = self._others[which]
            for position, sign in [(which, 1)] if others is None else [(o, -1) for o in others]:
                parts_of_codes.append(position * self.count + record[here])
                parts_of_values.append(sign * values[here])
            constant = constant + (values[here].sum() if others is not None else 0)
        empty = np.zeros(0, np.int64)
        return (
            np.concatenate([empty, *parts_of_codes]),
            np.concatenate([empty, *parts_of_values]),
            constant,
        )


# The rows of one column -----------------------------------------------------------------------


def _column_rows(column: Column, secrets: _Secrets, there: Sequence[ShownCell]) -> list[_Row]:
    """One equation for each cell that the column shows, and for each that is seen to be empty."""
    form, names = column.form, _key_names(column.select)
    absent = empty_cells(column.select, there, secrets.keys(_summed(column)))
    rows = []
    for cell in (*there, *absent):
        divisor = Fraction(1) if form.divisor is None else exact(cell.sums[form.divisor])
        if not divisor or any(cell.sums[index] is None for index, _ in form.weights):
            continue
        key = None if names is None else tuple(zip(names, cell.key, strict=True))
        place = Place(column.query, column.output.name, key)
        target = _target(column, cell, divisor)
        rows.append(_row(place, _weights(column, cell), target, secrets))
    return rows


Weights = list[tuple[Aggregate, Key, Fraction]]


def _weights(column: Column, cell: ShownCell) -> Weights:
    """The sums behind a shown number, each with its weight."""
    return [
        (column.select.aggregates[index], cell.key, weight / cell.divisors[index])
        for index, weight in column.form.weights
    ]


def _target(column: Column, cell: ShownCell, divisor: Fraction) -> tuple[Fraction, Fraction]:
    """Between which numbers the weighted sums lie, given what was shown."""
    form = column.form
    shown = None if column.answer is None else Fraction(column.answer)
    if shown is None:
        total = sum(
            (w * exact(cell.sums[i]) / cell.divisors[i] for i, w in form.weights), Fraction(0)
        )
        if not form.half_unit and not form.cut:
            return total, total
        shown = published((total + form.constant) / divisor, form.half_unit, form.cut)
    below = form.half_unit + (1 if form.cut and shown <= 0 else 0)
    above = form.half_unit + (1 if form.cut and shown >= 0 else 0)
    low, high = sorted(((shown - below) * divisor, (shown + above) * divisor))
    return low - form.constant, high - form.constant


def published(value: Fraction, half_unit: Fraction, cut: bool) -> Fraction:
    """The number that was printed for a value."""
    if cut:
        return Fraction(math.trunc(value))
    unit = 2 * half_unit
    whole = math.floor(abs(value) / unit + Fraction(1, 2))
    return whole * unit * (1 if value >= 0 else -1)


def _row(
    place: Place, weights: Weights, target: tuple[Fraction, Fraction], secrets: _Secrets
) -> _Row:
    """One equation with whole coefficients."""
    codes, parts, public = [], [], Fraction(0)
    for aggregate, key, weight in weights:
        where, coefficients, constant = secrets.cell(aggregate, key)
        whole, scale = integers(coefficients)
        public += weight * exact(constant)
        codes.append(where)
        parts.append((whole, weight / scale))
    factor = math.lcm(1, *(share.denominator for _, share in parts))
    scaled = [multiplied(whole, int(share * factor)) for whole, share in parts]
    merged = _merged(np.concatenate(codes), np.concatenate(scaled))
    low, high = ((end - public) * factor for end in target)
    return _Row(place, *merged, low, high, Fraction(factor))


def _merged(
    codes: NDArray[np.int64], values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Each secret once, with its coefficients added up, and none of them 0."""
    distinct, inverse = np.unique(codes, return_inverse=True)
    if len(distinct) == len(codes):
        order = np.argsort(codes)
        codes, values = codes[order], values[order]
    else:
        total = np.zeros(len(distinct), values.dtype)
        np.add.at(total, inverse, values)
        codes, values = distinct, total
    kept = values != 0
    return codes[kept], values[kept]


def integers(values: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Exact numbers as integers over one denominator."""
    if values.dtype == np.int64:
        return values, 1
    fractions = [Fraction(each) for each in values.tolist()]
    scale = math.lcm(1, *(each.denominator for each in fractions))
    return np.array([int(each * scale) for each in fractions], object), scale


def multiplied(values: NDArray[Any], factor: int) -> NDArray[Any]:
    """Integers times an integer, without overflow."""
    if values.dtype == np.int64 and len(values):
        if int(np.abs(values).max()) * abs(factor) < 2**62:
            return values * factor
        return values.astype(object) * factor
    return values * factor


def _key_names(select: Select) -> tuple[str, ...] | None:
    """The names under which a select shows its keys; the number of one that is not shown."""
    if not select.keys:
        return None
    shown = {o.expression.index: o.name for o in select.outputs if isinstance(o.expression, KeyRef)}
    return tuple(shown.get(index, f"key {index + 1}") for index in range(len(select.keys)))


def _assembled(rows: Sequence[_Row], secrets: _Secrets) -> Equations:
    empty = np.zeros(0, np.int64)
    codes = np.concatenate([empty, *(row.codes for row in rows)])
    distinct, column = np.unique(codes, return_inverse=True)
    lengths = [len(row.codes) for row in rows]
    exactly = all(row.low == row.high for row in rows)
    system = System(
        len(rows),
        len(distinct),
        np.repeat(np.arange(len(rows), dtype=np.int64), lengths),
        column.astype(np.int64),
        np.concatenate([empty, *(row.values for row in rows)]),
        tuple(row.low for row in rows) if exactly else None,
    )
    return Equations(
        system,
        tuple(row.low for row in rows),
        tuple(row.high for row in rows),
        tuple(row.factor for row in rows),
        tuple(row.place for row in rows),
        secrets.records,
        distinct % max(1, secrets.count),
        distinct // max(1, secrets.count),
        tuple(secrets.unknowns),
    )
