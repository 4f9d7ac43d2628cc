"""`casemate audit block`: which people could live in a small block, from its statistics alone."""

from math import inf
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from casemate.cli.options import Whole, check_seconds
from casemate.cli.output import Output
from casemate.errors import Misconfigured


def block(
    tables: Annotated[Path, Parameter(help="A CSV of statistics: whom, count, median, mean.")],
    /,
    *,
    ages: Annotated[str, Parameter(help="LO:HI, the ages that are possible.")] = "0:125",
    limit: Annotated[Whole, Parameter(help="The most solutions to enumerate.")] = 1000,
    seconds: Annotated[float, Parameter(help="The most seconds to search; 0 for no limit.")] = 60.0,
    output: Output | None = None,
) -> None:
    """Find everybody who could live in a small block, given its published statistics."""
    output = output or Output()
    if limit < 1:
        raise Misconfigured(f"--limit {limit} is too small; give at least 1")
    check_seconds(seconds)
    from casemate.audit.block import audit_block
    from casemate.audit.block_file import read_ages
    from casemate.report.block import as_html, as_json, as_text

    with output.progress("solving"):
        found = audit_block(tables, read_ages(ages), limit, seconds or inf)
    output.emit(as_text(found), as_json(found), as_html(found))
