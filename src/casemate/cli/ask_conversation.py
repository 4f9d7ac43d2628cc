"""A conversation: statements as they are typed, each answered when its semicolon has come."""

import sys
from collections.abc import Callable

from casemate.cli.ask_answers import Asker
from casemate.cli.ask_history import history_file, remembered
from casemate.cli.ask_statements import is_ended, statements
from casemate.cli.exits import end_of
from casemate.errors import CasemateError

PROMPT = "casemate> "
MORE = "     ...> "
WELCOME = "A statement ends with a semicolon; .help lists what else there is."
HELP = """\
SELECT …;           answer it privately; it may go on over several lines
.cost SELECT …      what it would cost at most; nothing is asked
.measure SELECT …   pay for a fresh measurement of it
.budget  or  \\b     what is spent and what is left
.help    or  \\?     this list
.quit    or  \\q     leave; Ctrl-D does too, and Ctrl-C forgets what is typed"""

Read = Callable[[str], str]
"""Shows a prompt and returns one line; EOFError where there are no more."""


def converse(asker: Asker, dialect: str, read: Read = input) -> None:
    """Answer until there is nothing more to read; an error is one sentence, and it goes on."""
    is_ended("", dialect)  # an unknown dialect is refused at once
    print(WELCOME, file=sys.stderr)
    with remembered(history_file()):
        while (typed := _typed(read, dialect)) is not None:
            if typed.strip() in (".quit", "\\q"):
                return
            _answer(asker, typed, dialect)


def _typed(read: Read, dialect: str) -> str | None:
    """What is typed next: a command, or lines up to a semicolon; None when there is no more."""
    held = ""
    while True:
        try:
            line = read(MORE if held else PROMPT)
        except EOFError:
            print(file=sys.stderr)
            return None
        except KeyboardInterrupt:
            print(file=sys.stderr)
            held = ""
            continue
        if not held and line.lstrip()[:1] in (".", "\\"):
            return line
        held = f"{held}{line}\n" if held or line.strip() else ""
        if ";" in line and is_ended(held, dialect):
            return held


def _answer(asker: Asker, typed: str, dialect: str) -> None:
    """Print what something typed leads to, or why there is nothing to print."""
    try:
        if typed.lstrip()[:1] in (".", "\\"):
            print(_command(asker, typed), flush=True)
            return
        for sql in statements([typed], dialect):
            print(asker.report(sql).text, end="\n\n", flush=True)
    except CasemateError as error:
        print(f"casemate: {end_of(error)[1]}", file=sys.stderr)
    except KeyboardInterrupt:
        print("casemate: interrupted; asking again charges nothing twice", file=sys.stderr)


def _command(asker: Asker, typed: str) -> str:
    """What a command shows."""
    name, _, rest = typed.strip().partition(" ")
    match name:
        case ".budget" | "\\b":
            return asker.budget()
        case ".cost" if rest.strip():
            return asker.report(rest, dry_run=True).text
        case ".measure" if rest.strip():
            return asker.report(rest, measure=True).text
        case ".help" | "\\?":
            return HELP
        case _:
            return f"there is no command {name} like this; .help lists what there is"
