"""The command `casemate ask`: one statement, a pipe of them, its forms, and how it is refused."""

import io
import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import suppress
from pathlib import Path

import pytest
from cli.asked import COUNT, GROUPED, PEOPLE, Captured, ask, spent, written

from casemate.cli.main import ended

CASEMATE = Path(sys.executable).parent / "casemate"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return written(tmp_path)


# One statement --------------------------------------------------------------------------------


def test_an_answer_is_an_object_with_exactly_the_fields_of_its_schema(capsys: Captured) -> None:
    found = ask(capsys, GROUPED)
    fields = ("schema", "columns", "rows", "confidence", "cost", "remaining", "notes")
    assert tuple(found) == fields
    assert found["schema"] == "casemate.answer/1"
    assert found["columns"] == ["sex", "count"] and found["confidence"] == 0.95
    assert [row[0] for row in found["rows"]] == ["f", "m", None]
    for _, cell in found["rows"]:
        assert list(cell) == ["value", "lo", "hi", "error", "source"]
        assert cell["lo"] <= cell["value"] <= cell["hi"] and cell["error"] > 0
    assert set(found["cost"]) == set(found["remaining"]) == {"rho", "epsilon"}
    assert 0 < found["cost"]["epsilon"] < 1 and 0 < found["remaining"]["epsilon"] < 1


def test_the_answer_is_about_the_table(capsys: Captured) -> None:
    ((cell,),) = ask(capsys, COUNT)["rows"]
    assert abs(cell["value"] - PEOPLE) < 20 * cell["error"]  # a false alarm of less than 1e-9


def test_the_same_question_again_is_free_and_identical_however_it_is_written(
    capsys: Captured,
) -> None:
    first = ask(capsys, GROUPED)
    again = ask(capsys, "select SEX, count( * ) from people group by 1 -- once more")
    assert again["cost"] == {"rho": 0.0, "epsilon": 0.0}
    for (key, cell), (same_key, same) in zip(first["rows"], again["rows"], strict=True):
        assert key == same_key and same == cell | {"source": "cached"}


def test_ranges_for_all_answers_at_once_come_on_request_and_are_wider(capsys: Captured) -> None:
    ((cell,),) = ask(capsys, COUNT, "--session")["rows"]
    assert cell["session_lo"] <= cell["lo"] and cell["hi"] < cell["session_hi"]


def test_a_dry_run_says_what_it_costs_at_most_and_charges_nothing(capsys: Captured) -> None:
    found = ask(capsys, GROUPED, "--dry-run")
    assert list(found) == ["schema", "cost", "remaining", "known", "notes"]
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


def test_a_measurement_can_be_foretold(capsys: Captured) -> None:
    foretold = ask(capsys, COUNT, "--measure", "--dry-run")["cost"]["rho"]
    assert spent(capsys) == 0
    assert 0 < ask(capsys, COUNT, "--measure")["cost"]["rho"] <= foretold


def test_the_text_is_a_table_with_its_cost(capsys: Captured) -> None:
    assert ended(["ask", "people.toml", GROUPED]) == 0
    head, *rows, blank, source, cost = capsys.readouterr().out.splitlines()
    assert head.split() == ["sex", "count", "±", "proven,", "95", "%", "source"]
    assert [row.split()[0] for row in rows] == ["f", "m", "NULL"] and blank == ""
    assert source.split(":")[0] in ("surrogate", "measured")
    assert cost.startswith("cost: rho ") and "; left: rho " in cost


def test_a_page_draws_a_range_for_every_row(folder: Path) -> None:
    page = folder / "answer.html"
    options = ["--format", "html", "--output", str(page), "--quiet"]
    assert ended(["ask", "people.toml", GROUPED, *options]) == 0
    (plot,) = ET.fromstring(page.read_text()).iter("svg")
    assert len(list(plot.iter("polyline"))) == 3
    assert ended(["ask", "people.toml", GROUPED, "--dry-run", *options]) == 0
    assert "it was answered before" in page.read_text().lower()


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


def piped(monkeypatch: pytest.MonkeyPatch, text: str, *options: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return ended(["ask", "people.toml", *options])


def test_a_pipe_is_answered_statement_by_statement(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, f"{COUNT};\n{GROUPED}\n;") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split()[0] for line in lines if line.endswith("source")]
    assert heads == ["count", "sex"] and sum(line.startswith("cost:") for line in lines) == 2


def test_statements_of_a_pipe_after_one_without_an_answer_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, f"{COUNT}; SELECT nobody FROM t; {GROUPED};") == 3
    printed = capsys.readouterr()
    assert printed.out.count("cost:") == 1 and "there is no column nobody" in printed.err
    assert ask(capsys, GROUPED, "--dry-run")["known"] is False


