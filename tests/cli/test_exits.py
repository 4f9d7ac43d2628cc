"""How a command ends: exit codes, and every error as one sentence that quotes no value."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from cli.running import Captured
from cyclopts import App

from casemate import _version
from casemate.cli import main
from casemate.errors import (
    CasemateError,
    LedgerUnavailable,
    Misconfigured,
    Refused,
    Unsupported,
)
from casemate.report.terminal import Exit, end_of, unsupported_is_refused

CASEMATE = Path(sys.executable).parent / "casemate"
SECRET = "Miller has 9.7"
NO_FILE = FileNotFoundError(2, "No such file or directory", "x")
WHERE = Unsupported("a window function", "SELECT rank() OVER ()", 1, 8)


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (None, 0, ""),
        (0, 0, ""),
        (1, 1, ""),
        (Misconfigured("p.toml: min is above max"), 2, "casemate: p.toml: min is above max\n"),
        (CasemateError("other"), 2, "casemate: other\n"),
        (
            WHERE,
            2,
            "casemate: line 1, column 8: a window function\n  SELECT rank() OVER ()\n         ^\n",
        ),
        (NO_FILE, 2, "casemate: x: no such file or directory\n"),
        (Refused("nothing is left"), 3, "casemate: nothing is left\n"),
        (LedgerUnavailable("try again"), 3, "casemate: try again\n"),
        (KeyboardInterrupt(), 130, "casemate: interrupted\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (SystemExit(3), 3, ""),
        (SystemExit(), 0, ""),
        (SystemExit(SECRET), 70, "casemate: a bug in casemate: SystemExit at "),
        (KeyError(SECRET), 70, "casemate: a bug in casemate: KeyError at "),
    ],
)
def test_a_command_ends_with_its_code_and_one_sentence(
    end: BaseException | int | None,
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    program = App(name="casemate", suppress_keyboard_interrupt=False)

    @program.default
    def command() -> int | None:
        if isinstance(end, BaseException):
            raise end
        return end

    monkeypatch.setattr(main, "app", program)
    assert main.exit_code([]) == code
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith(told) and SECRET not in printed.err
    assert code == Exit.BUG or printed.err == told


def test_a_command_may_treat_unsupported_sql_as_refused() -> None:
    with pytest.raises(Refused, match="a window function") as caught, unsupported_is_refused():
        raise Unsupported("a window function")
    assert end_of(caught.value)[0] is Exit.REFUSED


def raised(statement: str, module: str = "casemate.room.module") -> BaseException:
    """What the statement raises when it stands in that module."""
    scope: dict[str, object] = {"__name__": module, "SECRET": SECRET, "io": io}
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - the caller looks at what it is
        exec(statement, scope)
    return caught.value


def test_a_wrong_argument_raised_by_casemate_is_wrong_input() -> None:
    wrong = raised("raise ValueError('need epsilon > 0, got -1')")
    assert end_of(wrong) == (2, "need epsilon > 0, got -1")


@pytest.mark.parametrize(
    ("statement", "module"),
    [
        ("int(SECRET)", "casemate.room.module"),  # the text is quoted by Python, not by us
        ("float(SECRET)", "casemate.room.module"),
        ("raise ValueError(SECRET)", "other.library"),
        ("raise ValueError(SECRET)", "casematelike"),
        ("bytes([200]).decode() + SECRET", "casemate.room.module"),
        ("{}[SECRET]", "casemate.room.module"),
        ("raise KeyError(SECRET)", "casemate.room.module"),
        ("raise OSError(SECRET)", "other.library"),
        ("raise io.UnsupportedOperation(SECRET)", "casemate.room.module"),
        ("assert not SECRET, SECRET", "casemate.room.module"),
    ],
)
def test_an_accident_is_a_bug_told_by_type_and_place_without_its_message(
    statement: str, module: str
) -> None:
    error = raised(statement, module)
    code, sentence = end_of(error)
    assert code == 70
    assert type(error).__name__ in sentence and "<string>:1" in sentence
    assert "Miller" not in sentence and "9.7" not in sentence


def test_an_error_that_was_never_raised_is_still_reported() -> None:
    code, sentence = end_of(RuntimeError(SECRET))
    assert code == 70 and "RuntimeError;" in sentence and SECRET not in sentence


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_the_traceback_is_shown_only_to_who_asks_for_it(
    value: str, shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("CASEMATE_DEBUG", value)
    end_of(raised("int(SECRET)"))
    assert ("Miller" in capsys.readouterr().err) == shown


# The real program ------------------------------------------------------------------------------


def process(
    *command: str | Path, stdout: int | IO[str] = subprocess.PIPE
) -> tuple[int, str | None, str]:
    """The exit code, stdout and stderr of a program."""
    shown = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return shown.returncode, shown.stdout, shown.stderr


def test_the_program_shows_its_version_its_help_and_what_is_wrong() -> None:
    for program in ([CASEMATE], [sys.executable, "-m", "casemate"]):
        assert process(*program, "--version") == (0, f"casemate {_version.VERSION}\n", "")
    code, shown, _ = process(CASEMATE, "--help")
    assert process(CASEMATE) == (code, shown, "")
    assert code == 0 and "Usage: casemate COMMAND" in str(shown)
    told = 'casemate: unknown command "xyzzy"; see casemate --help\n'
    assert process(CASEMATE, "xyzzy") == (2, "", told)


def test_a_misspelt_verb_is_answered_without_importing_the_verbs() -> None:
    script = (
        "import sys; from casemate.cli.main import exit_code; exit_code(['polcy']); "
        "sys.exit(any(name.startswith('casemate.cli.policy') for name in sys.modules))"
    )
    told = 'casemate: unknown command "polcy"; did you mean casemate policy?\n'
    assert process(sys.executable, "-c", script) == (0, "", told)


def test_a_reader_that_went_away_is_met_with_silence_and_a_full_disk_is_one_sentence() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert process(CASEMATE, "--help", stdout=writing) == (141, None, "")
    os.close(writing)
    with open("/dev/full", "w") as full:
        told = "casemate: no space left on device\n"
        assert process(CASEMATE, "--help", stdout=full) == (2, None, told)


# What it imports --------------------------------------------------------------------------------

HEAVY = {"numpy", "scipy", "numba", "duckdb", "sqlglot", "ortools", "nats", "redis"}


def imported_by(*arguments: str) -> set[str]:
    """The top-level packages a fresh interpreter imports to run this."""
    _, _, shown = process(sys.executable, "-X", "importtime", *arguments)
    lines = [line for line in shown.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@pytest.mark.parametrize(
    "words", ["--help", "--version", "track --help", "track simulate --help", "track server --help"]
)
def test_help_and_version_import_nothing_heavy(words: str) -> None:
    imported = imported_by("-m", "casemate", *words.split())
    assert "cyclopts" in imported and not imported & HEAVY


def test_importing_casemate_imports_neither_the_heavy_packages_nor_the_command_line() -> None:
    assert not imported_by("-c", "import casemate") & {*HEAVY, "cyclopts", "rich"}
    assert imported_by("-c", "import numpy") & HEAVY == {"numpy"}  # which would be noticed
