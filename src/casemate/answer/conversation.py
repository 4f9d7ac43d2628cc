"""A conversation with `casemate ask`: lines become statements, statements are answered as reports.

A line goes on until a semicolon ends its statement; an `Asker` asks one session one statement after
the other; `converse` does both as somebody types, with what was typed before on the arrow keys,
kept in a file for its owner alone.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from casemate.answer.report import answer_report, budget_report, forecast_report
from casemate.answer.session import Session
from casemate.errors import CasemateError, Unsupported
from casemate.report import Report, as_text
from casemate.report.terminal import OutputOptions, Progress, end_of, write_atomically

MAX_HISTORY_LINES = 1_000
"""Lines that are kept."""


def history_file(environment: Mapping[str, str] = os.environ) -> Path:
    """`casemate/history` in the folder for a user's state.

    >>> str(history_file({"XDG_STATE_HOME": "/state"}))
    '/state/casemate/history'
    """
    given = environment.get("XDG_STATE_HOME", "")
    state = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    return state / "casemate" / "history"


@contextmanager
def line_history(path: Path) -> Iterator[None]:
    """Inside, typed lines can be edited and called back, those of earlier times too.

    Without readline lines are typed as they are. A file that cannot be read or written is no
    reason to end a conversation.
    """
    try:
        import readline
    except ImportError:  # some builds of Python have none
        yield
        return
    readline.clear_history()
    for line in _read(path):
        readline.add_history(line)
    try:
        yield
    finally:
        count = readline.get_current_history_length()
        kept = [readline.get_history_item(place + 1) for place in range(count)]
        with suppress(OSError):
            _write(path, kept[-MAX_HISTORY_LINES:])


def _read(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _write(path: Path, lines: Sequence[str | None]) -> None:
    """Replace the file as a whole; only its owner may read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)
    path.chmod(0o600)  # which what is written keeps
    text = "".join(f"{line}\n" for line in lines if line is not None)
    write_atomically(path, text.encode(errors="replace").decode())


# Statements in, reports out ---------------------------------------------------------------------


@dataclass(frozen=True)
class AskOptions:
    """How statements are asked, and what is shown of their answers."""

    measure: bool = False
    dry_run: bool = False
    session: bool = False


@dataclass
class QuestionProgress:
    """The bar of the question at hand, told how many of how many tables are measured."""

    _output: OutputOptions
    _shown: Progress | None = None

    def __call__(self, _: int, tables: int) -> None:
        """One more table is measured."""
        if self._shown is not None:
            self._shown.advance(1 / tables)

    @contextmanager
    def over(self, what: str) -> Iterator[None]:
        """Show a bar for the length of the block, if it is long."""
        with self._output.progress(what, 1.0) as self._shown:
            yield
        self._shown = None


@dataclass(frozen=True)
class Asker:
    """A session, and how its answers are shown."""

    _session: Session
    _options: AskOptions
    _output: OutputOptions
    _bar: QuestionProgress

    @classmethod
    @contextmanager
    def of(
        cls,
        policy: str,
        options: AskOptions,
        output: OutputOptions,
        *,
        principal: str,
        dialect: str,
    ) -> Iterator[Self]:
        """Ask about a table for the length of the block."""
        bar = QuestionProgress(output)
        with bar.over("opening the table"):
            session = (
                Session.looking(policy, dialect=dialect)
                if options.dry_run
                else Session(policy, principal=principal, dialect=dialect, progress=bar)
            )
        with session:
            yield cls(session, options, output, bar)

    def emit_all(self, given: Sequence[str]) -> None:
        """Answer statements in order; the first that has no answer ends it.

        On stdout each answer appears when it is there; a file has all of them or is not written.
        """
        if len(given) == 1:
            self._output.emit(self.report(given[0]))
        elif self._output.output is not None:
            texts = [as_text(self.report(sql)) for sql in given]
            self._output.emit_plain("\n\n".join(texts), {})
        else:
            for place, sql in enumerate(given):
                shown = as_text(self.report(sql))
                print(f"\n{shown}" if place else shown, flush=True)

    def report(self, sql: str, **otherwise: bool) -> Report:
        """What a statement leads to; `otherwise` asks this one in another manner."""
        options = replace(self._options, **otherwise)
        if options.dry_run:
            forecast = self._session.forecast(sql, measure=options.measure)
            return forecast_report(forecast, measured=options.measure)
        with self._bar.over("answering"):
            found = self._session.query(sql, measure=options.measure)
        return answer_report(found, session=options.session)

    def budget(self) -> str:
        """Where the budget stands, as text."""
        return as_text(budget_report(self._session.standing()))


# Statements out of lines ------------------------------------------------------------------------


def statements(lines: Iterable[str], dialect: str) -> Iterator[str]:
    """Each statement as soon as its semicolon has come; what is left at the end is one too.

    >>> list(statements(["SELECT\\n", "1; SELECT ';\\n", "'; SELECT 3\\n"], "postgres"))
    ['SELECT\\n1', "SELECT ';\\n'", 'SELECT 3']
    """
    from casemate.query.parse import split

    held = ""
    for line in lines:
        held += line
        if ";" in line and is_ended(held, dialect):
            yield from split(held, dialect)
            held = ""
    yield from split(held, dialect)


def is_ended(text: str, dialect: str) -> bool:
    """Whether no statement of a text is still open.

    Then, and only then, one more word would begin another statement: a semicolon inside quotation
    marks or comments ends nothing.
    """
    from casemate.query.parse import split

    try:
        return len(split(f"{text}\nx", dialect)) > len(split(text, dialect))
    except Unsupported:  # something is not closed yet
        return False


# The conversation -------------------------------------------------------------------------------


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
    with line_history(history_file()):
        while (typed := _read_input(read, dialect)) is not None:
            if typed.strip() in (".quit", "\\q"):
                return
            _answer(asker, typed, dialect)


def _read_input(read: Read, dialect: str) -> str | None:
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
            print(as_text(asker.report(sql)), end="\n\n", flush=True)
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
            return as_text(asker.report(rest, dry_run=True))
        case ".measure" if rest.strip():
            return as_text(asker.report(rest, measure=True))
        case ".help" | "\\?":
            return HELP
        case _:
            return f"there is no command {name} like this; .help lists what there is"
