"""The tables of a source as its engine's queries see them: a SELECT that shows each in our types.

The record's identity comes first, then the columns that queries can use, then whose row it is.
"""

from collections.abc import Mapping

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.cells import CellDialect
from casemate.table.sources.source import (
    NEEDS_KEY,
    PERSON,
    RECORD,
    SelectedFrom,
    no_column,
    quote_name,
)
from casemate.table.sources.types import ByPolicy


class EngineTables:
    """The tables of a source as an engine's queries see them, each through a SELECT."""

    dialect_cells: CellDialect

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

    def _select_by_policy(self, relation: SelectedFrom, by_policy: ByPolicy) -> str:
        """What queries see of the protected table where each column is read as its policy says."""
        columns = relation.columns
        by_policy.require(columns)
        for what, name in (("key", self.key), ("table.person", self._person)):
            if name is not None and name not in columns:
                raise no_column(what, name, columns)
        shown = by_policy.expressions(
            lambda name, wanted: self.dialect_cells.read(quote_name(name), columns[name], wanted)
        )
        record, person = (
            None if name is None else self.dialect_cells.identity(quote_name(name), columns[name])
            for name in (self.key, self._person)
        )
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
    return f"SELECT {columns} FROM {relation.text}"
