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
from typing import TYPE_CHECKING, Any, Self

from casemate.answer.report import answer_report, budget_report, forecast_report
from casemate.answer.session import Session
from casemate.errors import CasemateError, Unsupported
from casemate.report import Report, as_text
from casemate.report.terminal import OutputOptions, Progress, end_of, write_atomically

if TYPE_CHECKING:
    from casemate.answer.within import Within

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
    within: "Within | None" = None
    dry_run: bool = False
    session: bool = False
    all_groups: bool = False


@dataclass
class QuestionProgress:
    """The bar of the question at hand, told how many of how many tables are measured."""

    _output: OutputOptions
    _shown: Progress | None = None

    def __call__(self, done: int, tables: int) -> None:
        """So many tables are measured; when all are, the stand-in is fitted to them."""
        if self._shown is None:
            return
        if done < tables:
            self._shown.say(lambda: f"measuring table {done + 1} of {tables}")
        else:
            self._shown.say(lambda: "fitting the stand-in")
        if done:
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

    def report(self, sql: str, **otherwise: Any) -> Report:
        """What a statement leads to; `otherwise` asks this one in another manner."""
        options = replace(self._options, **otherwise)
        manner: dict[str, Any] = {"measure": options.measure, "within": options.within}
        if options.dry_run:
            forecast = self._session.forecast(sql, **manner)
            paid = options.measure or options.within is not None
            return forecast_report(forecast, measured=paid)
        with self._bar.over("answering"):
            found = self._session.query(sql, **manner, all_groups=options.all_groups)
        return answer_report(found, session=options.session)

    def budget(self) -> str:
        """Where the budget stands, as text."""
        return as_text(budget_report(self._session.standing()))

    def columns(self) -> str:
        """What may be asked about, as text."""
        return self._session.describe()


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
.within W SELECT …  pay for what it takes to prove it to W either way, or to W%
.columns or  \\d     the columns, their values or bins, and what is measured
.budget  or  \\b     what is spent and what is left
.help    or  \\?     this list; so does help
.quit    or  \\q     leave; so do quit, exit and Ctrl-D, and Ctrl-C forgets what is typed"""
WORDS = {"help": ".help", "quit": ".quit", "exit": ".quit"}
"""What is no statement, and needs no semicolon."""

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
        if not held and (line.lstrip()[:1] in (".", "\\") or _word(line) in WORDS):
            return WORDS.get(_word(line), line)
        held = f"{held}{line}\n" if held or line.strip() else ""
        if ";" in line and is_ended(held, dialect):
            return held


def _word(line: str) -> str:
    """A line as one word, however it is ended."""
    return line.strip().removesuffix(";").rstrip().lower()


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
        case ".cost" | ".measure" if rest.strip():
            paid = {"measure": True, "within": None} if name == ".measure" else {"dry_run": True}
            return as_text(asker.report(rest, **paid))
        case ".within" if len(rest.split()) > 1:
            from casemate.answer.within import Within

            width, sql = rest.split(maxsplit=1)
            return as_text(asker.report(sql, within=Within.parse(width), measure=False))
        case ".columns" | "\\d":
            return asker.columns()
        case ".help" | "\\?":
            return HELP
        case _:
            return f"there is no command {name} like this; there are:\n{HELP}"
