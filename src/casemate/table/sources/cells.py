"""Cells of any type of an engine's read as the policy's type, by expressions that cannot fail.

A cell that does not fit the type is NULL; a number too large for it is the largest there is, with
its sign. What engines and writers of files choose by looking at cells (whether a column is of whole
numbers or of doubles) has no part in what a cell is read as. PostgreSQL has no cast that gives NULL
where it fails, so every cast there stands in a CASE whose condition is what it needs.

Left out   Columns of other types (times of day, intervals, bytes, lists, structures, ranges) are
           not shown to queries; naming one in a policy is a mistake.
Widened    Whole numbers of up to 64 bits become BIGINT and single precision becomes double, both
           exactly; larger whole numbers of DuckDB's become DECIMAL(38, 0), or NULL past 38 digits.
Zones      A timestamp with a time zone becomes the same instant in UTC, without a zone.
Domains    A domain of PostgreSQL's is what it is made of; an ENUM is text.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from casemate.table.schema import NUMBERS, CellFormat, ColumnType
from casemate.table.sources.formats import (
    matches,
    number_present,
    plain_number,
    text_present,
    trim,
)
from casemate.table.sources.types import (
    DAY,
    DOUBLE_DECIMALS,
    FIRST,
    INFINITE,
    LARGEST_INTEGER,
    LAST,
    LONGEST_NUMBER,
    MIDNIGHT,
    OFFSET,
    PLAIN,
    SCIENTIFIC,
    SMALLEST_INTEGER,
    TIME,
    WHOLE,
    PolicyType,
)

Rule = Callable[[str, PolicyType], str]
"""An expression of a cell, for the policy's type."""

Rules = dict[ColumnType, Rule]


@dataclass(frozen=True)
class CellReading:
    """How a column of an engine's type is shown: as which type, through which expression."""

    type: ColumnType
    template: str = "{}"

    def of(self, name: str) -> str:
        """The expression that shows the column of this (quoted) name."""
        return self.template.format(name)


@dataclass(frozen=True)
class CellDialect:
    """What an engine's types are, and how its cells are read.

    `native` are rules for cells of the engine's own types; from any other pair of types they are
    read as their text, by `written`. `text` does not depend on the type that a writer chose for all
    cells, and `engine_types` are those that a column of text may become. A type in `known` is read
    as another one, with the digits it is known to.
    """

    readings: Mapping[str, CellReading]
    integers: set[str]
    native: Mapping[str, Rules]
    written: Rules
    text: Callable[[str, str], str]
    engine_types: Mapping[ColumnType, str]
    known: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def reading(self, engine_type: str) -> CellReading | None:
        """How to show a column of the engine's type of this name; None when it is left out."""
        return self.readings.get(_word(engine_type))

    def present(self, cell: str, engine_type: str, form: CellFormat) -> str:
        """The cell, NULL where it is a marker; one of text is then the engine's own text."""
        how = self.reading(engine_type)
        if how is None or not form.markers:
            return cell
        if how.type is ColumnType.TEXT:
            return text_present(self.text(cell, _word(engine_type)), form)
        return number_present(cell, form) if how.type in NUMBERS else cell

    def written_text(self, cell: str, engine_type: str, form: CellFormat) -> str:
        """The text of a cell, NULL where it is a marker."""
        return self.text(self.present(cell, engine_type, form), _word(engine_type))

    def identity(self, cell: str, engine_type: str) -> str:
        """A key or a person, for equality only: a whole number or text.

        The text of a number does not depend on the type that its file chose for the column.
        """
        word = _word(engine_type)
        return cell if word in self.integers else self.text(cell, word)

    def read(
        self,
        cell: str,
        engine_type: str,
        wanted: PolicyType,
        form: CellFormat,
    ) -> str:
        """The expression that reads a cell of an engine's type as the policy's type."""
        cell = self.present(cell, engine_type, form)
        template, word = self.known.get(_word(engine_type), ("{}", _word(engine_type)))
        cell = template.format(cell)
        rule = self.native.get(word, {}).get(wanted.type)
        if rule is not None:
            return rule(cell, wanted)
        text = self.text(cell, word)
        if wanted.type is ColumnType.TEXT:
            return text
        text = plain_number(text, form) if wanted.type in NUMBERS else text
        return self.written[wanted.type](text, wanted)


