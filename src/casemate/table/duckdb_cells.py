"""Cells of any type of DuckDB's read as the policy's type, by expressions that cannot fail.

A cell that does not fit the type is NULL; a number too large for it is the largest there is, with
its sign. What engines and writers of files choose by looking at cells (whether a column is of whole
numbers or of doubles) has no part in what a cell is read as.
"""

from collections.abc import Callable

from casemate.table.cell_patterns import (
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
)
from casemate.table.duckdb_types import LARGE, NAIVE, SMALL, ZONED
from casemate.table.policy_types import PolicyType
from casemate.table.schema import ColumnType

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
