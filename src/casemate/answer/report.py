"""A private answer as text for the terminal and as the object `casemate.answer/1`.

What private answers are made of, in words and in JSON: cells, amounts of privacy, sources.

What a statement would cost at most: as text, as `casemate.forecast/1`, and as a page.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from casemate.answer.answer import Answer, Forecast, Spending
from casemate.grid import Cell, Noised, Origin
from casemate.query.language import Scalar
from casemate.report import facts, joined, listing, page, paragraph, section, tag

UNKNOWN = "–"
MOST_DECIMALS = 6

SOURCES = {
    Origin.SURROGATE: "from the stand-in, and the gate let it pass",
    Origin.MEASURED: "measured in the table, with noise",
    Origin.CACHED: "answered before: the same answer, at no cost",
    Origin.UNVERIFIED: "from the stand-in, and nothing checked it: nothing is proven",
}


EXACT = "exact", "counted in the table without noise, since everybody may know it"
"""How an answer is called that was measured and needed no noise."""


def source_words(answer: Answer) -> tuple[str, str]:
    """Where an answer comes from: in a word, and in a few."""
    if answer.exact and answer.origin is Origin.MEASURED:
        return EXACT
    return answer.origin.value, SOURCES[answer.origin]


# JSON -----------------------------------------------------------------------------------------


def cell_json(cell: Cell, origin: Origin, session: bool) -> Any:
    """A key as itself; a noised cell with what is proven and what is estimated of it."""
    if not isinstance(cell, Noised):
        return scalar_json(cell)
    fields = {
        "value": scalar_json(cell.value),
        "lo": scalar_json(cell.lo),
        "hi": scalar_json(cell.hi),
        "error": scalar_json(cell.error),
        "source": origin.value,
    }
    if session:
        fields["session_lo"] = scalar_json(cell.session_lo)
        fields["session_hi"] = scalar_json(cell.session_hi)
    return fields


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


# Words ----------------------------------------------------------------------------------------


def spending_words(spending: Spending) -> str:
    """An amount of privacy in words."""
    if not spending.epsilon and not spending.rho:
        return "nothing"
    epsilon = f"epsilon {float(spending.epsilon):.3g}"
    return epsilon if spending.rho is None else f"rho {float(spending.rho):.3g} ({epsilon})"


def decimals(cells: Sequence[Noised]) -> int:
    """With how many decimals a column is written: two digits of its smallest typical error."""
    errors = [each.error for each in cells if each.error is not None and 0 < each.error < math.inf]
    if errors:
        return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(min(errors)))))
    numbers = [each.value for each in cells if isinstance(each.value, int | float | Decimal)]
    whole = all(each == round(each) for each in numbers if math.isfinite(each))
    return 0 if whole else MOST_DECIMALS // 2


def written(value: Scalar, places: int = 0) -> str:
    """A value in plain words; a number with its thousands set off.

    >>> written(-1234.567, 1), written(-0.2), written(None), written("Female")
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
    return f"{written(low, places)} to {written(high, places)}"


def percent(share: float) -> str:
    """A probability in words.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.6g} %"


# Answer -----------------------------------------------------------------------------------------


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


# Answer forecast --------------------------------------------------------------------------------


FORECAST_SCHEMA = "casemate.forecast/1"


def forecast_as_text(forecast: Forecast, *, measured: bool = False) -> str:
    """A forecast as lines to read; `measured` if the statement would be measured afresh."""
    lines = [
        f"costs at most: {spending_words(forecast.cost)}; left: "
        f"{spending_words(forecast.remaining)}",
        f"{_why(forecast, measured)}; nothing was asked and nothing was charged",
        *(f"note: {each}" for each in forecast.notes),
    ]
    return "\n".join(lines)


def _why(forecast: Forecast, measured: bool) -> str:
    """What the cost depends on, in words."""
    if forecast.known:
        return "it was answered before, so it costs nothing"
    if forecast.cost.epsilon > forecast.remaining.epsilon:
        return "that is more than is left, so it may be refused"
    if measured:
        return "that is what a fresh measurement costs"
    return "it costs less where the stand-in is close enough already"


def forecast_as_json(forecast: Forecast) -> dict[str, Any]:
    """A forecast as the object that `--format json` prints."""
    return {
        "schema": FORECAST_SCHEMA,
        "cost": spending_json(forecast.cost),
        "remaining": spending_json(forecast.remaining),
        "known": forecast.known,
        "notes": list(forecast.notes),
    }


def as_html(forecast: Forecast, *, measured: bool = False) -> str:
    """A forecast as a self-contained page."""
    why = _why(forecast, measured)
    introduction = joined(
        [
            paragraph(tag("code", forecast.sql.strip())),
            facts(
                [
                    ("at most", spending_words(forecast.cost)),
                    ("left", spending_words(forecast.remaining)),
                ]
            ),
            paragraph(f"{why[:1].upper()}{why[1:]}. Nothing was asked and nothing was charged."),
        ]
    )
    noted = [section("notes", "Notes", listing(forecast.notes))] if forecast.notes else []
    headline = f"This costs at most {spending_words(forecast.cost)}."
    return page("casemate ask --dry-run", headline, introduction, noted)
