"""The commands `casemate ask`, `budget` and `plan`: their forms, and how they are refused."""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cli.asked import COUNT, GROUPED, PEOPLE, ask, spent, write_people
from cli.running import Captured, assert_one_sentence, shown, told

from casemate.cli.main import exit_code

CASEMATE = Path(sys.executable).parent / "casemate"


@pytest.fixture(autouse=True)
def written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    write_people(folder)


# One statement --------------------------------------------------------------------------------


def test_an_answer_is_about_the_table_and_the_same_question_again_is_free_and_identical(
    capsys: Captured,
) -> None:
    found = ask(capsys, GROUPED)
    fields = ("schema", "columns", "rows", "confidence", "cost", "remaining", "spent", "notes")
    assert tuple(found) == fields and found["schema"] == "casemate.answer/1"
    assert found["columns"] == ["sex", "count"] and found["confidence"] == 0.95
    assert [row[0] for row in found["rows"]] == ["f", "m"]
    for _, cell in found["rows"]:
        assert list(cell) == ["value", "lo", "hi", "error", "source", "proof"]
        assert cell["lo"] <= cell["value"] <= cell["hi"] and cell["error"] > 0
    assert set(found["cost"]) == set(found["remaining"]) == {"rho", "epsilon"}
    assert 0 < found["cost"]["epsilon"] < 1 and 0 < found["remaining"]["epsilon"] < 1
    again = ask(capsys, "select SEX, count( * ) from people group by 1 -- once more")
    assert again["cost"] == {"rho": 0.0, "epsilon": 0.0}
    for (key, cell), (same_key, same) in zip(found["rows"], again["rows"], strict=True):
        assert key == same_key and same == cell | {"source": "cached"}
    ((cell,),) = ask(capsys, COUNT)["rows"]
    assert abs(cell["value"] - PEOPLE) < 20 * cell["error"]  # a false alarm of less than 1e-9


def test_ranges_for_all_answers_at_once_come_on_request_and_are_wider(capsys: Captured) -> None:
    ((cell,),) = ask(capsys, COUNT, "--session")["rows"]
    assert cell["session_lo"] <= cell["lo"] and cell["hi"] < cell["session_hi"]


def test_a_dry_run_says_what_it_costs_at_most_and_charges_nothing(capsys: Captured) -> None:
    found = ask(capsys, GROUPED, "--dry-run")
    assert list(found) == ["schema", "cost", "remaining", "spent", "known", "notes"]
    assert found["schema"] == "casemate.forecast/1" and not found["known"]
    assert spent(capsys) == 0 and found["remaining"]["epsilon"] == pytest.approx(1)
    paid = ask(capsys, GROUPED)["cost"]["rho"]
    assert 0 < paid <= found["cost"]["rho"]
    assert ask(capsys, GROUPED, "--dry-run")["known"]


def test_a_measurement_is_paid_for_once(capsys: Captured) -> None:
    ((cell,),) = ask(capsys, COUNT, "--measure")["rows"]
    before = spent(capsys)
    assert cell["source"] == "measured" and before > 0
    ((again,),) = ask(capsys, COUNT, "--measure")["rows"]
    assert again == cell | {"source": "cached"} and spent(capsys) == before


def test_as_exact_as_asked_costs_what_a_dry_run_says(capsys: Captured) -> None:
    found = ask(capsys, GROUPED, "--within", "25", "--dry-run")
    assert list(found) == ["schema", "cost", "remaining", "spent", "known", "notes"]
    assert spent(capsys) == 0 and not found["known"]
    answer = ask(capsys, GROUPED, "--within", "25")
    assert answer["cost"] == found["cost"] and found["cost"]["rho"] > 0
    assert all(cell["hi"] - cell["lo"] <= 50 for _, cell in answer["rows"])
    assert ask(capsys, GROUPED, "--within", "25", "--dry-run")["known"]
    again = ask(capsys, GROUPED, "--within", "25")
    assert again["cost"]["rho"] == 0
    assert [cell | {"source": "cached"} for _, cell in answer["rows"]] == [
        cell for _, cell in again["rows"]
    ]


def test_what_leaves_nothing_for_the_first_tables_says_so(capsys: Captured) -> None:
    (warned,) = ask(capsys, COUNT, "--within", "9.5", "--dry-run")["notes"][-1:]
    assert "does not pay for the tables" in warned


