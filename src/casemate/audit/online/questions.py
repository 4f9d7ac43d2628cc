"""The questions of a statement about single records, found without reading a private column."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online.columns import (
    ExtremeColumn,
    SumColumn,
    counted_form,
    public_form,
    results,
    secret_columns,
)
from casemate.audit.order.online import Extreme
from casemate.errors import Misconfigured
from casemate.exact import Equation
from casemate.published import (
    People,
    column_values,
    integers,
    multiplied,
    multiplied_exactly,
    numerators,
    presence,
)
from casemate.query import Aggregate, Function, Select, Statement
from casemate.query.engines import Key, answers, shown_rows
from casemate.query.language import TRUE, Scalar
from casemate.query.records import Cell, Lineage, lineage
from casemate.table.sources import Source


class Family(StrEnum):
    """The two kinds of questions that are never mixed about linked records."""

    SUMS = "sums"
    EXTREMES = "extremes"


@dataclass(frozen=True, eq=False)
class ExtremeQuestion:
    """The minimum or maximum of some unknowns, and where it is shown."""

    kind: Extreme
    members: NDArray[np.int64]
    aggregate: Aggregate
    key: Key


@dataclass(frozen=True, eq=False)
class StatementQuestions:
    """Everything that a statement asks about private numbers."""

    sums: tuple[Equation, ...] = ()
    extremes: tuple[ExtremeQuestion, ...] = ()
    cells: "CellUnknowns | None" = field(
        default=None, repr=False
    )  # behind its sums, where it has some

    @cached_property
    def members(self) -> tuple[tuple[Family, NDArray[np.int64]], ...]:
        """The unknowns that each question links, and its family."""
        sums = ((Family.SUMS, each.columns) for each in self.sums)
        extremes = ((Family.EXTREMES, each.members) for each in self.extremes)
        return (*sums, *extremes)

    @cached_property
    def families(self) -> frozenset[Family]:
        """The families its questions belong to."""
        return frozenset(family for family, _ in self.members)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The records of a table at one time, and the private columns that are followed.

    Unknown number c * records + i is column c of record i, or of the person whose first row that
    is where the column is constant for each person.
    """

    source: Source
    people: People
    names: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many unknowns there are."""
        return len(self.names) * self.records

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.people.records)

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The unknown that stands for each of them: its person's where the column is constant."""
        return self._numbered([self.people.owners(name) for name in self.names])

    @cached_property
    def persons(self) -> NDArray[np.int64]:
        """The first unknown of the same person, where each row has its own."""
        constant = [self.people.owners(name) is not None for name in self.names]
        return self._numbered([None if each else self.people.first for each in constant])

    def _numbered(self, places: Sequence[NDArray[np.int64] | None]) -> NDArray[np.int64]:
        """Positions of records as numbers of unknowns, column by column; None for their own."""
        count = len(self.people.records)
        own = np.arange(count, dtype=np.int64)
        found = [own if each is None else each for each in places]
        return np.concatenate([each + count * c for c, each in enumerate(found)])

    def questions(self, statement: Statement) -> StatementQuestions:
        """What the statement asks; raises Refused where that cannot be decided beforehand."""
        columns = secret_columns(statement, self.names)
        if not columns:
            return StatementQuestions()
        sums = [each for each in columns if isinstance(each, SumColumn)]
        extremes = [each for each in columns if isinstance(each, ExtremeColumn)]
        needed = [a for each in sums for a in each.aggregates] + [e.aggregate for e in extremes]
        cells = CellUnknowns(list(dict.fromkeys(needed)), self)
        asked = [question for each in sums for question in _sums(each, cells)]
        ordered = [question for each in extremes for question in _extremes(each, cells)]
        return StatementQuestions(tuple(asked), tuple(ordered), cells)

    @cached_property
    def numbers(self) -> tuple[NDArray[Any], int]:
        """The private numbers themselves, as integers over one denominator; missing ones are 0."""
        found = [column_values(name, self.source) for name in self.names]
        records = [self.people.record(place) for place in range(self.records)]
        return numerators([values[record] for values in found for record in records])


