"""`casemate audit`: whose values a log of SQL aggregates gives away."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.audit_files import Files
from casemate.cli.audit_scrutiny import Scrutiny
from casemate.cli.exits import Exit
from casemate.cli.options import Bounds, Dialect, Integer, Known, Reveal, TablePlace
from casemate.cli.output import Output

if TYPE_CHECKING:
    from casemate.audit.exposure import Options
    from casemate.audit.result import Audited, Repaired
    from casemate.published.knowledge import Knowledge
    from casemate.table.table import Table

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
    table: TablePlace,
    private: Annotated[
        tuple[str, ...],
        Parameter(negative="", help="A column to protect, where there is no policy."),
    ] = (),
    known: Known = None,
    bounds: Bounds = None,
    integer: Integer = False,
    scrutiny: Scrutiny | None = None,
    files: Files | None = None,
    dialect: Dialect = "postgres",
    reveal: Reveal = False,
    fail_on: Annotated[
        Literal["exposed"] | None,
        Parameter(help="Exit with 1 when somebody is exposed, or that is not decided."),
    ] = None,
    output: Output | None = None,
) -> int:
    """Say exactly whose private values a set of SQL aggregates gives away."""
    from casemate.published.knowledge_file import read_knowledge
    from casemate.table.table import Table

    scrutiny, files, output = scrutiny or Scrutiny(), files or Files(), output or Output()
    scrutiny.check()
    files.check(queries, reveal)
    with output.progress("auditing"), Table.open(table, private=private) as opened:
        knowledge = read_knowledge(known, bounds, integer)
        options = scrutiny.options(witness=files.witness is not None)
        task = Task(queries, opened, knowledge, options, dialect)
        found = files.write(task.audited(), task.repaired, output)
    _emit(found, reveal, output)
    return _end(found, fail_on)


@dataclass(frozen=True)
class Task:
    """A log to audit, and what the audit goes by; a repair goes by the same."""

    queries: Path
    table: "Table"
    knowledge: "Knowledge"
    options: "Options"
    dialect: str

    def audited(self) -> "Audited":
        """Whose values the log gives away."""
        from casemate.audit.exposure import Audit

        return Audit.of(
            self.queries,
            self.table,
            knowledge=self.knowledge,
            options=self.options,
            dialect=self.dialect,
        )

    def repaired(self) -> "Repaired":
        """What of the log can be published instead."""
        from casemate.audit.repair import repair

        return repair(
            self.queries,
            self.table,
            knowledge=self.knowledge,
            options=self.options,
            dialect=self.dialect,
        )


def _emit(found: "Audited", reveal: bool, output: Output) -> None:
    from casemate.report.audit import as_json, as_text
    from casemate.report.audit_html import as_html

    html = as_html(found, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)


def _end(found: "Audited", fail_on: str | None) -> Exit:
    """Done; or a finding, for who asked to fail on it, unless nobody is exposed for certain."""
    from casemate.audit.result import Verdict

    failed = fail_on is not None and found.verdict is not Verdict.NONE_EXPOSED
    return Exit.FOUND if failed else Exit.DONE