@pytest.mark.parametrize("width", ["0", "-3", "many", "nan", "inf", "%", "0%", "-1%", ""])
def test_a_width_is_a_positive_number_or_percentage(width: str, capsys: Captured) -> None:
    assert exit_code(["ask", "people.toml", COUNT, f"--within={width}"]) == 2
    assert_one_sentence(capsys, "is no width; give a number above 0, or a percentage")


def test_a_width_and_a_measurement_are_not_asked_for_at_once(capsys: Captured) -> None:
    assert exit_code(["ask", "people.toml", COUNT, "--within", "9", "--measure"]) == 2
    assert_one_sentence(capsys, "give one of them")


def test_a_width_that_cannot_be_paid_is_refused_with_one_that_can(capsys: Captured) -> None:
    assert exit_code(["ask", "people.toml", COUNT, "--within", "0.1"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and "nothing was charged; --within " in printed.err
    assert spent(capsys) == 0
    instead = printed.err.split("--within ")[1].split()[0]
    ((cell,),) = ask(capsys, COUNT, "--within", instead)["rows"]
    assert cell["hi"] - cell["lo"] <= 2 * float(instead)


def test_the_text_is_a_table_with_its_cost(capsys: Captured) -> None:
    printed = told(capsys, "ask", "people.toml", GROUPED)
    head, *rows, blank, source, cost = printed.splitlines()
    assert head.split() == ["sex", "count", "±", "proven,", "95", "%", "source"]
    assert [row.split()[0] for row in rows] == ["f", "m"] and blank == ""
    assert source.split(":")[0] in ("surrogate", "measured")
    assert cost.startswith("cost: epsilon 0 of 1 spent before, ") and cost.endswith(" after")


def test_every_group_is_shown_where_values_may_be_missing_or_somebody_wants_to_see_it(
    folder: Path, capsys: Captured
) -> None:
    assert [key for key, _ in ask(capsys, GROUPED)["rows"]] == ["f", "m"]
    wide = ask(capsys, GROUPED, "--all-groups")
    assert [key for key, _ in wide["rows"]] == ["f", "m", None]
    assert wide["cost"]["rho"] == 0, "it is the same question"
    policy = folder / "people.toml"
    missing = '[columns.sex]\nmissing = "secret"'
    policy.write_text(policy.read_text().replace("[columns.sex]", missing))
    assert [key for key, _ in ask(capsys, GROUPED)["rows"]] == ["f", "m", None]


def test_a_shipped_table_keeps_its_ledger_in_the_folder_one_is_in(
    folder: Path, capsys: Captured
) -> None:
    assert ask(capsys, COUNT, policy="hospital")["cost"]["rho"] > 0
    assert (folder / "hospital.ledger").exists()


def test_dates_are_iso_text_as_answers_and_other_dialects_are_read(capsys: Captured) -> None:
    found = ask(capsys, "SELECT MIN(`joined`) FROM t", "--dialect", "mysql")
    ((cell,),) = found["rows"]
    assert all(str(cell[name]).startswith("2024-") for name in ("value", "lo", "hi"))


# A pipe ---------------------------------------------------------------------------------------


Piped = Callable[..., int]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Piped:
    """The exit code of asking what comes through a pipe."""

    def asked(text: str, *options: str) -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return exit_code(["ask", "people.toml", *options])

    return asked


def test_a_pipe_is_answered_statement_by_statement_also_into_one_file(
    piped: Piped, capsys: Captured
) -> None:
    assert piped(f"{COUNT};\n{GROUPED}\n;") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split()[0] for line in lines if line.endswith("source")]
    assert heads == ["count", "sex"] and sum(line.startswith("cost:") for line in lines) == 2
    assert piped(f"{COUNT}; {GROUPED}", "--output", "answers.txt") == 0
    assert capsys.readouterr() == ("", "wrote answers.txt\n")
    assert Path("answers.txt").read_text().count("cost:") == 2


def test_statements_of_a_pipe_after_one_without_an_answer_are_not_asked(
    piped: Piped, capsys: Captured
) -> None:
    assert piped(f"{COUNT}; SELECT nobody FROM t; {GROUPED};") == 3
    printed = capsys.readouterr()
    assert printed.out.count("cost:") == 1 and "there is no column nobody" in printed.err
    assert ask(capsys, GROUPED, "--dry-run")["known"] is False


@pytest.mark.parametrize(
    ("text", "form", "end"),
    [
        ("", "text", (2, "there is no statement; give SQL after the policy, or on stdin")),
        (" ; -- nothing\n", "text", (2, "there is no statement")),
        ("SELECT 'a", "text", (3, "a quotation mark or comment is never closed")),
        (f"{COUNT}; {GROUPED}", "json", (2, "stdin has 2 statements")),
        (f"{COUNT}; {GROUPED}", "html", (2, "stdin has 2 statements")),
    ],
)
def test_a_pipe_without_a_statement_or_with_two_for_one_object_is_one_sentence(
    text: str, form: str, end: tuple[int, str], piped: Piped, capsys: Captured
) -> None:
    code, sentence = end
    assert piped(text, "--format", form) == code
    assert_one_sentence(capsys, sentence)
    assert form == "text" or not Path("casemate.ledger").exists()


# Refused, and wrong ---------------------------------------------------------------------------


def test_sql_outside_the_fragment_is_refused_and_costs_nothing(capsys: Captured) -> None:
    assert exit_code(["ask", "people.toml", "SELECT sex FROM t"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and "nothing is aggregated here" in printed.err
    assert spent(capsys) == 0


ILL = "SELECT COUNT(*) FROM t WHERE ill = 1"
SURPRISED = 'strategy = "cold"\nsurprises = 1'
RICH = 1000
"""A budget so large that the gate never errs: every question about illness is a surprise."""


@pytest.mark.parametrize(
    ("settings", "epsilon", "sentence"),
    [
        ('strategy = "gaussian"\nquestions = 1', 1, "is left"),
        (SURPRISED, RICH, "found its 1 surprises"),
        ('strategy = "cold"\nsurprises = 5\nration = 1', RICH, "ration of 1 surprises"),
    ],
)
def test_a_budget_a_gate_and_a_ration_that_are_used_up_are_refusals_that_say_what_is_left(
    settings: str, epsilon: int, sentence: str, folder: Path, capsys: Captured
) -> None:
    write_people(folder, f"[answer]\n{settings}\n", epsilon)
    asked = ask(capsys, ILL, "--principal", "alice")
    assert asked["rows"][0][0]["source"] == "measured"
    assert exit_code(["ask", "people.toml", GROUPED, "--principal", "alice"]) == 3
    assert_one_sentence(capsys, sentence)
    if "ration" in settings:
        assert ask(capsys, GROUPED, "--principal", "bob")["rows"]
    if epsilon == 1:
        assert asked["remaining"]["epsilon"] < 0.01  # what rounding leaves


def test_a_policy_may_let_the_stand_in_answer_when_nothing_can_be_checked(
    folder: Path, capsys: Captured
) -> None:
    write_people(folder, f'[answer]\n{SURPRISED}\nexhausted = "unverified"\n', RICH)
    ask(capsys, ILL)
    cell = ask(capsys, GROUPED)["rows"][0][1]
    assert (cell["source"], cell["lo"], cell["hi"]) == ("unverified", None, None)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_conversation_has_no_other_form_than_text(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert exit_code(["ask", "people.toml", "--format", "json"]) == 2
    assert "--format and --output are for statements" in capsys.readouterr().err


# Real processes -------------------------------------------------------------------------------


def test_a_pipe_from_another_program_is_answered_and_remembered(
    folder: Path, capsys: Captured
) -> None:
    command = [str(CASEMATE), "ask", "people.toml"]
    other = subprocess.run(
        command, cwd=folder, input=f"{GROUPED};", capture_output=True, text=True, check=False
    )
    assert (other.returncode, other.stderr) == (0, "")
    lines = [line.split() for line in other.stdout.splitlines()]
    before = {line[0]: line[1] for line in lines[1:3]}
    found = ask(capsys, GROUPED)
    assert found["cost"] == {"rho": 0.0, "epsilon": 0.0}
    assert {key or "NULL": f"{cell['value']:,.0f}" for key, cell in found["rows"]} == before


def test_a_terminal_holds_a_conversation_and_remembers_it(folder: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "TERM": "dumb"}
    with subprocess.Popen(
        [CASEMATE, "ask", "people.toml"], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"SELECT COUNT(*)\nFROM t;\nSELECT x;\n.quit\n")
        shown = b""
        with suppress(OSError):  # the end of a terminal
            while piece := os.read(ours, 10_000):
                shown += piece
        assert process.wait(60) == 0
    os.close(ours)
    text = shown.decode()
    assert "cost: epsilon" in text and "casemate: line 1" in text
    history = folder / "casemate" / "history"
    assert history.read_text().splitlines() == ["SELECT COUNT(*)", "FROM t;", "SELECT x;", ".quit"]
    assert history.stat().st_mode & 0o777 == 0o600


# Budgets ----------------------------------------------------------------------------------------


def budget(capsys: Captured, policy: str = "people.toml") -> dict[str, Any]:
    return shown(capsys, "budget", policy)


@pytest.mark.parametrize("policy", ["people.toml", "hospital"])
def test_where_nothing_was_asked_all_is_left_and_no_file_appears(
    policy: str, folder: Path, capsys: Captured
) -> None:
    before = set(folder.iterdir())
    found = budget(capsys, policy)
    assert found["spent"] == {"rho": 0.0, "epsilon": 0.0}
    assert found["remaining"] == found["budget"] and found["questions"] == 0
    (note,) = found["notes"]
    assert note.startswith("nothing was asked yet: there is no ledger ")
    assert set(folder.iterdir()) == before


def test_what_was_asked_is_spent(capsys: Captured) -> None:
    answer = ask(capsys, GROUPED, "--principal", "alice")
    found = budget(capsys)
    assert found["spent"] == answer["cost"] and found["remaining"] == answer["remaining"]
    assert (found["questions"], found["notes"]) == (0, []), "tables prove it: no gate was asked"
    assert found["strategy"] == "warm" and found["surprises_left"] > 0
    assert "neighbours add-remove, protects person" in found["statement"]
    ask(capsys, GROUPED)
    assert budget(capsys) == found


def test_surprises_are_counted_for_each_principal(folder: Path, capsys: Captured) -> None:
    write_people(folder, '[answer]\nstrategy = "cold"\n', RICH)
    ask(capsys, ILL, "--principal", "bob")
    ask(capsys, "SELECT COUNT(*) FROM t WHERE sex = 'f'", "--principal", "alice")
    found = budget(capsys)
    assert found["surprises"] == 2
    assert found["principals"] == [
        {"principal": "alice", "surprises": 1},
        {"principal": "bob", "surprises": 1},
    ]


def test_a_table_without_delta_has_no_rho(folder: Path, capsys: Captured) -> None:
    path = folder / "people.toml"
    path.write_text(path.read_text().replace("delta = 1e-6", ""))
    assert budget(capsys)["budget"] == {"rho": None, "epsilon": 1.0}
    assert ask(capsys, COUNT)["cost"]["rho"] is None
    assert budget(capsys)["spent"]["epsilon"] > 0


def test_a_budget_as_text(capsys: Captured) -> None:
    printed = told(capsys, "budget", "people.toml")
    assert printed.startswith("people.csv: spent epsilon 0 of 1 at delta 1e-06")
    assert "one person being in it or not" in printed and "strategy   warm" in printed


def test_a_ledger_that_is_gone_is_no_new_one(folder: Path, capsys: Captured) -> None:
    ask(capsys, COUNT)
    for name in ("casemate.ledger", "casemate.ledger-wal", "casemate.ledger-shm"):
        (folder / name).unlink(missing_ok=True)
    assert exit_code(["budget", "people.toml"]) == 3
    assert "casemate.ledger is gone" in capsys.readouterr().err


# Plans ------------------------------------------------------------------------------------------


def test_a_plan_is_made_without_reaching_the_table(folder: Path, capsys: Captured) -> None:
    nowhere = 'postgresql://nobody@nowhere.invalid/db#people"\nkey = "id'
    text = (folder / "people.toml").read_text().replace("people.csv", nowhere)
    (folder / "people.toml").write_text(text + "[columns.id]\nrole = 'identifier'\n")
    (folder / "log.sql").write_text(
        "SELECT COUNT(*) FROM people WHERE ill = 1;\nSELECT sex FROM p;"
    )
    found = shown(capsys, "plan", "people.toml", "--queries", "log.sql")
    assert found["schema"] == "casemate.plan/1"
    assert found["questions"]["read"] == 1
    assert [each["line"] for each in found["refused"]] == [2]
    printed = told(capsys, "plan", "people.toml", "--people", "1000", "--expect", "500")
    assert printed.startswith("recommended: ")
    assert "500 questions (ranges over three attributes assumed), 1,000 people" in printed
