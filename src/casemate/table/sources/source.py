"""Where records live: the narrow interface between casemate and a database engine.

A source knows one protected table and the public tables its policy names. Everything above it
speaks SQL text of the source's dialect and reads columns back; nothing above it opens data.
Last, keys: a column that names each row once, and what is said of one that does not.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured, shown_name
from casemate.table.schema import ColumnType, Value
from casemate.table.toml import nearest

RECORD = "casemate_record"
"""The name under which every source's protected relation shows the record's identity."""

PERSON = "casemate_person"
"""The same for whose row it is, where the policy says which column tells."""

READ_FAILED = (
    "the data source could not run a query; check that the source is still there and has not "
    "changed since it was opened"
)
"""What every source says when a query fails: the engine's own text may quote a record."""

OUT_OF_RANGE = (
    "a query comes to numbers that are larger than the data source computes with; ask for smaller "
    "ones"
)
"""What every source says of a sum that has no exact value in the engine."""


STORAGE: dict[ColumnType, tuple[type, object]] = {
    ColumnType.BOOLEAN: (np.bool_, False),
    ColumnType.INTEGER: (np.int64, 0),
    ColumnType.DOUBLE: (np.float64, 0.0),
}
"""What arrays hold of each type that is no object, and what stands where a cell is missing."""


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """One column of an answer: values, and which of them are NULL (their value is arbitrary).

    Integers are int64, doubles float64, booleans bool; text, decimals (exact), dates and
    timestamps are Python objects in an object array.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_]

    @classmethod
    def of(cls, cells: Sequence[Any], type_: ColumnType) -> Self:
        """Cells of a type, None where there is none."""
        storage, filler = STORAGE.get(type_, (object, None))
        values: NDArray[Any] = np.empty(len(cells), dtype=storage)
        values[:] = [filler if cell is None else cell for cell in cells]
        return cls(values, np.fromiter((cell is None for cell in cells), np.bool_, len(cells)))

    def __repr__(self) -> str:
        """How long it is; nothing of what is in it."""
        return f"<Series: {len(self.values)} values>"


Frame = Mapping[str, Series]
"""The columns of an answer by name, all of one length."""


@dataclass(frozen=True)
class SelectedFrom:
    """Something to select from: its text, its columns with the engine's types, and the position.

    `cut` gives for columns of a CSV file how many cells were cut to be doubles, and the first.
    """

    text: str
    columns: Mapping[str, str]
    position: str | None = None  # an SQL expression; None when the rows have no order
    cut: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    written: bool = False  # cells as a file writes them, to be read once and then dropped


class Source(Protocol):
    """One protected table and the public tables beside it, behind an SQL engine."""

    @property
    def dialect(self) -> str:
        """What sqlglot calls the engine's SQL: "duckdb" or "postgres"."""
        ...

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM: the protected table, or the named public one.

        It may be a name or a subquery in parentheses and has no alias: give it one.

        The protected relation has a column RECORD, unique and never NULL: the 1-based position
        in file order, or the policy's key; read for private answers, the key as the data have it,
        which nobody has checked. Where the policy has `person`, PERSON is whose row it is.
        """
        ...

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of that relation and their types, in order, without RECORD."""
        ...

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns. The order of rows means nothing."""
        ...

    def close(self) -> None:
        """Let go of files, connections and temporary space."""
        ...


@runtime_checkable
class Storing(Protocol):
    """A source that can keep the rows of a SELECT, so that it is run once."""

    def materialise(self, sql: str) -> str:
        """The text to put after FROM for those rows."""
        ...


# A source seen in another way: what it shows changes, and where it is does not -------------------


class SourceView:
    """A source that reads through another one; whoever derives from it changes the relation."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def dialect(self) -> str:
        """What sqlglot calls the engine's SQL."""
        return self._source.dialect

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self._source.fields(public)

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        return self._source.read(sql)

    def close(self) -> None:
        """Let go of the source."""
        self._source.close()


class LaterSource:
    """A source that is opened when something of it is first needed."""

    def __init__(self, dialect: str, open_source: Callable[[], Source]) -> None:
        self._dialect, self._open, self._lock = dialect, open_source, threading.Lock()
        self._opened: Source | None = None

    @property
    def dialect(self) -> str:
        """What sqlglot calls the engine's SQL."""
        return self._dialect

    @property
    def opened(self) -> Source:
        """The source itself, opened now if it was not."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        return self.opened.relation(public)

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self.opened.fields(public)

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        return self.opened.read(sql)

    def close(self) -> None:
        """Let go of the source, if it was opened."""
        if self._opened is not None:
            self._opened.close()


# Names and values as SQL text that every engine reads alike --------------------------------------


def quote_name(*parts: str) -> str:
    """A name, with the schema before it where there is one.

    >>> print(quote_name("Blood sugar"), quote_name("main", 'a "b" c'))
    "Blood sugar" "main"."a ""b"" c"
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def literal(value: Value | float | None) -> str:
    """A value.

    >>> print(literal("it's"), literal(-3), literal(date(2020, 12, 31)), literal(True))
    'it''s' (-3) DATE '2020-12-31' TRUE
    """
    match value:
        case bool():
            return str(value).upper()
        case int() | Decimal():
            number = str(value) if isinstance(value, int) else f"{value:f}"
            return number if value >= 0 else f"({number})"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else repr(value)


# Keys -------------------------------------------------------------------------------------------


NEEDS_KEY = (
    "a table of a database needs `key`: a column that is unique and never NULL; name it with "
    "--key, or in a policy"
)


def check_key(source: Source, key: str, public: str | None = None) -> None:
    """Refuse a key with equal values, or with NULL; the message says which, never a value."""
    what = "key" if public is None else f"public.{public}.key"
    if public is not None and key not in source.fields(public):
        raise no_column(what, key, source.fields(public))
    column = RECORD if public is None else quote_name(key)
    counts = source.read(
        f"SELECT count(*) AS n, count({column}) AS filled, count(DISTINCT {column}) AS different "
        f"FROM {source.relation(public)} AS t"
    )
    rows, filled, different = (int(series.values[0]) for series in counts.values())
    if different < filled:
        raise Misconfigured(f"`{what}`: the column {key!r} has the same value in several rows")
    if filled < rows:
        raise Misconfigured(f"`{what}`: the column {key!r} is NULL in some rows")


def no_column(what: str, name: str, known: Mapping[str, object]) -> Misconfigured:
    """The error that a name names no column of a table."""
    hint = nearest(str(name), known) or "expected one of the table's columns"
    said = repr(name) if shown_name(name) == name else shown_name(name)
    return Misconfigured(f"`{what}` names the column {said}, which is not there; {hint}")
