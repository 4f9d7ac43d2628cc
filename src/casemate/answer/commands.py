"""The commands of private answers: `casemate ask`, `budget`, `replay` and `plan`.

`ask` answers one statement, a pipe of them, or statements as they are typed; `budget` says what was
spent on a table, what is left and what is guaranteed; `replay` whether a transcript is whole and
what it leads to; `plan` which way to spend a budget is predicted to answer questions best.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from casemate.answer.conversation import statements
from casemate.errors import Misconfigured
from casemate.report.terminal import (
    Dialect,
    Exit,
    OutputOptions,
    PolicyOnly,
    TablePlace,
    Whole,
    unsupported_is_refused,
)

if TYPE_CHECKING:
    from casemate.answer.within import Within


def ask(
    policy: TablePlace,
    sql: Annotated[
        str | None, Parameter(help="One SELECT; without it they are typed, or come from a pipe.")
    ] = None,
    /,
    *,
    measure: Annotated[
        bool, Parameter(negative="", help="Pay for a fresh measurement of what is asked.")
    ] = False,
    within: Annotated[
        str | None,
        Parameter(help="How far off each number may be: W, or W% of it; pay what that takes."),
    ] = None,
    dry_run: Annotated[
        bool, Parameter(negative="", help="Say what it would cost at most, and ask nothing.")
    ] = False,
    session: Annotated[
        bool, Parameter(negative="", help="Show the ranges that hold for all answers at once too.")
    ] = False,
    all_groups: Annotated[
        bool,
        Parameter(negative="", help="Show groups too that the policy says nobody can be in."),
    ] = False,
    principal: Annotated[
        str, Parameter(help="Who asks: surprises are counted, and rationed, for each.")
    ] = "",
    dialect: Dialect = "postgres",
    output: OutputOptions | None = None,
) -> None:
    """Answer SQL privately: noise that protects everybody, charged to the table's ledger."""
    output = output or OutputOptions()
    wanted = None if within is None else _parse_within(within, measure)
    typed = sql is None and sys.stdin.isatty() and sys.stdout.isatty()
    if typed:
        _require_text(output)
    given = None if typed else [sql] if sql is not None else _read_pipe(output, dialect)
    from casemate.answer.conversation import Asker, AskOptions, converse

    manner = AskOptions(measure, wanted, dry_run, session, all_groups)
    with (
        unsupported_is_refused(),
        Asker.of(policy, manner, output, principal=principal, dialect=dialect) as asker,
    ):
        if given is None:
            converse(asker, dialect)
        else:
            asker.emit_all(given)


def _parse_within(text: str, measure: bool) -> "Within":
    from casemate.answer.session import BOTH
    from casemate.answer.within import Within

    if measure:
        raise Misconfigured(BOTH)
    return Within.parse(text)


def _require_text(output: OutputOptions) -> None:
    """A conversation is text on the terminal."""
    if output.format != "text" or output.output is not None:
        raise Misconfigured(
            "--format and --output are for statements on the command line or from a pipe; give SQL "
            "after the policy, or leave them out"
        )


def _read_pipe(output: OutputOptions, dialect: str) -> list[str]:
    """Every statement of stdin, before anything is asked; one object holds one answer."""
    with unsupported_is_refused():
        try:
            found = list(statements(sys.stdin, dialect))
        except UnicodeDecodeError:
            raise Misconfigured("stdin is not UTF-8 text; send SQL as UTF-8") from None
    if not found:
        raise Misconfigured("there is no statement; give SQL after the policy, or on stdin")
    if len(found) > 1 and output.format != "text":
        raise Misconfigured(
            f"--format {output.format} holds one answer and stdin has {len(found)} statements; "
            f"send them one at a time, or use --format text"
        )
    return found


# Budget -----------------------------------------------------------------------------------------


def budget(
    policy: TablePlace,
    /,
    *,
    output: OutputOptions | None = None,
) -> None:
    """Say what was spent on a table, what is left, and what is guaranteed."""
    from casemate.answer.report import budget_report
    from casemate.answer.session import Session

    output = output or OutputOptions()
    with output.progress("reading the ledger"), Session.looking(policy) as session:
        found = session.standing(tighter=True)
    output.emit(budget_report(found))


# Replay -----------------------------------------------------------------------------------------


def replay(
    policy: PolicyOnly,
    /,
    *,
    transcript: Annotated[
        Path | None, Parameter(help="A copy: lines of JSON, or a ledger's SQLite file.")
    ] = None,
    output: OutputOptions | None = None,
) -> Exit:
    """Replay a public transcript: check its chain and rebuild the stand-in from it alone."""
    from casemate.answer import replaying

    output = output or OutputOptions()
    with output.progress("replaying"):
        found = replaying.replay(policy, transcript)
    output.emit_plain(replaying.as_text(found), replaying.as_json(found))
    return Exit.DONE if found.equal else Exit.FOUND


# Plan -------------------------------------------------------------------------------------------


def plan(
    policy: PolicyOnly,
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
    output: OutputOptions | None = None,
) -> None:
    """Compare the ways to spend a budget by their predicted errors; nothing private is read."""
    output = output or OutputOptions()
    for name, number in (("--expect", expect), ("--people", people)):
        if number is not None and number < 1:
            raise Misconfigured(f"{name} {number} is too small; give at least 1")
    from casemate.answer.planner.comparison import Comparison
    from casemate.answer.planner.report import comparison_report

    with output.progress("planning"):
        found = Comparison.of(policy, queries, people=people, expected=expect, dialect=dialect)
        output.emit(comparison_report(found))
