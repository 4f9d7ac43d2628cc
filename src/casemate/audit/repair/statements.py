"""The statements of a log as rows that can be withheld one by one: what each tells, and as text.

A row is what one SELECT shows for one combination of its keys, with all of its columns. Where the
rows of a statement cannot be told apart in its text, the statement is published or left out whole.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.case import Case
from casemate.audit.result import Withheld
from casemate.errors import Unsupported
from casemate.exact import equations as equations_of
from casemate.published import Place, place_of, presence, shown_cells
from casemate.query import Select
from casemate.query.engines import Key, answers
from casemate.query.language import Scalar
from casemate.query.parse import ShownRow, Withholding, split
from casemate.query.records import lineage
from casemate.table import Policy
from casemate.table.sources import Source


class LoggedStatement:
    """One statement of a log, in a dialect, over an open table."""

    def __init__(self, query: int, sql: str, policy: Policy, source: Source, dialect: str) -> None:
        self.query = query
        (self.sql,) = split(sql, dialect)  # without what stands before and after it
        self._policy, self._source, self._dialect = policy, source, dialect

    def row(self, place: Place) -> Withheld:
        """The row in which a number was published."""
        if self._withholding is None or place.select is None:
            return Withheld(self.query, None)
        key = () if place.key is None else tuple(value for _, value in place.key)
        return Withheld(self.query, place.key, self._withholding.row(place.select, key))

    def without(self, rows: Collection[Withheld]) -> str | None:
        """The text without these rows; None if nothing is left, or the rest cannot be written."""
        columns = [each.column for each in rows if each.column is not None]
        if columns:
            shorter = self._without_column(columns[0])
            rest = [each for each in rows if each.column != columns[0]]
            return None if shorter is None else shorter.without(rest)
        kept = [each.row for each in rows if each.row is not None]
        if not rows:
            return self.sql
        if self._withholding is None or len(kept) < len(rows):
            return None
        try:
            return self._withholding.without(kept, self._present)
        except Unsupported:  # a key that cannot be written as a constant, or too many of them
            return None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be left out of all rows."""
        return () if self._withholding is None else self._withholding.columns

    def _without_column(self, name: str) -> "LoggedStatement | None":
        try:
            text = None if self._withholding is None else self._withholding.without_column(name)
        except Unsupported:  # ORDER BY or another column may need it
            return None
        if text is None:
            return None
        return LoggedStatement(self.query, text, self._policy, self._source, self._dialect)

    @cached_property
    def _withholding(self) -> Withholding | None:
        try:
            return Withholding(self.sql, self._policy, self._dialect)
        except Unsupported:
            return None

    @cached_property
    def _present(self) -> frozenset[ShownRow]:
        """Every row there is, whether HAVING shows it or not."""
        if self._withholding is None:
            return frozenset()
        selects = self._withholding.statement.selects
        return frozenset(
            self._withholding.row(select, key)
            for select in selects
            for key in _keys(select, self._source)
        )


def _keys(select: Select, source: Source) -> list[Key]:
    (found,) = answers([presence(select)], source)
    return list(found)


@dataclass(frozen=True, eq=False)
class AuditedStatements:
    """The statements that could be audited, by their numbers, and why the others could not."""

    listed: Mapping[int, LoggedStatement]
    refused: Mapping[int, str]

    def texts(self, withheld: Collection[Withheld]) -> dict[int, str]:
        """The statements without some rows; one of which nothing is left is not there."""
        rows: dict[int, list[Withheld]] = {}
        for each in withheld:
            rows.setdefault(each.query, []).append(each)
        texts = {query: each.without(rows.get(query, ())) for query, each in self.listed.items()}
        return {query: text for query, text in texts.items() if text is not None}

    def script(self, withheld: Sequence[Withheld]) -> str:
        """The statements as one SQL file that says what it leaves out."""
        texts = self.texts(withheld)
        parts = [HEADER]
        for query in sorted({*self.listed, *self.refused}):
            hidden = [each for each in withheld if each.query == query]
            if query in texts:
                note = f"-- query {query}, {_count(hidden)} withheld\n" if hidden else ""
                parts.append(f"{note}{texts[query]};\n")
            else:
                parts.append(f"-- query {query} is left out: {self._reason(query)}\n")
        return "\n".join(parts)

    def _reason(self, query: int) -> str:
        if query in self.refused:
            return f"it could not be audited ({' '.join(self.refused[query].split())})"
        return "with it somebody would be exposed"


HEADER = "-- Written by casemate audit --repair: what can be published without exposing anybody.\n"


def _count(withheld: Sequence[Withheld]) -> str:
    columns = [f"column {each.column}" for each in withheld if each.column is not None]
    rows = len(withheld) - len(columns)
    counted = ["1 row" if rows == 1 else f"{rows} rows"] if rows else []
    return " and ".join([*counted, *columns])


# The rows that show something about secrets, and what each one tells ----------------------------


@dataclass(eq=False)
class RowEvidence:
    """What a row tells: equations, and the positions of the records that it is about.

    `cells` are the keys that it is shown under: several where grouping sets have rows that look
    the same.
    """

    equations: list[int]
    records: NDArray[np.int64]
    cells: set[tuple[tuple[str, Scalar], ...] | None] = field(default_factory=set)


def rows_shown(case: Case, statements: AuditedStatements) -> dict[Withheld, RowEvidence]:
    """Every row that shows something about secrets, in the order of the log."""
    found: dict[Withheld, RowEvidence] = {}
    for place, equation, records in (*_rows_of_sums(case), *_rows_of_extremes(case)):
        row = statements.listed[place.query].row(place)
        shown = found.setdefault(row, RowEvidence([], np.zeros(0, np.int64)))
        shown.equations += equation
        shown.cells.add(place.key)
        shown.records = np.union1d(shown.records, records)
    return dict(sorted(found.items(), key=lambda pair: pair[0].rank))


def _rows_of_sums(case: Case) -> Iterator[tuple[Place, list[int], NDArray[np.int64]]]:
    """The places of the equations, and whose secrets these are about."""
    for number, line in enumerate(equations_of(case.equations.system)):
        place = case.equations.places[number]
        yield place, [number], np.unique(case.equations.record[line.columns])


def _rows_of_extremes(case: Case) -> Iterator[tuple[Place, list[int], NDArray[np.int64]]]:
    """The places of extremes and medians, and the records behind them."""
    first = case.equations.people.first
    for column in case.publication.ordered:
        found = lineage([presence(column.select)], case.source)
        there = {cell.key: i for i, cell in enumerate(found.cells)}
        for cell in shown_cells(column.select, case.source):
            place = place_of(column.query, column.select, column.output.name, cell.key)
            records = found.record[found.cell == there.get(cell.key, -1)]
            yield place, [], np.union1d(records, first[records])
