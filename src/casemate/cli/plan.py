"""`casemate plan`: which way to spend a budget is predicted to answer questions best."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from casemate.cli.options import Dialect, Whole
from casemate.cli.output import Output
from casemate.errors import Misconfigured


def plan(
    policy: Annotated[str, Parameter(help="A policy, or a shipped table; it is never opened.")],
    /,
    *,
    queries: Annotated[
        Path | None, Parameter(help="A .sql file, a CSV with sql, a csvlog: what will be asked.")
    ] = None,
    expect: Annotated[
        Whole | None, Parameter(help="How many questions of this kind will be asked in all.")
    ] = None,
    people: Annotated[
        Whole | None, Parameter(help="How many people to assume, for errors as shares of them.")
    ] = None,
    dialect: Dialect = "postgres",
    output: Output | None = None,
) -> None:
    """Compare the ways to spend a budget by their predicted errors; nothing private is read."""
    output = output or Output()
    for name, number in (("--expect", expect), ("--people", people)):
        if number is not None and number < 1:
            raise Misconfigured(f"{name} {number} is too small; give at least 1")
    from casemate.answer.planner_comparison import Comparison
    from casemate.report.answer_plan import as_json, as_text
    from casemate.report.answer_plan_html import as_html

    with output.progress("planning"):
        found = Comparison.of(policy, queries, people=people, expected=expect, dialect=dialect)
        text, fields = as_text(found), as_json(found)
        html = as_html(found) if output.format == "html" else None
    output.emit(text, fields, html)
