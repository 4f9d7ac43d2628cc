"""The types of the columns of a CSV file, decided by all of their cells and never by a sample.

An empty cell, quoted or not, is NULL. Blanks around numbers and dates are ignored; text is kept as
it is. What a policy declares is tried alone; otherwise the first of these that fits every cell:

    boolean     true or false, in any case
    integer     digits that fit 64 bits, leading zeros too (declare `type = "text"` to keep them)
    decimal     no exponent, at most 9 decimals, at most 38 digits in all: exact
    double      any other numbers, among them infinity and NaN
    date        2020-12-31
    timestamp   2020-12-31 23:59 or 2020-12-31T23:59:59.999999, or with an offset and moved to UTC
    text        everything else
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casemate.table.schema import ColumnType
from casemate.table.sql_text import quoted

FEW = 1_000
MOST_DIGITS = 38  # of DuckDB's widest decimal
WHOLE = "[+-]?[0-9]+"
PLAIN = "[+-]?([0-9]+[.]?[0-9]{0,9}0*|[.][0-9]{1,9}0*)"
NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(nan|inf|infinity))"
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = "[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
OFFSET = " ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True)
class Shape:
    """What the cells of a column look like, and the type of DuckDB's that reads them."""

    type: ColumnType
    pattern: str
    engine_type: str  # an SQL expression of text over `cell`, of which {} is the name
    evidence: str = "TRUE"  # what at least some cells show, unless the type is declared
    castable: str | None = None

    def verdict(self, cell: str, declared: bool) -> str:
        """The SQL aggregate that gives the engine's type, or NULL when some cell differs."""
        fits = f"regexp_full_match({cell}, '{self.pattern}')"
        if self.castable:
            fits = f"CASE WHEN {fits} THEN {self.castable.replace('{}', cell)} ELSE {fits} END"
        shown = "TRUE" if declared else self.evidence.replace("{}", cell)
        without_cells = "TRUE" if declared else "FALSE"
        engine_type = self.engine_type.replace("{}", cell)
        return (
            f"CASE WHEN coalesce(bool_and({fits}), {without_cells}) AND {shown} "
            f"THEN {engine_type} END"
        )


def _named(word: str) -> str:
    return f"'{word}'"


def _decimal() -> str:
    """The narrowest decimal for all cells, NULL when there is none."""
    whole = "coalesce(max(length(ltrim(split_part({}, '.', 1), '+-0'))), 0)"
    scale = "coalesce(least(9, max(length(split_part({}, '.', 2)))), 0)"
    digits = f"greatest(18, {whole} + {scale})"
    return (
        f"CASE WHEN {digits} <= {MOST_DIGITS} "
        f"THEN 'DECIMAL(' || {digits} || ', ' || {scale} || ')' END"
    )


def _castable(engine_type: str, least: str | None = None) -> str:
    cast = f"TRY_CAST({{}} AS {engine_type})"
    return f"{cast} IS NOT NULL" if least is None else f"coalesce({cast} >= {least}, FALSE)"


ZONED = "TIMESTAMP WITH TIME ZONE"
SHAPES = (
    Shape(ColumnType.BOOLEAN, "(?i)true|false", _named("BOOLEAN")),
    Shape(ColumnType.INTEGER, WHOLE, _named("BIGINT"), castable=_castable("BIGINT")),
    Shape(ColumnType.DECIMAL, PLAIN, _decimal()),
    Shape(
        ColumnType.DOUBLE,
        NUMBER,
        _named("DOUBLE"),
        # "Nan" alone is a name, and forty digits alone are a label: neither is arithmetic.
        evidence=(
            "bool_or(regexp_matches({}, '[0-9]')) "
            f"AND bool_or(NOT regexp_full_match({{}}, '{WHOLE}'))"
        ),
        castable=_castable("DOUBLE"),
    ),
    Shape(ColumnType.DATE, DAY, _named("DATE"), castable=_castable("DATE", "DATE '0001-01-01'")),
    Shape(
        ColumnType.TIMESTAMP,
        f"{DAY}({TIME})?",
        _named("TIMESTAMP"),
        castable=_castable("TIMESTAMP", "TIMESTAMP '0001-01-01'"),
    ),
    Shape(ColumnType.TIMESTAMP, DAY + TIME + OFFSET, _named(ZONED), castable=_castable(ZONED)),
)

Ask = Callable[[str], Sequence[Any]]
"""Runs an SQL query of one row and returns it."""


def decide(
    ask: Ask, table: str, columns: Sequence[str], declared: Mapping[str, ColumnType]
) -> dict[str, str | None]:
    """The engine's type for each column of a table of cells; None where a declared type fails."""
    decided: dict[str, str | None] = {
        name: "VARCHAR" for name in columns if declared.get(name) is ColumnType.TEXT
    }
    for shape in SHAPES:
        open_ = [
            name
            for name in columns
            if decided.get(name) is None and declared.get(name) in (None, shape.type)
        ]
        # What fails on a few cells fails on all of them, and asking a few first costs nothing.
        asked = [
            name
            for name, fits in _verdicts(ask, shape, f"(FROM {table} LIMIT {FEW})", open_, open_)
            if fits is not None
        ]
        decided |= dict(_verdicts(ask, shape, table, asked, declared))
    return {
        name: decided.get(name) or (None if name in declared else "VARCHAR") for name in columns
    }


def _verdicts(
    ask: Ask, shape: Shape, table: str, names: Sequence[str], declared: Collection[str]
) -> Iterable[tuple[str, str | None]]:
    """For each column, the engine's type if the shape fits."""
    if not names:
        return ()
    verdicts = [shape.verdict(f"trim({quoted(name)})", name in declared) for name in names]
    return zip(names, ask(f"SELECT {', '.join(verdicts)} FROM {table}"), strict=True)


def read_as(name: str, engine_type: str) -> str:
    """The expression that reads a cell as a type."""
    cell = quoted(name)
    return cell if engine_type == "VARCHAR" else f"CAST(trim({cell}) AS {engine_type})"


def is_cut(name: str) -> str:
    """The condition that a cell has other digits than the double it is read as.

    A double is printed with the fewest digits that tell it from all others, or with 17.
    """
    double = f"CAST(trim({quoted(name)}) AS DOUBLE)"
    printed = (f"CAST({double} AS VARCHAR)", f"format('{{:.16e}}', {double})")
    return f"{_digits(quoted(name))} NOT IN ({', '.join(map(_digits, printed))})"


def _digits(number: str) -> str:
    """The digits of a number's text, without zeros before and after them."""
    mantissa = f"regexp_replace({number}, '[eE].*', '')"
    return f"trim(regexp_replace({mantissa}, '[^0-9]', '', 'g'), '0')"
