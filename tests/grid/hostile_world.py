"""A table with every declared value, NULL, and what no policy foresaw; and statements to break it.

Engines and the interpreter disagree about overflow, cut decimals, case of letters and text of
numbers; the constants here are those about which they do.
"""

import math
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import strategies as st

from casemate.grid.direct import MeasuredPart
from casemate.query import Aggregate, Function, Select
from casemate.query.language import ColumnRef, columns_of, evaluate
from casemate.table import Column, ColumnType, Policy, Role, Universe, column_value
from casemate.table.sources import Source
from casemate.table.sources.duckdb import DuckDBSource
from casemate.table.sources.place import DuckDBTable, PostgresTable
from casemate.table.sources.postgres import PostgresSource

WORDS = ("straße", "İ", "ı", "ΣΑΣ", "ǆ", "a", "A", "12", " 3.5 ", "", "%")
LARGE = 2**63 - 1
POLICY = Policy(
    "",
    (
        Column("id", Role.IDENTIFIER, ColumnType.INTEGER),
        Column("grade", Role.PRIVATE, ColumnType.INTEGER, low=1, high=10),
        Column("age", type=ColumnType.INTEGER, low=0, high=99, bins=10),
        Column("far", Role.PRIVATE, ColumnType.INTEGER, low=-LARGE, high=LARGE, bins=4),
        Column("rate", Role.PRIVATE, ColumnType.DECIMAL, low=-5, high=1000, bins=4),
        Column("share", Role.PRIVATE, ColumnType.DOUBLE, low=0, high=1, bins=4),
        Column("word", Role.PRIVATE, ColumnType.TEXT, values=WORDS),
        Column("level", type=ColumnType.DECIMAL, values=(Decimal("0.1"), Decimal("2.50"), 3)),
        Column("born", type=ColumnType.DATE, low=date(1, 1, 1), high=date(9999, 12, 31), bins=3),
        Column(
            "seen",
            type=ColumnType.TIMESTAMP,
            low=datetime(2020, 1, 1),
            high=datetime(2020, 1, 2),
            bins=4,
        ),
        Column("flag", type=ColumnType.BOOLEAN),
    ),
    key="id",
)
UNIVERSE = Universe.of(POLICY)
TYPES = {
    "id": "BIGINT",
    "grade": "BIGINT",
    "age": "INTEGER",
    "far": "BIGINT",
    "rate": "DECIMAL(30,12)",
    "share": "DOUBLE PRECISION",
    "word": "TEXT",
    "level": "DECIMAL(6,3)",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "flag": "BOOLEAN",
}
POSTGRES_TYPES = {**TYPES, "rate": "NUMERIC"}
DECIMALS = ["-5.000000000001", "-5", "0", "0.000000000001", "0.333333333333", "0.333333333334"]
DECIMALS += ["0.1", "2.5", "499.75", "999.999999999999", "1000", "123456789012345678"]
BEYOND_DOUBLES = [math.inf, -math.inf, math.nan, None]
MOMENTS = [datetime(2020, 1, 1), datetime(2020, 1, 1, 12, 0, 0, 1), datetime(2020, 1, 2)]
VALUES: dict[str, list[Any]] = {
    "grade": [*range(1, 11), 0, 11, LARGE, -LARGE - 1, None],
    "age": [0, 7, 17, 18, 19, 20, 49, 50, 99, 100, -(2**31), None],
    "far": [0, 1, -1, 2**53, 2**53 + 1, -(2**62), LARGE, LARGE - 1, -LARGE, -LARGE - 1, None],
    "rate": [*map(Decimal, DECIMALS), None],
    "share": [0.0, -0.0, 5e-324, 1e-300, 0.1, 0.25, 0.3, 0.5, 1.0, 1e308, -1e308, *BEYOND_DOUBLES],
    "word": [*WORDS, "undeclared", "STRASSE", None],
    "level": [Decimal("0.1"), Decimal("2.5"), Decimal(3), Decimal("0.125"), None],
    "born": [date(1, 1, 1), date(1969, 12, 31), date(2020, 2, 29), date(9999, 12, 31), None],
    "seen": [*MOMENTS, datetime(1, 1, 1), datetime(9999, 12, 31), None],
    "flag": [True, False, None],
}
ROWS = 120


