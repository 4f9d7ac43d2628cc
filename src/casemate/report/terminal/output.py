"""Where a command's result goes: the options every command shares, and the bar for long work.

The result goes to stdout or, whole or not at all, to the file of `--output`. Everything else
(notes, progress) goes to stderr, so a pipe receives the result and nothing but the result.
"""

import json
import os
import stat
import sys
import tempfile
import threading
from collections.abc import Mapping
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
    """The options `--format`, `--output` and `--quiet`, and what they do to a result."""

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

    def __post_init__(self) -> None:
        """Refuse a file that cannot be written before any work is done for it."""
        if self.output is None:
            return
        if self.output.is_dir():
            raise Misconfigured(f"--output {self.output} is a folder; give the name of a file")
        if not self.output.parent.is_dir():
            raise Misconfigured(
                f"--output {self.output} is in a folder that does not exist; create it first"
            )

    def emit(self, report: "Report") -> None:
        """Put a report, in the form that was asked for, where it was asked for."""
        from casemate.report import as_html, as_json, as_text

        if self.format == "html":
            self._write(as_html(report))
        elif self.format == "json":
            self._write(_json_text(as_json(report)))
        else:
            self._write(as_text(report))

    def emit_plain(self, text: str, fields: Mapping[str, Any]) -> None:
        """The same for a result that has no page."""
        if self.format == "html":
            raise Misconfigured("this command has no HTML form; use --format text or json")
        self._write(_json_text(fields) if self.format == "json" else text)

    def _write(self, result: str) -> None:
        result = result if result.endswith("\n") else f"{result}\n"
        if self.output is None:
            print(result, end="")
            return
        try:
            write_atomically(self.output, result)
        except OSError as error:
            raise Misconfigured(f"cannot write --output {self.output}: {error.strerror}") from error
        self.note(f"wrote {self.output}")

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
        self._what, self._total, self._done = what, total, 0.0
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

    def _appear(self) -> None:
        import rich.console
        import rich.progress

        console = rich.console.Console(file=self._stream)
        with self._lock:
            if not self._over:
                self._bar = rich.progress.Progress(console=console, transient=True)
                self._bar.add_task(self._what, total=self._total)
                self._bar.start()
                self._show()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
