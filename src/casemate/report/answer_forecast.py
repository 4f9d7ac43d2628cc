"""What a statement would cost at most: as text, as `casemate.forecast/1`, and as a page."""

from typing import Any

from casemate.answer.answer import Forecast
from casemate.report.answer_cells import spending_json, spending_words
from casemate.report.markup import joined, tag
from casemate.report.page import facts, listing, page, paragraph, section

SCHEMA = "casemate.forecast/1"


def as_text(forecast: Forecast, *, measured: bool = False) -> str:
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


def as_json(forecast: Forecast) -> dict[str, Any]:
    """A forecast as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
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
