"""What was typed before is kept for its owner alone, and never stands in the way."""

import os
import readline
import stat
from pathlib import Path

import pytest

from casemate.answer import conversation as ask_history
from casemate.answer.conversation import history_file, line_history


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def typed() -> list[str | None]:
    """The lines that the arrow keys bring back."""
    return [
        readline.get_history_item(place + 1)
        for place in range(readline.get_current_history_length())
    ]


def test_lines_are_there_again_the_next_time_for_the_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "state" / "history"
    with line_history(file):
        readline.add_history("SELECT 1;")
        readline.add_history("SELECT 'ü';")
    assert mode(tmp_path / "state") == 0o700
    file.chmod(0o644)
    with line_history(file):
        assert typed() == ["SELECT 1;", "SELECT 'ü';"]
        readline.add_history("SELECT 3;")
    assert file.read_text() == "SELECT 1;\nSELECT 'ü';\nSELECT 3;\n"
    assert mode(file) == 0o600 and [each.name for each in file.parent.iterdir()] == ["history"]


def test_only_the_newest_lines_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask_history, "MAX_HISTORY_LINES", 2)
    with line_history(tmp_path / "history"):
        for line in "abc":
            readline.add_history(line)
    assert (tmp_path / "history").read_text() == "b\nc\n"


def test_they_are_kept_when_a_conversation_ends_in_an_accident(tmp_path: Path) -> None:
    def conversation() -> None:
        with line_history(tmp_path / "history"):
            readline.add_history("a")
            raise KeyError

    with pytest.raises(KeyError):
        conversation()
    assert (tmp_path / "history").read_text() == "a\n"


def test_a_place_that_cannot_be_written_is_no_error_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "history").write_text("old\n")
    monkeypatch.setattr(os, "replace", fail)
    for file in (tmp_path / "history", tmp_path / "history" / "below a file"):
        with line_history(file):
            readline.add_history("new")
    assert (tmp_path / "history").read_text() == "old\n" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("given", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_without_a_folder_of_its_own_it_is_the_usual_one(given: dict[str, str]) -> None:
    assert history_file(given) == Path.home() / ".local" / "state" / "casemate" / "history"
