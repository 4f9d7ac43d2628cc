"""CSV files seen without an engine: their header, how many records they hold, the types of columns.

The engine's own reader has been seen to drop records silently (after a quote that is never closed,
or when it mistakes the kind of line ends), so what it loads is counted here by other means.

Types are decided by all cells of a column and never by a sample. An empty cell, quoted or not, is
NULL. Blanks around numbers and dates are ignored; text is kept as it is. What a policy declares is
tried alone, with whole numbers and decimals in any spelling that keeps their digits (5000.0 and
1e+05 are whole numbers then, as they are for private answers); otherwise the first of these that
fits every cell:

    boolean     true or false, in any case
    integer     digits that fit 64 bits, leading zeros too (declare `type = "text"` to keep them)
    decimal     no exponent, at most 9 decimals, at most 38 digits in all: exact
    double      any other numbers, among them infinity and NaN
    date        2020-12-31
    timestamp   2020-12-31 23:59 or 2020-12-31T23:59:59.999999, or with an offset and moved to UTC
    text        everything else
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from casemate.errors import Misconfigured
from casemate.table.schema import ColumnType
from casemate.table.sources.formats import matches
from casemate.table.sources.source import quote_name
from casemate.table.sources.types import SCIENTIFIC
from casemate.table.sources.types import WHOLE as WHOLE_OR_ZEROS

DELIMITERS = (",", ";", "\t", "|")
LONGEST_HEADER = 1 << 20
LONGEST_CELL = 1 << 24
"""More characters than the engine takes for a line: Python's own limit is far lower."""
RESERVED = "casemate_"
"""How the names begin that casemate gives to columns of its own, RECORD among them."""


@dataclass(frozen=True)
class Header:
    """What separates the cells and the lines of a file, and what its columns are called."""

    delimiter: str
    line_end: str
    names: tuple[str, ...]


def read_header(path: Path) -> Header:
    """The header of a CSV file; a column without a name is called after its place, `column0`."""
    try:
        with _open_text(path) as stream:
            line = _first_record(stream)
        line.encode()  # fails on what was not UTF-8; the rest is the engine's to read
        delimiter = _delimiter(line)
        cells = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except UnicodeError:
        raise Misconfigured(f"{path} is not UTF-8 text; save it again as UTF-8") from None
    except (csv.Error, zlib.error, EOFError):
        raise Misconfigured(f"the header of {path} cannot be read as CSV") from None
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise Misconfigured(f"cannot read {path}: {reason}") from None
    names = tuple(cell or f"column{place}" for place, cell in enumerate(cells))
    check_names(path, names)
    return Header(delimiter, line[len(line.rstrip("\r\n")) :] or "\n", names)


def count_records(path: Path, header: Header, expected: int) -> int:
    """How many records follow the header; quick when there are as many as `expected`."""
    try:
        quick = _line_ends(path, ord(header.line_end[-1])) - 1
        return quick if quick == expected else _parsed_records(path, header)
    except (csv.Error, zlib.error, EOFError, OSError):
        return -1  # no number of records: the file is damaged, or changed under our hands


def _line_ends(path: Path, mark: int) -> int:
    """The ends of lines outside quotes; a last line that does not end counts too."""
    count, inside, last = 0, 0, mark
    with (gzip.open if _is_gzip(path) else open)(path, "rb") as stream:
        while chunk := stream.read(1 << 22):
            if inside or b'"' in chunk:
                cells = np.frombuffer(chunk, np.uint8)
                inside_quotes = (np.cumsum(cells == ord('"'), dtype=np.int64) + inside) % 2
                count += int(np.count_nonzero((cells == mark) & (inside_quotes == 0)))
                inside = int(inside_quotes[-1])
            else:
                count += chunk.count(mark)
            last = chunk[-1]
    return count + (last != mark)


def _parsed_records(path: Path, header: Header) -> int:
    """The records as Python's own reader finds them; an empty line is one in a single column."""
    csv.field_size_limit(LONGEST_CELL)
    with _open_text(path) as stream:
        rows = csv.reader(stream, delimiter=header.delimiter, strict=True)
        next(rows, None)
        return sum(1 for row in rows if row or len(header.names) == 1)


