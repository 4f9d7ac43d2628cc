"""The classifiers that can be named at the terminal: a process, or a Python function."""

import importlib
import json
import queue
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

from casemate.attack.extract.boundary import Floats, Label, Predict
from casemate.errors import Misconfigured

LABEL_TIMEOUT_SECONDS = 60.0
"""Seconds without a label after which a process is taken to be stuck."""

GRACE_SECONDS = 2.0
"""For a process to end once its input is closed, or once it closed its output."""

TOO_MANY = "wrote more lines than it was given points"
Lines = Literal["json", "csv"]


class CommandClassifier:
    """A process as `predict`; a context, at the end of which the process ends too.

    It has a point a line on its stdin, a label a line on its stdout. A point is a JSON array, or
    numbers with commas between. The process is started once, may take its time to start, and is
    asked in batches; it has to write each label before it waits for the next point, so it flushes
    its output. What it writes to stderr goes to ours.
    """

    def __init__(
        self, command: str, lines: Lines = "json", timeout: float = LABEL_TIMEOUT_SECONDS
    ) -> None:
        self._command, self._lines, self._timeout = command, lines, timeout
        self._labels: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._process = self._start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _start(self) -> subprocess.Popen[str]:
        try:
            words = shlex.split(self._command)
        except ValueError:
            raise Misconfigured(self._complaint("has a quote that is not closed")) from None
        if not words:
            raise Misconfigured("--command is empty; write for example 'python classifier.py'")
        try:
            # A session of its own: Ctrl-C is for us, and the best so far is still to be written.
            return subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            reason = (error.strerror or "unknown").lower()
            raise Misconfigured(self._complaint(f"cannot be started: {reason}")) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close its input, end it if that does not, and look for lines that nobody asked for."""
        with suppress(BrokenPipeError):  # it has gone already
            self._input.close()
        try:
            self._process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=GRACE_SECONDS)  # a child of its own may still hold the pipe
        if not self._reader.is_alive():
            self._output.close()
            if error is None and self._has_extra_line():
                raise Misconfigured(self._complaint(TOO_MANY))

    def __call__(self, points: Floats) -> list[Label]:
        """The labels of points, in order."""
        if self._has_extra_line():
            raise Misconfigured(self._complaint(TOO_MANY))
        # It is written from a thread, or a process that answers early would wait for us to read.
        writer = threading.Thread(target=self._write, args=(points.tolist(),), daemon=True)
        writer.start()
        labels = [self._label() for _ in points]
        writer.join()
        return labels

    def _has_extra_line(self) -> bool:
        """Whether a line is there before a point was sent; where it has ended, that is kept."""
        if self._labels.empty():
            return False
        line = self._labels.get()
        if line is None:
            self._labels.put(None)
        return line is not None

    def _write(self, points: list[list[float]]) -> None:
        # Whoever reads the labels finds out when the process is gone.
        with suppress(OSError, ValueError):
            for point in points:
                self._input.write(self._line(point))
            self._input.flush()

    def _line(self, point: list[float]) -> str:
        if self._lines == "json":
            return json.dumps(point) + "\n"
        return ",".join(map(repr, point)) + "\n"

    def _label(self) -> Label:
        try:
            line = self._labels.get(timeout=self._timeout)
        except queue.Empty:
            why = f"gave no label for {self._timeout:g} seconds; it has to flush each line"
            raise Misconfigured(self._complaint(why)) from None
        if line is None:
            self._labels.put(None)  # for whoever asks again
            raise Misconfigured(self._complaint(self._exit_reason()))
        if not line.strip():
            raise Misconfigured(self._complaint("wrote an empty line where a label belongs"))
        return read_label(line.strip())

    def _exit_reason(self) -> str:
        try:
            code = self._process.wait(timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its output before every point had a label"
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"ended {how} before every point had a label"

    def _read(self) -> None:
        for line in self._output:
            self._labels.put(line)
        self._labels.put(None)

    @property
    def _input(self) -> IO[str]:
        assert self._process.stdin is not None  # it was started with a pipe
        return self._process.stdin

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None  # it was started with a pipe
        return self._process.stdout

    def _complaint(self, what: str) -> str:
        return f"the command `{self._command}` {what}"


def read_label(text: str) -> Label:
    """A label as it is written: a number where it is one, else text.

    >>> read_label("1"), read_label("-1.5"), read_label("spam"), read_label('"spam"')
    (1, -1.5, 'spam', 'spam')
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | str) else text


# A Python function, named as `module:function` --------------------------------------------------


FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What goes wrong in somebody else's code; its message may quote what nobody should read."""


def load_predict(name: str) -> Predict:
    """The function behind `module:function`, looked for in the current folder as well."""
    module, separator, path = name.partition(":")
    if not (module and separator and path):
        raise Misconfigured(
            f"--predict {name} is not module:function; write for example model:classifier.predict"
        )
    found = _import_module(module, name)
    for part in path.split("."):
        if not hasattr(found, part):
            raise Misconfigured(f"--predict {name}: there is no {part} in {module}")
        found = getattr(found, part)
    if not callable(found):
        raise Misconfigured(f"--predict {name} is not a function")
    return with_failures_named(found, f"--predict {name}")


def _import_module(module: str, name: str) -> Any:
    try:
        with _current_folder():
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name if error.name != module else None
        if missing and not module.startswith(f"{missing}."):
            raise Misconfigured(f"--predict {name}: {module} needs {missing}; install it") from None
        raise Misconfigured(
            f"--predict {name}: there is no module {module}, neither installed nor in this folder"
        ) from None
    except FAULTS as error:
        raise Misconfigured(
            f"--predict {name}: importing {module} failed with {type(error).__name__}"
        ) from error


@contextmanager
def _current_folder() -> Iterator[None]:
    """Inside, modules of the current folder are found, as `python -m` finds them."""
    folder = str(Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def with_failures_named(predict: Predict, name: str) -> Predict:
    """The same classifier, whose own failures are one sentence."""

    def predict_guarded(points: Floats) -> Any:
        try:
            return predict(points)
        except FAULTS as error:
            rows, columns = points.shape
            raise Misconfigured(
                f"{name} failed with {type(error).__name__} when it was given an array of "
                f"{rows} x {columns} numbers; it has to return a label for each row"
            ) from error

    return predict_guarded
