"""The statements of a log as numbers that can be withheld one by one: what each tells, and as text.

A number is what one column of a SELECT shows for one combination of its keys: columns that lose
different rows become statements of their own. Where its columns cannot be written alone a row goes
with all of them, and where its rows cannot be told apart in its text, a statement is published or
left out whole.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

    def unit(self, place: Place) -> Withheld:
        """What goes where a number is withheld: it alone, or all of its row, or the statement."""
        if self._withholding is None or place.select is None:
            return Withheld(self.query, None)
        key = () if place.key is None else tuple(value for _, value in place.key)
        column = place.column if place.column in self.columns else None
        return Withheld(self.query, place.key, self._withholding.row(place.select, key), column)

    def without(self, withheld: Collection[Withheld]) -> list[str]:
        """The texts without these rows, columns and numbers; none where nothing can be left."""
        rows = frozenset(each.row for each in withheld if each.column is None)
        parts: dict[frozenset[ShownRow | None], list[str]] = {}
        for name in self.columns:
            own = {each.row for each in withheld if each.column == name}
            if None not in own:
                parts.setdefault(rows | own, []).append(name)
        if len(withheld) == len(rows):
            parts = {rows: list(self.columns)}
        texts = (self._part(names, gone) for gone, names in parts.items())
        return [text for text in texts if text is not None]

    def _part(self, names: Collection[str], gone: Collection[ShownRow | None]) -> str | None:
        """The text of some columns without some rows."""
        shorter, rows = self._showing(names), [row for row in gone if row is not None]
        if shorter is None or not gone:
            return None if shorter is None else shorter.sql
        if shorter._withholding is None or len(rows) < len(gone):
            return None
        try:
            return shorter._withholding.without(rows, self._present)
        except Unsupported:  # a key that cannot be written as a constant, or too many of them
            return None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that can be shown without the others; none where only some can."""
        names = () if self._withholding is None else self._withholding.columns
        return names if all(self._showing([name], names) for name in names) else ()

    def _showing(
        self, names: Collection[str], among: Collection[str] | None = None
    ) -> "LoggedStatement | None":
        """The statement without the columns that are not of these."""
        shown: LoggedStatement | None = self
        for name in self.columns if among is None else among:
            if name not in names and shown is not None:
                shown = shown._without_column(name)
        return shown

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
    titles: Mapping[int, str] = field(default_factory=dict)

    def texts(self, withheld: Iterable[Withheld]) -> dict[int, list[str]]:
        """The statements without some of what they show, each in one part or more, or in none."""
        hidden: dict[int, list[Withheld]] = {}
        for each in withheld:
            hidden.setdefault(each.query, []).append(each)
        return {query: each.without(hidden.get(query, ())) for query, each in self.listed.items()}

    def joined(self, withheld: Collection[Withheld], shown: Iterable[Withheld]) -> list[Withheld]:
        """Numbers of all that are shown as whole columns and rows, where all of these go."""
        hidden, left = set(withheld), [each for each in shown if each not in set(withheld)]
        columns = {(each.query, each.column) for each in hidden if each.column is not None}
        columns -= {(each.query, each.column) for each in left}
        for query, statement in self.listed.items():
            if set(statement.columns) <= {name for number, name in columns if number == query}:
                columns -= {(query, name) for name in statement.columns}  # no column would be left
        found = dict.fromkeys(Withheld(query, None, column=name) for query, name in columns)
        kept_rows = {(each.query, each.row) for each in left}
        for each in withheld:
            if (each.query, each.column) in columns:
                continue
            whole = (each.query, each.row) not in kept_rows
            found[replace(each, column=None) if whole else each] = None
        return sorted(found, key=lambda each: (each.rank, each.column or ""))

    def script(self, withheld: Sequence[Withheld]) -> str:
        """The statements as one SQL file that says what it leaves out."""
        texts = self.texts(withheld)
        parts = [HEADER]
        for query in sorted({*self.listed, *self.refused}):
            hidden = [each for each in withheld if each.query == query]
            if texts.get(query):
                note = f"-- query {query}, {_count(hidden)} withheld\n" if hidden else ""
                title = self.titles.get(query)
                # A blank line, so that no note of ours is read as the title of a statement.
                head = f"{note}\n" if title is None and note else note
                head += "" if title is None else f"-- {title}\n"
                parts.append(head + "".join(f"{text};\n" for text in texts[query]))
            else:
                parts.append(f"-- query {query} is left out: {self._reason(query)}\n")
        return "\n".join(parts)

    def _reason(self, query: int) -> str:
        if query in self.refused:
            return f"it could not be audited ({' '.join(self.refused[query].split())})"
        return "with it somebody would be exposed"


HEADER = "-- Written by casemate audit --repair: what can be published without exposing anybody.\n"


def _count(withheld: Sequence[Withheld]) -> str:
    rows = sum(each.column is None for each in withheld)
    columns = [f"column {each.column}" for each in withheld if each.column and each.row is None]
    numbers = len(withheld) - rows - len(columns)
    counted = [
        f"1 {what}" if count == 1 else f"{count} {what}s"
        for count, what in ((rows, "row"), (numbers, "number"))
        if count
    ]
    return " and ".join([*counted, *columns])


# The numbers about secrets, and what each one tells ---------------------------------------------


@dataclass(eq=False)
class RowEvidence:
    """What a number, or a row, tells: equations, and the positions of the records it is about.

    `cells` are the keys and the columns that it is shown under: several where a row goes with all
    of its columns, or where grouping sets have rows that look the same.
    """

    equations: list[int]
    records: NDArray[np.int64]
    cells: set[tuple[tuple[tuple[str, Scalar], ...] | None, str]] = field(default_factory=set)


def rows_shown(case: Case, statements: AuditedStatements) -> dict[Withheld, RowEvidence]:
    """Every number about secrets, or row where it cannot go alone, in the order of the log."""
    found: dict[Withheld, RowEvidence] = {}
    for place, equation, records in (*_rows_of_sums(case), *_rows_of_extremes(case)):
        unit = statements.listed[place.query].unit(place)
        shown = found.setdefault(unit, RowEvidence([], np.zeros(0, np.int64)))
        shown.equations += equation
        shown.cells.add((place.key, place.column))
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
