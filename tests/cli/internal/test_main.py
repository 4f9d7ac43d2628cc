import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Annotated, Literal

import pytest
from cyclopts import App, Parameter

from casemate import _version
from casemate.cli import main
from casemate.errors import Misconfigured, Refused

CASEMATE = Path(sys.executable).parent / "casemate"


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException | int | None], int]:
    """The exit code of a program whose only command ends that way."""

    def run(end: BaseException | int | None) -> int:
        program = App(name="casemate", suppress_keyboard_interrupt=False)

        @program.default
        def command() -> int | None:
            if isinstance(end, BaseException):
                raise end
            return end

        monkeypatch.setattr(main, "app", program)
        return main.exit_code([])

    return run


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The exit code of a program with the commands `audit FILE --form json|text` and `attack`."""
    program = App(name="casemate")

    @program.command
    def audit(
        file: str,
        /,
        *,
        form: Literal["json", "text"] = "text",
        size: Annotated[int, Parameter(help="How many.")] = 1,
    ) -> None:
        print("ran")

    @program.command
    def attack() -> None:
        print("ran")

    monkeypatch.setattr(main, "app", program)
    return lambda *arguments: main.exit_code(arguments)


def test_what_a_command_returns_is_the_exit_code(
    ends: Callable[[BaseException | int | None], int],
) -> None:
    assert [ends(None), ends(0), ends(1)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (Misconfigured("p.toml: min is greater than max"), 2, "p.toml: min is greater than max"),
        (Refused("nothing is left"), 3, "nothing is left"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(2, "No such file or directory", "x"), 2, "x: no such file or directory"),
    ],
)
def test_an_error_is_one_sentence_on_stderr_and_nothing_on_stdout(
    error: BaseException,
    code: int,
    told: str,
    ends: Callable[[BaseException | int | None], int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ends(error) == code
    assert capsys.readouterr() == ("", f"casemate: {told}\n")


def test_a_bug_does_not_show_what_it_was_about(
    ends: Callable[[BaseException | int | None], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ends(KeyError("Miller")) == 70
    shown = capsys.readouterr()
    assert shown.out == "" and "KeyError at " in shown.err and "Miller" not in shown.err


def test_a_command_may_leave_by_itself(ends: Callable[[BaseException | int | None], int]) -> None:
    assert ends(SystemExit(3)) == 3
    assert ends(SystemExit()) == 0
    assert ends(SystemExit("a sentence somebody else wrote")) == 70


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["adit"], 'unknown command "adit"; did you mean casemate audit?'),
        (["xyzzy"], 'unknown command "xyzzy"; see casemate --help'),
        (["audit"], "FILE is missing; see casemate audit --help"),
        (["audit", "a", "b"], 'unexpected argument "b"; see casemate audit --help'),
        (["audit", "a", "--from", "json"], "unknown option: --from. Did you mean --form?"),
        (["audit", "a", "--size", "many"], 'unable to convert "many" into int.'),
        (["audit", "a", "--form"], "parameter --form requires an argument."),
        (["audit", "a", "--form", "jsn"], 'Did you mean "json"?'),
    ],
)
def test_a_wrong_command_line_is_a_plain_sentence_and_nothing_runs(
    arguments: list[str],
    told: str,
    parses: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert parses(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("casemate: ")
    assert told in shown.err and shown.err.count("\n") == 1


def test_a_right_command_line_runs(
    parses: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert parses("audit", "a", "--form", "json") == 0
    assert capsys.readouterr() == ("ran\n", "")


# The real program ------------------------------------------------------------------------------


def process(
    *command: str | Path, stdout: int | IO[str] = subprocess.PIPE
) -> tuple[int, str | None, str]:
    """The exit code, stdout and stderr of a program."""
    shown = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
    return shown.returncode, shown.stdout, shown.stderr


@pytest.mark.parametrize("program", [[CASEMATE], [sys.executable, "-m", "casemate"]])
def test_the_version_is_the_packages(program: list[str | Path]) -> None:
    assert process(*program, "--version") == (0, f"casemate {_version.VERSION}\n", "")


def test_without_a_command_it_shows_the_help() -> None:
    code, shown, _ = process(CASEMATE, "--help")
    assert process(CASEMATE) == (code, shown, "")
    assert code == 0 and "Usage: casemate COMMAND" in str(shown)


def test_wrong_input_ends_the_process_with_2() -> None:
    told = 'casemate: unknown command "xyzzy"; see casemate --help\n'
    assert process(CASEMATE, "xyzzy") == (2, "", told)


def test_a_misspelt_verb_is_answered_without_importing_the_verbs() -> None:
    script = (
        "import sys; from casemate.cli.main import exit_code; exit_code(['polcy']); "
        "sys.exit(any(name.startswith('casemate.cli.policy') for name in sys.modules))"
    )
    told = 'casemate: unknown command "polcy"; did you mean casemate policy?\n'
    assert process(sys.executable, "-c", script) == (0, "", told)


def test_a_reader_that_went_away_is_met_with_silence() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    assert process(CASEMATE, "--help", stdout=writing) == (141, None, "")
    os.close(writing)


def test_a_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        told = "casemate: no space left on device\n"
        assert process(CASEMATE, "--help", stdout=full) == (2, None, told)
