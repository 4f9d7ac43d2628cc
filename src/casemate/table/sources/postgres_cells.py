"""Cells of any type of PostgreSQL's read as the policy's type, by expressions that cannot fail.

The engine has no cast that gives NULL where it fails, so every cast stands in a CASE whose
condition is what it needs. A cell that does not fit the type is NULL; a number too large for it is
the largest there is, with its sign.
"""

from collections.abc import Callable

from casemate.table.schema import ColumnType
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

Rule = Callable[[str, PolicyType], str]
INTEGERS = {"int2", "int4", "int8"}
DOUBLES = {"float4", "float8"}
LARGEST_DOUBLE = "1.7e308"
VANISHING = "2.4703282292062327e-324"
"""Half of the least double: anything smaller is 0."""

SMALLEST_SCALE = 300
"""Digits after the point of a decimal that becomes a double: below, doubles lose theirs."""


def identity(cell: str, word: str) -> str:
    """A key or a person, for equality only: a whole number or text."""
    return cell if word in INTEGERS else f"CAST({cell} AS text)"


def read_cell(cell: str, word: str, wanted: PolicyType) -> str:
    """The expression that reads a cell of an engine's type as the policy's type."""
    for words, rules in NATIVE:
        if word in words and wanted.type in rules:
            return rules[wanted.type](cell, wanted)
    written = f"CAST({cell} AS text)"
    return written if wanted.type is ColumnType.TEXT else WRITTEN[wanted.type](written, wanted)


def _matches(cell: str, pattern: str) -> str:
    return f"{cell} ~ '^(?:{pattern})$'"


# Numbers --------------------------------------------------------------------------------------


def _between(cell: str, least: str, most: str) -> str:
    return f"greatest(least({cell}, {most}), {least})"


def _whole(cell: str, _: PolicyType) -> str:
    """A decimal that is whole; infinity and NaN are not."""
    inside = _between(cell, f"({SMALLEST_INTEGER})", str(LARGEST_INTEGER))
    finite = f"{cell} - {cell} = 0"  # infinity less infinity is NaN, as is NaN less NaN
    whole = f"trunc({cell}) = {cell}"
    return f"CASE WHEN {finite} AND {whole} THEN CAST({inside} AS bigint) END"


def _whole_or_vanishing(cell: str, wanted: PolicyType) -> str:
    """The same, and 0 for what is 0 as a double, as every other engine reads it."""
    return f"CASE WHEN abs({cell}) < {VANISHING} THEN 0 ELSE {_whole(cell, wanted)} END"


def _decimal(cell: str, wanted: PolicyType) -> str:
    most = f"{wanted.largest:f}"
    inside = _between(cell, f"(-{most})", most)
    return f"CASE WHEN {cell} <> 'NaN' THEN round({inside}, {wanted.scale}) END"


def _double(cell: str, _: PolicyType) -> str:
    inside = _between(cell, f"(-{LARGEST_DOUBLE})", LARGEST_DOUBLE)
    rounded = f"round({inside}, {SMALLEST_SCALE})"
    return f"CASE WHEN {cell} <> 'NaN' THEN CAST({rounded} AS double precision) END"


def _numeric(cell: str) -> str:
    """A double as a decimal of the 15 digits it is known to; the largest there is for infinity."""
    double = f"CAST({cell} AS double precision)"
    inside = _between(double, f"(-{LARGEST_DOUBLE})", LARGEST_DOUBLE)
    steps = " ".join(f"WHEN abs({cell}) < {below} THEN {scale}" for below, scale in SIGNIFICANT)
    return f"round(CAST({inside} AS numeric), CASE {steps} ELSE 0 END)"


def _whole_double(cell: str, wanted: PolicyType) -> str:
    finite = f"{cell} NOT IN ('NaN', 'Infinity', '-Infinity')"
    whole = _whole(f"CAST({cell} AS numeric)", wanted)
    return f"CASE WHEN {finite} AND trunc({cell}) = {cell} THEN {whole} END"


