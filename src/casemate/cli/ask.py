"""`casemate ask`: private answers to SQL, to one statement, to a pipe of them, or as they come."""

import sys
from typing import Annotated

from cyclopts import Parameter

from casemate.cli.ask_statements import statements
from casemate.cli.exits import unsupported_is_refused
from casemate.cli.options import TablePlace
from casemate.cli.output import Output
from casemate.errors import Misconfigured


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
    dry_run: Annotated[
        bool, Parameter(negative="", help="Say what it would cost at most, and ask nothing.")
    ] = False,
    session: Annotated[
        bool, Parameter(negative="", help="Show the ranges that hold for all answers at once too.")
    ] = False,
    principal: Annotated[
        str, Parameter(help="Who asks: surprises are counted, and rationed, for each.")
    ] = "",
    dialect: Annotated[str, Parameter(help="The SQL dialect of the statements.")] = "postgres",
    output: Output | None = None,
) -> None:
    """Answer SQL privately: noise that protects everybody, charged to the table's ledger."""
    output = output or Output()
    typed = sql is None and sys.stdin.isatty() and sys.stdout.isatty()
    if typed:
        _require_text(output)
    given = None if typed else [sql] if sql is not None else _piped(output, dialect)
    from casemate.cli.ask_answers import Asker, Manner
    from casemate.cli.ask_conversation import converse

    manner = Manner(measure=measure, dry_run=dry_run, session=session)
    with (
        unsupported_is_refused(),
        Asker.of(policy, manner, output, principal=principal, dialect=dialect) as asker,
    ):
        if given is None:
            converse(asker, dialect)
        else:
            asker.emit_all(given)


def _require_text(output: Output) -> None:
    """A conversation is text on the terminal."""
    if output.format != "text" or output.output is not None:
        raise Misconfigured(
            "--format and --output are for statements on the command line or from a pipe; give SQL "
            "after the policy, or leave them out"
        )


def _piped(output: Output, dialect: str) -> list[str]:
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
