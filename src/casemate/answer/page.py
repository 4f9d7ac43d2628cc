"""A private answer as one HTML page: what was asked, how sure each number is, what it cost.

Figures of private answers: how far each number may be off, and how far a budget has gone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from casemate.answer.answer import Answer, Standing
from casemate.answer.report import (
    decimals,
    grid,
    key_words,
    percent,
    range_words,
    source_words,
    spending_words,
    written,
)
from casemate.grid import Noised
from casemate.query.language import Scalar
from casemate.report import (
    LETTER,
    Bands,
    LinearScale,
    Margins,
    Markup,
    Plot,
    Tone,
    counted,
    drawing,
    facts,
    figure,
    joined,
    listing,
    page,
    paragraph,
    section,
    table,
    tag,
)

ROW = 22
"""The height of one row, in units of the drawing."""

THICK = 7.0
LONGEST_NAME = 28


@dataclass(frozen=True)
class DrawnNumber:
    """One number: its value, how far it is typically off, and between which numbers it must be."""

    name: str
    cell: Noised
    value: float
    error: float
    low: float
    high: float
    proven: bool

    @classmethod
    def of(cls, name: str, cell: Noised) -> Self | None:
        """What of a cell can be drawn; None for what is no number."""
        value = _number(cell.value)
        if value is None:
            return None
        error = cell.error if cell.error is not None and math.isfinite(cell.error) else 0.0
        band = cell.band(session=False)
        low, high = band or (value, value)
        return cls(name, cell, value, error, low, high, band is not None)

    @property
    def ends(self) -> tuple[float, float]:
        """The outermost points that are drawn."""
        return min(self.low, self.value - self.error), max(self.high, self.value + self.error)


def _number(value: Scalar) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return float(value) if math.isfinite(value) else None


def reaches(
    identity: str, name: str, found: Sequence[DrawnNumber], confidence: float, more: int = 0
) -> Markup:
    """A line for what is proven of each number, a thick one for the typical error, a dot."""
    shown = list(reversed(found))  # the first row is drawn on top
    labels = tuple(_short(each.name) for each in shown)
    left = 18 + LETTER * max(map(len, labels))
    margins = Margins(top=20, left=max(58.0, left))
    height = margins.top + margins.bottom + ROW * len(shown)
    plot = Plot(_scale(shown), Bands(labels), height=height, margins=margins)
    drawn = plot.drawn(
        identity,
        f"{name}, row by row",
        _told(found),
        plot.axes(name, ""),
        *(_line(plot, place, each) for place, each in enumerate(shown)),
        *(_thick(plot, place, each) for place, each in enumerate(shown)),
        plot.points([(each.value, place) for place, each in enumerate(shown)], Tone.STRONG),
    )
    return figure(drawn, _caption(name, found, confidence, more))


def _line(plot: Plot, place: int, reach: DrawnNumber) -> Markup:
    if not reach.proven:
        return Markup()
    return plot.curve([(reach.low, place), (reach.high, place)], Tone.SOFT)


def _thick(plot: Plot, place: int, reach: DrawnNumber) -> Markup:
    if not reach.error:
        return Markup()
    start, end = (plot.across(reach.value + side * reach.error) for side in (-1, 1))
    top = plot.down(place) - THICK / 2
    return tag("rect", x=start, y=top, width=end - start, height=THICK, class_=Tone.PLAIN)


def _scale(shown: Sequence[DrawnNumber]) -> LinearScale:
    low = min(each.ends[0] for each in shown)
    high = max(each.ends[1] for each in shown)
    room = (high - low) * 0.02 or abs(low) * 0.1 or 1.0
    return LinearScale(low - room, high + room)


def _told(found: Sequence[DrawnNumber]) -> str:
    """The figure in words, for who cannot see it."""
    places = decimals([each.cell for each in found])
    rows = [
        f"{each.name}: {written(each.value, places)}"
        + (f", {range_words(each.low, each.high, places)}" if each.proven else "")
        for each in found
    ]
    return f"{'; '.join(rows)}."


def _caption(name: str, found: Sequence[DrawnNumber], confidence: float, more: int) -> str:
    thin = f"the thin line: what is proven, with {percent(confidence)}"
    if not any(each.proven for each in found):
        thin = "no thin line: nothing is proven"
    rest = f" {more:,} more rows are in the table below." if more > 0 else ""
    return f"{name}. The dot: the answer; the thick line: its typical error; {thin}.{rest}"


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


# Budgets --------------------------------------------------------------------------------------


def budget_bar(standing: Standing) -> Markup:
    """The part of the budget that is spent, in the currency in which costs add up."""
    spent = spent_share(standing)
    width, height, top = 720.0, 64.0, 12.0
    parts = [(0.0, spent, Tone.STRONG), (spent, 1.0, Tone.SOFT)]
    bars = [
        tag("rect", x=width * a, y=top, width=width * (b - a), height=24.0, class_=tone)
        for a, b, tone in parts
        if b > a
    ]
    words = [
        tag("text", f"spent {100 * spent:.3g} %", x=0.0, y=56.0, class_="value"),
        tag("text", f"left {100 * (1 - spent):.3g} %", x=width, y=56.0, text_anchor="end"),
    ]
    told = f"{100 * spent:.3g} per cent of the budget are spent."
    drawn = drawing("budget", "The budget", told, width, height, *bars, *words)
    unit = "epsilon" if standing.budget.rho is None else "rho"
    return figure(drawn, f"In {unit}, in which costs add up.")


def spent_share(standing: Standing) -> float:
    """Which part of the budget is spent."""
    spent, budget = standing.spent, standing.budget
    if spent.rho is not None and budget.rho:
        return min(1.0, float(spent.rho / budget.rho))
    return min(1.0, float(spent.epsilon / budget.epsilon))


# Answer html ------------------------------------------------------------------------------------


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


def _reaches(answer: Answer, place: int) -> list[DrawnNumber]:
    """The rows whose number in this column can be drawn."""
    named = zip(answer.rows, _names(answer), strict=True)
    cells = [(name, row[place]) for row, name in named]
    found = [DrawnNumber.of(name, cell) for name, cell in cells if isinstance(cell, Noised)]
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
