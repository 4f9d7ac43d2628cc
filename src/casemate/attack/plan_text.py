"""Queries as text: conditions, names and constants in the dialect that is asked for."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from casemate.attack.plan_language import Axis, Span
from casemate.query.expression import Scalar
from casemate.query.place import dialect_of
from casemate.query.render import quote
from casemate.table.schema import ColumnType


@dataclass(frozen=True)
class Writer:
    """How queries are written: in which dialect, and from which table."""

    dialect: str
    table: str = "t"

    def condition(self, axis: Axis, span: Span) -> str:
        """One condition in SQL."""
        name = self.name(axis.column.name)
        low, high = (self.constant(axis.values[place], axis.column.type) for place in span)
        if span[0] == span[1]:
            return f"{name} = {low}"
        if span[0] == 0 and span[1] < axis.last:
            return f"{name} <= {high}"
        if span[1] == axis.last and span[0] > 0:
            return f"{name} >= {low}"
        return f"{name} BETWEEN {low} AND {high}"

    def query(self, shown: str, conditions: Iterable[str]) -> str:
        """A statement that shows one number."""
        where = " AND ".join(conditions)
        return f"SELECT {shown} FROM {self.table}{where and f' WHERE {where}'}"

    def name(self, name: str) -> str:
        """A column's name, quoted."""
        if '"' in dialect_of(self.dialect).tokenizer_class.IDENTIFIERS:
            return quote(name)
        return f"`{name.replace('`', '``')}`"

    def constant(self, value: Scalar, kind: ColumnType | None = None) -> str:
        """A constant of a column's type; a date is a text, which every dialect compares with it."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float) or kind is ColumnType.DOUBLE:
            number = repr(float(str(value)))
            return number if "e" in number else f"{number}e0"
        if isinstance(value, str | date):
            return self._text(str(value))
        return str(value) if isinstance(value, int) else f"{value:f}"

    def _text(self, value: str) -> str:
        escapes = dialect_of(self.dialect).tokenizer_class.STRING_ESCAPES
        if "\\" in escapes:
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "''" if "'" in escapes else "\\'") + "'"
