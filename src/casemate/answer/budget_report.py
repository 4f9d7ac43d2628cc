"""Where a dataset's budget stands: as text, as `casemate.budget/1`, and as a page."""

from typing import Any

from casemate.answer.answer import Standing
from casemate.answer.page import budget_bar, spent_share
from casemate.answer.report import spending_json, spending_words
from casemate.report import Markup, facts, joined, listing, page, paragraph, section, table

SCHEMA = "casemate.budget/1"
UNNAMED = "(unnamed)"

APART = {
    "add-remove": "one person being in it or not",
    "replace": "one person's record being another",
}


def promise(standing: Standing) -> str:
    """What the guarantee is about, in one sentence."""
    apart = APART[standing.neighbours]
    if standing.protects == "private-columns":
        apart = "the private values of one person"
    delta = f", but for a chance of {float(standing.delta):.3g}" if standing.delta else ""
    return (
        f"all answers together are about as likely, within a factor of e to the epsilon{delta}, "
        f"for any two tables that differ in {apart}"
    )


def tighter_words(standing: Standing) -> str:
    """The epsilon of an accountant, and on what condition; or why there is none."""
    if standing.tighter_epsilon is None:
        return f"not known: {standing.tighter_note}"
    return f"epsilon {standing.tighter_epsilon:.3g}, {standing.tighter_note}"


# Text -----------------------------------------------------------------------------------------


def as_text(standing: Standing) -> str:
    """The state of a budget as lines to read."""
    lines_of = {
        "budget": spending_words(standing.budget),
        "spent": f"{spending_words(standing.spent)}, {100 * spent_share(standing):.3g} %",
        "left": spending_words(standing.remaining),
        "strategy": standing.strategy,
        "questions": f"{standing.questions:,} that the gate was asked",
        "surprises": f"{standing.surprises:,} found, {standing.surprises_left:,} left to find",
    }
    if standing.tighter_note:
        lines_of["tighter"] = tighter_words(standing)
    width = max(map(len, lines_of))
    lines = [f"{standing.dataset}: {standing.statement}", promise(standing), ""]
    lines += [f"{name:<{width}}  {words}" for name, words in lines_of.items()]
    lines += _principals(standing)
    return "\n".join([*lines, *(f"note: {each}" for each in standing.notes)])


def _principals(standing: Standing) -> list[str]:
    if not standing.principals:
        return []
    names = {name or UNNAMED: found for name, found in standing.principals.items()}
    width = max(map(len, names))
    return ["", "surprises by who asked:", *(f"  {n:<{width}}  {k:,}" for n, k in names.items())]


# JSON -----------------------------------------------------------------------------------------


def as_json(standing: Standing) -> dict[str, Any]:
    """The state of a budget as the object that `--format json` prints."""
    return {
        "schema": SCHEMA,
        "dataset": standing.dataset,
        "budget": spending_json(standing.budget),
        "spent": spending_json(standing.spent),
        "remaining": spending_json(standing.remaining),
        "delta": float(standing.delta),
        "neighbours": standing.neighbours,
        "protects": standing.protects,
        "strategy": standing.strategy,
        "questions": standing.questions,
        "surprises": standing.surprises,
        "surprises_left": standing.surprises_left,
        "principals": [
            {"principal": name, "surprises": found} for name, found in standing.principals.items()
        ],
        "statement": standing.statement,
        "tighter_epsilon": standing.tighter_epsilon,
        "tighter_note": standing.tighter_note,
        "notes": list(standing.notes),
    }


# A page ---------------------------------------------------------------------------------------


def as_html(standing: Standing) -> str:
    """The state of a budget as a self-contained page."""
    headline = f"{standing.statement[:1].upper()}{standing.statement[1:]}."
    sentence = promise(standing)
    introduction = joined(
        [
            paragraph(f"{standing.dataset}: {sentence}."),
            facts(
                [
                    ("spent", spending_words(standing.spent)),
                    ("left", spending_words(standing.remaining)),
                    ("questions", f"{standing.questions:,}"),
                    ("surprises", f"{standing.surprises:,}"),
                    ("surprises left", f"{standing.surprises_left:,}"),
                    ("strategy", standing.strategy),
                    *([("tighter", tighter_words(standing))] if standing.tighter_note else []),
                ]
            ),
        ]
    )
    sections = [
        section("budget", "What is spent", budget_bar(standing)),
        _principals_section(standing),
        section("notes", "Notes", listing(standing.notes)) if standing.notes else Markup(),
    ]
    return page("casemate budget", headline, introduction, sections)


def _principals_section(standing: Standing) -> Markup:
    if not standing.principals:
        return Markup()
    rows = [(name or UNNAMED, f"{found:,}") for name, found in standing.principals.items()]
    caption = "How often the stand-in was found wrong, by who asked"
    return section("principals", "Who asked", table(caption, ("principal", "surprises"), rows))
