import io
import json
import os
import stat
import time
from pathlib import Path
from typing import Literal

import pytest
from cli.running import Captured
from cyclopts import App
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.report import Report
from casemate.report.terminal import OutputOptions, Progress, write_atomically

FIELDS = {"schema": "casemate.example/1", "people": 3}


def parsed(*arguments: str) -> OutputOptions:
    """The options as the command line gives them to a command."""
    program = App(name="program")

    @program.default
    def command(*, output: OutputOptions = OutputOptions()) -> OutputOptions:  # noqa: B008 - how cyclopts takes it
        return output

    shared: OutputOptions = program(arguments, exit_on_error=False, result_action="return_value")
    return shared


def emitted(output: OutputOptions, capsys: Captured) -> tuple[str, str]:
    output.emit_plain("three people", FIELDS)
    shown = capsys.readouterr()
    return shown.out, shown.err


def test_the_command_line_gives_the_options_without_a_prefix(tmp_path: Path) -> None:
    file = tmp_path / "out"
    assert parsed() == OutputOptions("text", None, False)
    assert parsed("--format", "json", "--output", str(file), "--quiet") == OutputOptions(
        "json", file, True
    )


@pytest.mark.parametrize("quiet", [False, True])
def test_the_result_goes_to_stdout_or_to_a_file_with_a_note_unless_it_is_quiet(
    quiet: bool, tmp_path: Path, capsys: Captured
) -> None:
    assert emitted(OutputOptions(quiet=quiet), capsys) == ("three people\n", "")
    out, err = emitted(OutputOptions("json", quiet=quiet), capsys)
    assert json.loads(out) == FIELDS and err == ""
    file = tmp_path / "out.json"
    note = "" if quiet else f"wrote {file}\n"
    assert emitted(OutputOptions("json", file, quiet), capsys) == ("", note)
    assert json.loads(file.read_text()) == FIELDS


@pytest.mark.parametrize(
    ("form", "start"), [("text", "three people\n"), ("json", "{\n"), ("html", "<!DOCTYPE html>\n")]
)
def test_a_report_is_printed_in_the_form_that_was_asked_for(
    form: Literal["text", "json", "html"], start: str, capsys: Captured
) -> None:
    OutputOptions(form).emit(Report("casemate count", "three people", lambda: FIELDS))
    assert capsys.readouterr().out.startswith(start)


def test_what_has_no_form_is_an_error_and_nothing_is_printed(capsys: Captured) -> None:
    with pytest.raises(Misconfigured, match="has no HTML form; use --format text or json"):
        emitted(OutputOptions("html"), capsys)
    with pytest.raises(ValueError, match="not JSON compliant"):
        OutputOptions("json").emit_plain("text", {"error": float("nan")})
    assert capsys.readouterr().out == ""


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="is a folder; give the name of a file"):
        parsed("--output", str(tmp_path))
    with pytest.raises(Misconfigured, match="in a folder that does not exist; create it first"):
        parsed("--output", str(tmp_path / "absent" / "out"))
    assert not (tmp_path / "absent").exists()


def test_a_folder_that_goes_away_during_the_work_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    output = OutputOptions("text", folder / "out")
    folder.rmdir()
    with pytest.raises(Misconfigured, match=r"cannot write --output .*: No such file"):
        output.emit_plain("text", FIELDS)


# Files --------------------------------------------------------------------------------------------


@given(content=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")))
def test_what_is_written_is_what_is_read(
    content: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("written") / "out"
    write_atomically(file, content)
    assert file.read_text(encoding="utf-8") == content


def test_permissions_links_and_devices_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    write_atomically(tmp_path / "new", "x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode
    file, link = tmp_path / "secret", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, "new")
    assert link.is_symlink() and file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    write_atomically(Path("/dev/null"), "gone")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    file = tmp_path / "out"
    file.write_text("old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, "new")
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]


# Progress -----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, patience: float, silent: bool = False, wait_for: str = "") -> str:
    """What work that is two fifths done shows, once it shows what we wait for."""
    with Progress("reading", 5, silent, stream, patience) as progress:
        progress.advance()
        progress.advance()
        for _ in range(1000):
            if wait_for in stream.getvalue():
                break
            time.sleep(0.01)
    return stream.getvalue()


def test_long_work_shows_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    seen = shown(Terminal(), patience=0, wait_for="40%")
    assert "reading" in seen and "40%" in seen


def test_quick_work_a_pipe_and_quiet_show_nothing() -> None:
    assert shown(Terminal(), patience=60) == ""
    assert shown(io.StringIO(), patience=0) == ""
    assert shown(Terminal(), patience=0, silent=True) == ""
    assert OutputOptions(quiet=True).progress("reading", 1)._silent


def test_a_bar_that_would_appear_after_the_work_does_not() -> None:
    stream = Terminal()
    with Progress("reading", 1, stream=stream, patience=60) as progress:
        pass
    progress._appear()  # the timer had fired already, and lost the race
    assert stream.getvalue() == ""