def _word(engine_type: str) -> str:
    """The type's name; a list of anything has none."""
    return "" if engine_type.endswith("]") else engine_type.partition("(")[0]


def _numbers(integer: Rule, decimal: Rule, double: Rule) -> Rules:
    return {
        ColumnType.INTEGER: integer,
        ColumnType.DECIMAL: decimal,
        ColumnType.DOUBLE: double,
    }


def _times(day: Rule, moment: Rule) -> Rules:
    return {ColumnType.DATE: day, ColumnType.TIMESTAMP: moment}


def _cast(kind: str) -> Rule:
    return lambda cell, _: f"CAST({cell} AS {kind})"


def _by_type(*rules: tuple[set[str], Rules]) -> dict[str, Rules]:
    return {word: found for words, found in rules for word in words}


# What both engines write alike ------------------------------------------------------------------


def _as_it_is(cell: str, _: PolicyType) -> str:
    return cell


def _written_boolean(cell: str, _: PolicyType) -> str:
    return f"CASE lower({trim(cell)}) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"


def read_date(cell: str, _: PolicyType | None = None) -> str:
    """A date that Python's calendar holds: not before the year 1 nor after 9999, nor infinity."""
    return f"CASE WHEN {cell} BETWEEN DATE '{FIRST}' AND DATE '{LAST[:10]}' THEN {cell} END"


def read_moment(cell: str, _: PolicyType | None = None) -> str:
    """The same for a moment."""
    return f"CASE WHEN {cell} BETWEEN TIMESTAMP '{FIRST}' AND TIMESTAMP '{LAST}' THEN {cell} END"


def _day_of(moment: Rule) -> Rule:
    """A moment as its day, if it is the day's first."""

    def rule(cell: str, wanted: PolicyType) -> str:
        found = moment(cell, wanted)
        return f"CASE WHEN date_trunc('day', {found}) = {found} THEN CAST({found} AS DATE) END"

    return rule


# DuckDB -----------------------------------------------------------------------------------------

SMALL = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
LARGE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
NAIVE = {"TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS WITH TIME ZONE"}
TEXTUAL = {"ENUM", "UUID", "JSON", '"NULL"'}


DUCKDB_READINGS = {
    "BOOLEAN": CellReading(ColumnType.BOOLEAN),
    "BIGINT": CellReading(ColumnType.INTEGER),
    **dict.fromkeys(SMALL, CellReading(ColumnType.INTEGER, "CAST({} AS BIGINT)")),
    "DECIMAL": CellReading(ColumnType.DECIMAL),
    **dict.fromkeys(LARGE, CellReading(ColumnType.DECIMAL, "TRY_CAST({} AS DECIMAL(38, 0))")),
    "DOUBLE": CellReading(ColumnType.DOUBLE),
    "FLOAT": CellReading(ColumnType.DOUBLE, "CAST({} AS DOUBLE)"),
    "VARCHAR": CellReading(ColumnType.TEXT),
    **dict.fromkeys(TEXTUAL, CellReading(ColumnType.TEXT, "CAST({} AS VARCHAR)")),
    "DATE": CellReading(ColumnType.DATE),
    "TIMESTAMP": CellReading(ColumnType.TIMESTAMP),
    **dict.fromkeys(NAIVE, CellReading(ColumnType.TIMESTAMP, "CAST({} AS TIMESTAMP)")),
    **dict.fromkeys(
        ZONED,
        CellReading(ColumnType.TIMESTAMP, "timezone('UTC', CAST({} AS TIMESTAMP WITH TIME ZONE))"),
    ),
}
DUCKDB_INTEGERS = SMALL | {"BIGINT"}
DUCKDB_DOUBLES = {"FLOAT", "DOUBLE"}
MOMENTS = NAIVE | {"TIMESTAMP"}


def _duckdb_text(cell: str, word: str) -> str:
    """A cell as text that does not depend on the type which a writer chose for all of them.

    A whole double is written without a point, a moment at midnight as its day, a single-precision
    number with the digits that tell it from others.
    """
    if word in DUCKDB_DOUBLES:
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


