"""`casemate audit`: whose values a log of SQL aggregates gives away.

`casemate audit block`: which people could live in a small block, from its statistics alone.

`--repair`: what can be published instead, in a file that is audited as it stands there.

How closely `casemate audit` looks: what counts as exposed, and how long it is looked for.

`--witness`: second tables in a file, checked as they stand there.

`--witness` and `--repair`: the files that an audit writes beside its report.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import App, Parameter

from casemate.errors import Misconfigured
from casemate.report.terminal import (
    Bounds,
    Dialect,
    Exit,
    Integer,
    Known,
    OutputOptions,
    Reveal,
    TablePlace,
    Whole,
    check_seconds,
    write_atomically,
)

if TYPE_CHECKING:
    from casemate.audit.findings import AuditOptions
    from casemate.audit.result import Audited, Repaired

T = TypeVar("T")


def block(
    tables: Annotated[Path, Parameter(help="A CSV of statistics: whom, count, median, mean.")],
    /,
    *,
    ages: Annotated[str, Parameter(help="LO:HI, the ages that are possible.")] = "0:125",
    limit: Annotated[Whole, Parameter(help="The most solutions to enumerate.")] = 1000,
    seconds: Annotated[float, Parameter(help="The most seconds to search; 0 for no limit.")] = 60.0,
    output: OutputOptions | None = None,
) -> None:
    """Find everybody who could live in a small block, given its published statistics."""
    output = output or OutputOptions()
    if limit < 1:
        raise Misconfigured(f"--limit {limit} is too small; give at least 1")
    check_seconds(seconds)
    from casemate.audit.block.block import as_html, as_json, as_text, audit_block, read_ages

    with output.progress("solving"):
        found = audit_block(tables, read_ages(ages), limit, seconds or inf)
    output.emit(as_text(found), as_json(found), as_html(found))


# Audit repair -----------------------------------------------------------------------------------


def check_repair(path: Path | None, queries: Path) -> None:
    """Refuse, before any work is done, a file that may not or cannot be written."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise Misconfigured(f"--repair {path} is not a file in a folder that exists")
    if path.suffix.lower() == ".csv":
        raise Misconfigured(f"--repair {path} would be SQL in a CSV file; give it another name")
    if path.exists() and queries.exists() and path.samefile(queries):
        raise Misconfigured(f"--repair {path} is the log itself; give the repair its own file")


def write_repair(repaired: "Repaired", path: Path, output: OutputOptions) -> "Repaired":
    """Write the statements that are left, unless their own audit still exposes somebody."""
    if not repaired.is_safe:
        return repaired
    try:
        write_atomically(path, repaired.sql)
        same = not path.is_file() or path.read_text(encoding="utf-8") == repaired.sql
    except OSError as error:
        raise Misconfigured(f"cannot write --repair {path}: {error.strerror}") from error
    if not same:  # it was audited, and what is there was not
        raise Misconfigured(f"--repair {path} was changed while it was written; try again")
    output.note(f"wrote {path}")
    return replace(repaired, file=path)


# Audit scrutiny ---------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class Scrutiny:
    """The options from `--protect` to `--seconds`, as they were written."""

    protect: Annotated[
        str, Parameter(help="A value known to within this share counts as nearly known.")
    ] = "10%"
    group_size: Annotated[
        Whole, Parameter(help="The largest group whose known total is reported.")
    ] = 5
    insiders: Annotated[
        Whole, Parameter(help="So many people may put together what they know; 0 for none.")
    ] = 1
    approximate: Annotated[
        bool, Parameter(negative="", help="Find out what insiders nearly know; takes long.")
    ] = False
    certificates: Annotated[
        Whole, Parameter(help="For how many exposed values a short certificate is looked for.")
    ] = 20
    dominance: Annotated[
        str, Parameter(help="N,K%: a cell is sensitive if its N largest exceed K% of it.")
    ] = "2,90%"
    rounding: Annotated[
        bool,
        Parameter(negative="", help="Answers are rounded to the digits they are printed with."),
    ] = False
    seconds: Annotated[
        float, Parameter(help="The longest that bounds and searches may take; 0 for no limit.")
    ] = 300.0

    def check(self) -> None:
        """Refuse what means nothing before any work is done."""
        from casemate.published import share

        share(self.protect)
        if self.group_size < 1:
            raise Misconfigured(f"--group-size {self.group_size} is too small; give at least 1")
        if self.insiders < 0:
            raise Misconfigured(f"--insiders {self.insiders} is negative; give 0 to look for none")
        if self.certificates < 0:
            raise Misconfigured(f"--certificates {self.certificates} is negative; give 0 for none")
        check_seconds(self.seconds)

    def options(self, witness: bool) -> "AuditOptions":
        """The same for the audit, which is asked for second tables too where there is a witness."""
        from casemate.audit.checks.sensitive_cells import read_dominance
        from casemate.audit.findings import AuditOptions
        from casemate.published import share

        return AuditOptions(
            protect=share(self.protect),
            group_size=self.group_size,
            insiders=self.insiders,
            approximate=self.approximate,
            certificates=self.certificates,
            dominance=read_dominance(self.dominance),
            rounding=self.rounding,
            seconds=self.seconds or inf,
            witness=witness,
        )