def test_one_statement_of_a_pipe_may_be_an_object(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, COUNT, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["columns"] == ["count"]


@pytest.mark.parametrize("form", ["json", "html"])
def test_several_statements_are_never_one_object_and_nothing_is_asked(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, f"{COUNT}; {GROUPED}", "--format", form) == 2
    assert "stdin has 2 statements" in capsys.readouterr().err
    assert not (folder / "casemate.ledger").exists()


def test_several_answers_go_into_one_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, f"{COUNT}; {GROUPED}", "--output", "answers.txt") == 0
    assert capsys.readouterr() == ("", "wrote answers.txt\n")
    assert (folder / "answers.txt").read_text().count("cost:") == 2


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        ("", 2, "there is no statement; give SQL after the policy, or on stdin"),
        (" ; -- nothing\n", 2, "there is no statement"),
        ("SELECT 'a", 3, "a quotation mark or comment is never closed"),
    ],
)
def test_a_pipe_without_a_statement_is_one_sentence(
    text: str, code: int, sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert piped(monkeypatch, text) == code
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


# Refused, and wrong ---------------------------------------------------------------------------


def test_sql_outside_the_fragment_is_refused_and_costs_nothing(capsys: Captured) -> None:
    assert ended(["ask", "people.toml", "SELECT sex FROM t"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and "nothing is aggregated here" in printed.err
    assert spent(capsys) == 0


def test_a_budget_that_is_used_up_is_a_refusal_that_says_what_is_left(
    folder: Path, capsys: Captured
) -> None:
    written(folder, '[answer]\nstrategy = "gaussian"\nquestions = 1\n')
    assert ask(capsys, COUNT)["remaining"]["epsilon"] < 0.01  # what rounding leaves
    assert ended(["ask", "people.toml", GROUPED]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and "is left" in printed.err and printed.err.count("\n") == 1


SURPRISED = '[answer]\nstrategy = "cold"\nsurprises = 1\n'
ILL = "SELECT COUNT(*) FROM t WHERE ill = 1"


def rich(folder: Path, more: str) -> None:
    """A budget so large that the gate never errs: every question about illness is a surprise."""
    written(folder, more)
    text = (folder / "people.toml").read_text()
    (folder / "people.toml").write_text(text.replace("epsilon = 1", "epsilon = 1000"))


def test_a_closed_gate_is_a_refusal_that_says_what_is_left(folder: Path, capsys: Captured) -> None:
    rich(folder, SURPRISED)
    assert ask(capsys, ILL)["rows"][0][0]["source"] == "measured"
    assert ended(["ask", "people.toml", GROUPED]) == 3
    assert "found its 1 surprises" in capsys.readouterr().err


def test_a_policy_may_let_the_stand_in_answer_when_nothing_can_be_checked(
    folder: Path, capsys: Captured
) -> None:
    rich(folder, f'{SURPRISED}exhausted = "unverified"\n')
    ask(capsys, ILL)
    cell = ask(capsys, GROUPED)["rows"][0][1]
    assert (cell["source"], cell["lo"], cell["hi"]) == ("unverified", None, None)


def test_a_ration_ends_the_questions_of_one_principal_and_not_of_another(
    folder: Path, capsys: Captured
) -> None:
    rich(folder, SURPRISED.replace("surprises = 1", "surprises = 5\nration = 1"))
    ask(capsys, ILL, "--principal", "alice")
    assert ended(["ask", "people.toml", GROUPED, "--principal", "alice"]) == 3
    assert "ration of 1 surprises" in capsys.readouterr().err
    assert ask(capsys, GROUPED, "--principal", "bob")["rows"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("people.toml", COUNT, "--seed", "1"), "unknown option: --seed"),
        (("people.toml", COUNT, "--dialect", "klingon"), "no SQL dialect 'klingon'"),
        (("people.csv", COUNT), "people.csv has no budget"),
        (("absent.toml", COUNT), "absent.toml"),
        (("people.toml", COUNT, COUNT), "unexpected argument"),
        ((), "POLICY is missing"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_no_ledger(
    arguments: tuple[str, ...], sentence: str, folder: Path, capsys: Captured
) -> None:
    assert ended(["ask", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_conversation_has_no_other_form_than_text(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert ended(["ask", "people.toml", "--format", "json"]) == 2
    assert "--format and --output are for statements" in capsys.readouterr().err


# Real processes -------------------------------------------------------------------------------


def test_a_restart_between_two_questions_loses_nothing(folder: Path) -> None:
    def asked(sql: str) -> str:
        command = [str(CASEMATE), "ask", "people.toml", sql, "--format", "json", "--quiet"]
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True
        ).stdout

    first, second, again = asked(GROUPED), asked(COUNT), asked(GROUPED)
    cells = [[row[1]["value"] for row in json.loads(each)["rows"]] for each in (first, again)]
    assert cells[0] == cells[1]
    assert json.loads(second)["cost"]["rho"] < json.loads(first)["cost"]["rho"]


def test_a_pipe_from_another_program_is_answered(folder: Path) -> None:
    shown = subprocess.run(
        [CASEMATE, "ask", "people.toml"],
        cwd=folder,
        input=f"{COUNT};",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines()[0].split()[0] == "count"


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
    assert "cost: rho" in text and "casemate: line 1" in text
    history = folder / "casemate" / "history"
    assert history.read_text().splitlines() == ["SELECT COUNT(*)", "FROM t;", "SELECT x;", ".quit"]
    assert history.stat().st_mode & 0o777 == 0o600
