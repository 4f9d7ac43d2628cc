"""DuckDB's types and casemate's seven, both ways.

Left out   Columns of other types (times of day, intervals, bytes, lists, structures) are not shown
           to queries; naming one in a policy is a mistake.
Widened    Whole numbers of up to 64 bits become BIGINT and FLOAT becomes DOUBLE, both exactly;
           larger whole numbers become DECIMAL(38, 0), or NULL past 38 digits.
Zones      A timestamp with a time zone becomes the same instant in UTC, without a zone.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.table.schema import ColumnType
from casemate.table.source import Series

SMALL = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
LARGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
NAIVE = {"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS WITH TIME ZONE"}
TEXT = {"ENUM", "UUID", "JSON", '"NULL"'}


@dataclass(frozen=True)
class Reading:
    """How a column of an engine's type is shown: as which type, through which expression."""

    type: ColumnType
    template: str = "{}"

    def of(self, name: str) -> str:
        """The expression that shows the column of this (quoted) name."""
        return self.template.format(name)


PLAIN = {
    "BOOLEAN": ColumnType.BOOLEAN,
    "BIGINT": ColumnType.INTEGER,
    "DECIMAL": ColumnType.DECIMAL,
    "DOUBLE": ColumnType.DOUBLE,
    "VARCHAR": ColumnType.TEXT,
    "DATE": ColumnType.DATE,
    "TIMESTAMP": ColumnType.TIMESTAMP,
}
READINGS: Mapping[str, Reading] = (
    {word: Reading(type_) for word, type_ in PLAIN.items()}
    | {word: Reading(ColumnType.INTEGER, "CAST({} AS BIGINT)") for word in SMALL}
    | {word: Reading(ColumnType.DECIMAL, "TRY_CAST({} AS DECIMAL(38, 0))") for word in LARGE}
    | {"FLOAT": Reading(ColumnType.DOUBLE, "CAST({} AS DOUBLE)")}
    | {word: Reading(ColumnType.TIMESTAMP, "CAST({} AS TIMESTAMP)") for word in NAIVE}
    | {
        word: Reading(ColumnType.TIMESTAMP, "timezone('UTC', CAST({} AS TIMESTAMP WITH TIME ZONE))")
        for word in ZONED
    }
    | {word: Reading(ColumnType.TEXT, "CAST({} AS VARCHAR)") for word in TEXT}
)


def reading(engine_type: str) -> Reading | None:
    """How to show a column of DuckDB's type of this name; None when it is left out."""
    if engine_type.endswith("]"):  # a list or an array of what comes before
        return None
    return READINGS.get(re.split(r"\(", engine_type, maxsplit=1)[0])


# Results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fetch:
    """One column of a result: what to select so that NumPy gets it whole, and how to read that."""

    expressions: tuple[str, ...]
    read: Callable[..., Series]


def fetch(engine_type: str, name: str) -> Fetch:
    """How to bring a result's column of DuckDB's type over exactly.

    DuckDB hands decimals and 128-bit whole numbers to NumPy as doubles, an ENUM's NULL as a nan,
    and fails on dates that Python cannot hold; so none of these is fetched as it is.
    """
    if engine_type in LARGE:
        small = f"TRY_CAST({name} AS BIGINT)"
        return Fetch((small, f"CAST(CASE WHEN {small} IS NULL THEN {name} END AS VARCHAR)"), _large)
    how = reading(engine_type)
    if how is None:
        raise ValueError(f"a query must not return a column of type {engine_type}")
    shown = how.of(name)
    match how.type:
        case ColumnType.DECIMAL:
            return Fetch((f"CAST({shown} AS VARCHAR)",), _decimals)
        case ColumnType.DATE:
            return Fetch((_within_python(shown, "DATE"),), _dates)
        case ColumnType.TIMESTAMP:
            return Fetch((_within_python(shown, "TIMESTAMP"),), _timestamps)
    return Fetch((shown,), _as_it_is)


def _within_python(shown: str, type_: str) -> str:
    """NULL for what no Python date can hold: years before 1 or after 9999, and infinity."""
    low, high = f"{type_} '0001-01-01'", f"{type_} '9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {shown} BETWEEN {low} AND {high} THEN {shown} END"


def _as_it_is(column: NDArray[Any]) -> Series:
    missing = np.ma.getmaskarray(column)
    return Series(np.ma.getdata(column), missing)


def _decimals(column: NDArray[Any]) -> Series:
    text = _as_it_is(column)
    return Series(_objects(text, Decimal), text.missing)


def _dates(column: NDArray[Any]) -> Series:
    instants = _as_it_is(column)
    return Series(instants.values.astype("datetime64[D]").astype(object), instants.missing)


def _timestamps(column: NDArray[Any]) -> Series:
    instants = _as_it_is(column)
    return Series(instants.values.astype("datetime64[us]").astype(object), instants.missing)


def _large(small: NDArray[Any], rest: NDArray[Any]) -> Series:
    """Whole numbers past 64 bits: int64 when all of them fit, exact decimals when one does not."""
    narrow, wide = _as_it_is(small), _as_it_is(rest)
    missing = narrow.missing & wide.missing
    if bool(wide.missing.all()):
        return Series(narrow.values, missing)
    exact = _objects(wide, Decimal)
    exact[wide.missing] = [Decimal(int(number)) for number in narrow.values[wide.missing]]
    return Series(exact, missing)


def _objects(text: Series, kind: Callable[[str], object]) -> NDArray[Any]:
    values = np.empty(len(text.values), dtype=object)
    present = ~text.missing
    values[present] = [kind(cell) for cell in text.values[present]]
    return values
