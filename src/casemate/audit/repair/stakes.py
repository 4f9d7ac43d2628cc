"""Who has what at stake when a row is published: what would expose somebody, and room to move.

A number is exposed when its column is determined, and so is a category by the column of its value;
by the columns of other values only when all of them are. The table's own values solve all
equations, so whoever is at an end of the range of a column that would say the value needs room to
move away from it (`casemate.audit.region.second`). `swappable` is a choice of rows that leaves
everybody a twin to swap with.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.region.collapse import CollapsedSystem, collapse
from casemate.audit.region.second import Floats, Freedom, HeldSum
from casemate.audit.repair.statements import RowEvidence
from casemate.audit.result import Withheld
from casemate.exact import Bound, Equation, System
from casemate.exact import equations as equations_of
from casemate.published import column_values, true_values
from casemate.query.records import Category

MAX_PROGRAM_COLUMNS = 100_000
"""Columns up to which the room to move is looked at: a linear program of that size."""


class Stakes:
    """What would expose somebody, and how a solution near the table's own values may move."""

    def __init__(self, case: Case) -> None:
        self._case = case
        equations = case.equations
        columns = range(equations.system.columns)
        true = true_values(equations, columns, case.source)
        self.truth = [true[column] for column in columns]
        self.open = np.array([not case.is_known_beforehand(column) for column in columns], np.bool_)
        self.alone = np.zeros(len(columns), np.bool_)  # whose column by itself says the value
        self.families: dict[int, tuple[int, ...]] = {}
        for members in self._secrets():
            self._note(members)

    @property
    def columns(self) -> int:
        """How many secrets there are."""
        return len(self.truth)

    @property
    def published(self) -> int:
        """How many of the equations were published; what ties secrets together comes after."""
        return self._case.equations.system.rows

    def _secrets(self) -> Iterable[list[int]]:
        """The columns by the secret and the record that they are about."""
        found: dict[tuple[int, str], list[int]] = {}
        for column, record in enumerate(self._case.equations.record.tolist()):
            found.setdefault((record, self._case.secret(column)), []).append(column)
        return found.values()

    def _note(self, members: list[int]) -> None:
        kinds = {column: self._case.unknown(column).category for column in members}
        values = [column for column, kind in kinds.items() if isinstance(kind, Category)]
        numbers = [column for column, kind in kinds.items() if kind is None]
        says = [*numbers, *(column for column in values if self.truth[column] == 1)]
        self.alone[says] = True
        declared = self._case.declared_values(self._case.secret(members[0]))
        if values and len(values) == len(declared) - 1 and not any(self.alone[values]):
            self.families |= dict.fromkeys(values, tuple(values))

    def exposes(self, new: Iterable[int], before: Iterable[int]) -> bool:
        """Whether columns that become determined, with those that are, say a value."""
        newly_determined = [column for column in new if self.open[column]]
        if any(self.alone[column] for column in newly_determined):
            return True
        determined = (
            {*newly_determined, *before}
            if any(column in self.families for column in newly_determined)
            else set()
        )
        return any(
            determined.issuperset(self.families.get(column, (-1,))) for column in newly_determined
        )

    @cached_property
    def lines(self) -> list[Equation]:
        """The published equations and what ties secrets together, without what is known."""
        system = self._case.region.system
        kept = self.open[system.column]
        order = np.argsort(system.row[kept], kind="stable")
        row, column = system.row[kept][order], system.column[kept][order]
        value = system.value[kept][order]
        ends = np.searchsorted(row, np.arange(system.rows + 1)).tolist()
        return [Equation(column[a:b], value[a:b]) for a, b in pairwise(ends)]

    def is_exact(self, row: int) -> bool:
        """Whether an equation has one right side."""
        return self._case.region.low[row] == self._case.region.high[row]

    # The room to move -----------------------------------------------------------------------------

    @cached_property
    def low(self) -> Floats:
        """The least direction of each column: up where it has to leave its lower end."""
        return self._leaving(self._case.region.box.low)

    @cached_property
    def high(self) -> Floats:
        """The greatest direction of each column."""
        return -self._leaving(self._case.region.box.high)

    def _leaving(self, ends: Sequence[Bound]) -> Floats:
        """How far columns must go from the end they are at: some way if they alone say a value."""
        at_end = np.array([a == b for a, b in zip(self.truth, ends, strict=True)], np.bool_)
        found = np.where(at_end, np.where(self.alone, 1.0, 0.0), -np.inf)
        return np.where(self.open, found, 0.0)

    @cached_property
    def collapsed(self) -> CollapsedSystem:
        """Columns that no equation tells apart and that move alike, taken together."""
        system = self._case.region.system
        marks = [self.low > 0, self.low == 0, self.high < 0, self.high == 0]
        marks += [np.isin(np.arange(self.columns), list(self.families))]
        places = [np.flatnonzero(mark) for mark in marks]
        rows = [np.full(len(each), system.rows + i) for i, each in enumerate(places)]
        column = np.concatenate([system.column, *places])
        ones = np.ones(len(column) - len(system.column), system.value.dtype)
        return collapse(
            System(
                system.rows + len(marks),
                system.columns,
                np.concatenate([system.row, *rows]).astype(np.int64),
                column.astype(np.int64),
                np.concatenate([system.value, ones]),
            )
        )

    def held_sum(self, row: int) -> HeldSum:
        """How the sum of an equation may change: not at all, or away from the end it is at."""
        line, region = self.lines[row], self._case.region
        total = sum(a * self.truth[column] for column, a in region.equations[row])
        low = 0.0 if total == region.low[row] else -math.inf
        high = 0.0 if total == region.high[row] else math.inf
        return self._sum_of_groups(line.columns, line.values, low, high)

    def leaving(self) -> list[HeldSum]:
        """That each family of categories of which none is known moves away from the last value."""
        return [
            self._sum_of_groups(np.array(family), np.ones(len(family)), 1.0, math.inf)
            for family in dict.fromkeys(self.families.values())
        ]

    def _sum_of_groups(
        self, columns: NDArray[np.int64], values: NDArray[Any], low: float, high: float
    ) -> HeldSum:
        group = self.collapsed.group[columns]
        places, first = np.unique(group, return_index=True)
        return HeldSum(places, values[first].astype(np.float64), low, high)

    def freedom(self) -> Freedom | None:
        """The room to move before anything is published; None if that is not to be looked at."""
        must = bool((self.low > 0).any() or (self.high < 0).any() or self.families)
        if not must or self.columns > MAX_PROGRAM_COLUMNS:
            return None
        group, sizes = self.collapsed.group, self.collapsed.sizes.astype(np.float64)
        low, high = np.empty(len(sizes)), np.empty(len(sizes))
        low[group], high[group] = self.low, self.high
        freedom = Freedom(low * sizes, high * sizes)
        ties = [self.held_sum(row) for row in range(self.published, len(self.lines))]
        return freedom if freedom.admit([*ties, *self.leaving()]) else None


