"""Which secrets, with which coefficients, enter each cell of the published aggregates."""

import math
from collections.abc import Sequence
from decimal import localcontext
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.published.people import People
from casemate.query import Aggregate
from casemate.query.engines import Key
from casemate.query.records import (
    Category,
    Cell,
    Lineage,
    Unknown,
    possible_values,
)
from casemate.table import Policy

MAX_SUM_DIGITS = 200_000
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
        with localcontext(prec=MAX_SUM_DIGITS):
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
                parts_of_values.append(multiply_integers(values[here], sign))
            constant = constant + (_sum(values[here]) if others is not None else 0)
        empty = np.zeros(0, np.int64)
        return (
            np.concatenate([empty, *parts_of_codes]),
            np.concatenate([empty, *parts_of_values]),
            constant,
        )


def sum_by_secret(
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


WeightedCell = tuple[NDArray[np.int64], NDArray[Any], Fraction]
"""The secrets of a cell by their codes, their coefficients, and what these are multiplied by."""


def integer_row(cells: Sequence[WeightedCell]) -> tuple[NDArray[np.int64], NDArray[Any], int]:
    """Weighted cells added up in whole numbers, each secret once, and the factor of that."""
    wholes = [numerators(coefficients) for _, coefficients, _ in cells]
    shares = [weight / scale for (_, _, weight), (_, scale) in zip(cells, wholes, strict=True)]
    factor = math.lcm(1, *(share.denominator for share in shares))
    terms = [
        multiply_integers(whole, int(share * factor))
        for (whole, _), share in zip(wholes, shares, strict=True)
    ]
    codes = np.concatenate([codes for codes, _, _ in cells])
    return *sum_by_secret(codes, np.concatenate(terms)), factor


def _totals(place: NDArray[np.int64], values: NDArray[Any], count: int) -> NDArray[Any]:
    """The sum of the values at each place, without overflow."""
    most = int(np.bincount(place).max())
    if values.dtype == np.int64 and largest_size(values) * most >= 2**62:
        values = values.astype(object)
    total = np.zeros(count, values.dtype)
    np.add.at(total, place, values)
    return total


def numerators(numbers: Sequence[Any] | NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Exact numbers as integers over one denominator; None counts as 0."""
    if isinstance(numbers, np.ndarray) and numbers.dtype == np.int64:
        return numbers, 1
    exact = [each if isinstance(each, int) else Fraction(each or 0) for each in numbers]
    scale = math.lcm(1, *{each.denominator for each in exact})
    return integer_array([each.numerator * (scale // each.denominator) for each in exact]), scale


def integer_array(numbers: Sequence[int]) -> NDArray[Any]:
    """Whole numbers in 64 bits where they fit with one to spare, and as objects where not."""
    fits = all(abs(each) < 2**62 for each in numbers)
    return np.array(numbers, np.int64 if fits else object)


def multiply_integers(values: NDArray[Any], factor: int) -> NDArray[Any]:
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
