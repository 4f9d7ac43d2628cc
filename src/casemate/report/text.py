"""A report as lines to read on a terminal, the headline first; and values put into words."""

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from casemate.report.model import (
    Block,
    Facts,
    Listing,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    words_of,
)

# Values, numbers and clauses --------------------------------------------------------------------


def plain(value: object) -> str:
    """A value in plain words; a fraction as a decimal where it is one."""
    if value is None:
        return "NULL"
    if isinstance(value, tuple | list):
        return ", ".join(map(plain, value))
    return str(number(value)) if isinstance(value, Fraction) else str(value)


def number(value: object) -> Any:
    """A value as JSON writes it: a fraction that is no short decimal is written as text."""
    if isinstance(value, tuple):
        return [number(part) for part in value]
    if isinstance(value, Fraction):
        if value.denominator == 1:
            return value.numerator
        short = Decimal(str(float(value)))
        return float(value) if Fraction(short) == value else str(value)
    if isinstance(value, Decimal):
        return number(Fraction(value))
    return value.isoformat() if isinstance(value, date) else value


def sentence(clause: str) -> str:
    """A clause as a sentence of its own; one that is a sentence already stays as it is.

    >>> sentence("this is proved"), sentence("So is this.")
    ('This is proved.', 'So is this.')
    """
    ended = clause.endswith((".", "!", "?", ":"))
    return f"{clause[:1].upper()}{clause[1:]}" + ("" if ended else ".")


def count_of(number: int, one: str, many: str | None = None) -> str:
    """A number of things, in words.

    >>> count_of(1, "value"), count_of(1331, "value"), count_of(2, "query", "queries")
    ('1 value', '1,331 values', '2 queries')
    """
    return f"{number:,} {one}" if number == 1 else f"{number:,} {many or f'{one}s'}"


def shorten(text: str, letters: int, ellipsis: str = "…") -> str:
    """Text of at most so many letters, the last of them an ellipsis where some are left out.

    >>> shorten("abcdef", 4), shorten("abcd", 4)
    ('abc…', 'abcd')
    """
    return text if len(text) <= letters else text[: letters - len(ellipsis)] + ellipsis


# A report as lines ------------------------------------------------------------------------------

WHOLE_IN_JSON = "all of them in the JSON"


def as_text(report: Report) -> str:
    """A report as text."""
    lines = [] if report.headline_where is Where.PAGE else [words_of(report.headline)]
    lines += _block_lines(report.introduction)
    for section in report.sections:
        found = _section_lines(section)
        lines += ["", *found] if found and lines else found
    return "\n".join(lines)


def _section_lines(section: Section) -> list[str]:
    lines = [] if section.where is Where.PAGE else list(_block_lines(section.blocks))
    label = section.label
    if label is None:
        label = f"{section.heading[:1].lower()}{section.heading[1:]}:"
    return [label, *lines] if lines and label else lines


def _block_lines(blocks: Sequence[Block]) -> Iterator[str]:
    for block in blocks:
        if block.where is Where.PAGE:
            continue
        match block:
            case Paragraph():
                yield words_of(block.content)
            case Listing():
                lines = [f"{block.mark}{words_of(each)}" for each in block.clauses]
                yield from _first(lines, len(lines), block.rows_in_text)
            case Facts():
                yield from _columns([(name, words_of(value)) for name, value in block.pairs])
            case TableBlock():
                yield from _table_lines(block)


def _table_lines(table: TableBlock) -> Iterator[str]:
    if not table.rows and not table.even_empty:
        return
    rows = [tuple(map(words_of, row)) for row in table.rows[: table.rows_in_text]]
    if table.line is None:
        lines = list(_columns([tuple(table.header), *rows], table.numeric))
    else:
        lines = [f"  {table.line(*row)}" for row in rows]
    yield from _first(lines, len(lines) + len(table.rows) - len(rows), None)


def _first(lines: Sequence[str], count: int, most: int | None) -> Iterator[str]:
    """The first lines, and of how many more there are the number."""
    yield from lines[:most]
    more = count - len(lines[:most])
    if more > 0:
        yield f"  and {more:,} more, {WHOLE_IN_JSON}"


def _columns(rows: Sequence[Sequence[str]], numeric: Sequence[int] = ()) -> Iterator[str]:
    """Cells below each other, those of numeric columns to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if place in numeric else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
