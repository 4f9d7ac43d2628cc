"""`casemate attack plan`: the fewest queries that would give a record, or all of them, away."""

from math import inf
from typing import Annotated

from cyclopts import Parameter

from casemate.cli.options import TablePlace, Whole, check_seconds
from casemate.cli.output import Output


def plan(
    *,
    table: TablePlace,
    target: Annotated[str, Parameter(help="The record to find out, by key or row number, or all.")],
    private: Annotated[
        str | None,
        Parameter(
            help="The column to find out, where no policy says that a single one is private."
        ),
    ] = None,
    min_count: Annotated[
        Whole, Parameter(help="Every query has to select at least so many records.")
    ] = 1,
    max_queries: Annotated[
        Whole | None, Parameter(help="The most queries that a plan may have.")
    ] = None,
    seconds: Annotated[
        float | None, Parameter(help="About the most seconds to search; 0 for no limit.")
    ] = None,
    dialect: Annotated[
        str, Parameter(help="The SQL dialect to write the queries in.")
    ] = "postgres",
    output: Output | None = None,
) -> None:
    """Choose the fewest queries on public columns whose answers give a record's value away."""
    output = output or Output()
    check_seconds(seconds)
    from casemate.attack.plan import Plan
    from casemate.report.attack_plan import as_html, as_json, as_text

    with output.progress("planning"):
        found = Plan.of(
            table,
            target,
            private=() if private is None else private,
            min_count=min_count,
            max_queries=max_queries,
            seconds=inf if seconds == 0 else seconds,
            dialect=dialect,
        )
    html = as_html(found) if output.format == "html" else None
    output.emit(as_text(found), as_json(found), html)