def _or_largest(cast: str, negative: str, positive: str, least: str, most: str) -> str:
    """A number, or the end of the range that it has left."""
    return f"coalesce({cast}, CASE WHEN {negative} THEN {least} WHEN {positive} THEN {most} END)"


def _whole_or_largest(cell: str, negative: str, positive: str) -> str:
    ends = f"({SMALLEST_INTEGER})", f"{LARGEST_INTEGER}"
    return _or_largest(f"TRY_CAST({cell} AS BIGINT)", negative, positive, *ends)


def _integer(cell: str, _: PolicyType) -> str:
    return _whole_or_largest(cell, f"{cell} < 0", f"{cell} > 0")


def _duckdb_whole(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN {cell} = trunc({cell}) THEN {_integer(cell, wanted)} END"


def _duckdb_whole_double(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN isfinite({cell}) THEN {_duckdb_whole(cell, wanted)} END"


def _decimal_type(wanted: PolicyType) -> str:
    return f"DECIMAL({wanted.digits}, {wanted.scale})"


def _or_largest_decimal(cast: str, negative: str, positive: str, wanted: PolicyType) -> str:
    most = f"CAST('{wanted.largest:f}' AS {_decimal_type(wanted)})"
    return _or_largest(cast, negative, positive, f"-{most}", most)


def _duckdb_decimal(cell: str, wanted: PolicyType) -> str:
    cast = f"TRY_CAST({cell} AS {_decimal_type(wanted)})"
    return _or_largest_decimal(cast, f"{cell} < 0", f"{cell} > 0", wanted)


def _duckdb_decimal_of_double(cell: str, wanted: PolicyType) -> str:
    """A double to the digits it is known to: beyond them, multiplying by ten is not exact."""
    kind = _decimal_type(wanted)
    steps = " ".join(
        f"WHEN abs({cell}) < {below} THEN TRY_CAST(TRY_CAST({cell} AS DECIMAL(18, {scale})) "
        f"AS {kind})"
        for below, scale in DOUBLE_DECIMALS
    )
    known = f"CASE {steps} ELSE TRY_CAST(TRY_CAST({cell} AS DECIMAL(38, 0)) AS {kind}) END"
    found = _or_largest_decimal(known, f"{cell} < 0", f"{cell} > 0", wanted)
    return f"CASE WHEN NOT isnan({cell}) THEN {found} END"


def _duckdb_number(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN NOT isnan({cell}) THEN CAST({cell} AS DOUBLE) END"


def _written_integer(cell: str, wanted: PolicyType) -> str:
    trimmed = trim(cell)
    found = _whole_or_largest(trimmed, f"{trimmed} LIKE '-%'", "TRUE")
    return (
        f"CASE WHEN length({trimmed}) > {LONGEST_NUMBER} THEN NULL "
        f"WHEN {matches(trimmed, WHOLE)} THEN {found} WHEN {matches(trimmed, SCIENTIFIC)} "
        f"THEN {_duckdb_whole(f'TRY_CAST({trimmed} AS DOUBLE)', wanted)} END"
    )


def _duckdb_written_decimal(cell: str, wanted: PolicyType) -> str:
    trimmed = trim(cell)
    cast = f"TRY_CAST({trimmed} AS {_decimal_type(wanted)})"
    plain = _or_largest_decimal(cast, f"{trimmed} LIKE '-%'", "TRUE", wanted)
    other = _duckdb_decimal_of_double(f"TRY_CAST({trimmed} AS DOUBLE)", wanted)
    return (
        f"CASE WHEN length({trimmed}) > {LONGEST_NUMBER} THEN NULL "
        f"WHEN {matches(trimmed, PLAIN)} THEN {plain} "
        f"WHEN {matches(trimmed, f'{SCIENTIFIC}|{INFINITE}')} THEN {other} END"
    )


def _written_double(cell: str, _: PolicyType) -> str:
    trimmed = trim(cell)
    fits = matches(trimmed, f"{PLAIN}|{SCIENTIFIC}|{INFINITE}")
    return (
        f"CASE WHEN length({trimmed}) <= {LONGEST_NUMBER} AND {fits} "
        f"THEN TRY_CAST({trimmed} AS DOUBLE) END"
    )


def _duckdb_written_date(cell: str, wanted: PolicyType) -> str:
    trimmed = trim(cell)
    day = f"TRY_CAST(left({trimmed}, 10) AS DATE)"
    return f"CASE WHEN {matches(trimmed, f'{DAY}({MIDNIGHT})?')} THEN {read_date(day, wanted)} END"


def _duckdb_written_moment(cell: str, wanted: PolicyType) -> str:
    trimmed = trim(cell)
    local = read_moment(f"TRY_CAST({trimmed} AS TIMESTAMP)", wanted)
    joined = f"regexp_replace({trimmed}, ' (Z|[+-][0-9:]*)$', '\\1')"
    return (
        f"CASE WHEN {matches(trimmed, f'{DAY}({TIME})?')} THEN {local} "
        f"WHEN {matches(trimmed, DAY + TIME + OFFSET)} THEN {_duckdb_zoned(joined, wanted)} END"
    )


def _moment_of(cell: str, wanted: PolicyType) -> str:
    return read_moment(f"TRY(CAST({cell} AS TIMESTAMP))", wanted)


def _duckdb_zoned(cell: str, wanted: PolicyType) -> str:
    instant = f"TRY(timezone('UTC', TRY_CAST({cell} AS TIMESTAMP WITH TIME ZONE)))"
    return read_moment(instant, wanted)


DUCKDB_NATIVE = _by_type(
    ({"BOOLEAN"}, {ColumnType.BOOLEAN: _as_it_is}),
    (DUCKDB_INTEGERS, _numbers(_cast("BIGINT"), _duckdb_decimal, _cast("DOUBLE"))),
    (LARGE, _numbers(_integer, _duckdb_decimal, _cast("DOUBLE"))),
    ({"DECIMAL"}, _numbers(_duckdb_whole, _duckdb_decimal, _cast("DOUBLE"))),
    (DUCKDB_DOUBLES, _numbers(_duckdb_whole_double, _duckdb_decimal_of_double, _duckdb_number)),
    ({"DATE"}, _times(read_date, _moment_of)),
    (MOMENTS, _times(_day_of(_moment_of), _moment_of)),
    (ZONED, _times(_day_of(_duckdb_zoned), _duckdb_zoned)),
)
DUCKDB_WRITTEN: Rules = {
    ColumnType.BOOLEAN: _written_boolean,
    ColumnType.INTEGER: _written_integer,
    ColumnType.DECIMAL: _duckdb_written_decimal,
    ColumnType.DOUBLE: _written_double,
    ColumnType.DATE: _duckdb_written_date,
    ColumnType.TIMESTAMP: _duckdb_written_moment,
}

DUCKDB_CELLS = CellDialect(
    DUCKDB_READINGS,
    DUCKDB_INTEGERS,
    DUCKDB_NATIVE,
    DUCKDB_WRITTEN,
    _duckdb_text,
    {
        ColumnType.INTEGER: "BIGINT",
        ColumnType.DECIMAL: "DECIMAL({digits}, {scale})",
        ColumnType.DOUBLE: "DOUBLE",
        ColumnType.TEXT: "VARCHAR",
    },
    {"FLOAT": ("CAST(CAST({} AS VARCHAR) AS DOUBLE)", "DOUBLE")},
)


# PostgreSQL -------------------------------------------------------------------------------------

POSTGRES_READINGS = {
    "bool": CellReading(ColumnType.BOOLEAN),
    **dict.fromkeys(
        ("int2", "int4", "int8"), CellReading(ColumnType.INTEGER, "CAST({} AS bigint)")
    ),
    "numeric": CellReading(ColumnType.DECIMAL),
    **dict.fromkeys(
        ("float4", "float8"), CellReading(ColumnType.DOUBLE, "CAST({} AS double precision)")
    ),
    **dict.fromkeys(
        ("text", "varchar", "bpchar", "name", "uuid", "json", "jsonb"),
        CellReading(ColumnType.TEXT, "CAST({} AS text)"),
    ),
    "date": CellReading(ColumnType.DATE),
    "timestamp": CellReading(ColumnType.TIMESTAMP),
    "timestamptz": CellReading(ColumnType.TIMESTAMP, "({} AT TIME ZONE 'UTC')"),
}
POSTGRES_INTEGERS = {"int2", "int4", "int8"}
POSTGRES_DOUBLES = {"float4", "float8"}
LARGEST_DOUBLE = "1.7e308"
VANISHING = "2.4703282292062327e-324"
"""Half of the least double: anything smaller is 0."""

SMALLEST_SCALE = 300
"""Digits after the point of a decimal that becomes a double: below, doubles lose theirs."""


def _between(cell: str, least: str, most: str) -> str:
    return f"greatest(least({cell}, {most}), {least})"


def _postgres_whole(cell: str, _: PolicyType) -> str:
    """A decimal that is whole; infinity and NaN are not."""
    inside = _between(cell, f"({SMALLEST_INTEGER})", str(LARGEST_INTEGER))
    finite = f"{cell} - {cell} = 0"  # infinity less infinity is NaN, as is NaN less NaN
    whole = f"trunc({cell}) = {cell}"
    return f"CASE WHEN {finite} AND {whole} THEN CAST({inside} AS bigint) END"


def _whole_or_vanishing(cell: str, wanted: PolicyType) -> str:
    """The same, and 0 for what is 0 as a double, as every other engine reads it."""
    return f"CASE WHEN abs({cell}) < {VANISHING} THEN 0 ELSE {_postgres_whole(cell, wanted)} END"


def _postgres_decimal(cell: str, wanted: PolicyType) -> str:
    most = f"{wanted.largest:f}"
    inside = _between(cell, f"(-{most})", most)
    return f"CASE WHEN {cell} <> 'NaN' THEN round({inside}, {wanted.scale}) END"


def _decimal_of_integer(cell: str, wanted: PolicyType) -> str:
    return _postgres_decimal(f"CAST({cell} AS numeric)", wanted)


def _postgres_double(cell: str, _: PolicyType) -> str:
    inside = _between(cell, f"(-{LARGEST_DOUBLE})", LARGEST_DOUBLE)
    rounded = f"round({inside}, {SMALLEST_SCALE})"
    return f"CASE WHEN {cell} <> 'NaN' THEN CAST({rounded} AS double precision) END"


def _numeric(cell: str) -> str:
    """A double as a decimal of the 15 digits it is known to; the largest there is for infinity."""
    double = f"CAST({cell} AS double precision)"
    inside = _between(double, f"(-{LARGEST_DOUBLE})", LARGEST_DOUBLE)
    steps = " ".join(f"WHEN abs({cell}) < {below} THEN {scale}" for below, scale in DOUBLE_DECIMALS)
    return f"round(CAST({inside} AS numeric), CASE {steps} ELSE 0 END)"


def _postgres_whole_double(cell: str, wanted: PolicyType) -> str:
    finite = f"{cell} NOT IN ('NaN', 'Infinity', '-Infinity')"
    whole = _postgres_whole(f"CAST({cell} AS numeric)", wanted)
    return f"CASE WHEN {finite} AND trunc({cell}) = {cell} THEN {whole} END"


def _postgres_decimal_of_double(cell: str, wanted: PolicyType) -> str:
    return f"CASE WHEN {cell} <> 'NaN' THEN {_postgres_decimal(_numeric(cell), wanted)} END"


def _postgres_number(cell: str, _: PolicyType) -> str:
    return f"CASE WHEN {cell} <> 'NaN' THEN CAST({cell} AS double precision) END"


def _written_number(pattern: str, rule: Rule) -> Rule:
    """Text of a pattern read as a decimal first, which holds every number so short."""

    def read(cell: str, wanted: PolicyType) -> str:
        trimmed = trim(cell)
        found = rule(f"CAST({trimmed} AS numeric)", wanted)
        fits = f"length({trimmed}) <= {LONGEST_NUMBER} AND {matches(trimmed, pattern)}"
        return f"CASE WHEN {fits} THEN {found} END"

    return read


def _or_infinite(rule: Rule, least: Callable[[PolicyType], str]) -> Rule:
    """The rule, and the largest number there is for infinity."""

    def read(cell: str, wanted: PolicyType) -> str:
        trimmed, most = trim(cell), least(wanted)
        ends = f"CASE WHEN {trimmed} LIKE '-%' THEN -{most} ELSE {most} END"
        return f"CASE WHEN {matches(trimmed, INFINITE)} THEN {ends} ELSE {rule(cell, wanted)} END"

    return read


def _postgres_written_decimal(cell: str, wanted: PolicyType) -> str:
    plain = _written_number(PLAIN, _postgres_decimal)(cell, wanted)
    double = _written_number(SCIENTIFIC, _postgres_double)(cell, wanted)
    return f"coalesce({plain}, {_postgres_decimal_of_double(f'({double})', wanted)})"


def _written_day(cell: str, pattern: str, read: Callable[[str], str]) -> str:
    """Text of a day that there is, read; a month has at most 31 days by the pattern."""
    trimmed = trim(cell)
    year, month, day = (
        f"CAST(substr({trimmed}, {start}, {size}) AS integer)"
        for start, size in ((1, 4), (6, 2), (9, 2))
    )
    first = f"make_date({year}, {month}, 1)"
    length = f"extract(day FROM {first} + interval '1 month' - interval '1 day')"
    return (
        f"CASE WHEN {matches(trimmed, pattern)} THEN CASE WHEN {year} >= 1 THEN "
        f"CASE WHEN {day} <= {length} THEN {read(trimmed)} END END END"
    )


def _postgres_written_date(cell: str, _: PolicyType) -> str:
    return _written_day(
        cell, f"{DAY}({MIDNIGHT})?", lambda text: f"CAST(substr({text}, 1, 10) AS date)"
    )


def _postgres_written_moment(cell: str, wanted: PolicyType) -> str:
    local = _written_day(cell, f"{DAY}({TIME})?", lambda text: f"CAST({text} AS timestamp)")
    zoned = _written_day(
        cell,
        DAY + TIME + OFFSET,
        lambda text: _postgres_zoned(f"CAST({text} AS timestamptz)", wanted),
    )
    return f"coalesce({local}, {zoned})"


def _postgres_zoned(cell: str, wanted: PolicyType) -> str:
    return read_moment(f"({cell} AT TIME ZONE 'UTC')", wanted)


def _moment_of_date(cell: str, wanted: PolicyType) -> str:
    return f"CAST({read_date(cell, wanted)} AS timestamp)"


POSTGRES_NATIVE = _by_type(
    ({"bool"}, {ColumnType.BOOLEAN: _as_it_is}),
    (POSTGRES_INTEGERS, _numbers(_cast("bigint"), _decimal_of_integer, _cast("double precision"))),
    ({"numeric"}, _numbers(_postgres_whole, _postgres_decimal, _postgres_double)),
    (
        POSTGRES_DOUBLES,
        _numbers(_postgres_whole_double, _postgres_decimal_of_double, _postgres_number),
    ),
    ({"date"}, _times(read_date, _moment_of_date)),
    ({"timestamp"}, _times(_day_of(read_moment), read_moment)),
    ({"timestamptz"}, _times(_day_of(_postgres_zoned), _postgres_zoned)),
)
POSTGRES_WRITTEN: Rules = {
    ColumnType.BOOLEAN: _written_boolean,
    ColumnType.INTEGER: _written_number(f"{WHOLE}|{SCIENTIFIC}", _whole_or_vanishing),
    ColumnType.DECIMAL: _or_infinite(
        _postgres_written_decimal, lambda wanted: f"CAST({wanted.largest:f} AS numeric)"
    ),
    ColumnType.DOUBLE: _or_infinite(
        _written_number(f"{PLAIN}|{SCIENTIFIC}", _postgres_double),
        lambda _: "CAST('Infinity' AS double precision)",
    ),
    ColumnType.DATE: _postgres_written_date,
    ColumnType.TIMESTAMP: _postgres_written_moment,
}

POSTGRES_CELLS = CellDialect(
    POSTGRES_READINGS,
    POSTGRES_INTEGERS,
    POSTGRES_NATIVE,
    POSTGRES_WRITTEN,
    lambda cell, _: f"CAST({cell} AS text)",
    {
        ColumnType.INTEGER: "int8",
        ColumnType.DECIMAL: "numeric",
        ColumnType.DOUBLE: "float8",
        ColumnType.TEXT: "text",
    },
)
