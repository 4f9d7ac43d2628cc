"""Cells of any type of DuckDB's read as the policy's type, by expressions that cannot fail.

A cell that does not fit the type is NULL; a number too large for it is the largest there is, with
its sign. What engines and writers of files choose by looking at cells (whether a column is of whole
numbers or of doubles) has no part in what a cell is read as.

DuckDB's types and casemate's seven, both ways.

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
from casemate.table.sources.source import Series
from casemate.table.sources.types import (
    DAY,
    FIRST,
    INFINITE,
    LARGEST_INTEGER,
    LAST,
    LONGEST,
    MIDNIGHT,
    OFFSET,
    PLAIN,
    SCIENTIFIC,
    SIGNIFICANT,
    SMALLEST_INTEGER,
    TIME,
    WHOLE,
    PolicyType,
)

SMALL = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
LARGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
NAIVE = {"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS WITH TIME ZONE"}
TEXT = {"ENUM", "UUID", "JSON", '"NULL"'}


@dataclass(frozen=True)
class CellReading:
    """How a column of an engine's type is shown: as which type, through which expression."""

    type: ColumnType
    template: str = "{}"

    def of(self, name: str) -> str:
        """The expression that shows the column of this (quoted) name."""
        return self.template.format(name)


PLAIN_TYPES = {
    "BOOLEAN": ColumnType.BOOLEAN,
    "BIGINT": ColumnType.INTEGER,
    "DECIMAL": ColumnType.DECIMAL,
    "DOUBLE": ColumnType.DOUBLE,
    "VARCHAR": ColumnType.TEXT,
    "DATE": ColumnType.DATE,
    "TIMESTAMP": ColumnType.TIMESTAMP,
}
READINGS: Mapping[str, CellReading] = (
    {word: CellReading(type_) for word, type_ in PLAIN_TYPES.items()}
    | {word: CellReading(ColumnType.INTEGER, "CAST({} AS BIGINT)") for word in SMALL}
    | {word: CellReading(ColumnType.DECIMAL, "TRY_CAST({} AS DECIMAL(38, 0))") for word in LARGE}
    | {"FLOAT": CellReading(ColumnType.DOUBLE, "CAST({} AS DOUBLE)")}
    | {word: CellReading(ColumnType.TIMESTAMP, "CAST({} AS TIMESTAMP)") for word in NAIVE}
    | {
        word: CellReading(
            ColumnType.TIMESTAMP, "timezone('UTC', CAST({} AS TIMESTAMP WITH TIME ZONE))"
        )
        for word in ZONED
    }
    | {word: CellReading(ColumnType.TEXT, "CAST({} AS VARCHAR)") for word in TEXT}
)


def reading(engine_type: str) -> CellReading | None:
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
    return Fetch((shown,), _series)


def _within_python(shown: str, type_: str) -> str:
    """NULL for what no Python date can hold: years before 1 or after 9999, and infinity."""
    low, high = f"{type_} '0001-01-01'", f"{type_} '9999-12-31 23:59:59.999999'"
    return f"CASE WHEN {shown} BETWEEN {low} AND {high} THEN {shown} END"


def _series(column: NDArray[Any]) -> Series:
    missing = np.ma.getmaskarray(column)
    return Series(np.ma.getdata(column), missing)


def _decimals(column: NDArray[Any]) -> Series:
    text = _series(column)
    return Series(_objects(text, Decimal), text.missing)


def _dates(column: NDArray[Any]) -> Series:
    instants = _series(column)
    return Series(instants.values.astype("datetime64[D]").astype(object), instants.missing)


def _timestamps(column: NDArray[Any]) -> Series:
    instants = _series(column)
    return Series(instants.values.astype("datetime64[us]").astype(object), instants.missing)


def _large(small: NDArray[Any], rest: NDArray[Any]) -> Series:
    """Whole numbers past 64 bits: int64 when all of them fit, exact decimals when one does not."""
    narrow, wide = _series(small), _series(rest)
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


# Duckdb cells -----------------------------------------------------------------------------------


INTEGERS = SMALL | {"BIGINT"}
DOUBLES = {"FLOAT", "DOUBLE"}
MOMENTS = NAIVE | {"TIMESTAMP"}
Rule = Callable[[str, PolicyType], str]


def identity(cell: str, engine_type: str) -> str:
    """A key or a person, for equality only: a whole number or text.

    The text of a number does not depend on the type that its file chose for the column.
    """
    return cell if _word(engine_type) in INTEGERS else _text(cell, _word(engine_type))


def read_cell(cell: str, engine_type: str, wanted: PolicyType) -> str:
    """The expression that reads a cell of an engine's type as the policy's type."""
    word = _word(engine_type)
    if word == "FLOAT":  # with the digits it is known to
        cell, word = f"CAST(CAST({cell} AS VARCHAR) AS DOUBLE)", "DOUBLE"
    for words, rules in NATIVE:
        if word in words and wanted.type in rules:
            return rules[wanted.type](cell, wanted)
    written = _text(cell, word)
    return written if wanted.type is ColumnType.TEXT else WRITTEN[wanted.type](written, wanted)


