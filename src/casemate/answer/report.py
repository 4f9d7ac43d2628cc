"""Private answers, forecasts and budgets: each as text, as its JSON object, and as a page.

The objects are `casemate.answer/1`, `casemate.forecast/1` and `casemate.budget/1`. A page of an
answer draws how far each number may be off; that of a budget, how far it has gone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any

from casemate.answer.answer import Answer, Forecast, Spending, Standing
from casemate.grid import Cell, Noised, Origin
from casemate.query.language import Scalar
from casemate.report import (
    Code,
    Drawing,
    Facts,
    Figure,
    Listing,
    Paragraph,
    Report,
    Section,
    TableBlock,
    Where,
    count_of,
    shorten,
)
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

UNKNOWN = "–"
MAX_DECIMALS = 6


# Values ---------------------------------------------------------------------------------------


def scalar_json(value: Scalar) -> Any:
    """A value as JSON writes it: a date as ISO text, and null for a number without an end."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, date) else value


def spending_json(spending: Spending) -> dict[str, float | None]:
    """An amount of privacy: rho, null where delta is 0, and epsilon at the policy's delta."""
    rho = None if spending.rho is None else float(spending.rho)
    return {"rho": rho, "epsilon": float(spending.epsilon)}


def spending_words(spending: Spending) -> str:
    """An amount of privacy in words."""
    if not spending.epsilon and not spending.rho:
        return "nothing"
    epsilon = f"epsilon {float(spending.epsilon):.3g}"
    return epsilon if spending.rho is None else f"rho {float(spending.rho):.3g} ({epsilon})"


def decimals(cells: Sequence[Noised]) -> int:
    """With how many decimals a column is written: two digits of its smallest typical error."""
    errors = [cell.error for cell in cells if cell.error is not None and 0 < cell.error < math.inf]
    if errors:
        return min(MAX_DECIMALS, max(0, 1 - math.floor(math.log10(min(errors)))))
    values = [cell.value for cell in cells if isinstance(cell.value, int | float | Decimal)]
    integers = all(value == round(value) for value in values if math.isfinite(value))
    return 0 if integers else MAX_DECIMALS // 2


def number_words(value: Scalar, places: int = 0) -> str:
    """A value in plain words; a number with its thousands set off.

    >>> number_words(-1234.567, 1), number_words(-0.2), number_words(None), number_words("Female")
    ('-1,234.6', '0', 'NULL', 'Female')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value.isoformat() if isinstance(value, date) else str(value)
    if not math.isfinite(value):
        return UNKNOWN
    return f"{round(float(value), places) + 0.0:,.{places}f}"


def key_words(key: Scalar) -> str:
    """A key in plain words: a number is a name here, so nothing in it is set off."""
    return "NULL" if key is None else str(scalar_json(key))


def range_words(low: Scalar, high: Scalar, places: int) -> str:
    """Two ends with the truth between them."""
    if low is None or high is None:
        return UNKNOWN
    return f"{number_words(low, places)} to {number_words(high, places)}"


def percent(share: float) -> str:
    """A probability in words.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.6g} %"


def notes_section(
    notes: Sequence[str], heading: str = "Notes", on_page: Sequence[str] = ()
) -> Section:
    """Notes, which may begin with the name of a column, and what only a page says with them."""
    blocks = [Listing(on_page, where=Where.PAGE), Listing([(note,) for note in notes], "note: ")]
    return Section("notes", heading, blocks, label="")


# Answer ---------------------------------------------------------------------------------------


SOURCES = {
    Origin.SURROGATE: "from the stand-in, and the gate let it pass",
    Origin.MEASURED: "measured in the table, with noise",
    Origin.CACHED: "answered before: the same answer, at no cost",
    Origin.UNVERIFIED: "from the stand-in, and nothing checked it: nothing is proven",
}
EXACT = "exact", "counted in the table without noise, since everybody may know it"
"""How an answer is called that was measured and needed no noise."""

Column = tuple[str, list[str], bool]
"""A heading, what stands below it, and whether it is numbers."""


