"""`casemate audit`: whose values a log of SQL aggregates gives away."""

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.audit_repair import check_repair, write_repair
from casemate.cli.audit_witness import check_witness, write_witness
from casemate.cli.exits import Exit
from casemate.cli.output import Output
from casemate.errors import Misconfigured

if TYPE_CHECKING:
    from casemate.published.knowledge import Knowledge

app = App(
    name="audit",
    help="Say whose values a set of SQL aggregates gives away.",
    usage="Usage: casemate audit QUERIES --table TABLE [OPTIONS]",
)
app.command(
    "casemate.cli.audit_block:block",
    name="block",
    help="Find everybody who could live in a small block, given its statistics.",
)


@app.default
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
    insiders: Annotated[
        int, Parameter(help="So many people may put together what they know; 0 for none.")
    ] = 1,
    approximate: Annotated[
        bool, Parameter(negative="", help="Find out what insiders nearly know; takes long.")
    ] = False,
    certificates: Annotated[
        int, Parameter(help="For how many exposed values a short certificate is looked for.")
    ] = 20,
    dominance: Annotated[
        str, Parameter(help="N,K%: a cell is sensitive if its N largest exceed K% of it.")
    ] = "2,90%",
    rounding: Annotated[
        bool,
        Parameter(negative="", help="Answers are rounded to the digits they are printed with."),
    ] = False,
    seconds: Annotated[
        float, Parameter(help="The longest that bounds and searches may take; 0 for no limit.")
    ] = 300.0,
    witness: Annotated[
        Path | None,
        Parameter(help="Write second tables, for everybody not exposed, to this CSV."),
    ] = None,
    repair: Annotated[
        Path | None,
        Parameter(help="Write the queries, without rows that expose anybody, to this SQL file."),
    ] = None,
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
    from casemate.audit.result import Verdict
    from casemate.audit.sensitive_cells import read_dominance
    from casemate.published.knowledge_file import read_knowledge, share
    from casemate.report.audit import as_json, as_text
    from casemate.report.audit_html import as_html
    from casemate.table.table import Table

    output = output or Output()
    width = share(protect)
    _check(group_size, insiders, certificates, seconds)
    check_witness(witness, reveal)
    check_repair(repair, queries)
    with output.progress("auditing"), Table.open(table, private=private) as opened:
        if not opened.policy.private():
            raise Misconfigured("no column is private; name one with --private, or in a policy")
        knowledge: Knowledge = read_knowledge(known, bounds, integer)
        options = Options(
            protect=width,
            group_size=group_size,
            insiders=insiders,
            approximate=approximate,
            certificates=certificates,
            dominance=read_dominance(dominance),
            rounding=rounding,
            seconds=seconds or inf,
            witness=witness is not None,
        )
        found = Audit.of(queries, opened, knowledge=knowledge, options=options, dialect=dialect)
        if witness is not None:
            found = write_witness(found, witness, output)
        if repair is not None:
            from casemate.audit.repair import repair as repaired_log

            left = repaired_log(
                queries, opened, knowledge=knowledge, options=options, dialect=dialect
            )
            found = replace(found, repair=write_repair(left, repair, output))
    html = as_html(found, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)
    failed = fail_on is not None and found.verdict is not Verdict.NONE_EXPOSED
    return Exit.FOUND if failed else Exit.DONE


def _check(group_size: int, insiders: int, certificates: int, seconds: float) -> None:
    """Refuse numbers that mean nothing before any work is done."""
    if group_size < 1:
        raise Misconfigured(f"--group-size {group_size} is too small; give at least 1")
    if insiders < 0:
        raise Misconfigured(f"--insiders {insiders} is negative; give 0 to look for none")
    if certificates < 0:
        raise Misconfigured(f"--certificates {certificates} is negative; give 0 for none")
    if not seconds >= 0:
        raise Misconfigured(f"--seconds {seconds} is not a time; give 0 for no limit")
