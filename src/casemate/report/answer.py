"""A private answer as text for the terminal and as the object `casemate.answer/1`."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from casemate.answer.answer import Answer
from casemate.answer.shown import Cell
from casemate.answer.shown_number import Noised
from casemate.report.answer_cells import (
    UNKNOWN,
    cell_json,
    decimals,
    key_words,
    percent,
    range_words,
    source_words,
    spending_json,
    spending_words,
    written,
)

SCHEMA = "casemate.answer/1"
Column = tuple[str, list[str], bool]
"""A heading, what stands below it, and whether it is numbers."""


# Text -----------------------------------------------------------------------------------------


def as_text(answer: Answer, *, session: bool = False) -> str:
    """An answer as an aligned table, what it cost, and what there is to know about it."""
    return "\n".join([*_aligned(grid(answer, session)), *_below(answer)])


def _below(answer: Answer) -> Iterator[str]:
    if not answer.rows:
        yield "no rows"
    yield ""
    yield ": ".join(source_words(answer))
    yield f"cost: {spending_words(answer.cost)}; left: {spending_words(answer.remaining)}"
    yield from (f"note: {each}" for each in answer.notes)


def grid(answer: Answer, session: bool) -> list[Column]:
    """The columns that are shown."""
    columns: list[Column] = []
    for place, name in enumerate(answer.columns):
        columns += _column(name, answer, place, session)
    if any(isinstance(cell, Noised) for row in answer.rows for cell in row):
        columns.append(("source", [source_words(answer)[0]] * len(answer.rows), False))
    return columns


def _column(name: str, answer: Answer, place: int, session: bool) -> Iterator[Column]:
    """One column of the statement: a key as it is, a noised one with its error and its range."""
    cells = [row[place] for row in answer.rows]
    noised = [cell for cell in cells if isinstance(cell, Noised)]
    places = decimals(noised)
    yield name, [_value(cell, places) for cell in cells], bool(noised)
    if noised:
        yield "±", _of_noised(cells, lambda each: _error(each, places)), True
        proven = _of_noised(cells, lambda each: range_words(each.lo, each.hi, places))
        yield f"proven, {percent(answer.confidence)}", proven, False
        if session:
            at_once = _of_noised(cells, lambda each: _at_once(each, places))
            yield "all answers at once", at_once, False


def _of_noised(cells: Sequence[Cell], words: Callable[[Noised], str]) -> list[str]:
    """What is said of each noised cell; there is nothing to say of any other."""
    return [words(cell) if isinstance(cell, Noised) else UNKNOWN for cell in cells]


def _value(cell: Cell, places: int) -> str:
    return written(cell.value, places) if isinstance(cell, Noised) else key_words(cell)


def _error(cell: Noised, places: int) -> str:
    return UNKNOWN if cell.error is None else written(cell.error, places)


def _at_once(cell: Noised, places: int) -> str:
    return range_words(cell.session_lo, cell.session_hi, places)


def _aligned(columns: Sequence[Column]) -> Iterator[str]:
    widths = [max(map(len, (name, *below))) for name, below, _ in columns]
    height = max((len(below) for _, below, _ in columns), default=0)
    for line in range(-1, height):
        words = [name if line < 0 else below[line] for name, below, _ in columns]
        yield "  ".join(
            word.rjust(width) if right else word.ljust(width)
            for word, width, (_, _, right) in zip(words, widths, columns, strict=True)
        ).rstrip()


# JSON -----------------------------------------------------------------------------------------


def as_json(answer: Answer, *, session: bool = False) -> dict[str, Any]:
    """An answer as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "columns": list(answer.columns),
        "rows": [[cell_json(cell, answer.origin, session) for cell in row] for row in answer.rows],
        "confidence": answer.confidence,
        "cost": spending_json(answer.cost),
        "remaining": spending_json(answer.remaining),
        "notes": list(answer.notes),
    }