def answer_report(answer: Answer, *, session: bool = False) -> Report:
    """An answer; `session` adds the ranges that hold for all answers at once."""
    columns = _columns(answer, session)
    word, source = _source(answer)
    cost, left = spending_words(answer.cost), spending_words(answer.remaining)
    numbers = [("cost", cost), ("left", left), ("proven with", percent(answer.confidence))]
    rows = TableBlock(
        count_of(len(answer.rows), "row"),
        [name for name, _, _ in columns],
        list(zip(*(cells for _, cells, _ in columns), strict=True)),
        numeric=[place for place, (_, _, is_number) in enumerate(columns) if is_number],
        rows_in_text=None,
        even_empty=True,
    )
    nothing = [] if answer.rows else [Paragraph("no rows")]
    ranges = [Figure(partial(_draw_column, answer, place)) for place in range(len(answer.columns))]
    spent = [Paragraph(f"{word}: {source}"), Paragraph(f"cost: {cost}; left: {left}")]
    return Report(
        "casemate ask",
        f"{count_of(len(answer.rows), 'row')}, {source}",
        lambda: _answer_fields(answer, session),
        [Paragraph(Code(answer.sql.strip()), where=Where.PAGE), Facts(numbers)],
        [
            Section("ranges", "How sure each number is", ranges),
            Section("rows", "Rows", [rows, *nothing], label=""),
            Section("source", "Where it comes from, and what it cost", spent, label=""),
            notes_section(answer.notes, "What is proven, and notes", PROVEN),
        ],
        headline_where=Where.PAGE,
    )


def _answer_fields(answer: Answer, session: bool) -> dict[str, Any]:
    return {
        "schema": "casemate.answer/1",
        "columns": list(answer.columns),
        "rows": [[_cell_json(cell, answer.origin, session) for cell in row] for row in answer.rows],
        "confidence": answer.confidence,
        "cost": spending_json(answer.cost),
        "remaining": spending_json(answer.remaining),
        "notes": list(answer.notes),
    }


def _source(answer: Answer) -> tuple[str, str]:
    """Where an answer comes from: in a word, and in a few."""
    if answer.exact and answer.origin is Origin.MEASURED:
        return EXACT
    return answer.origin.value, SOURCES[answer.origin]


def _cell_json(cell: Cell, origin: Origin, session: bool) -> Any:
    """A key as itself; a noised cell with what is proven and what is estimated of it."""
    if not isinstance(cell, Noised):
        return scalar_json(cell)
    names = ("value", "lo", "hi", "error")
    fields = {name: scalar_json(getattr(cell, name)) for name in names}
    fields["source"] = origin.value
    if session:
        fields["session_lo"] = scalar_json(cell.session_lo)
        fields["session_hi"] = scalar_json(cell.session_hi)
    return fields


def _columns(answer: Answer, session: bool) -> list[Column]:
    """The columns that are shown."""
    columns: list[Column] = []
    for place, name in enumerate(answer.columns):
        cells = [row[place] for row in answer.rows]
        columns += _column(name, cells, answer.confidence, session)
    if any(isinstance(cell, Noised) for row in answer.rows for cell in row):
        columns.append(("source", [_source(answer)[0]] * len(answer.rows), False))
    return columns


def _column(name: str, cells: Sequence[Cell], confidence: float, session: bool) -> Iterator[Column]:
    """One column of the statement: a key as it is, a noised one with its error and its range."""
    noised = [cell for cell in cells if isinstance(cell, Noised)]
    places = decimals(noised)

    def of_noised(words: Callable[[Noised], str]) -> list[str]:
        return [words(cell) if isinstance(cell, Noised) else UNKNOWN for cell in cells]

    values = [
        number_words(c.value, places) if isinstance(c, Noised) else key_words(c) for c in cells
    ]
    yield name, values, bool(noised)
    if noised:
        errors = of_noised(lambda c: UNKNOWN if c.error is None else number_words(c.error, places))
        yield "±", errors, True
        proven = of_noised(lambda c: range_words(c.lo, c.hi, places))
        yield f"proven, {percent(confidence)}", proven, False
        if session:
            at_once = of_noised(lambda c: range_words(c.session_lo, c.session_hi, places))
            yield "all answers at once", at_once, False


# The figure of an answer ----------------------------------------------------------------------

ROWS_DRAWN = 60
"""The most rows of one figure: beyond that nobody finds a row in it."""

ROW_HEIGHT, ERROR_BAR_HEIGHT = 22, 7.0
"""In units of the drawing."""

NAME_LETTERS = 28
PROVEN = (
    "The range of an answer is proven: it holds the true number with the stated probability, "
    "whoever asks and whatever was asked before.",
    "The number after ± is an estimate of the typical error, and nothing proves it.",
)


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


def _draw_column(answer: Answer, column: int) -> Drawing | None:
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


# Forecast -------------------------------------------------------------------------------------


