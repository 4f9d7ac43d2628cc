import io
from collections.abc import Callable

import pytest

from casemate.errors import (
    CasemateError,
    LedgerUnavailable,
    Misconfigured,
    Refused,
    Unsupported,
)
from casemate.report.terminal import Exit, end_of, unsupported_is_refused

SECRET = "Miller has 9.7"


def raised(statement: str, module: str = "casemate.room.module") -> BaseException:
    """What the statement raises when it stands in that module."""
    scope: dict[str, object] = {"__name__": module, "SECRET": SECRET}
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - the caller looks at what it is
        exec(statement, scope)
    return caught.value


def test_refusals_end_with_3_and_other_errors_of_the_users_with_2() -> None:
    assert end_of(Refused("no"))[0] == 3
    assert end_of(LedgerUnavailable("try again"))[0] == 3
    assert end_of(Misconfigured("which"))[0] == 2
    assert end_of(Unsupported("windows"))[0] == 2
    assert end_of(CasemateError("other"))[0] == 2


def test_every_error_of_casemate_is_told_in_its_own_words() -> None:
    where = Unsupported("a window function", "SELECT rank() OVER ()", 1, 8)
    assert end_of(where)[1] == (
        "line 1, column 8: a window function\n  SELECT rank() OVER ()\n         ^"
    )


def test_a_command_may_treat_unsupported_sql_as_refused() -> None:
    with pytest.raises(Refused, match="a window function") as caught, unsupported_is_refused():
        raise Unsupported("a window function")
    assert end_of(caught.value)[0] is Exit.REFUSED


def test_interruption_ends_with_130_and_a_vanished_reader_with_141_and_silence() -> None:
    assert end_of(KeyboardInterrupt()) == (130, "interrupted")
    assert end_of(BrokenPipeError(32, "Broken pipe")) == (141, "")


def test_a_file_that_is_not_there_is_wrong_input() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        open("absent/file")  # noqa: SIM115 - it does not open
    assert end_of(caught.value) == (2, "absent/file: no such file or directory")


def test_a_wrong_argument_raised_by_casemate_is_wrong_input() -> None:
    assert end_of(raised("raise ValueError('need epsilon > 0, got -1')")) == (
        2,
        "need epsilon > 0, got -1",
    )


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


@pytest.mark.parametrize(("value", "shown"), [("1", True), ("0", False), ("", False)])
def test_the_traceback_is_shown_only_to_who_asks_for_it(
    value: str,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CASEMATE_DEBUG", value)
    end_of(raised("int(SECRET)"))
    assert ("Miller" in capsys.readouterr().err) == shown


def test_an_error_that_was_never_raised_is_still_reported() -> None:
    code, sentence = end_of(RuntimeError(SECRET))
    assert code == 70 and "RuntimeError;" in sentence and SECRET not in sentence


def test_subclasses_of_value_error_are_not_taken_for_wrong_arguments() -> None:
    unsupported: Callable[[], int] = io.BytesIO().fileno
    with pytest.raises(io.UnsupportedOperation) as caught:
        unsupported()
    assert end_of(caught.value)[0] is Exit.BUG
