"""One column of a policy: the section [columns.NAME], read and checked."""

from collections.abc import Sequence
from typing import Any

from casemate.table.domain import is_value, misfit, of_one_kind
from casemate.table.schema import Column, ColumnType, PerPerson, Provenance, Role, Value
from casemate.table.source import RECORD
from casemate.table.toml import Section

COLUMN = (
    *("role", "type", "min", "max", "values", "unbounded"),
    *("bins", "from", "nullable", "per_person"),
)
Wrong = tuple[str, str]
"""A key of the section, and what is wrong with it."""


def read_column(columns: Section, name: str, section: Section) -> Column:
    """The column that the section `columns.NAME` describes."""
    if name in ("", RECORD):
        raise columns.mistake(name, "is not a name a column can have; rename the column")
    section.allow(*COLUMN)
    low, high = _bounds(section)
    column = Column(
        name=name,
        role=section.choice("role", Role) or Role.PUBLIC,
        type=section.choice("type", ColumnType),
        low=low,
        high=high,
        values=_values(section),
        unbounded=section.flag("unbounded") or False,
        bins=section.whole("bins", least=1),
        provenance=section.choice("from", Provenance) or Provenance.PUBLIC,
        nullable=section.flag("nullable") or False,
        per_person=section.choice("per_person", PerPerson) or PerPerson.VARYING,
    )
    _check(section, column)
    return column


def _bounds(section: Section) -> tuple[Value | None, Value | None]:
    low, high = (_bound(section, key) for key in ("min", "max"))
    if low is None and high is None:
        return None, None
    if low is None or high is None:
        missing, given = ("min", "max") if low is None else ("max", "min")
        raise section.mistake(missing, f"is missing; `{given}` needs it")
    if not of_one_kind((low, high)):
        raise section.mistake("max", "must be of the same kind as `min`")
    if low > high:  # type: ignore[operator]  # two of one kind, and every kind here is ordered
        raise section.mistake("min", "must not be above `max`")
    return low, high


def _bound(section: Section, key: str) -> Value | None:
    value: Any = section.entries.get(key)
    if value is None or (is_value(value) and not isinstance(value, bool | str)):
        return value
    raise section.mistake(key, "must be a number, a date, or a date-time without a time zone")


def _values(section: Section) -> tuple[Value, ...] | None:
    items: Sequence[Any] | None = section.items("values")
    if items is None:
        return None
    if not items:
        raise section.mistake("values", "is empty; expected every value the column may hold")
    values = tuple(item for item in items if is_value(item))
    if len(values) < len(items) or not of_one_kind(values):
        raise section.mistake("values", "must hold strings, numbers, dates, or true and false")
    if len(set(values)) < len(values):
        raise section.mistake("values", "lists a value twice; expected each one once")
    return values


def _check(section: Section, column: Column) -> None:
    """What no single key can tell: the keys of a column must agree with each other."""
    wrong = _wrong_domain(column) or _wrong_bins(column) or _wrong_type(column)
    if wrong is not None:
        raise section.mistake(*wrong)


def _wrong_domain(column: Column) -> Wrong | None:
    """Bounds, values and unbounded: at most one of the three, and exactly one where private."""
    bounded, enumerated = column.low is not None, column.values is not None
    stated = bounded + enumerated + column.unbounded
    if bounded and enumerated:
        return "values", "must not stand beside `min` and `max`; keep one of them"
    if stated > 1:
        return "unbounded", "must not stand beside bounds or `values`"
    if column.role is Role.PRIVATE and not stated:
        return (
            "role",
            'is "private"; expected bounds (`min` and `max`), `values` or `unbounded` beside it',
        )
    return None


def _wrong_bins(column: Column) -> Wrong | None:
    """Bins part what lies between two bounds."""
    if column.bins is None:
        return None
    if column.low is None:
        return "bins", "needs `min` and `max`"
    if column.bins > 1 and column.low == column.high:
        return "bins", "must be 1 where `min` equals `max`"
    return None


def _wrong_type(column: Column) -> Wrong | None:
    """Bounds and values are of the column's type, where it states one."""
    return None if column.type is None else misfit(column, column.type)
