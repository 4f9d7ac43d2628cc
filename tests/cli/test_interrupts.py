"""Ctrl-C: what was done so far is written, one line says so, and the exit code is 130."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli.running import Captured, assert_one_sentence, shown

from casemate.attack.one_bit.limit import LeastErrors
from casemate.attack.reconstruct.reconstruction import Watch
from casemate.audit import decide_exposure as audits
from casemate.audit.time_limit import Clock
from casemate.cli.main import exit_code
from casemate.report.terminal.output import Progress
from casemate.track.simulate import runs as simulation

pytestmark = pytest.mark.usefixtures("interruptible")
BEST = "interrupted: this is the best so far\n"
ONE_BIT = ("--table", "many.csv", "--private", "pay", "--bounds", "0:100", "--noise", "laplace:5")
TRACKED = ("track", "simulate", "--sites", "16", "--alpha", "0.1")
SMALL = (*TRACKED, "--items", "20000", "--seed", "1")


def interrupt(
    monkeypatch: pytest.MonkeyPatch, holder: Any, name: str, when: Callable[..., bool]
) -> None:
    """Send SIGINT before a call of a function, as soon as `when` of its arguments says so."""
    plain = getattr(holder, name)

    def called(*arguments: Any) -> Any:
        if when(*arguments):
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)
        return plain(*arguments)

    monkeypatch.setattr(holder, name, called)


@pytest.mark.parametrize("form", ["json", pytest.param("html", marks=pytest.mark.slow)])
def test_a_reconstruction_that_is_interrupted_shows_the_best_so_far(
    form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Ranges of places make a badly conditioned system, which one equation at a time takes long."""
    random = np.random.default_rng(0)
    pay = random.integers(0, 1000, 100) / 10
    rows = [f"{place},{each}" for place, each in enumerate(pay, start=1)]
    (folder / "t.csv").write_text("\n".join(["id,pay", *rows, ""]))
    pairs = np.sort(random.integers(1, 101, (200, 2)), axis=1).tolist()
    sums = (f"SELECT SUM(pay) FROM t WHERE id BETWEEN {low} AND {high}" for low, high in pairs)
    (folder / "q.sql").write_text(";\n".join(sums))
    table = ("q.sql", "--table", "t.csv", "--private", "pay", "--bounds", "0:100")
    interrupt(monkeypatch, Watch, "__call__", lambda _watch, steps, *_: steps == 2)
    options = (*table, "--solver", "sgd", "--seed", "1", "--format", form)
    assert exit_code(["attack", "reconstruct", *options]) == 130
    printed = capsys.readouterr()
    assert printed.err == BEST
    if form == "json":
        fields = json.loads(printed.out)
        assert fields["finished"] is False and fields["solver"] == "sgd"
        assert fields["values"] is None and 0 < fields["residual"] < 1
    else:
        assert f"<p>{BEST.strip().capitalize()}.</p>" in printed.out


