"""The tables of a source as its engine's queries see them: a SELECT that shows each in our types.

The record's identity comes first, then the columns that queries can use, then whose row it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from casemate.errors import Misconfigured
from casemate.table.schema import NUMBERS, CellFormat, ColumnType
from casemate.table.sources.cells import CellDialect
from casemate.table.sources.formats import (
    INTEGER_DIGITS,
    FormatOf,
    number_type,
    plain_number,
    text_present,
    trim,
)
from casemate.table.sources.source import (
    NEEDS_KEY,
    PERSON,
    RECORD,
    Frame,
    SelectedFrom,
    no_column,
    quote_name,
)
from casemate.table.sources.text_numbers import TextColumn
from casemate.table.sources.types import ByPolicy

POSITION = "casemate_position"
PLAIN = CellFormat()
MOST_EXACT_DOUBLE = 2**53
"""Doubles up to here hold every whole number."""


class EngineTables(ABC):
    """The tables of a source as an engine's queries see them, each through a SELECT."""

    dialect_cells: CellDialect

    @abstractmethod
    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""

    def __init__(self, key: str | None, person: str | None) -> None:
        self.key, self._person = key, person
        self._fields: dict[str | None, dict[str, ColumnType]] = {}
        self._cells: dict[str | None, SelectedFrom] = {}
        self._left_out: dict[str, str] = {}

    @property
    def left_out(self) -> Mapping[str, str]:
        """The columns of the protected table that queries cannot use, with the engine's types."""
        return self._left_out

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self._fields[public]

    def cells(self, public: str | None = None) -> SelectedFrom:
        """A relation as the engine has it, before it is shown in casemate's types."""
        return self._cells[public]

    def _select_typed(self, public: str | None, relation: SelectedFrom) -> str:
        """What queries see of a table: casemate's types, and the record's identity first."""
        readings = {name: self.dialect_cells.reading(w) for name, w in relation.columns.items()}
        usable = {name: how for name, how in readings.items() if how is not None}
        if not usable:
            raise Misconfigured("the table has no column of a type that queries can use")
        shown = {quote_name(name): how.of(quote_name(name)) for name, how in usable.items()}
        self._fields[public] = {name: how.type for name, how in usable.items()}
        self._cells[public] = relation
        if public is not None:
            return _select(shown, relation)
        self._left_out = {n: word for n, word in relation.columns.items() if n not in usable}
        if self.key is not None and self.key not in usable:
            raise no_column("key", self.key, usable)
        record = relation.position if self.key is None else shown[quote_name(self.key)]
        person = {PERSON: shown[quote_name(self._person)]} if self._person in usable else {}
        return _select({RECORD: _require_identity(record)} | shown | person, relation)

    def _as_declared(
        self, relation: SelectedFrom, types: Mapping[str, ColumnType], format_of: FormatOf
    ) -> SelectedFrom:
        """A table whose cells are read as a policy says that they are written.

        A column of text whose cells are numbers then, and were not before, is one of numbers.
        """
        forms = {
            name: format_of(name)
            for name, kind in relation.columns.items()
            if format_of(name) != PLAIN or self._may_be_whole(kind, types.get(name))
        }
        if not forms:
            return relation
        kinds, shown = (
            dict(relation.columns),
            {quote_name(each): quote_name(each) for each in relation.columns},
        )
        for name, form in forms.items():
            cell = self.dialect_cells.present(quote_name(name), kinds[name], form)
            how = self.dialect_cells.reading(kinds[name])
            if how is not None and how.type is ColumnType.TEXT:
                cell, kinds[name] = self._text_as_declared(relation, name, form, types.get(name))
            elif self._may_be_whole(kinds[name], types.get(name)):
                cell, kinds[name] = self._whole_as_declared(relation, name, cell)
            shown[quote_name(name)] = cell
        position = {} if relation.position is None else {POSITION: relation.position}
        text = f"({_select(position | shown, relation)})"
        return SelectedFrom(text, kinds, POSITION if position else None)

    def _may_be_whole(self, engine_type: str, declared: ColumnType | None) -> bool:
        """Whether whole numbers are declared where an engine has doubles or decimals."""
        how = self.dialect_cells.reading(engine_type)
        numbers = (ColumnType.DOUBLE, ColumnType.DECIMAL)
        return declared is ColumnType.INTEGER and how is not None and how.type in numbers

    def _whole_as_declared(self, relation: SelectedFrom, name: str, cell: str) -> tuple[str, str]:
        """Doubles or decimals as whole numbers, if all are: writers of files choose by NULLs."""
        whole = f"{cell} = trunc({cell}) AND abs({cell}) <= {MOST_EXACT_DOUBLE}"
        counted = self.read(
            f"SELECT count(*) FILTER (WHERE NOT ({whole})) AS n FROM {relation.text} AS t"
        )
        if int(counted["n"].values[0]):
            return cell, relation.columns[name]
        engine_type = self.dialect_cells.engine_types[ColumnType.INTEGER]
        return f"CAST({cell} AS {engine_type})", engine_type

    def _text_as_declared(
        self, relation: SelectedFrom, name: str, form: CellFormat, declared: ColumnType | None
    ) -> tuple[str, str]:
        """A column of text in its format, and the engine's type that it then has."""
        cells = self.dialect_cells
        written = cells.text(quote_name(name), relation.columns[name].partition("(")[0])
        cell = text_present(written, form)
        number = plain_number(cell, form)
        found = number_type(self.read, relation.text, written, number, declared)
        if found is None and declared in NUMBERS:
            column = TextColumn(self.read, relation.text, name, cell)
            raise Misconfigured(column.misfit(declared, form))
        if found is None:
            return cell, cells.engine_types[ColumnType.TEXT]
        type_, scale = found
        engine_type = cells.engine_types[type_].format(digits=INTEGER_DIGITS + scale, scale=scale)
        return f"CAST({trim(number)} AS {engine_type})", engine_type

    def _select_by_policy(self, relation: SelectedFrom, by_policy: ByPolicy) -> str:
        """What queries see of the protected table where each column is read as its policy says."""
        columns = relation.columns
        by_policy.require(columns)
        for what, name in (("key", self.key), ("table.person", self._person)):
            if name is not None and name not in columns:
                raise no_column(what, name, columns)
        cells, format_of = self.dialect_cells, by_policy.format_of
        shown = by_policy.expressions(
            lambda name, wanted: cells.read(
                quote_name(name), columns[name], wanted, format_of(name)
            ),
            lambda name: cells.written_text(quote_name(name), columns[name], format_of(name)),
        )
        record = (
            None if self.key is None else cells.identity(quote_name(self.key), columns[self.key])
        )
        person = None
        if self._person is not None:
            word = columns[self._person]
            whose = cells.present(quote_name(self._person), word, format_of(self._person))
            person = cells.identity(whose, word)
        self._fields[None] = by_policy.types()
        named = {RECORD: _require_identity(record or relation.position)} | shown
        return _select(named if person is None else {**named, PERSON: person}, relation)


def _require_identity(record: str | None) -> str:
    """The expression that tells one record from all others, which must be there."""
    if record is None:
        raise Misconfigured(NEEDS_KEY)
    return record


def _select(shown: Mapping[str, str], relation: SelectedFrom) -> str:
    columns = ", ".join(f"{expression} AS {name}" for name, expression in shown.items())
    return f"SELECT {columns} FROM {relation.text} AS casemate_cells"