def records() -> list[dict[str, Any]]:
    """Every value of every column, in ever other company."""
    found = [
        {"id": i}
        | {
            name: each[(i + (i // len(each)) * k) % len(each)]
            for k, (name, each) in enumerate(VALUES.items())
        }
        for i in range(ROWS)
    ]
    for record, (name, _), value in zip(found, BEYOND, AS_GOOD_AS, strict=False):
        record[name] = value
    return found


def in_duckdb(folder: Path) -> Source:
    path = folder / "hostile.db"
    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        connection.execute(f"CREATE TABLE people ({columns})")
        for record in records():
            marks = ", ".join("?" * len(TYPES))
            connection.execute(
                f"INSERT INTO people VALUES ({marks})", [record[name] for name in TYPES]
            )
    return DuckDBSource(DuckDBTable("hostile", path, ("people",)), key="id")


BEYOND = [("rate", "'NaN'"), ("rate", "1e-400"), ("rate", "1e400"), ("rate", "'-Infinity'")]
BEYOND += [("born", "'infinity'"), ("seen", "'-infinity'"), ("born", "'4000-01-01 BC'")]
"""What PostgreSQL's types hold beyond those of Python: as good as one of the values above."""
AS_GOOD_AS = [None, Decimal(0), Decimal(1000), Decimal(-5), date.max, datetime(1, 1, 1), date.min]


def in_postgres(url: str) -> Source:
    import psycopg

    with psycopg.connect(url) as connection:
        columns = ", ".join(f"{name} {kind}" for name, kind in POSTGRES_TYPES.items())
        connection.execute(f"CREATE TABLE people ({columns})".encode())
        for record in records():
            marks = ", ".join(["%s"] * len(TYPES))
            connection.execute(
                f"INSERT INTO people VALUES ({marks})".encode(), [record[name] for name in TYPES]
            )
        for place, (name, written) in enumerate(BEYOND):
            changed = f"UPDATE people SET {name} = {written} WHERE id = {place}"
            connection.execute(changed.encode())
    return PostgresSource(PostgresTable("hostile", url, ("people",)), key="id")


# The slow way -----------------------------------------------------------------------------------


def declared(record: dict[str, Any]) -> dict[str, Any]:
    """A record as the policy declares it."""
    return {each.name: _declared(each.column, record[each.name]) for each in UNIVERSE.attributes}


def _declared(column: Column, value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    kind = column.type or ColumnType.TEXT
    if column.values is not None:  # as the policy writes it
        return next((column_value(each, kind) for each in column.values if each == value), None)
    if column.low is None or column.high is None:
        return value
    low, high = column_value(column.low, kind), column_value(column.high, kind)
    return min(max(value, low), high)


def slow_cells(part: MeasuredPart) -> list[int]:
    """The cells of a part, row by row, by its step functions and the interpreter."""
    cells = [0] * part.size
    for record in map(declared, records()):
        inside = any(
            all(each.at(record[each.name]) for each in several)
            for several in part.condition.conjunctions
        )
        step = 0 if part.ranked is None else part.ranked.at(record[part.ranked.name])
        if inside and isinstance(step, int):
            group = tuple(each.at(record[each.name]) for each in part.keys.functions)
            place = part.keys.groups.index(group)
            cells[place * part.width + step] += _units(part, record)
    return cells


def _units(part: MeasuredPart, record: dict[str, Any]) -> int:
    if part.summand is None:
        return 1
    columns = [each.column.name for each in columns_of(part.summand.expression)]
    return part.summand.units_at(record[columns[0]] if columns else None)


def slow_rows(select: Select) -> dict[tuple[Any, ...], list[Fraction]]:
    """What a select counts and adds up in each group, by the interpreter alone."""
    found: dict[tuple[Any, ...], list[Fraction]] = {}
    for record in map(declared, records()):

        def read(reference: Any, record: dict[str, Any] = record) -> Any:
            assert isinstance(reference, ColumnRef)
            return record[reference.column.name]

        key = tuple(evaluate(each, read) for each in select.keys)
        numbers = found.setdefault(key, [Fraction(0)] * len(select.aggregates))
        for place, aggregate in enumerate(select.aggregates):
            numbers[place] += _added(aggregate, read)
    return found


def _added(aggregate: Aggregate, read: Any) -> Fraction:
    if evaluate(aggregate.predicate, read) is not True:
        return Fraction(0)
    if aggregate.argument is None:
        return Fraction(1)
    value = evaluate(aggregate.argument, read)
    if value is None or aggregate.function is not Function.SUM:
        return Fraction(value is not None)
    return Fraction(value)  # type: ignore[arg-type]  # a number


# Statements -------------------------------------------------------------------------------------

WHOLE = [
    *("{}", "{} * 0.0000001 * 0.0000001", "{} * 0.000000000001", "{} / 0", "{} / 3", "{} % 4"),
    *("{} * 99999999999999999999999999.5", "({} + 9223372036854775807) - 9223372036854775807"),
    *("{} * 4611686018427387904", "{} * {}", "0 - {}", "abs({})", "CAST({} AS text)"),
    *("CAST({} AS double precision) / 3", "sqrt({})", "ln({})", "power({}, 400)", "exp({} * 100)"),
    *("CAST({} AS numeric(30,2))", "round({} / 7.0, 2)", "nullif({}, 7)", "{} * 0.1 * 0.1 * 0.1"),
    *("CAST({} AS double precision) * 1e300 * 1e300", "floor({} / 2.5)", "coalesce({}, 3.5)"),
    *("CAST({} / 7.0 AS integer)", "length(CAST({} AS text))", "greatest({}, 5.5)"),
    *("CAST({} AS double precision)", "1 / ({} - 7)", "{} - 0.5", "{} * 2 + 1"),
]
REAL = ["{}", "{} * 3", "abs({} - 1)", "{} + 0.5", "-{}", "{} * 0.3", "{} - 1e12", "round({}, 1)"]
REAL += ["CAST({} AS double precision)", "{} / 3", "CAST({} AS integer)", "floor({})", "sqrt({})"]
TEXTS = ["{}", "lower({})", "upper({})", "length({})", "substr({}, 0, 2)", "CAST({} AS integer)"]
TEXTS += ["CAST({} AS numeric)", "length(upper({}))", "lower(upper({}))", "{} LIKE '%s%'"]
TEXTS += ["CAST({} AS double precision) / 3"]
TIMES = ["{}", "extract(year FROM {})", "extract(week FROM {})", "date_trunc('week', {})"]
TIMES += ["date_trunc('quarter', {})", "CAST({} AS text)", "CAST({} AS date)", "{} < '2020-02-29'"]
TIMES += ["CAST({} AS timestamp) < '2020-01-01 12:00:00'", "extract(dow FROM {})"]
SHAPES = {
    **dict.fromkeys(("grade", "age", "far"), WHOLE),
    **dict.fromkeys(("rate", "share"), REAL),
    **dict.fromkeys(("born", "seen"), TIMES),
    "word": TEXTS,
    "level": WHOLE,
    "flag": ["{}", "CAST({} AS integer)", "CAST({} AS text)", "NOT {}"],
}
LIMITS = {
    "grade": ["7", "2.5", "0.1", "99999999999999999999"],
    "level": ["7", "2.5", "0.1", "99999999999999999999"],
    "age": ["18", "17.5", "0", "99", "-1e20"],
    "far": ["0", "9223372036854775806", "9007199254740993", "-1", "1e25"],
    "rate": ["0.333333333333", "0", "1000", "-5", "1e-12", "0.1"],
    "share": ["0.1", "0.25", "0", "1", "5e-300"],
    "word": ["'a'", "'İ'", "'ss'", "''"],
    "born": ["'2020-02-29'", "'0001-01-01'", "'9999-12-31'"],
    "seen": ["'2020-01-01 12:00:00.000001'", "'2020-01-02'", "'2020-01-01'"],
    "flag": ["TRUE"],
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"]


@st.composite
def computed(draw: st.DrawFn, name: str) -> str:
    """Something computed from one column."""
    shape = draw(st.sampled_from(SHAPES[name]))
    return f"({shape.replace('{}', name)})"


@st.composite
def condition(draw: st.DrawFn, name: str) -> str:
    limit = draw(st.sampled_from(LIMITS[name]))
    form = draw(st.sampled_from(["compare", "bare", "missing", "listed"]))
    if form == "missing":
        return f"({draw(computed(name))} IS NULL)"
    left = name if form != "compare" else draw(computed(name))
    if form == "listed":
        return f"({name} IN ({', '.join(LIMITS[name])}, NULL))"
    return f"({left} {draw(st.sampled_from(COMPARISONS))} {limit})"


names = st.sampled_from([*SHAPES, *["grade", "word", "level", "flag"] * 3])


@st.composite
def key(draw: st.DrawFn) -> str:
    name = draw(names)
    form = draw(st.sampled_from(["computed", "case", "coarse"]))
    if form == "computed":
        return draw(computed(name))
    one, when = draw(computed(name)), draw(condition(name))
    if form == "case":
        return f"(CASE WHEN {when} THEN {one} ELSE NULL END)"
    return f"(CASE WHEN {when} THEN 'a' WHEN {draw(condition(name))} THEN 'b' ELSE 'c' END)"


@st.composite
def predicate(draw: st.DrawFn) -> str:
    several = [draw(condition(draw(names))) for _ in range(draw(st.integers(1, 3)))]
    joined = draw(st.sampled_from([" AND ", " OR "])).join(several)
    return draw(st.sampled_from([joined, f"NOT ({joined})"]))


@st.composite
def aggregate(draw: st.DrawFn) -> str:
    name = draw(names)
    one = draw(computed(name))
    form = draw(st.sampled_from(["COUNT(*)", "SUM", "COUNT", "CASE", "FILTER", "MAX"]))
    if form == "SUM":
        return f"SUM({one})"
    if form == "COUNT":
        return f"COUNT({one})"
    if form == "CASE":
        return f"SUM(CASE WHEN {draw(condition(name))} THEN {one} ELSE 1 END)"
    if form == "FILTER":
        return f"COUNT(*) FILTER (WHERE {draw(predicate())})"
    return f"MAX({name})" if form == "MAX" else form


@st.composite
def statements(draw: st.DrawFn) -> str:
    """A statement over the whole fragment; many are refused."""
    keys = draw(st.lists(key(), max_size=2))
    shown = [*keys, *draw(st.lists(aggregate(), min_size=1, max_size=3))]
    where = f" WHERE {draw(predicate())}" if draw(st.booleans()) else ""
    by = f" GROUP BY {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(shown)} FROM people{where}{by}"
