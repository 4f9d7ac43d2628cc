"""PostgreSQL's types and casemate's seven, both ways.

Left out   Columns of other types (times of day, intervals, bytes, arrays, ranges, addresses) are
           not shown to queries; naming one in a policy is a mistake.
Zones      A timestamp with a time zone becomes the same instant in UTC, without a zone.
Domains    A domain is what it is made of; an ENUM is text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.table.schema import ColumnType
from casemate.table.source import Series
from casemate.table.sql_text import quoted

TYPES = {
    "bool": ColumnType.BOOLEAN,
    "int2": ColumnType.INTEGER,
    "int4": ColumnType.INTEGER,
    "int8": ColumnType.INTEGER,
    "numeric": ColumnType.DECIMAL,
    "float4": ColumnType.DOUBLE,
    "float8": ColumnType.DOUBLE,
    "text": ColumnType.TEXT,
    "varchar": ColumnType.TEXT,
    "bpchar": ColumnType.TEXT,
    "name": ColumnType.TEXT,
    "uuid": ColumnType.TEXT,
    "json": ColumnType.TEXT,
    "jsonb": ColumnType.TEXT,
    "date": ColumnType.DATE,
    "timestamp": ColumnType.TIMESTAMP,
    "timestamptz": ColumnType.TIMESTAMP,
}
"""PostgreSQL's types; an ENUM is text too. Columns of other types are left out."""

CASTS = {
    ColumnType.INTEGER: "CAST({} AS bigint)",
    ColumnType.DOUBLE: "CAST({} AS double precision)",
    ColumnType.TEXT: "CAST({} AS text)",
}


def reading(name: str, word: str) -> str:
    """The expression that shows a column in one of casemate's types."""
    if word == "timestamptz":
        return f"({quoted(name)} AT TIME ZONE 'UTC')"
    return CASTS.get(TYPES[word], "{}").format(quoted(name))


def result_type(oid: int) -> ColumnType:
    """The type of a result's column, from PostgreSQL's number for it."""
    import psycopg

    known = psycopg.adapters.types.get(oid)
    word = known.name if known else "user-defined"
    if word in ("uuid", "json", "jsonb") or word not in TYPES:
        raise ValueError(f"a query must not return a column of type {word}")
    return TYPES[word]


STORAGE: dict[ColumnType, tuple[type, object]] = {
    ColumnType.BOOLEAN: (np.bool_, False),
    ColumnType.INTEGER: (np.int64, 0),
    ColumnType.DOUBLE: (np.float64, 0.0),
}


def series(column: Sequence[Any], type_: ColumnType) -> Series:
    """The cells of a result's column as arrays."""
    missing = np.fromiter((value is None for value in column), np.bool_, len(column))
    storage, filler = STORAGE.get(type_, (object, None))
    values: NDArray[Any] = np.empty(len(column), dtype=storage)
    values[:] = [filler if value is None else value for value in column]
    return Series(values, missing)