def _word(engine_type: str) -> str:
    """The type's name; a list of anything has none."""
    return "" if engine_type.endswith("]") else engine_type.partition("(")[0]


def _text(cell: str, word: str) -> str:
    """A cell as text that does not depend on the type which a writer chose for all of them.

    A whole double is written without a point, a moment at midnight as its day, a single-precision
    number with the digits that tell it from others.
    """
    if word in DOUBLES:
        whole = f"{cell} = trunc({cell}) AND abs({cell}) < 1e37"
        return (
            f"CASE WHEN {whole} THEN CAST(TRY_CAST({cell} AS DECIMAL(38, 0)) AS VARCHAR) "
            f"ELSE CAST({cell} AS VARCHAR) END"
        )
    if word == "DECIMAL":
        return f"regexp_replace(CAST({cell} AS VARCHAR), '([.][0-9]*[1-9])0+$|[.]0*$', '\\1')"
    if word in MOMENTS:
        return f"regexp_replace(CAST({cell} AS VARCHAR), ' 00:00:00([.]0*)?$', '')"
    return cell if word == "VARCHAR" else f"CAST({cell} AS VARCHAR)"


def _matches(cell: str, pattern: str) -> str:
    return f"regexp_full_match({cell}, '{pattern}')"


# Numbers --------------------------------------------------------------------------------------


def _or_largest(cast: str, negative: str, positive: str, least: str, most: str) -> str:
    """A number, or the end of the range that it has left."""
    return f"coalesce({cast}, CASE WHEN {negative} THEN {least} WHEN {positive} THEN {most} END)"


def _integer(cell: str, _: PolicyType) -> str:
    return _or_largest(
        f"TRY_CAST({cell} AS BIGINT)",
        f"{cell} < 0",
        f"{cell} > 0",
        f"({SMALLEST_INTEGER})",
        f"{LARGEST_INTEGER}",
    )


