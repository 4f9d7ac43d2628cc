"""A private answer as one HTML page: what was asked, how sure each number is, what it cost."""

from collections.abc import Sequence

from casemate.answer.answer import Answer
from casemate.answer.shown_number import Noised
from casemate.report.answer import grid
from casemate.report.answer_cells import key_words, percent, source_words, spending_words
from casemate.report.answer_figures import Reach, reaches
from casemate.report.markup import Markup, joined, tag
from casemate.report.page import counted, facts, listing, page, paragraph, section, table

ROWS_DRAWN = 60
"""The most rows of one figure: beyond that nobody finds a row in it."""

PROVEN = (
    "The range of an answer is proven: it holds the true number with the stated probability, "
    "whoever asks and whatever was asked before.",
    "The number after ± is an estimate of the typical error, and nothing proves it.",
)


def as_html(answer: Answer, *, session: bool = False) -> str:
    """An answer as a self-contained page."""
    headline = f"{counted(len(answer.rows), 'row')}, {source_words(answer)[1]}."
    return page(
        "casemate ask",
        headline,
        _introduction(answer),
        [*_figures(answer), _table(answer, session), _notes(answer)],
    )


def _introduction(answer: Answer) -> Markup:
    numbers = [
        ("cost", spending_words(answer.cost)),
        ("left", spending_words(answer.remaining)),
        ("proven with", percent(answer.confidence)),
    ]
    return joined([paragraph(tag("code", answer.sql.strip())), facts(numbers)])


def _figures(answer: Answer) -> list[Markup]:
    """A figure for each column of numbers, if there is anything to draw."""
    drawn = []
    for place, name in enumerate(answer.columns):
        found = _reaches(answer, place)[:ROWS_DRAWN]
        if found:
            more = len(answer.rows) - len(found)
            drawn.append(reaches(f"reach-{place}", name, found, answer.confidence, more))
    if not drawn:
        return []
    return [section("ranges", "How sure each number is", joined(drawn))]


def _reaches(answer: Answer, place: int) -> list[Reach]:
    """The rows whose number in this column can be drawn."""
    named = zip(answer.rows, _names(answer), strict=True)
    cells = [(name, row[place]) for row, name in named]
    found = [Reach.of(name, cell) for name, cell in cells if isinstance(cell, Noised)]
    return [each for each in found if each is not None]


def _names(answer: Answer) -> Sequence[str]:
    """The keys of each row."""
    keys = [[cell for cell in row if not isinstance(cell, Noised)] for row in answer.rows]
    return [", ".join(key_words(key) for key in row) or "all" for row in keys]


def _table(answer: Answer, session: bool) -> Markup:
    columns = grid(answer, session)
    rows = list(zip(*(below for _, below, _ in columns), strict=True))
    header = [name for name, _, _ in columns]
    return section("rows", "Rows", table(counted(len(rows), "row"), header, rows))


def _notes(answer: Answer) -> Markup:
    return section("notes", "What is proven, and notes", listing([*PROVEN, *answer.notes]))
