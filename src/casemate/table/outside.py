"""The table as an outsider sees it: private columns that the source does not have.

Queries must be understood all the same, so such a column is there with one filler value in every
row; whoever opens a table like this brings the published numbers along and never reads the filler.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from casemate.errors import Misconfigured
from casemate.table.schema import Column, ColumnType, Role, Value
from casemate.table.sources.source import Source, SourceView, literal, quoted

SQL_TYPES = {
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.INTEGER: "BIGINT",
    ColumnType.DECIMAL: "DECIMAL(38, 9)",
    ColumnType.DOUBLE: "DOUBLE PRECISION",
    ColumnType.TEXT: "VARCHAR",
}


class OutsideSource(SourceView):
    """A source with filler for the private columns that it does not have."""

    def __init__(self, source: Source, unseen: Sequence[Column]) -> None:
        super().__init__(source)
        self._unseen = tuple(unseen)

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        text = self._source.relation(public)
        if public is not None:
            return text
        shown = ", ".join(f"{_filler(column)} AS {quoted(column.name)}" for column in self._unseen)
        return f"(SELECT casemate_seen.*, {shown} FROM {text} AS casemate_seen)"

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        seen = self._source.fields(public)
        if public is not None:
            return seen
        return {**seen, **{each.name: each.type for each in self._unseen if each.type}}


def unseen(column: Column) -> Column:
    """A private column that the source does not have, with the type that its values imply.

    Bounds imply nothing: between 3 and 10 there are other numbers than whole ones.

    >>> unseen(Column("x", Role.PRIVATE, values=(0, 1))).type
    <ColumnType.INTEGER: 'integer'>
    >>> unseen(Column("x", Role.PRIVATE, low=3, high=10)).type
    <ColumnType.DOUBLE: 'double'>
    """
    type_ = column.type or _type_of(column.values or ())
    if type_ not in SQL_TYPES:
        raise Misconfigured(
            f"the table has no column {column.name}, and one of type {type_} cannot stand in for "
            "it; declare it as a number, a boolean or text"
        )
    return replace(column, role=Role.PRIVATE, type=type_)


def _type_of(values: Sequence[Value]) -> ColumnType:
    kinds = {type(each) for each in values}
    for kind, type_ in (
        (bool, ColumnType.BOOLEAN),
        (int, ColumnType.INTEGER),
        (str, ColumnType.TEXT),
    ):
        if kinds == {kind}:
            return type_
    return ColumnType.DOUBLE


def _filler(column: Column) -> str:
    """A value of the column's type, and of its domain where it has one."""
    defaults: dict[ColumnType, Value] = {ColumnType.BOOLEAN: False, ColumnType.TEXT: ""}
    type_ = column.type or ColumnType.DOUBLE
    value = column.values[0] if column.values else defaults.get(type_, 0)
    return f"CAST({literal(value)} AS {SQL_TYPES[type_]})"