# Audit witness ----------------------------------------------------------------------------------


def check_witness(path: Path | None, reveal: bool) -> None:
    """Refuse, before any work is done, a file that may not or cannot be written."""
    if path is None:
        return
    if not reveal:
        raise Misconfigured(
            "--witness writes tables that hold true private values beside others; "
            "add --reveal if whoever reads the file may see them"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise Misconfigured(f"--witness {path} is not a file in a folder that exists")


def write_witness(found: "Audited", path: Path, output: OutputOptions) -> "Audited":
    """Write the second tables, read them again, and check what was read."""
    from casemate.audit.witness.witness import SecondTables, as_csv, read_back

    if not isinstance(found.witness, SecondTables):
        return found
    try:
        write_atomically(path, as_csv(found.witness))
    except OSError as error:
        raise Misconfigured(f"cannot write --witness {path}: {error.strerror}") from error
    kept = read_back(path, found.witness)
    if not kept.check():
        raise ArithmeticError("a second table does not give the published numbers")
    output.note(f"wrote {path}")
    return replace(found, witness=kept)


# Audit files ------------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class AuditFiles:
    """Where second tables and repaired queries go, for who asks for them."""

    witness: Annotated[
        Path | None,
        Parameter(help="Write second tables, for everybody not exposed, to this CSV."),
    ] = None
    repair: Annotated[
        Path | None,
        Parameter(help="Write the queries, without rows that expose anybody, to this SQL file."),
    ] = None

    def check(self, queries: Path, reveal: bool) -> None:
        """Refuse, before any work is done, a file that may not or cannot be written."""
        check_witness(self.witness, reveal)
        check_repair(self.repair, queries)

    def write(
        self, found: "Audited", repaired: Callable[[], "Repaired"], output: OutputOptions
    ) -> "Audited":
        """Write what was asked for; the audit that comes back tells of it."""
        if self.witness is not None:
            found = write_witness(found, self.witness, output)
        if self.repair is not None:
            found = replace(found, repair=write_repair(repaired(), self.repair, output))
        return found


# Audit ------------------------------------------------------------------------------------------


app = App(
    name="audit",
    help="Say whose values a set of SQL aggregates gives away.",
    usage="Usage: casemate audit QUERIES --table TABLE [OPTIONS]",
)
app.command(
    "casemate.audit.commands:block",
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
    files: AuditFiles | None = None,
    dialect: Dialect = "postgres",
    reveal: Reveal = False,
    fail_on: Annotated[
        Literal["exposed"] | None,
        Parameter(help="Exit with 1 when somebody is exposed, or that is not decided."),
    ] = None,
    output: OutputOptions | None = None,
) -> int:
    """Say exactly whose private values a set of SQL aggregates gives away."""
    from casemate.audit.exposure import Audit
    from casemate.audit.repair.search import repair
    from casemate.published import read_knowledge
    from casemate.table import Table

    scrutiny, files, output = (
        scrutiny or Scrutiny(),
        files or AuditFiles(),
        output or OutputOptions(),
    )
    scrutiny.check()
    files.check(queries, reveal)
    with output.progress("auditing"), Table.open(table, private=private) as opened:
        knowledge = read_knowledge(known, bounds, integer)
        options = scrutiny.options(witness=files.witness is not None)

        def run(task: Callable[..., T]) -> T:
            return task(queries, opened, knowledge=knowledge, options=options, dialect=dialect)

        found = files.write(run(Audit.of), lambda: run(repair), output)
    _emit(found, reveal, output)
    return _end(found, fail_on)


def _emit(found: "Audited", reveal: bool, output: OutputOptions) -> None:
    from casemate.audit.page import as_html
    from casemate.audit.report import as_json, as_text

    html = as_html(found, reveal=reveal) if output.format == "html" else None
    output.emit(as_text(found, reveal=reveal), as_json(found, reveal=reveal), html)


def _end(found: "Audited", fail_on: str | None) -> Exit:
    """Done; or a finding, for who asked to fail on it, unless nobody is exposed for certain."""
    from casemate.audit.result import Verdict

    failed = fail_on is not None and found.verdict is not Verdict.NONE_EXPOSED
    return Exit.FOUND if failed else Exit.DONE