def _whole(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN {cell} = trunc({cell}) THEN {_integer(cell, wanted)} END"


def _whole_double(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN isfinite({cell}) THEN {_whole(cell, wanted)} END"


def _decimal_type(wanted: PolicyType) -> str:
    return f"DECIMAL({wanted.digits}, {wanted.scale})"


def _clamped(cast: str, negative: str, positive: str, wanted: PolicyType) -> str:
    most = f"CAST('{wanted.largest:f}' AS {_decimal_type(wanted)})"
    return _or_largest(cast, negative, positive, f"-{most}", most)


def _decimal(cell: str, wanted: PolicyType) -> str:
    cast = f"TRY_CAST({cell} AS {_decimal_type(wanted)})"
    return _clamped(cast, f"{cell} < 0", f"{cell} > 0", wanted)


def _decimal_of_double(cell: str, wanted: PolicyType) -> str:
    """A double to the digits it is known to: beyond them, multiplying by ten is not exact."""
    kind = _decimal_type(wanted)
    steps = " ".join(
        f"WHEN abs({cell}) < {below} THEN TRY_CAST(TRY_CAST({cell} AS DECIMAL(18, {scale})) "
        f"AS {kind})"
        for below, scale in SIGNIFICANT
    )
    known = f"CASE {steps} ELSE TRY_CAST(TRY_CAST({cell} AS DECIMAL(38, 0)) AS {kind}) END"
    found = _clamped(known, f"{cell} < 0", f"{cell} > 0", wanted)
    return f"CASE WHEN NOT isnan({cell}) THEN {found} END"


def _double(cell: str, _: PolicyType) -> str:
    return f"CAST({cell} AS DOUBLE)"


def _number(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN NOT isnan({cell}) THEN CAST({cell} AS DOUBLE) END"


# Text -----------------------------------------------------------------------------------------


def _written_boolean(cell: str, _: PolicyType) -> str:
    return f"CASE lower(trim({cell}, ' ')) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"


def _written_integer(cell: str, wanted: PolicyType) -> str:
    trimmed = f"trim({cell}, ' ')"
    found = _or_largest(
        f"TRY_CAST({trimmed} AS BIGINT)",
        f"{trimmed} LIKE '-%'",
        "TRUE",
        f"({SMALLEST_INTEGER})",
        f"{LARGEST_INTEGER}",
    )
    return (
        f"CASE WHEN length({trimmed}) > {LONGEST} THEN NULL "
        f"WHEN {_matches(trimmed, WHOLE)} THEN {found} WHEN {_matches(trimmed, SCIENTIFIC)} "
        f"THEN {_whole(f'TRY_CAST({trimmed} AS DOUBLE)', wanted)} END"
    )


def _written_decimal(cell: str, wanted: PolicyType) -> str:
    trimmed = f"trim({cell}, ' ')"
    cast = f"TRY_CAST({trimmed} AS {_decimal_type(wanted)})"
    plain = _clamped(cast, f"{trimmed} LIKE '-%'", "TRUE", wanted)
    other = _decimal_of_double(f"TRY_CAST({trimmed} AS DOUBLE)", wanted)
    return (
        f"CASE WHEN length({trimmed}) > {LONGEST} THEN NULL "
        f"WHEN {_matches(trimmed, PLAIN)} THEN {plain} "
        f"WHEN {_matches(trimmed, f'{SCIENTIFIC}|{INFINITE}')} THEN {other} END"
    )


def _written_double(cell: str, _: PolicyType) -> str:
    trimmed = f"trim({cell}, ' ')"
    fits = _matches(trimmed, f"{PLAIN}|{SCIENTIFIC}|{INFINITE}")
    return (
        f"CASE WHEN length({trimmed}) <= {LONGEST} AND {fits} THEN TRY_CAST({trimmed} AS DOUBLE) "
        "END"
    )


def _written_date(cell: str, wanted: PolicyType) -> str:
    trimmed = f"trim({cell}, ' ')"
    day = f"TRY_CAST(left({trimmed}, 10) AS DATE)"
    return f"CASE WHEN {_matches(trimmed, f'{DAY}({MIDNIGHT})?')} THEN {_date(day, wanted)} END"


def _written_moment(cell: str, wanted: PolicyType) -> str:
    trimmed = f"trim({cell}, ' ')"
    local = _moment(f"TRY_CAST({trimmed} AS TIMESTAMP)", wanted)
    joined = f"regexp_replace({trimmed}, ' (Z|[+-][0-9:]*)$', '\\1')"
    return (
        f"CASE WHEN {_matches(trimmed, f'{DAY}({TIME})?')} THEN {local} "
        f"WHEN {_matches(trimmed, DAY + TIME + OFFSET)} THEN {_zoned(joined, wanted)} END"
    )


# Dates ----------------------------------------------------------------------------------------


def _date(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} BETWEEN DATE '{FIRST}' AND DATE '{LAST[:10]}' THEN {cell} END"


def _moment(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} BETWEEN TIMESTAMP '{FIRST}' AND TIMESTAMP '{LAST}' THEN {cell} END"


def _moment_of(cell: str, wanted: PolicyType) -> str:
    return _moment(f"TRY(CAST({cell} AS TIMESTAMP))", wanted)


def _zoned(cell: str, wanted: PolicyType) -> str:
    instant = f"TRY(timezone('UTC', TRY_CAST({cell} AS TIMESTAMP WITH TIME ZONE)))"
    return _moment(instant, wanted)


def _day_of(moment: Rule) -> Rule:
    """A moment as its day, if it is the day's first."""

    def rule(cell: str, wanted: PolicyType) -> str:
        found = moment(cell, wanted)
        return f"CASE WHEN date_trunc('day', {found}) = {found} THEN CAST({found} AS DATE) END"

    return rule


def _as_it_is(cell: str, _: PolicyType) -> str:
    return cell


NATIVE: tuple[tuple[set[str], dict[ColumnType, Rule]], ...] = (
    ({"BOOLEAN"}, {ColumnType.BOOLEAN: _as_it_is}),
    (
        INTEGERS,
        {
            ColumnType.INTEGER: lambda cell, _: f"CAST({cell} AS BIGINT)",
            ColumnType.DECIMAL: _decimal,
            ColumnType.DOUBLE: _double,
        },
    ),
    (
        LARGE,
        {
            ColumnType.INTEGER: _integer,
            ColumnType.DECIMAL: _decimal,
            ColumnType.DOUBLE: _double,
        },
    ),
    (
        {"DECIMAL"},
        {ColumnType.INTEGER: _whole, ColumnType.DECIMAL: _decimal, ColumnType.DOUBLE: _double},
    ),
    (
        DOUBLES,
        {
            ColumnType.INTEGER: _whole_double,
            ColumnType.DECIMAL: _decimal_of_double,
            ColumnType.DOUBLE: _number,
        },
    ),
    ({"DATE"}, {ColumnType.DATE: _date, ColumnType.TIMESTAMP: _moment_of}),
    (MOMENTS, {ColumnType.DATE: _day_of(_moment_of), ColumnType.TIMESTAMP: _moment_of}),
    (ZONED, {ColumnType.DATE: _day_of(_zoned), ColumnType.TIMESTAMP: _zoned}),
)
"""How cells of the engine's own types are read; from any other pair of types, as their text."""

WRITTEN: dict[ColumnType, Rule] = {
    ColumnType.BOOLEAN: _written_boolean,
    ColumnType.INTEGER: _written_integer,
    ColumnType.DECIMAL: _written_decimal,
    ColumnType.DOUBLE: _written_double,
    ColumnType.DATE: _written_date,
    ColumnType.TIMESTAMP: _written_moment,
}
"""How text is read."""