def _decimal_of_double(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN {cell} <> 'NaN' THEN {_decimal(_numeric(cell), wanted)} END"


def _number(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} <> 'NaN' THEN CAST({cell} AS double precision) END"


# Text -----------------------------------------------------------------------------------------


def _written_boolean(cell: str, _: PolicyType) -> str:
    return f"CASE lower(btrim({cell})) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"


def _written_number(pattern: str, rule: Rule) -> Rule:
    """Text of a pattern read as a decimal first, which holds every number so short."""

    def read(cell: str, wanted: PolicyType) -> str:
        trimmed = f"btrim({cell})"
        found = rule(f"CAST({trimmed} AS numeric)", wanted)
        fits = f"length({trimmed}) <= {LONGEST} AND {_matches(trimmed, pattern)}"
        return f"CASE WHEN {fits} THEN {found} END"

    return read


def _or_infinite(rule: Rule, least: Callable[[PolicyType], str]) -> Rule:
    """The rule, and the largest number there is for infinity."""

    def read(cell: str, wanted: PolicyType) -> str:
        trimmed, most = f"btrim({cell})", least(wanted)
        ends = f"CASE WHEN {trimmed} LIKE '-%' THEN -{most} ELSE {most} END"
        return f"CASE WHEN {_matches(trimmed, INFINITE)} THEN {ends} ELSE {rule(cell, wanted)} END"

    return read


def _written_decimal(cell: str, wanted: PolicyType) -> str:
    plain = _written_number(PLAIN, _decimal)(cell, wanted)
    double = _written_number(SCIENTIFIC, _double)(cell, wanted)
    return f"coalesce({plain}, {_decimal_of_double(f'({double})', wanted)})"


def _written_day(cell: str, pattern: str, read: Callable[[str], str]) -> str:
    """Text of a day that there is, read; a month has at most 31 days by the pattern."""
    trimmed = f"btrim({cell})"
    year, month, day = (
        f"CAST(substr({trimmed}, {start}, {size}) AS integer)"
        for start, size in ((1, 4), (6, 2), (9, 2))
    )
    first = f"make_date({year}, {month}, 1)"
    length = f"extract(day FROM {first} + interval '1 month' - interval '1 day')"
    return (
        f"CASE WHEN {_matches(trimmed, pattern)} THEN CASE WHEN {year} >= 1 THEN "
        f"CASE WHEN {day} <= {length} THEN {read(trimmed)} END END END"
    )


def _written_date(cell: str, _: PolicyType) -> str:
    return _written_day(
        cell, f"{DAY}({MIDNIGHT})?", lambda text: f"CAST(substr({text}, 1, 10) AS date)"
    )


def _written_moment(cell: str, wanted: PolicyType) -> str:
    local = _written_day(cell, f"{DAY}({TIME})?", lambda text: f"CAST({text} AS timestamp)")
    zoned = _written_day(
        cell,
        DAY + TIME + OFFSET,
        lambda text: _zoned(f"CAST({text} AS timestamptz)", wanted),
    )
    return f"coalesce({local}, {zoned})"


# Dates ----------------------------------------------------------------------------------------


def _date(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} BETWEEN DATE '{FIRST}' AND DATE '{LAST[:10]}' THEN {cell} END"


def _moment(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} BETWEEN TIMESTAMP '{FIRST}' AND TIMESTAMP '{LAST}' THEN {cell} END"


def _zoned(cell: str, wanted: PolicyType) -> str:
    return _moment(f"({cell} AT TIME ZONE 'UTC')", wanted)


def _moment_of_date(cell: str, wanted: PolicyType) -> str:
    return f"CAST({_date(cell, wanted)} AS timestamp)"


def _day_of(moment: Rule) -> Rule:
    """A moment as its day, if it is the day's first."""

    def rule(cell: str, wanted: PolicyType) -> str:
        found = moment(cell, wanted)
        return f"CASE WHEN date_trunc('day', {found}) = {found} THEN CAST({found} AS date) END"

    return rule


NATIVE: tuple[tuple[set[str], dict[ColumnType, Rule]], ...] = (
    ({"bool"}, {ColumnType.BOOLEAN: lambda cell, _: cell}),
    (
        INTEGERS,
        {
            ColumnType.INTEGER: lambda cell, _: f"CAST({cell} AS bigint)",
            ColumnType.DECIMAL: lambda cell, wanted: _decimal(f"CAST({cell} AS numeric)", wanted),
            ColumnType.DOUBLE: lambda cell, _: f"CAST({cell} AS double precision)",
        },
    ),
    (
        {"numeric"},
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
    ({"date"}, {ColumnType.DATE: _date, ColumnType.TIMESTAMP: _moment_of_date}),
    ({"timestamp"}, {ColumnType.DATE: _day_of(_moment), ColumnType.TIMESTAMP: _moment}),
    ({"timestamptz"}, {ColumnType.DATE: _day_of(_zoned), ColumnType.TIMESTAMP: _zoned}),
)
"""How cells of the engine's own types are read; from any other pair of types, as their text."""

WRITTEN: dict[ColumnType, Rule] = {
    ColumnType.BOOLEAN: _written_boolean,
    ColumnType.INTEGER: _written_number(f"{WHOLE}|{SCIENTIFIC}", _whole_or_vanishing),
    ColumnType.DECIMAL: _or_infinite(
        _written_decimal, lambda wanted: f"CAST({wanted.largest:f} AS numeric)"
    ),
    ColumnType.DOUBLE: _or_infinite(
        _written_number(f"{PLAIN}|{SCIENTIFIC}", _double),
        lambda _: "CAST('Infinity' AS double precision)",
    ),
    ColumnType.DATE: _written_date,
    ColumnType.TIMESTAMP: _written_moment,
}
"""How text is read."""
