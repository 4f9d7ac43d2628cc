"""Where a command's result goes: the options every command shares, and the bar for long work.

The result goes to stdout or, whole or not at all, to the file of `--output`; `--json` and `--html`
write it to files in these forms beside that. Everything else (notes, progress) goes to stderr, so a
pipe receives the result and nothing but the result.
"""

import json
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TextIO

from cyclopts import Parameter

from casemate.errors import Misconfigured

if TYPE_CHECKING:
    import rich.progress

    from casemate.report.model import Report


SECONDS_BEFORE_PROGRESS = 2.0
"""How long work lasts before a progress bar appears."""


@Parameter(name="*")
@dataclass(frozen=True)
class OutputOptions:
    """The options from `--format` to `--html`, and what they do to a result."""

    format: Annotated[Literal["text", "json", "html"], Parameter(help="Form of the result.")] = (
        "text"
    )
    output: Annotated[
        Path | None,
        Parameter(help="Write the result to this file, whole or not at all, instead of stdout."),
    ] = None
    quiet: Annotated[
        bool, Parameter(negative="", help="Show the result and errors only: no notes, no progress.")
    ] = False

    json: Annotated[
        Path | None, Parameter(help="Write the result as JSON to this file, beside the rest.")
    ] = None
    html: Annotated[
        Path | None, Parameter(help="Write the result as a page to this file, beside the rest.")
    ] = None

    def __post_init__(self) -> None:
        """Refuse a file that cannot be written before any work is done for it."""
        given = {"--output": self.output, "--json": self.json, "--html": self.html}
        files = {option: path for option, path in given.items() if path is not None}
        for option, path in files.items():
            if path.is_dir():
                raise Misconfigured(f"{option} {path} is a folder; give the name of a file")
            if not path.parent.is_dir():
                raise Misconfigured(
                    f"{option} {path} is in a folder that does not exist; create it first"
                )
        if len({path.resolve() for path in files.values()}) < len(files):
            raise Misconfigured(f"{' and '.join(files)} are to be different files")

    def emit(self, report: "Report") -> None:
        """Put a report, in the forms that were asked for, where they were asked for."""
        from casemate.report import as_html, as_json, as_text

        forms: dict[str, Callable[[], str]] = {
            "text": lambda: as_text(report),
            "json": lambda: _json_text(as_json(report)),
            "html": lambda: as_html(report),
        }
        self._emit(forms)

    def emit_plain(self, text: str, fields: Mapping[str, Any]) -> None:
        """The same for a result that has no page."""
        if self.format == "html" or self.html is not None:
            raise Misconfigured("this command has no HTML form; use --format text or json")
        self._emit({"text": lambda: text, "json": lambda: _json_text(fields)})

    def _emit(self, forms: Mapping[str, Callable[[], str]]) -> None:
        for form, path in (("json", self.json), ("html", self.html)):
            if path is not None:
                self._write(f"--{form}", path, forms[form]())
        result = forms[self.format]()
        if self.output is None:
            print(result, end="" if result.endswith("\n") else "\n")
        else:
            self._write("--output", self.output, result)

    def _write(self, option: str, path: Path, result: str) -> None:
        try:
            write_atomically(path, result if result.endswith("\n") else f"{result}\n")
        except OSError as error:
            raise Misconfigured(f"cannot write {option} {path}: {error.strerror}") from error
        self.note(f"wrote {path}")

    def note(self, sentence: str) -> None:
        """Tell the user something that is not part of the result."""
        if not self.quiet:
            print(sentence, file=sys.stderr)

    def progress(self, what: str, total: float | None = None) -> "Progress":
        """A bar for work of `total` steps; None where nobody knows how many there are."""
        return Progress(what, total, silent=self.quiet)


def _json_text(fields: Mapping[str, Any]) -> str:
    """Field names and "schema" are a contract; NaN is not JSON, so it is an error here."""
    return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)


def write_atomically(path: Path, content: str) -> None:
    """Replace the file at once: a reader, or a crash, sees the old content or the new one."""
    target = path.resolve()  # a link keeps pointing where it pointed
    if target.exists() and not target.is_file():
        target.write_text(content, encoding="utf-8")  # a pipe or a device cannot be replaced
        return
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(target: Path) -> int:
    """The permissions the file has, or those any new file of this user would get."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


class Progress:
    """A bar on a terminal for work that lasts; nothing anywhere else, and nothing for quick work.

    It appears by itself, so that one long call to a database shows it too.

    >>> with Progress("reading", total=2) as progress:
    ...     progress.advance()
    ...     progress.advance()
    """

    def __init__(
        self,
        what: str,
        total: float | None = None,
        silent: bool = False,
        stream: TextIO | None = None,
        patience: float = SECONDS_BEFORE_PROGRESS,
    ) -> None:
        self._total, self._done = total, 0.0
        self._words: Callable[[], str] = lambda: what
        self._stream = sys.stderr if stream is None else stream
        self._silent = silent or not self._stream.isatty()
        self._timer = threading.Timer(patience, self._appear)
        self._timer.daemon = True  # it must not keep an interrupted program alive
        self._lock = threading.Lock()
        self._over = False
        self._bar: rich.progress.Progress | None = None

    def __enter__(self) -> Self:
        if not self._silent:
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()

    def advance(self, steps: float = 1) -> None:
        """Count `steps` more of the work as done."""
        with self._lock:
            self._done += steps
            self._show()

    def say(self, words: Callable[[], str]) -> None:
        """What is done from now on; asked for again whenever the line is drawn."""
        self._words = words

    def _appear(self) -> None:
        import rich.console
        import rich.progress
        import rich.text

        class Words(rich.progress.ProgressColumn):
            def render(column, _task: rich.progress.Task) -> rich.text.Text:  # noqa: N805
                return rich.text.Text(self._words())

        console = rich.console.Console(file=self._stream)
        with self._lock:
            if not self._over:
                _, *others = rich.progress.Progress.get_default_columns()
                shown = others if self._total is not None else others[:1]
                self._bar = rich.progress.Progress(Words(), *shown, console=console, transient=True)
                self._bar.add_task("", total=self._total)
                self._bar.start()
                self._show()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
