"""A conversation: statements over several lines, commands, errors after which it goes on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cli.asked import COUNT, GROUPED, write_people
from cli.running import Captured

from casemate.answer.conversation import HELP, MORE, PROMPT, WELCOME, Asker, AskOptions, converse
from casemate.report.terminal import OutputOptions

Typed = Callable[..., tuple[str, str]]


class Keyboard:
    """Types lines, then presses Ctrl-D; an exception stands for a key."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self.lines, self.prompts = list(lines), list[str]()

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if not self.lines:
            raise EOFError
        line = self.lines.pop(0)
        if isinstance(line, str):
            return line
        raise line


@pytest.fixture
def asker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asker]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    write_people(tmp_path)
    quiet = OutputOptions(quiet=True)
    with Asker.of("people.toml", AskOptions(), quiet, principal="", dialect="postgres") as asker:
        yield asker


@pytest.fixture
def type_(asker: Asker, capsys: Captured) -> Typed:
    """What is printed, and what is said beside it, when these lines are typed."""

    def typed(*lines: str | type[BaseException]) -> tuple[str, str]:
        converse(asker, "postgres", Keyboard(*lines))
        printed = capsys.readouterr()
        return printed.out, printed.err.removeprefix(f"{WELCOME}\n").strip()

    return typed


def test_a_width_is_asked_for_with_its_statement(type_: Typed) -> None:
    printed, said = type_(f".within 30 {COUNT}", f".within 30 {COUNT}")
    assert "measured: measured in the table" in printed and "cached: " in printed and not said
    assert "no command .within like this" in type_(".within 30")[0]
    assert "is no width" in type_(f".within x {COUNT}")[1]


def test_a_statement_goes_on_until_its_semicolon(asker: Asker, capsys: Captured) -> None:
    keyboard = Keyboard("", "SELECT sex,", "", "COUNT(*) FROM t GROUP BY sex;")
    converse(asker, "postgres", keyboard)
    assert keyboard.prompts == [PROMPT, PROMPT, MORE, MORE, PROMPT]
    assert capsys.readouterr().out.splitlines()[0].split()[:2] == ["sex", "count"]


def test_commands_show_the_budget_a_cost_and_help(type_: Typed) -> None:
    printed, _ = type_(".budget", "\\b")
    assert printed.count("people.csv: spent epsilon 0 of 1") == 2
    assert type_(f".cost {COUNT}")[0].startswith("costs at most: epsilon 0 of 1 spent before, ")
    assert type_("\\?")[0] == type_(".help")[0] == f"{HELP}\n"
    assert "spent epsilon 0 of 1" in type_("\\b")[0]  # so nothing of this was charged


def test_the_columns_are_shown_with_their_cells_and_what_is_measured(type_: Typed) -> None:
    before, after = (type_(*lines, "\\d")[0] for lines in ((), (f"{COUNT};",)))
    head, sex, joined, ill, _, first, since = before.splitlines()
    assert head.split() == ["column", "type", "cells", "missing"]
    assert sex.split() == ["sex", "text", "f,", "m", "none"]
    assert joined.split()[:4] == ["joined", "date", "2", "bins"]
    assert ill.split() == ["ill", "integer", "0,", "1", "none"]
    assert first.startswith("strategy warm: the number of people and ")
    assert first.endswith(" will be measured first") and since.endswith("0 tables")
    assert after.splitlines()[-2].endswith(" was measured")
    assert type_(".columns")[0] in after


def test_help_needs_neither_dot_nor_semicolon(type_: Typed) -> None:
    assert type_("help")[0] == type_(" Help ;")[0] == f"{HELP}\n"


def test_a_better_strategy_is_named_until_something_is_spent(type_: Typed) -> None:
    named = "nothing is spent yet, so the policy can still be changed"
    assert named in type_(f".cost {GROUPED}")[0]
    assert named not in type_(f"{COUNT};", f".cost {GROUPED}")[0]


def test_a_command_that_is_none_is_told(type_: Typed) -> None:
    for name in (".bugdet", "\\x"):
        told = f"there is no command {name} like this; there are:\n{HELP}\n"
        assert type_(name)[0] == told
    assert "no command .cost like this" in type_(".cost")[0]


@pytest.mark.parametrize(
    ("lines", "answers", "beside"),
    [
        ((f"{COUNT}; {GROUPED};",), 2, ""),
        (
            ("SELECT nobody FROM t;", f"{COUNT};"),
            1,
            "casemate: line 1, column 8: there is no column nobody",
        ),
        (("SELECT nonsense '", KeyboardInterrupt, f"{COUNT};"), 1, ""),  # Ctrl-C forgets the line
        ((".quit", f"{COUNT};"), 0, ""),
        (("\\q", f"{COUNT};"), 0, ""),
        (("quit", f"{COUNT};"), 0, ""),
        (("EXIT;", f"{COUNT};"), 0, ""),
        ((COUNT,), 0, ""),  # it was never ended
    ],
)
def test_statements_are_answered_in_order_and_an_error_does_not_end_the_conversation(
    lines: tuple[str | type[BaseException], ...], answers: int, beside: str, type_: Typed
) -> None:
    printed, said = type_(*lines)
    assert printed.count("cost:") == answers and said.startswith(beside)
    assert bool(said) == bool(beside) and (answers > 0 or printed == "")


def test_ctrl_c_during_an_answer_does_not_end_the_conversation(
    type_: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("casemate.answer.session.Session.query", interrupted)
    printed, said = type_(f"{COUNT};", f"{COUNT};")
    assert "asking again charges nothing twice" in said and printed.count("cost:") == 1
