"""The command `casemate`: which verbs there are, and how each ends.

A verb is named here by its import path and imported when it is called, so that `--help` and
`--version` cost what an empty program costs.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import App

from casemate._version import VERSION
from casemate.report.terminal import Exit, end_of

app = App(
    name="casemate",
    help="See what a table's published statistics give away, and answer questions about it "
    "without giving it away.",
    version=f"casemate {VERSION}",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
)
app.command(
    "casemate.audit.commands:app",
    name="audit",
    help="Say whose values a set of SQL aggregates gives away.",
)
app.command(
    "casemate.attack.commands:app",
    name="attack",
    help="Take back from published answers what was private.",
)
app.command("casemate.answer.commands:ask", name="ask", help="Answer SQL privately.")
app.command(
    "casemate.answer.commands:budget",
    name="budget",
    help="Say what was spent on a table, what is left, and what is guaranteed.",
)
app.command(
    "casemate.answer.commands:replay",
    name="replay",
    help="Replay a public transcript: check its chain, and rebuild the stand-in.",
)
app.command("casemate.cli.demo:demo", name="demo", help="Walk through an example in a minute.")
app.command(
    "casemate.answer.commands:plan",
    name="plan",
    help="Compare the ways to spend a budget by their predicted errors.",
)
app.command(
    "casemate.cli.policy:app", name="policy", help="Write or check the policy of a protected table."
)
app.command(
    "casemate.track.commands:app", name="track", help="One count over many sites with few messages."
)
app.command(
    "casemate.cli.completion:app", name="completion", help="Complete commands with the Tab key."
)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    sys.exit(ended(sys.argv[1:] if arguments is None else arguments))


def ended(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code, having said on stderr why it is not 0."""
    try:
        code = app(
            arguments,
            print_error=False,
            exit_on_error=False,
            result_action="return_int_as_exit_code_else_zero",
        )
        # Now, while a reader that went away or a full disk can still be reported.
        print(end="", flush=True)
    except BaseException as error:  # noqa: BLE001 - the outermost edge: no error passes it unread
        return _ended_by(error)
    return int(code)


def _ended_by(error: BaseException) -> int:
    if isinstance(error, SystemExit):
        if isinstance(error.__context__, BrokenPipeError):
            error = error.__context__  # rich turns one into the other
        elif isinstance(error.code, int | None):
            return error.code or Exit.DONE
    code, sentence = end_of(error)
    if sentence:
        print(f"casemate: {sentence}", file=sys.stderr)
    _let_go_of_stdout()
    return code


def _let_go_of_stdout() -> None:
    """Drop what cannot be written any more, or the interpreter would try again and complain."""
    try:
        print(end="", flush=True)
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
