"""Cells as a policy says they are written: markers of missing values, and formats of numbers.

Expressions that both engines read alike, and that cannot fail. A marker is compared with the text
of a cell, blanks around it left aside, and in a column of numbers as a number. A number is written
plainly if its currency and its thousands are dropped and its decimal mark is a point; what is no
number in the declared format stays as it is, and is no number. Where another decimal mark is
declared, neither is a number with a point: 1.234 may be 1234 there, and nobody can tell.
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from casemate.table.schema import CellFormat, ColumnType
from casemate.table.sources.source import Frame, literal

BLANKS = " \u00a0\u202f"
"""Blanks that writers put between a number and its currency, or between thousands."""

NO_NUMBER = "?"
PLAIN = "[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)"
POINTED = "[+-]?(?:[0-9]+[.][0-9]*|[.][0-9]+)(?:[eE][+-]?[0-9]+)?"


def trim(cell: str) -> str:
    """A cell of text without the blanks around it."""
    return f"trim({cell}, ' ')"


def matches(cell: str, pattern: str) -> str:
    """Whether a cell of text is wholly of a pattern."""
    return f"{cell} ~ {literal(f'^(?:{pattern})$')}"


def text_present(cell: str, form: CellFormat) -> str:
    """A cell of text, NULL where it is a marker."""
    return _unless(trim(cell), [literal(each) for each in form.markers], cell)


def number_present(cell: str, form: CellFormat) -> str:
    """A cell of an engine's number, NULL where it is a marker."""
    numbers = [number for each in form.markers if (number := _number(each)) is not None]
    return _unless(cell, [literal(each) for each in numbers], cell)


def _unless(compared: str, markers: list[str], cell: str) -> str:
    if not markers:
        return cell
    return f"CASE WHEN {compared} IN ({', '.join(markers)}) THEN NULL ELSE {cell} END"


def _number(marker: str) -> Decimal | None:
    try:
        number = Decimal(marker)
    except InvalidOperation:
        return None
    return number if number.is_finite() and -20 < number.adjusted() < 20 else None


def plain_number(cell: str, form: CellFormat) -> str:
    """A cell of text with its number written plainly."""
    if not form.rewrites:
        return cell
    text = trim(cell)
    cases = f"WHEN {matches(text, _pattern(form))} THEN {_rewritten(text, form)}"
    if form.decimal != ".":
        cases += f" WHEN {matches(text, POINTED)} THEN '{NO_NUMBER}'"
    return f"CASE {cases} ELSE {cell} END"


def _pattern(form: CellFormat) -> str:
    mark, blank = _class(form.decimal), f"[{BLANKS}]*"
    digits = "[0-9]+"
    if form.thousands is not None:
        digits = f"(?:[0-9]+|[0-9]{{1,3}}(?:{_class(form.thousands)}[0-9]{{3}})+)"
    body = f"(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)"
    if form.currency is None:
        return f"[+-]?{body}"
    currency = "".join(map(_class, form.currency))
    before = f"(?:[+-]?{currency}{blank}|{currency}{blank}[+-])"
    return f"{before}{body}|[+-]?{body}(?:{blank}{currency})?"


def _class(letter: str) -> str:
    """A pattern of one letter, in which every blank is alike."""
    if letter.isalnum():
        return letter
    return f"[{BLANKS}]" if letter in BLANKS else f"[{letter}]"


def _rewritten(text: str, form: CellFormat) -> str:
    dropped = [form.currency, *BLANKS, form.thousands]
    for each in filter(None, dropped):
        text = f"replace({text}, {literal(each)}, '')"
    return text if form.decimal == "." else f"replace({text}, {literal(form.decimal)}, '.')"


# Columns of text that are numbers as soon as their format is known ------------------------------


FormatOf = Callable[[str], CellFormat]
"""How the cells of a column of this name are written."""

INTEGER_DIGITS, DECIMAL_DIGITS = 18, 12
"""Digits before and after the point of a number that every engine adds up exactly."""

WHOLE_NUMBER = f"[+-]?[0-9]{{1,{INTEGER_DIGITS}}}"
EXACT_NUMBER = (
    f"[+-]?(?:[0-9]{{1,{INTEGER_DIGITS}}}(?:[.][0-9]{{0,{DECIMAL_DIGITS}}})?"
    f"|[.][0-9]{{1,{DECIMAL_DIGITS}}})"
)


def plain_cells(_: str) -> CellFormat:
    """The format of columns of which nothing is said."""
    return CellFormat()


def number_type(
    read: Callable[[str], Frame],
    relation: str,
    column: str,
    cell: str,
    declared: ColumnType | None,
) -> tuple[ColumnType, int] | None:
    """The type of a column of text whose cells are numbers in their format, and its decimals.

    `cell` is the column in that format. A column that was of plain numbers all along is text by its
    schema: None, unless its type is `declared`.
    """
    given, number = trim(column), trim(cell)
    found = read(
        f"SELECT count({column}) AS given, count({cell}) AS present, "
        f"count(*) FILTER (WHERE {matches(given, PLAIN)}) AS plain, "
        f"count(*) FILTER (WHERE {matches(number, WHOLE_NUMBER)}) AS whole, "
        f"count(*) FILTER (WHERE {matches(number, EXACT_NUMBER)}) AS exact, "
        f"coalesce(max(length(split_part({number}, '.', 2))), 0) AS scale FROM {relation} AS t"
    )
    count = {name: int(series.values[0]) for name, series in found.items()}
    fitting = {
        ColumnType.INTEGER: count["whole"],
        ColumnType.DECIMAL: count["exact"],
        ColumnType.DOUBLE: count["exact"],
    }
    if declared is None and (count["plain"] == count["given"] or not count["present"]):
        return None
    fits = (each for each, cells in fitting.items() if cells == count["present"])
    kind = next((each for each in fits if declared in (None, each)), None)
    return None if kind is None else (kind, min(count["scale"], DECIMAL_DIGITS))