# Rows after which everybody could have somebody else's value ------------------------------------
# Two records that every published row treats alike may swap their values, and nobody sees it. If
# each record has such a twin with another value nobody is exposed, whatever is published of them:
# sums, extremes or medians, of whole numbers or not. Far fewer rows allow this than could be
# published, but the audit needs no search to see that they are safe.


Labels = NDArray[np.uint64]
INSIDE_MARK = -1  # stands for being in a row at all, as extremes and medians see it


def swappable(case: Case, rows: Mapping[Withheld, RowEvidence]) -> list[Withheld]:
    """As many rows as one of two orders admits: the small ones first, or the large ones."""
    lines = list(equations_of(case.equations.system))
    marks = {row: _marks(case, lines, rows[row], number) for number, row in enumerate(rows)}
    values = _values(case)
    small = sorted(rows, key=lambda row: len(rows[row].records))
    kept = max((_admit_in_order(order, marks, values) for order in (small, small[::-1])), key=len)
    return [row for row in rows if row in kept]


def _admit_in_order(
    order: Sequence[Withheld], marks: Mapping[Withheld, Labels], values: Sequence[NDArray[np.int64]]
) -> set[Withheld]:
    kept: set[Withheld] = set()
    labels = np.zeros_like(marks[order[0]]) if order else np.zeros(0, np.uint64)
    for row in order:
        finer = labels + marks[row]
        if all(_differ(finer, codes) for codes in values):
            labels = finer
            kept.add(row)
    return kept


def _differ(labels: Labels, codes: NDArray[np.int64]) -> bool:
    """Whether, among records of one label, there are always two values; 0 is no label."""
    touched = labels != 0
    _, place = np.unique(labels[touched], return_inverse=True)
    count = int(place.max(initial=-1)) + 1
    least, most = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(least, place, codes[touched])
    np.maximum.at(most, place, codes[touched])
    return bool((least < most).all())


def _marks(case: Case, lines: Sequence[Equation], shown: RowEvidence, number: int) -> Labels:
    """What a row adds to the label of each record: the same for records that it treats alike."""
    marks = [0] * len(case.equations.records)
    for record in shown.records.tolist():
        marks[record] = _mark(number, INSIDE_MARK, INSIDE_MARK)
    for equation in shown.equations:
        line = lines[equation]
        for column, coefficient in zip(line.columns.tolist(), line.values.tolist(), strict=True):
            kind = int(case.equations.unknown[column])
            marks[case.equations.record[column]] += _mark(equation, kind, int(coefficient))
    return np.array([mark % 2**64 for mark in marks], np.uint64)


def _mark(*what: int) -> int:
    """A number that stands for these; different ones have different sums, next to always."""
    mixed = hash(what) & (2**64 - 1)
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 & (2**64 - 1)
    return mixed ^ (mixed >> 27) | 1


def _values(case: Case) -> list[NDArray[np.int64]]:
    """For each private column that was asked about, the values of the records as numbers."""
    people = case.equations.people
    records = [people.record(place) for place in range(len(people.records))]
    codes = []
    for name in sorted(columns_asked(case)):
        found = column_values(name, case.source)
        numbers: dict[object, int] = {}
        codes.append([numbers.setdefault(found[record], len(numbers)) for record in records])
    return [np.array(each, np.int64) for each in codes]


def columns_asked(case: Case) -> set[str]:
    """The private columns that something was published about."""
    ordered = (each.select.aggregates[each.form.weights[0][0]] for each in case.publication.ordered)
    names = {name for each in ordered for name in each.private_argument}
    return names | {unknown.column for unknown in case.equations.unknowns}