def check_names(path: Path | str, names: Sequence[str]) -> None:
    """Refuse names that SQL cannot tell apart, or that casemate needs for itself."""
    if not names:
        raise Misconfigured(f"{path} is empty; expected a first line with the columns' names")
    seen: set[str] = set()
    for name in names:
        folded = _fold_case(name)
        if folded in seen:
            raise Misconfigured(
                f"{path} has two columns called {name!r}, upper and lower case being alike; "
                f"rename one of them"
            )
        if folded.startswith(RESERVED) or "\0" in name:
            raise Misconfigured(f"{path} has a column called {name!r}; rename it")
        seen.add(folded)


def _fold_case(name: str) -> str:
    """How DuckDB compares names: upper and lower case are alike in ASCII only."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _open_text(path: Path) -> TextIO:
    opener = gzip.open if _is_gzip(path) else open
    return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")


def _is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _delimiter(line: str) -> str:
    """The mark that a header has most of, outside quotes."""
    bare = re.sub('"[^"]*"', "", line)
    return max(DELIMITERS, key=bare.count)


def _first_record(stream: TextIO) -> str:
    """The first line, and the lines after it while a quote is open."""
    record = stream.readline(LONGEST_HEADER)
    while record.count('"') % 2 and len(record) < LONGEST_HEADER:
        line = stream.readline(LONGEST_HEADER)
        if not line:
            break
        record += line
    return record


# Types of columns --------------------------------------------------------------------------------


TRIAL_ROWS = 1_000
MOST_DIGITS = 38  # of DuckDB's widest decimal
WHOLE = "[+-]?[0-9]+"
PLAIN = "[+-]?([0-9]+[.]?[0-9]{0,9}0*|[.][0-9]{1,9}0*)"
NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(nan|inf|infinity))"
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = "[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
OFFSET = " ?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(frozen=True)
class ColumnShape:
    """What the cells of a column look like, and the type of DuckDB's that reads them."""

    type: ColumnType
    pattern: str
    engine_type: str  # an SQL expression of text over `cell`, of which {} is the name
    evidence: str = "TRUE"  # what at least some cells show, unless the type is declared
    castable: str | None = None

    def fits(self, cell: str) -> str:
        """The condition that one cell looks like that."""
        looks = f"regexp_full_match({cell}, '{self.pattern}')"
        if not self.castable:
            return looks
        return f"CASE WHEN {looks} THEN {self.castable.replace('{}', cell)} ELSE {looks} END"

    def verdict(self, cell: str, declared: bool) -> str:
        """The SQL aggregate that gives the engine's type, or NULL when some cell differs."""
        fits = self.fits(cell)
        shown = "TRUE" if declared else self.evidence.replace("{}", cell)
        without_cells = "TRUE" if declared else "FALSE"
        engine_type = self.engine_type.replace("{}", cell)
        return (
            f"CASE WHEN coalesce(bool_and({fits}), {without_cells}) AND {shown} "
            f"THEN {engine_type} END"
        )


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
    ColumnShape(ColumnType.BOOLEAN, "(?i)true|false", "'BOOLEAN'"),
    ColumnShape(ColumnType.INTEGER, WHOLE, "'BIGINT'", castable=_castable("BIGINT")),
    ColumnShape(ColumnType.DECIMAL, PLAIN, _decimal()),
    ColumnShape(
        ColumnType.DOUBLE,
        NUMBER,
        "'DOUBLE'",
        # "Nan" alone is a name, and forty digits alone are a label: neither is arithmetic.
        evidence=(
            "bool_or(regexp_matches({}, '[0-9]')) "
            f"AND bool_or(NOT regexp_full_match({{}}, '{WHOLE}'))"
        ),
        castable=_castable("DOUBLE"),
    ),
    ColumnShape(ColumnType.DATE, DAY, "'DATE'", castable=_castable("DATE", "DATE '0001-01-01'")),
    ColumnShape(
        ColumnType.TIMESTAMP,
        f"{DAY}({TIME})?",
        "'TIMESTAMP'",
        castable=_castable("TIMESTAMP", "TIMESTAMP '0001-01-01'"),
    ),
    ColumnShape(ColumnType.TIMESTAMP, DAY + TIME + OFFSET, f"'{ZONED}'", castable=_castable(ZONED)),
)