def test_an_attack_by_bits_that_is_interrupted_shows_the_best_so_far(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    interrupt(monkeypatch, LeastErrors, "add", lambda errors, _: errors.queries == 2)
    fields = shown(capsys, "attack", "one-bit", *ONE_BIT, "--queries", "2000000000", code=130)
    assert fields["finished"] is False and 0 < fields["queries"] < 2_000_000_000
    assert fields["curve"][-1]["queries"] == fields["queries"]


def test_a_process_that_is_interrupted_while_a_classifier_answers_shows_the_best_so_far() -> None:
    """The function sleeps in its first large batch, which comes after a thousand labels."""
    options = ["--predict", "stolen:slow", "--dimension", "3", "--seed", "1", "--format", "json"]
    command = [sys.executable, "-m", "casemate", "attack", "extract", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None and run.stderr.readline() == "asked\n"
        run.send_signal(signal.SIGINT)
        printed, said = run.communicate(timeout=120)
    assert run.returncode == 130 and said.endswith(BEST)
    fields = json.loads(printed)
    assert fields["finished"] is False and fields["agreement"] is None
    assert fields["learner"] == "filter" and fields["queries"] > 30


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_the_runs_that_were_done_are_the_first_ones_of_the_same_seed(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    options = (*SMALL, "--mode", "sampled", "--format", form)
    assert exit_code([*options, "--runs", "2"]) == 0
    expected = capsys.readouterr().out.replace('"finished": true', '"finished": false')
    runs = count()
    interrupt(monkeypatch, simulation, "run_compiled", lambda *_: next(runs) == 2)
    assert exit_code([*options, "--runs", "5"]) == 130
    printed = capsys.readouterr()
    assert without_seconds(printed.out) == without_seconds(expected)
    assert printed.err == "interrupted: these are the 2 of 5 runs that were done\n"


def without_seconds(shown: str) -> str:
    return re.sub(r"\d+\.\d+ s\b|\"seconds\": [\d.]+|seconds</dt><dd>[\d.]+", "", shown)


@pytest.mark.parametrize(
    ("mode", "items"),
    [
        ("sampled", 10**13),
        ("robust", 10**13),
        ("block", 10**13),
        ("robust-tuned", 1 << 32),
        ("auto", 1 << 32),
    ],
)
def test_a_run_of_many_items_shows_progress_and_can_be_interrupted(
    mode: str, items: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    parts: list[float] = []

    def second(_: Progress, part: float) -> bool:
        parts.append(part)
        return len(parts) == 2

    interrupt(monkeypatch, Progress, "advance", second)
    assert exit_code([*TRACKED, "--items", str(items), "--mode", mode]) == 130
    assert_one_sentence(capsys, "interrupted: no run was done yet, so there is nothing to show")
    assert 0 < sum(parts) < 0.01


# casemate audit -----------------------------------------------------------------------------------

PROVED = "interrupted: this is what was proved so far\n"


@pytest.fixture
def hard(folder: Path) -> tuple[str, ...]:
    """Sums of 0 and 1 with large weights, which a search does not decide in its lifetime."""
    random = np.random.default_rng(3)
    weights = random.integers(1, 99_999, (50, 5)).tolist()
    rows = [
        ",".join(map(str, (n, 5 + n if n >= 48 else n // 24, *own, n % 2)))
        for n, own in enumerate(weights)
    ]
    (folder / "hard.csv").write_text("\n".join(["id,team,a,b,c,d,e,pay", *rows, ""]))
    sums = [f"SELECT SUM({name} * pay) FROM t WHERE team < 5" for name in "abcde"]
    log = [*sums, "SELECT team, SUM(pay) FROM t GROUP BY team"]
    (folder / "hard.sql").write_text(";\n".join(log))
    options = ("hard.sql", "--table", "hard.csv", "--private", "pay", "--bounds", "0:9")
    return ("audit", *options, "--integer")


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_an_audit_that_is_interrupted_writes_what_is_proved_in_every_form(
    form: str,
    folder: Path,
    hard: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    interrupt(monkeypatch, Clock, "solver", lambda *_: True)
    files = {name: folder / f"asked.{name}" for name in ("json", "html", "repair")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    assert exit_code([*hard, *options, "--format", form]) == 130
    printed = capsys.readouterr()
    assert printed.err.endswith(PROVED) and "interrupted: --repair was not written\n" in printed.err
    fields = json.loads(files["json"].read_text())
    assert fields["interrupted"] is True and fields["verdict"] == "exposed"
    assert len(fields["exposed"]) == 2 and len(fields["undecided"]) == 48
    assert [each["reason"] for each in fields["reasons"]] == ["the audit was interrupted first"]
    for shown_ in (printed.out, files["html"].read_text()):
        assert "interrupted" in shown_
    assert not files["repair"].exists()


def test_a_process_that_is_interrupted_while_it_audits_ends_with_an_object(
    hard: tuple[str, ...],
) -> None:
    """It says where it is on stderr, and has no limit."""
    told = "import casemate.audit.time_limit as t, sys\n" + (
        "plain = t.Clock.solver\n"
        "def said(*a): print('searching', file=sys.stderr, flush=True); return plain(*a)\n"
        "t.Clock.solver = said\n"
        "from casemate.cli.main import run\n"
        "run()\n"
    )
    command = [sys.executable, "-c", told, *hard, "--seconds", "0", "--format", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None and run.stderr.readline() == "searching\n"
        run.send_signal(signal.SIGINT)
        printed, said = run.communicate(timeout=120)
    assert run.returncode == 130 and said.endswith(PROVED)
    fields = json.loads(printed)
    assert fields["interrupted"] is True and fields["verdict"] == "exposed"
    assert len(fields["exposed"]) == 2 and len(fields["undecided"]) == 48


def test_an_audit_that_is_interrupted_while_it_reads_has_nothing_to_show(
    hard: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    interrupt(monkeypatch, audits, "read_queries", lambda *_: True)
    assert exit_code([*hard]) == 130
    assert_one_sentence(capsys, "interrupted")


def test_a_limit_ends_an_audit_that_would_not_end(hard: tuple[str, ...], capsys: Captured) -> None:
    fields = shown(capsys, *hard, "--seconds", "1")
    assert fields["interrupted"] is False and len(fields["exposed"]) == 2
    (reason,) = fields["reasons"]
    assert reason["reason"] == "the limit of 1 seconds was reached first"
    assert len(reason["records"]) == 48
