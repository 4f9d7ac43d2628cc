"""`casemate audit`: whose values a log of SQL aggregates gives away."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from casemate.cli.exits import Exit
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.audit.knowledge import Knowledge


def audit(
    queries: Annotated[Path, Parameter(help="A .sql file, a CSV with sql and answer, a csvlog.")],
    /,
    *,
    table: Annotated[str, Parameter(help="A policy, a source, or a shipped table.")],
    private: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="A column to protect, where there is no policy."),
    ] = (),
    known: Annotated[
        Path | None, Parameter(help="A CSV of what is known: record,value or record,lo,hi.")
    ] = None,
    bounds: Annotated[
        str | None, Parameter(help="LO:HI, between which every private number lies.")
    ] = None,
    integer: Annotated[
        bool, Parameter(negative="", help="Private numbers are known to be whole.")
    ] = False,
    protect: Annotated[
        str, Parameter(help="A value known to within this share counts as nearly known.")
    ] = "10%",
    group_size: Annotated[
        int, Parameter(help="The largest group whose known total is reported.")
    ] = 5,
    dialect: Annotated[str, Parameter(help="The SQL dialect of the queries.")] = "postgres",
    reveal: Annotated[
        bool, Parameter(negative="", help="Write the values themselves into the report.")
    ] = False,
    fail_on: Annotated[
        Literal["exposed"] | None,
        Parameter(help="Exit with 1 when somebody is exposed, or that is not decided."),
    ] = None,
    output: Output | None = None,
) -> int:
    """Say exactly whose private values a set of SQL aggregates gives away."""
    from casemate.audit.exposure import Audit, Options
    from casemate.audit.knowledge_file import read_knowledge, share
    from casemate.audit.result import Verdict
    from casemate.report.audit import as_json, as_text
    from casemate.table.table import Table

    output = output or Output()
    width = share(protect)
    if group_size < 1:
        raise Misconfigured(f"--group-size {group_size} is too small; give at least 1")
    with output.progress("auditing"), Table.open(table, private=private) as opened:
        if not opened.policy.private():
            raise Misconfigured("no column is private; name one with --private, or in a policy")
        knowledge: Knowledge = read_knowledge(known, bounds, integer)
        options = Options(width, group_size)
        found = Audit.of(queries, opened, knowledge=knowledge, options=options, dialect=dialect)
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal))
    failed = fail_on is not None and found.verdict is not Verdict.NONE_EXPOSED
    return Exit.FOUND if failed else Exit.DONE
