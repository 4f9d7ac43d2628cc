"""The command `casemate`: which verbs there are, and how each ends.

A verb is named here by its import path and imported when it is called, so that `--help` and
`--version` cost what an empty program costs.
"""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NoReturn

from cyclopts import App, Parameter

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
COMMANDS = {
    "audit": (
        "casemate.audit.commands:app",
        "Say whose values a set of SQL aggregates gives away.",
    ),
    "attack": (
        "casemate.attack.commands:app",
        "Take back from published answers what was private.",
    ),
    "ask": ("casemate.answer.commands:ask", "Answer SQL privately."),
    "budget": (
        "casemate.answer.commands:budget",
        "Say what was spent on a table, what is left, and what is guaranteed.",
    ),
    "replay": (
        "casemate.answer.commands:replay",
        "Replay a public transcript: check its chain, and rebuild the stand-in.",
    ),
    "demo": ("casemate.cli.demo:demo", "Walk through an example in a minute."),
    "plan": (
        "casemate.answer.commands:plan",
        "Compare the ways to spend a budget by their predicted errors.",
    ),
    "policy": ("casemate.cli.policy:app", "Write or check the policy of a protected table."),
    "report": ("casemate.cli.report:report", "Render a saved audit as text or as a page."),
    "track": ("casemate.track.commands:app", "One count over many sites with few messages."),
}
"""Each verb's import path and its line of help."""

ALLOCATIONS_PER_COLLECTION = 100_000
"""A command is short, and most of what it imports stays: cycles are looked for less often."""

for _name, (_path, _help) in COMMANDS.items():
    app.command(_path, name=_name, help=_help)
completion = App(name="completion", help="Complete commands with the Tab key.")
app.command(completion)


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and leave with its exit code."""
    gc.set_threshold(ALLOCATIONS_PER_COLLECTION)
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def exit_code(arguments: Sequence[str]) -> int:
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
        return _exit_code_after(error)
    return int(code)


def _exit_code_after(error: BaseException) -> int:
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


# Completion -------------------------------------------------------------------------------------

Shell = Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell you use.")]


@completion.command
def show(shell: Shell, /) -> None:
    """Print the completion script."""
    print(app.generate_completion(shell=shell), end="")


@completion.command
def install(
    shell: Shell,
    /,
    *,
    output: Annotated[
        Path | None, Parameter(help="Put the script here instead of where the shell looks.")
    ] = None,
    startup: Annotated[
        bool, Parameter(help="Make ~/.bashrc or ~/.zshrc load it; fish needs no such line.")
    ] = True,
) -> None:
    """Put the completion script where the shell finds it, and say where that is."""
    where = app.install_completion(shell=shell, output=output, add_to_startup=startup)
    print(f"wrote {where}; open a new {shell} to use it")