class CellUnknowns:
    """The unknowns behind each cell of some aggregates."""

    def __init__(self, aggregates: Sequence[Aggregate], snapshot: Snapshot) -> None:
        found = lineage(aggregates, snapshot.source, wide=True)
        if not np.array_equal(found.records, snapshot.people.records):
            raise Misconfigured(
                "the table's records are not those it had at first, and an audit is about one "
                "snapshot; start a new one"
            )
        self.source, self._snapshot = snapshot.source, snapshot
        self._index = {aggregate: place for place, aggregate in enumerate(aggregates)}
        self._values = found.coefficient
        self._unknown = _positions(found, snapshot)
        order = np.argsort(found.cell, kind="stable")
        ends = np.searchsorted(found.cell[order], np.arange(len(found.cells) + 1))
        self._entries = {cell: order[ends[i] : ends[i + 1]] for i, cell in enumerate(found.cells)}

    def of(self, aggregate: Aggregate, key: Key) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The unknowns of a cell, and their coefficients."""
        entries = self._entries.get(Cell(self._index[aggregate], key), np.zeros(0, np.int64))
        private = entries[self._unknown[entries] >= 0]
        return self._unknown[private], self._values[private]

    def total(self, aggregate: Aggregate, key: Key) -> Fraction:
        """What a sum comes to, exactly: coefficients times private numbers, and what is public."""
        entries = self._entries.get(Cell(self._index[aggregate], key), np.zeros(0, np.int64))
        whole, scale = integers(self._values[entries])
        private = self._unknown[entries] >= 0
        numbers, denominator = self._snapshot.numbers
        parts = multiplied_exactly(whole[private], numbers[self._unknown[entries][private]])
        public = sum(whole[~private].tolist())
        return Fraction(int(parts.sum()), scale * denominator) + Fraction(public, scale)

    def keys(self, select: Select, aggregates: Sequence[Aggregate]) -> list[Key]:
        """The cells that are shown and have something private in them, in a fixed order."""
        places = {self._index[each] for each in aggregates}
        found = dict.fromkeys(cell.key for cell in self._entries if cell.aggregate in places)
        if select.having != TRUE:
            shown = shown_keys(select, self.source)
            found = {key: None for key in found if key in shown}
        return sorted(found, key=lambda key: [(each is None, str(each)) for each in key])


def _positions(found: Lineage, snapshot: Snapshot) -> NDArray[np.int64]:
    """The unknown of every entry, or -1 for what is public."""
    count = len(snapshot.people.records)
    columns = np.array([snapshot.names.index(each.column) for each in found.unknowns], np.int64)
    places = np.full(len(found.unknown), -1, np.int64)
    private = found.unknown >= 0
    places[private] = columns[found.unknown[private]] * count + found.record[private]
    places[private] = snapshot.owners[places[private]]
    return places


def shown_keys(select: Select, source: Source) -> set[Key]:
    """The cells that HAVING lets through, which it decides by public results."""
    used = [select.aggregates[index] for index in results(select.having)]
    forms = {each: form for each in used if (form := public_form(each)) is not None}
    present, *found = answers([presence(select), *forms.values()], source)
    values = defaultdict[Aggregate, dict[Key, Scalar]](dict, zip(forms, found, strict=True))
    return set(shown_rows(replace(select, outputs=()), present, values))


# From cells to questions ------------------------------------------------------------------------


def _extremes(column: ExtremeColumn, cells: CellUnknowns) -> list[ExtremeQuestion]:
    """One question for each cell; constant columns count a person once."""
    asked = []
    for key in cells.keys(column.select, [column.aggregate]):
        members = np.unique(cells.of(column.aggregate, key)[0])
        if len(members):
            asked.append(ExtremeQuestion(column.kind, members, column.aggregate, key))
    return asked


def _sums(column: SumColumn, cells: CellUnknowns) -> list[Equation]:
    """One equation for each cell in which something private is left."""
    aggregates = column.select.aggregates
    weights = [(aggregates[i], w) for i, w in column.form.weights]
    private = [(each, weight) for each, weight in weights if each in column.aggregates]
    counts = _counts([each for each, _ in private], cells.source) if len(private) > 1 else {}
    found = []
    for key in cells.keys(column.select, column.aggregates):
        parts = [
            (*cells.of(each, key), weight / max(1, counts.get(each, {}).get(key, 1)))
            for each, weight in private
        ]
        equation = _equation(parts)
        if len(equation.columns):
            found.append(equation)
    return found


def weighing(equation: Equation) -> Fraction:
    """How many times more a sum weighs one record than another."""
    sizes = [abs(int(each)) for each in np.unique(equation.values).tolist()]
    return Fraction(max(sizes), min(sizes))


def _counts(aggregates: Sequence[Aggregate], source: Source) -> dict[Aggregate, dict[Key, int]]:
    """What the averages among some aggregates divide by; it matters beside others only."""
    averages = [each for each in aggregates if each.function is Function.AVG]
    forms = [form for each in averages if (form := counted_form(each)) is not None]
    found = answers(forms, source)
    return {
        each: {key: int(str(value)) for key, value in cells.items()}
        for each, cells in zip(averages, found, strict=True)
    }


Part = tuple[NDArray[np.int64], NDArray[Any], Fraction]


def _equation(parts: Sequence[Part]) -> Equation:
    """The weighted parts added up, with whole coefficients."""
    scaled = [(columns, *integers(values), weight) for columns, values, weight in parts]
    factor = math.lcm(*((weight / scale).denominator for _, _, scale, weight in scaled))
    columns = np.concatenate([each for each, *_ in scaled])
    values = np.concatenate(
        [multiplied(whole, int(weight / scale * factor)) for _, whole, scale, weight in scaled]
    )
    distinct, place = np.unique(columns, return_inverse=True)
    if len(distinct) < len(columns):
        wide = values.astype(object)
        values = np.zeros(len(distinct), object)
        np.add.at(values, place, wide)
        columns = distinct
    kept = values != 0
    return Equation(columns[kept], values[kept])
