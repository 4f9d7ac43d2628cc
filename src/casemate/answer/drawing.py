"""The figures on the pages of private answers: how sure each number is, and what is spent."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from casemate.answer.answer import Answer, BudgetStanding
from casemate.answer.words import decimals, key_words, number_words, percent, range_words
from casemate.grid import Noised
from casemate.report import Drawing, shorten
from casemate.report.plots import (
    LETTER_WIDTH,
    Bands,
    LinearScale,
    Margins,
    Markup,
    Plot,
    Tone,
    svg,
    tag,
)

# The figure of an answer ----------------------------------------------------------------------

ROWS_DRAWN = 60
"""The most rows of one figure: beyond that nobody finds a row in it."""

ROW_HEIGHT, ERROR_BAR_HEIGHT = 22, 7.0
"""In units of the drawing."""

NAME_LETTERS = 28


@dataclass(frozen=True)
class DrawnNumber:
    """One number: its value, how far it is typically off, and between which numbers it must be."""

    name: str
    cell: Noised
    value: float
    error: float
    band: tuple[float, float] | None

    @property
    def ends(self) -> tuple[float, float]:
        """The outermost points that are drawn."""
        low, high = self.band or (self.value, self.value)
        return min(low, self.value - self.error), max(high, self.value + self.error)


def _drawn_numbers(answer: Answer, place: int) -> list[DrawnNumber]:
    """The first rows whose number in this column can be drawn, each by its keys."""
    numbers = []
    for row in answer.rows:
        cell = row[place]
        value = cell.value if isinstance(cell, Noised) else None
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            continue
        assert isinstance(cell, Noised), "a number was noised"
        if math.isfinite(value):
            keys = [key_words(key) for key in row if not isinstance(key, Noised)]
            error = cell.error if cell.error is not None and math.isfinite(cell.error) else 0.0
            band = cell.band(session=False)
            numbers.append(DrawnNumber(", ".join(keys) or "all", cell, float(value), error, band))
    return numbers[:ROWS_DRAWN]


def draw_column(answer: Answer, column: int) -> Drawing | None:
    """A line for what is proven of each number, a thick one for the typical error, a dot."""
    numbers, name = _drawn_numbers(answer, column), answer.columns[column]
    if not numbers:
        return None
    shown = list(enumerate(reversed(numbers)))  # the first row is drawn on top
    labels = tuple(shorten(number.name, NAME_LETTERS) for _, number in shown)
    margins = Margins(top=20, left=max(58.0, 18 + LETTER_WIDTH * max(map(len, labels))))
    height = margins.top + margins.bottom + ROW_HEIGHT * len(shown)
    plot = Plot(_scale(numbers), Bands(labels), height=height, margins=margins)
    proven = [
        plot.curve([(end, place) for end in number.band], Tone.SOFT)
        for place, number in shown
        if number.band is not None
    ]
    drawing = plot.draw(
        f"reach-{column}",
        f"{name}, row by row",
        _description(numbers),
        plot.axes(name, ""),
        *proven,
        *(_error_bar(plot, place, number) for place, number in shown if number.error),
        plot.points([(number.value, place) for place, number in shown], Tone.STRONG),
    )
    more = len(answer.rows) - len(numbers)
    return Drawing(drawing, f"{name}. {_caption(bool(proven), answer.confidence, more)}")


def _scale(numbers: Sequence[DrawnNumber]) -> LinearScale:
    low, high = min(each.ends[0] for each in numbers), max(each.ends[1] for each in numbers)
    room = (high - low) * 0.02 or abs(low) * 0.1 or 1.0
    return LinearScale(low - room, high + room)


def _caption(proven: bool, confidence: float, more: int) -> str:
    thin = f"the thin line: what is proven, with {percent(confidence)}"
    if not proven:
        thin = "no thin line: nothing is proven"
    rest = f" {more:,} more rows are in the table below." if more else ""
    return f"The dot: the answer; the thick line: its typical error; {thin}.{rest}"


def _error_bar(plot: Plot, place: int, number: DrawnNumber) -> Markup:
    start, end = (plot.across(number.value + side * number.error) for side in (-1, 1))
    top = plot.down(place) - ERROR_BAR_HEIGHT / 2
    width, height = end - start, ERROR_BAR_HEIGHT
    return tag("rect", x=start, y=top, width=width, height=height, class_=Tone.PLAIN)


def _description(numbers: Sequence[DrawnNumber]) -> str:
    """The figure in words, for who cannot see it."""
    places = decimals([each.cell for each in numbers])
    rows = [
        f"{each.name}: {number_words(each.value, places)}"
        + (f", {range_words(*each.band, places)}" if each.band else "")
        for each in numbers
    ]
    return f"{'; '.join(rows)}."


# Budget ---------------------------------------------------------------------------------------


def draw_budget(standing: BudgetStanding, spent: float) -> Drawing:
    """The part of the budget that is spent, in the currency in which costs add up."""
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
    described = f"{100 * spent:.3g} per cent of the budget are spent."
    bar = svg("budget", "The budget", described, width, height, *bars, *words)
    unit = "epsilon" if standing.budget.rho is None else "rho"
    return Drawing(bar, f"In {unit}, in which costs add up.")