SHAPE_OF_ENGINE_TYPE = {
    "BOOLEAN": ColumnType.BOOLEAN,
    "BIGINT": ColumnType.INTEGER,
    "DECIMAL": ColumnType.DECIMAL,
    "DOUBLE": ColumnType.DOUBLE,
    "DATE": ColumnType.DATE,
    "TIMESTAMP": ColumnType.TIMESTAMP,
    ZONED: ColumnType.TIMESTAMP,
}

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
            for name, fits in _verdicts(
                ask, shape, f"(FROM {table} LIMIT {TRIAL_ROWS})", open_, open_
            )
            if fits is not None
        ]
        decided |= dict(_verdicts(ask, shape, table, asked, declared))
    return {
        name: decided.get(name) or (None if name in declared else "VARCHAR") for name in columns
    }


def _verdicts(
    ask: Ask, shape: ColumnShape, table: str, names: Sequence[str], declared: Collection[str]
) -> Iterable[tuple[str, str | None]]:
    """For each column, the engine's type if the shape fits."""
    if not names:
        return ()
    verdicts = [shape.verdict(f"trim({quote_name(name)})", name in declared) for name in names]
    return zip(names, ask(f"SELECT {', '.join(verdicts)} FROM {table}"), strict=True)


@dataclass(frozen=True)
class Misfits:
    """Cells that are not of a declared type: how many of how many, the first, what all would be."""

    count: int
    cells: int
    first: int | None  # the record's position
    fitting: ColumnType | None  # a type that all cells are of, other than text

    @property
    def sentence(self) -> str:
        """How many there are and where, for example 2 of its 9 cells are something else."""
        if self.first is None:
            return "its cells, though each looks like one, are none together"
        are = "is" if self.count == 1 else "are"
        return (
            f"{self.count:,} of its {self.cells:,} cells {are} something else (the first in row "
            f"{self.first:,} below the header)"
        )


def misfits(ask: Ask, table: str, position: str, name: str, declared: ColumnType) -> Misfits:
    """What keeps a column of a table of cells from being of its declared type."""
    cell = f"trim({quote_name(name)})"
    fits = " OR ".join(shape.fits(cell) for shape in SHAPES if shape.type is declared)
    wrong = f"FILTER (WHERE NOT ({fits}))"
    count, cells, first = ask(
        f"SELECT count(*) {wrong}, count({cell}), min({position}) {wrong} FROM {table}"
    )
    engine_type = decide(ask, table, [name], {})[name] or ""
    fitting = SHAPE_OF_ENGINE_TYPE.get(engine_type.partition("(")[0])
    return Misfits(count, cells, first, fitting)


def spell_out(cell: str, declared: ColumnType | None) -> str:
    """A number declared as whole or decimal, written plainly: 5000.0 as 5000, 1e+05 as 100000.

    One that would have other digits then stays as it is, and is of neither type.
    """
    if declared not in (ColumnType.INTEGER, ColumnType.DECIMAL):
        return cell
    text = f"trim({cell})"
    decimal = f"CAST(TRY_CAST({text} AS DECIMAL(38, 12)) AS VARCHAR)"
    exact = f"{matches(text, SCIENTIFIC)} AND {_digits(text)} = {_digits(decimal)}"
    cases = f"WHEN {exact} THEN regexp_replace({decimal}, '[.]?0*$', '')"
    if declared is ColumnType.INTEGER:
        cases += f" WHEN {matches(text, WHOLE_OR_ZEROS)} THEN regexp_replace({text}, '[.]0*$', '')"
    return f"CASE {cases} ELSE {cell} END"


def read_as(cell: str, engine_type: str) -> str:
    """The expression that reads a cell as a type other than text."""
    return f"CAST(trim({cell}) AS {engine_type})"


def is_cut(name: str) -> str:
    """The condition that a cell has other digits than the double it is read as.

    A double is printed with the fewest digits that tell it from all others, or with 17.
    """
    double = f"CAST(trim({quote_name(name)}) AS DOUBLE)"
    printed = (f"CAST({double} AS VARCHAR)", f"format('{{:.16e}}', {double})")
    return f"{_digits(quote_name(name))} NOT IN ({', '.join(map(_digits, printed))})"


def _digits(number: str) -> str:
    """The digits of a number's text, without zeros before and after them."""
    mantissa = f"regexp_replace({number}, '[eE].*', '')"
    return f"trim(regexp_replace({mantissa}, '[^0-9]', '', 'g'), '0')"
