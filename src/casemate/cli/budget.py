"""`casemate budget`: what was spent on a table, what is left, and what is guaranteed."""

from typing import TYPE_CHECKING

from casemate.cli.options import TablePlace
from casemate.cli.output import Output

if TYPE_CHECKING:
    from casemate.answer.answer import Standing


def budget(
    policy: TablePlace,
    /,
    *,
    output: Output | None = None,
) -> None:
    """Say what was spent on a table, what is left, and what is guaranteed."""
    from casemate.report.answer_budget import as_html, as_json, as_text

    output = output or Output()
    with output.progress("reading the ledger"):
        found = standing_of(policy)
    html = as_html(found) if output.format == "html" else None
    output.emit(as_text(found), as_json(found), html)


def standing_of(policy: str) -> "Standing":
    """Where the budget of a policy stands; where nothing was asked yet, no ledger is made."""
    from casemate.answer.session import Session

    with Session.looking(policy) as session:
        return session.standing()
