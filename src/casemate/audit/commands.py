"""`casemate audit`, its `block` and its `watch`: options, the files they write, and how they end.

`audit` says whose values a log of SQL aggregates gives away, `watch` who becomes exposed as the log
grows, `block` which people could live in a small block, from its statistics alone. `--witness` and
`--repair` write files beside the report, which are checked as they stand there.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import App, Parameter

from casemate.errors import Misconfigured
from casemate.report.terminal import (
    Bounds,
    Dialect,
    Exit,
    Integer,
    Known,
    MissingChoice,
    OutputOptions,
    Private,
    Reveal,
    SourceOptions,
    TablePlace,
    Whole,
    check_seconds,
    write_atomically,
)

if TYPE_CHECKING:
    from casemate.audit.decide_exposure import AuditProgress
    from casemate.audit.findings import AuditOptions
    from casemate.audit.result import Audited, Repaired
    from casemate.table import Table

T = TypeVar("T")
Rounding = Annotated[
    bool, Parameter(negative="", help="Answers are rounded to the digits they are printed with.")
]
AuditSeconds = Annotated[
    float, Parameter(help="The longest that all searches may take together; 0 for no limit.")
]
FailOn = Annotated[
    Literal["exposed"] | None,
    Parameter(help="Exit with 1 when somebody is exposed, or that is not decided."),
]


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
    from casemate.audit.small_block.model import read_ages
    from casemate.audit.small_block.report import audit_block, block_report

    with output.progress("solving"):
        found = audit_block(tables, read_ages(ages), limit, seconds or inf)
    output.emit(block_report(found))


# casemate audit watch ---------------------------------------------------------------------------


POSTS_OF_ONE_RUN = 3
"""Attempts to reach a webhook before a run with `--once` leaves its events for the next."""


def watch(
    log: Annotated[Path, Parameter(help="A log that is added to, or a folder of .sql files.")],
    /,
    *,
    table: TablePlace,
    private: Private = (),
    cells: SourceOptions | None = None,
    missing: MissingChoice = None,
    known: Known = None,
    bounds: Bounds = None,
    integer: Integer = False,
    rounding: Rounding = False,
    seconds: AuditSeconds = 300.0,
    dialect: Dialect = "postgres",
    reveal: Annotated[
        bool, Parameter(negative="", help="Name records and people by their keys.")
    ] = False,
    state: Annotated[
        Path | None, Parameter(help="Where the watch stands; by default beside the log.")
    ] = None,
    once: Annotated[bool, Parameter(negative="", help="Audit what is there, and end.")] = False,
    interval: Annotated[float, Parameter(help="Seconds between two looks at the log.")] = 1.0,
    webhook: Annotated[
        str | None, Parameter(help="Post every event, as JSON, to this URL too.")
    ] = None,
    fail_on: FailOn = None,
    format: Annotated[
        Literal["text", "json"], Parameter(help="Lines to read, or one object on each line.")
    ] = "text",
    quiet: Annotated[bool, Parameter(negative="", help="No notes on stderr.")] = False,
) -> int:
    """Follow a log as it grows, and say whom each new statement exposes."""
    check_seconds(seconds)
    if not 0 < interval < inf:
        raise Misconfigured(f"--interval is a number of seconds above 0, got {interval:g}")
    if fail_on is not None and not once:
        raise Misconfigured("--fail-on needs --once: a watch that goes on does not end")
    from casemate.audit.findings import AuditOptions
    from casemate.audit.watch import IncrementalAudit
    from casemate.audit.watch.state import fingerprint, read_state
    from casemate.audit.watch.watching import EventWords, Listeners, LogWatch
    from casemate.audit.watch.webhook import Webhook
    from casemate.published import read_knowledge
    from casemate.query.parse import GrowingLog
    from casemate.table import Table, plain_source

    place = state or log.absolute().with_name(f"{log.absolute().name}.casemate-watch")
    _check_file("--state", place)
    output, hook = OutputOptions(quiet=quiet), None if webhook is None else Webhook(webhook)
    growing, knowledge = GrowingLog(log, dialect), read_knowledge(known, bounds, integer)
    source = plain_source(table, missing=missing, **(cells or SourceOptions()).keywords())
    with Table.open(source, private=private) as opened:
        options = AuditOptions(rounding=rounding, seconds=seconds or inf)
        audit = IncrementalAudit(opened, knowledge, options, dialect)
        words = EventWords(audit.people, reveal)
        written = words.as_json if format == "json" else words.as_text
        records = len(audit.people.records)
        about = fingerprint(opened.policy, knowledge, records, rounding, dialect)
        heard_by = Listeners(lambda event: print(written(event), flush=True), words.as_json, hook)
        watching = LogWatch(growing, audit, read_state(place, about), place, heard_by)
        try:
            watching.poll()
            count = watching.state.queries
            output.note(f"{log}: {count:,} statement{'s' if count != 1 else ''} so far")
            while not once:
                time.sleep(interval)
                watching.poll()
            for _ in range(POSTS_OF_ONE_RUN - 1):
                if hook is not None and watching.state.pending:
                    time.sleep(hook.seconds_to_wait)
                    watching.poll()
        finally:
            watching.save()
    if watching.state.pending:
        output.note(f"{len(watching.state.pending):,} events could not be posted; they are kept")
    return _end(watching.state.verdict, fail_on)


# Files of a repair ------------------------------------------------------------------------------


def _check_file(option: str, path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise Misconfigured(f"{option} {path} is not a file in a folder that exists")


def _write(option: str, path: Path, text: str) -> None:
    try:
        write_atomically(path, text)
        same = not path.is_file() or path.read_text(encoding="utf-8") == text
    except OSError as error:
        raise Misconfigured(f"cannot write {option} {path}: {error.strerror}") from error
    if not same:  # it was audited, and what is there was not
        raise Misconfigured(f"{option} {path} was changed while it was written; try again")


def write_repair(repaired: "Repaired", path: Path, output: OutputOptions) -> "Repaired":
    """Write the statements that are left, unless their own audit still exposes somebody."""
    if not repaired.is_safe:
        return repaired
    _write("--repair", path, repaired.sql)
    output.note(f"wrote {path}")
    return replace(repaired, file=path)


# What is looked for -----------------------------------------------------------------------------


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
    rounding: Rounding = False
    seconds: AuditSeconds = 300.0

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


# Files of second tables -------------------------------------------------------------------------


def write_witness(found: "Audited", path: Path, output: OutputOptions) -> "Audited":
    """Write the second tables, read them again, and check what was read."""
    from casemate.audit.second_tables import SecondTables
    from casemate.audit.second_tables_file import as_csv, read_back

    if not isinstance(found.witness, SecondTables):
        return found
    _write("--witness", path, as_csv(found.witness))
    kept = read_back(path, found.witness)
    if not kept.check():
        raise ArithmeticError("a second table does not give the published numbers")
    output.note(f"wrote {path}")
    return replace(found, witness=kept)


# Where files go ---------------------------------------------------------------------------------


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
        if self.witness is not None and not reveal:
            raise Misconfigured(
                "--witness writes tables that hold true private values beside others; "
                "add --reveal if whoever reads the file may see them"
            )
        if self.witness is not None:
            _check_file("--witness", self.witness)
        path = self.repair
        if path is None:
            return
        _check_file("--repair", path)
        if path.suffix.lower() == ".csv":
            raise Misconfigured(f"--repair {path} would be SQL in a CSV file; give it another name")
        if path.exists() and queries.exists() and path.samefile(queries):
            raise Misconfigured(f"--repair {path} is the log itself; give the repair its own file")

    def write(
        self, found: "Audited", repaired: Callable[[], "Repaired"], output: OutputOptions
    ) -> "Audited":
        """Write what was asked for; the audit that comes back tells of it."""
        if found.interrupted:
            asked = {"--witness": self.witness, "--repair": self.repair}
            for option in (option for option, path in asked.items() if path is not None):
                output.note(f"interrupted: {option} was not written")
            return found
        if self.witness is not None:
            found = write_witness(found, self.witness, output)
        if self.repair is not None:
            found = replace(found, repair=write_repair(repaired(), self.repair, output))
        return found


# Older releases --------------------------------------------------------------------------------


@Parameter(name="*")
@dataclass(frozen=True)
class OlderReleases:
    """Versions of the table that were published about before, in pairs with what was."""

    against: Annotated[
        tuple[str, ...], Parameter(negative="", help="An older version of the table; repeatable.")
    ] = ()
    against_queries: Annotated[
        tuple[Path, ...], Parameter(negative="", help="What was published about that version.")
    ] = ()

    def open(
        self, until: ExitStack, private: Sequence[str], said: dict[str, Any]
    ) -> list[tuple["Table", Path]]:
        """Each version with what was published about it, read as `said` unless by a policy."""
        from casemate.table import Table, plain_source

        places = [
            each if each.lower().endswith(".toml") else plain_source(each, **said)
            for each in self.against
        ]
        tables = [until.enter_context(Table.open(each, private=private)) for each in places]
        return list(zip(tables, self.against_queries, strict=True))

    def check(self, repair: Path | None) -> None:
        """Refuse options that do not come in pairs, and what is not done across releases."""
        if len(self.against) != len(self.against_queries):
            raise Misconfigured(
                f"--against is given {len(self.against)} times and --against-queries "
                f"{len(self.against_queries)} times; give one of each for every older release"
            )
        if self.against and repair is not None:
            raise Misconfigured(
                "--repair does not look at older releases; repair the queries without --against, "
                "and audit the repaired file with it"
            )


# casemate audit ---------------------------------------------------------------------------------


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
app.command(
    "casemate.audit.commands:watch",
    name="watch",
    help="Follow a log as it grows, and say whom each new statement exposes.",
)


@app.default
def audit(
    queries: Annotated[Path, Parameter(help="A .sql file, a CSV with sql and answer, a csvlog.")],
    /,
    *,
    table: TablePlace,
    private: Private = (),
    cells: SourceOptions | None = None,
    missing: MissingChoice = None,
    known: Known = None,
    bounds: Bounds = None,
    integer: Integer = False,
    older: OlderReleases | None = None,
    scrutiny: Scrutiny | None = None,
    files: AuditFiles | None = None,
    dialect: Dialect = "postgres",
    reveal: Reveal = False,
    fail_on: FailOn = None,
    output: OutputOptions | None = None,
    clock: Annotated[Callable[[], datetime], Parameter(parse=False)] = lambda: datetime.now(UTC),
) -> int:
    """Say exactly whose private values a set of SQL aggregates gives away."""
    from casemate.audit.decide_exposure import Audit
    from casemate.audit.fields import Occasion
    from casemate.audit.releases import audit_releases
    from casemate.audit.repair.search import repair
    from casemate.audit.report import audit_report
    from casemate.audit.time_limit import Stop
    from casemate.published import read_knowledge
    from casemate.table import Table, plain_source
    from casemate.table.sources import redact_source

    cells, scrutiny, files, output, older = (
        cells or SourceOptions(),
        scrutiny or Scrutiny(),
        files or AuditFiles(),
        output or OutputOptions(),
        older or OlderReleases(),
    )
    scrutiny.check()
    files.check(queries, reveal)
    older.check(files.repair)
    said = {"missing": missing, **cells.keywords()}
    with output.progress("auditing: reading") as progress, ExitStack() as until:
        opened = until.enter_context(Table.open(plain_source(table, **said), private=private))
        knowledge = read_knowledge(known, bounds, integer)
        options = scrutiny.options(witness=files.witness is not None)

        def run(task: Callable[..., T]) -> T:
            return task(queries, opened, knowledge=knowledge, options=options, dialect=dialect)

        def tell(stands: "AuditProgress") -> None:
            progress.say(partial(_in_words, stands, scrutiny.seconds))

        audit_all = partial(audit_releases, against=older.open(until, private, said))
        watched = partial(audit_all if older.against else Audit.of, stop=Stop(), progress=tell)
        audited = run(watched)
        progress.say(lambda: "auditing: writing")
        found = files.write(audited, lambda: run(repair), output)
    older = replace(older, against=tuple(map(redact_source, older.against)))
    given = {"private": private, "missing": missing, "known": known, "bounds": bounds}
    used = _options_used({**given, "integer": integer}, cells, older, scrutiny)
    used |= {} if dialect == "postgres" else {"dialect": dialect}
    occasion = Occasion(redact_source(table), clock(), used)
    output.emit(audit_report(found, reveal=reveal, occasion=occasion))
    if found.interrupted:
        output.note("interrupted: this is what was proved so far")
        return Exit.INTERRUPTED
    return _end(found.verdict, fail_on)


def _in_words(stands: "AuditProgress", limit: float) -> str:
    """Where an audit stands, on one line."""
    said = [f"auditing: {stands.what}"]
    if stands.exposed is not None:
        said.append(f"{stands.exposed:,} exposed so far, {stands.left:,} left")
    if stands.clock.limit.stop.came:
        said.append("ending")
    elif limit and stands.exposed is not None:
        used = min(limit, limit - stands.clock.seconds_left)
        said.append(f"{used:.0f} of {limit:g} s")
    return "; ".join(said)


def _options_used(
    given: dict[str, Any], *groups: SourceOptions | OlderReleases | Scrutiny
) -> dict[str, Any]:
    """The options that are not what they are by themselves, as they were written."""
    used = {name: value for name, value in given.items() if value}
    for group in groups:
        used |= {
            each.name.replace("_", "-"): getattr(group, each.name)
            for each in fields(group)
            if getattr(group, each.name) != each.default
        }
    return {name: _as_written(value) for name, value in used.items()}


def _as_written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_as_written(each) for each in value]
    return str(value) if isinstance(value, Path) else value


def _end(verdict: str, fail_on: str | None) -> Exit:
    """Done; or a finding, for who asked to fail on it, unless nobody is exposed for certain."""
    from casemate.audit.result import Verdict

    failed = fail_on is not None and verdict != Verdict.NONE_EXPOSED
    return Exit.FOUND if failed else Exit.DONE