def forecast_report(forecast: Forecast, *, measured: bool = False) -> Report:
    """What a statement would cost at most; `measured` if it would be measured afresh."""
    most, left = spending_words(forecast.cost), spending_words(forecast.remaining)
    return Report(
        "casemate ask --dry-run",
        f"costs at most: {most}; left: {left}",
        lambda: {
            "schema": "casemate.forecast/1",
            "cost": spending_json(forecast.cost),
            "remaining": spending_json(forecast.remaining),
            "known": forecast.known,
            "notes": list(forecast.notes),
        },
        [
            Paragraph(Code(forecast.sql.strip()), where=Where.PAGE),
            Facts([("at most", most), ("left", left)]),
            Paragraph(f"{_why(forecast, measured)}; nothing was asked and nothing was charged"),
        ],
        [notes_section(forecast.notes)],
    )


def _why(forecast: Forecast, measured: bool) -> str:
    """What the cost depends on, in words."""
    if forecast.known:
        return "it was answered before, so it costs nothing"
    if forecast.cost.epsilon > forecast.remaining.epsilon:
        return "that is more than is left, so it may be refused"
    if measured:
        return "that is what a fresh measurement costs"
    return "it costs less where the stand-in is close enough already"


# Budget ---------------------------------------------------------------------------------------


UNNAMED = "(unnamed)"
APART = {
    "add-remove": "one person being in it or not",
    "replace": "one person's record being another",
}


def budget_report(standing: Standing) -> Report:
    """Where a dataset's budget stands."""
    numbers = list(_budget_facts(standing).items())
    surprises = [(name or UNNAMED, f"{found:,}") for name, found in standing.principals.items()]
    width = max((len(name) for name, _ in surprises), default=0)
    asked = TableBlock(
        "How often the stand-in was found wrong, by who asked",
        ("principal", "surprises"),
        surprises,
        line=lambda name, found: f"{name:<{width}}  {found}",
        rows_in_text=None,
    )
    return Report(
        "casemate budget",
        (Code(standing.dataset), f": {standing.statement}"),
        lambda: _budget_fields(standing),
        [Paragraph(_promise(standing)), Facts(numbers)],
        [
            Section("budget", "What is spent", [Figure(lambda: _draw_budget(standing))]),
            Section("numbers", "Numbers", [Facts(numbers, where=Where.TEXT)], label=""),
            Section("principals", "Who asked", [asked], label="surprises by who asked:"),
            notes_section(standing.notes),
        ],
    )


def _budget_fields(standing: Standing) -> dict[str, Any]:
    principals = [{"principal": n, "surprises": k} for n, k in standing.principals.items()]
    return {
        "schema": "casemate.budget/1",
        **vars(standing),
        "budget": spending_json(standing.budget),
        "spent": spending_json(standing.spent),
        "remaining": spending_json(standing.remaining),
        "delta": float(standing.delta),
        "principals": principals,
        "notes": list(standing.notes),
    }


def _budget_facts(standing: Standing) -> dict[str, str]:
    numbers = {
        "budget": spending_words(standing.budget),
        "spent": f"{spending_words(standing.spent)}, {100 * _spent_share(standing):.3g} %",
        "left": spending_words(standing.remaining),
        "strategy": standing.strategy,
        "questions": f"{standing.questions:,} that the gate was asked",
        "surprises": f"{standing.surprises:,} found, {standing.surprises_left:,} left to find",
    }
    if standing.tighter_epsilon is not None:
        numbers["tighter"] = f"epsilon {standing.tighter_epsilon:.3g}, {standing.tighter_note}"
    elif standing.tighter_note:
        numbers["tighter"] = f"not known: {standing.tighter_note}"
    return numbers


def _promise(standing: Standing) -> str:
    """What the guarantee is about, in one sentence."""
    apart = APART[standing.neighbours]
    if standing.protects == "private-columns":
        apart = "the private values of one person"
    delta = f", but for a chance of {float(standing.delta):.3g}" if standing.delta else ""
    return (
        f"all answers together are about as likely, within a factor of e to the epsilon{delta}, "
        f"for any two tables that differ in {apart}"
    )


def _spent_share(standing: Standing) -> float:
    """Which part of the budget is spent."""
    spent, budget = standing.spent, standing.budget
    if spent.rho is not None and budget.rho:
        return min(1.0, float(spent.rho / budget.rho))
    return min(1.0, float(spent.epsilon / budget.epsilon))


def _draw_budget(standing: Standing) -> Drawing:
    """The part of the budget that is spent, in the currency in which costs add up."""
    spent = _spent_share(standing)
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
