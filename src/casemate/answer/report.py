"""Private answers, forecasts and budgets: each as text, as its JSON object, and as a page.

The objects are `casemate.answer/1`, `casemate.forecast/1` and `casemate.budget/1`. A page of an
answer draws how far each number may be off; that of a budget, how far it has gone.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from casemate.answer.answer import Answer, BudgetStanding, Forecast, Spending, Spent
from casemate.answer.words import (
    UNKNOWN,
    decimals,
    key_words,
    number_words,
    percent,
    range_words,
    scalar_json,
)
from casemate.grid import Cell, Noised, Origin, ProofSource, joint_proof
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
)

# Values ---------------------------------------------------------------------------------------


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


def spent_words(spent: Spent) -> str:
    """What something costs, as what is spent in all before and after it: parts do not add up."""
    before, after, budget = (
        f"{float(each.epsilon):.3g}" for each in (spent.before, spent.after, spent.budget)
    )
    if spent.before == spent.after:
        return f"nothing; spent so far: epsilon {after} of {budget}"
    return f"epsilon {before} of {budget} spent before, {after} after"


def spent_json(spent: Spent) -> dict[str, dict[str, float | None]]:
    """The same amounts, each as rho and as epsilon."""
    return {name: spending_json(each) for name, each in vars(spent).items()}


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
FROM_TABLES = "from what was measured before the first question, which proves it"
EXACT = "exact", "counted in the table without noise, since everybody may know it"
"""How an answer is called that was measured and needed no noise."""

Column = tuple[str, list[str], bool]
"""A heading, what stands below it, and whether it is numbers."""


def answer_report(answer: Answer, *, session: bool = False) -> Report:
    """An answer; `session` adds the ranges that hold for all answers at once."""
    columns = _columns(answer, session)
    word, source = _source(answer)
    cost = spent_words(answer.spent)
    numbers = [("cost", cost), ("proven with", percent(answer.confidence))]
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
    spent = [Paragraph(f"{word}: {source}"), Paragraph(f"cost: {cost}")]
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
        "spent": spent_json(answer.spent),
        "notes": list(answer.notes),
    }


def _source(answer: Answer) -> tuple[str, str]:
    """Where an answer comes from: in a word, and in a few."""
    if answer.exact and answer.origin is Origin.MEASURED:
        return EXACT
    cells = [cell for row in answer.rows for cell in row if isinstance(cell, Noised)]
    by_tables = joint_proof(cell.proof for cell in cells) is ProofSource.TABLES
    if by_tables and answer.origin in (Origin.SURROGATE, Origin.MEASURED):
        return answer.origin.value, FROM_TABLES
    return answer.origin.value, SOURCES[answer.origin]


def _cell_json(cell: Cell, origin: Origin, session: bool) -> Any:
    """A key as itself; a noised cell with what is proven and what is estimated of it."""
    if not isinstance(cell, Noised):
        return scalar_json(cell)
    names = ("value", "lo", "hi", "error")
    fields = {name: scalar_json(getattr(cell, name)) for name in names}
    fields["source"] = origin.value
    fields["proof"] = None if cell.proof is None else cell.proof.value
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
        columns.append(("source", [_row_source(answer, row) for row in answer.rows], False))
    return columns


def _row_source(answer: Answer, row: Sequence[Cell]) -> str:
    """Where a row comes from, and by what its numbers are proven where that is not the same."""
    word = _source(answer)[0]
    proof = joint_proof(cell.proof for cell in row if isinstance(cell, Noised))
    return word if proof is None or proof is ProofSource.NOISE else f"{word}, {proof.value}"


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


PROVEN = (
    "The range of an answer is proven: it holds the true number with the stated probability, "
    "whoever asks and whatever was asked before.",
    "The number after ± is an estimate of the typical error, and nothing proves it.",
)


def _draw_column(answer: Answer, place: int) -> Drawing | None:
    from casemate.answer.drawing import draw_column  # a page has figures; text needs none

    return draw_column(answer, place)


# Forecast -------------------------------------------------------------------------------------


def forecast_report(forecast: Forecast, *, measured: bool = False) -> Report:
    """What a statement would cost at most; `measured` if it would be measured afresh."""
    most = spent_words(forecast.spent)
    return Report(
        "casemate ask --dry-run",
        f"costs at most: {most}",
        lambda: {
            "schema": "casemate.forecast/1",
            "cost": spending_json(forecast.cost),
            "remaining": spending_json(forecast.remaining),
            "spent": spent_json(forecast.spent),
            "known": forecast.known,
            "notes": list(forecast.notes),
        },
        [
            Paragraph(Code(forecast.sql.strip()), where=Where.PAGE),
            Facts([("at most", most)]),
            Paragraph(f"{_why(forecast, measured)}; nothing was asked and nothing was charged"),
        ],
        [notes_section(forecast.notes)],
    )


def _why(forecast: Forecast, measured: bool) -> str:
    """What the cost depends on, in words."""
    if forecast.known:
        return "it was answered before, so it costs nothing"
    if measured and not forecast.cost.epsilon:
        return "what is measured already proves it, so it costs nothing"
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


def budget_report(standing: BudgetStanding) -> Report:
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


def _budget_fields(standing: BudgetStanding) -> dict[str, Any]:
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


def _budget_facts(standing: BudgetStanding) -> dict[str, str]:
    numbers = {
        "budget": spending_words(standing.budget),
        "spent": f"{spending_words(standing.spent)}, {100 * spent_share(standing):.3g} %",
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


def _promise(standing: BudgetStanding) -> str:
    """What the guarantee is about, in one sentence."""
    apart = APART[standing.neighbours]
    if standing.protects == "private-columns":
        apart = "the private values of one person"
    delta = f", but for a chance of {float(standing.delta):.3g}" if standing.delta else ""
    return (
        f"all answers together are about as likely, within a factor of e to the epsilon{delta}, "
        f"for any two tables that differ in {apart}"
    )


def spent_share(standing: BudgetStanding) -> float:
    """Which part of the budget is spent."""
    spent, budget = standing.spent, standing.budget
    if spent.rho is not None and budget.rho:
        return min(1.0, float(spent.rho / budget.rho))
    return min(1.0, float(spent.epsilon / budget.epsilon))


def _draw_budget(standing: BudgetStanding) -> Drawing:
    from casemate.answer.drawing import draw_budget

    return draw_budget(standing, spent_share(standing))
