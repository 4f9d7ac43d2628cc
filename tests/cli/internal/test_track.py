"""The commands `casemate track simulate` and `plan`: what they print, and bad input."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, get_args

import pytest

from casemate.cli.main import ended
from casemate.track.commands import ModeChoice
from casemate.track.modes import MODES
from casemate.track.setting import Run
from casemate.track.simulate import runs as simulation
from casemate.track.simulate.compiled_run import run_compiled

Captured = pytest.CaptureFixture[str]
SMALL = ("--sites", "16", "--alpha", "0.1", "--items", "20000", "--seed", "1")
PLAN = ("--sites", "16", "--alpha", "0.2", "--delta", "0.1", "--horizon", "10000")


def track(*options: str) -> int:
    return ended(["track", *options])


def found(capsys: Captured, *options: str) -> dict[str, Any]:
    assert track(*options, "--format", "json") == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_runs_are_an_object(capsys: Captured) -> None:
    fields = found(capsys, "simulate", *SMALL, "--mode", "sampled", "--runs", "3")
    assert fields["schema"] == "casemate.track-simulation/1"
    assert (fields["sites"], fields["items"], fields["runs"]) == (16, 20000, 3)
    assert (fields["mode"], fields["adversary"], fields["delta"]) == ("sampled", "uniform", 0.01)
    assert fields["words"] == pytest.approx(sum(fields["words_by_kind"].values()))
    assert 0 < fields["words"] < 20000 and fields["violations"] == 0
    assert 0 < fields["max_error_over_alpha"] <= 1


def test_every_mode_can_be_asked_for(capsys: Captured) -> None:
    assert get_args(ModeChoice) == tuple(MODES)
    for mode in get_args(ModeChoice):
        fields = found(capsys, "simulate", *SMALL, "--mode", mode)
        assert fields["mode"] == mode and 0 < fields["words"] <= 25000
    assert found(capsys, "simulate", *SMALL, "--mode", "exact")["words"] == 20000


@pytest.mark.parametrize(
    "adversary",
    ["uniform", "zipf", "zipf:1.5", "single-site", "stop-on-change", "group-hold-or-flush"],
)
def test_every_adversary_can_be_asked_for(adversary: str, capsys: Captured) -> None:
    fields = found(capsys, "simulate", *SMALL, "--mode", "deterministic", "--adversary", adversary)
    assert fields["adversary"] == adversary and fields["max_error_over_alpha"] <= 1


def test_help_names_every_adversary(capsys: Captured) -> None:
    from casemate.track.simulate.adversary import NAMES

    assert track("simulate", "--help") == 0
    told = capsys.readouterr().out
    assert all(name in told for name in NAMES)


def test_the_same_seed_gives_the_same_runs(capsys: Captured) -> None:
    one, other = (found(capsys, "simulate", *SMALL, "--mode", "sampled") for _ in range(2))
    del one["seconds"], other["seconds"]
    assert one == other


def test_runs_as_text_and_as_a_page(tmp_path: Path, capsys: Captured) -> None:
    assert track("simulate", *SMALL, "--mode", "deterministic") == 0
    assert capsys.readouterr().out.startswith("deterministic against uniform: ")
    page = tmp_path / "page.html"
    assert track("simulate", *SMALL, "--format", "html", "--output", str(page)) == 0
    assert "The largest error of each run" in page.read_text()


def test_a_plan_is_an_object_with_the_cheapest_first(capsys: Captured) -> None:
    fields = found(capsys, "plan", *PLAN)
    assert fields["schema"] == "casemate.track-plan/1"
    assert (fields["sites"], fields["horizon"], fields["delta"]) == (16, 10000, 0.1)
    words = [each["words"] for each in fields["modes"]]
    assert words == sorted(words) and words[-1] == 10000
    assert {each["mode"] for each in fields["modes"]} == set(MODES)


def test_a_plan_as_text_and_as_a_page(tmp_path: Path, capsys: Captured) -> None:
    assert track("plan", *PLAN) == 0
    assert capsys.readouterr().out.startswith("mode ")
    page = tmp_path / "page.html"
    assert track("plan", *PLAN, "--format", "html", "--output", str(page)) == 0
    assert "Predicted words against the number of sites" in page.read_text()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("--mode", "magic"), 'Choose from: "auto", "deterministic"'),
        (("--adversary", "nobody"), "there is no adversary 'nobody'; choose one of uniform"),
        (("--adversary", "zipf:much"), "the exponent of a Zipf load is a number of at least 0"),
        (("--adversary", "zipf:-1"), "the exponent of a Zipf load is a number of at least 0"),
        (("--alpha", "0"), "alpha is a relative error between 0 and 1, as 0.01, got 0"),
        (("--alpha", "1.5"), "alpha is a relative error between 0 and 1, as 0.01, got 1.5"),
        (("--alpha", "nan"), '"nan" is no number; write one as 0.02 or 2%'),
        (("--alpha", "much"), "--alpha"),
        (("--delta", "1"), "delta is a probability between 0 and 1, as 0.01, got 1"),
        (("--delta", "-0.1"), "delta is a probability between 0 and 1, as 0.01, got -0.1"),
        (("--sites", "0"), "a tracker needs at least one site, got 0"),
        (("--sites", "1000001"), "--sites 1,000,001 is more than 1,000,000"),
        (("--items", "0"), "the items that will come are a whole number from 1 to 2^53, got 0"),
        (("--items", str(10**16)), "is more than 1,000,000,000,000,000"),
        (("--runs", "0"), "at least one run is needed, got 0"),
        (("--seed", "-1"), "--seed -1 is negative"),
    ],
)
def test_bad_input_of_a_simulation_is_one_sentence(
    changed: tuple[str, str], sentence: str, capsys: Captured
) -> None:
    given = dict(zip(SMALL[::2], SMALL[1::2], strict=True)) | {changed[0]: changed[1]}
    assert track("simulate", *(f"{name}={value}" for name, value in given.items())) == 2
    assert_one_sentence(sentence, capsys)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (("--alpha", "-1"), "alpha is a relative error between 0 and 1, as 0.01, got -1"),
        (("--delta", "0"), "delta is a probability between 0 and 1, as 0.01, got 0"),
        (("--sites", "-3"), "a tracker needs at least one site, got -3"),
        (("--horizon", "0"), "the items that will come are a whole number from 1 to 2^53, got 0"),
        (("--horizon", str(10**30)), "is more than 1,000,000,000,000,000"),
    ],
)
def test_bad_input_of_a_plan_is_one_sentence(
    changed: tuple[str, str], sentence: str, capsys: Captured
) -> None:
    given = dict(zip(PLAN[::2], PLAN[1::2], strict=True)) | {changed[0]: changed[1]}
    assert track("plan", *(f"{name}={value}" for name, value in given.items())) == 2
    assert_one_sentence(sentence, capsys)


# Interrupted

PROGRAM = """
import sys
from casemate.cli.main import run
from casemate.track.simulate import runs as simulate

plain, done = simulate.run_compiled, []

def told(*arguments):
    if len(done) == 2:
        print("running", file=sys.stderr, flush=True)
    done.append(plain(*arguments))
    return done[-1]

simulate.run_compiled = told
run()
"""


def interrupted(program: str, options: Sequence[str], ready: str) -> tuple[int, str, str]:
    """How a simulation ends that is interrupted when it has said that it is ready."""
    with subprocess.Popen(
        [sys.executable, "-c", program, "track", "simulate", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None and process.stderr.readline() == f"{ready}\n"
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=120)
    return process.returncode, printed, said


def test_an_interrupt_shows_the_runs_that_were_done_and_ends_with_130() -> None:
    options = [*SMALL, "--mode", "deterministic", "--runs", "1000000", "--format", "json"]
    code, printed, said = interrupted(PROGRAM, options, "running")
    assert code == 130
    fields = json.loads(printed)
    assert 2 <= fields["runs"] < 1_000_000
    assert said == f"interrupted: these are the {fields['runs']} of 1000000 runs that were done\n"


LONG_RUN = """
import sys
from casemate.cli.main import run
from casemate.report.terminal.output import Progress

plain, told = Progress.advance, []

def noted(progress, part):
    told.append(part)
    if len(told) == 2:
        print(0 < sum(told) < 0.01, file=sys.stderr, flush=True)
    plain(progress, part)

Progress.advance = noted
run()
"""


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
def test_a_run_of_many_items_shows_progress_and_can_be_interrupted(mode: str, items: int) -> None:
    options = ["--sites", "16", "--alpha", "0.1", "--items", str(items), "--mode", mode]
    nothing = "interrupted: no run was done yet, so there is nothing to show\n"
    assert interrupted(LONG_RUN, options, "True") == (130, "", nothing)


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_what_is_shown_then_are_the_first_runs_of_the_same_seed(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    options = (*SMALL, "--mode", "sampled", "--format", form)
    assert track("simulate", *options, "--runs", "2") == 0
    expected = capsys.readouterr().out.replace('"finished": true', '"finished": false')
    interrupted_after(2, monkeypatch)
    assert track("simulate", *options, "--runs", "5") == 130
    printed = capsys.readouterr()
    assert without_seconds(printed.out) == without_seconds(expected)
    assert printed.err == "interrupted: these are the 2 of 5 runs that were done\n"


def test_an_interrupt_before_the_first_run_is_done_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    interrupted_after(0, monkeypatch)
    assert track("simulate", *SMALL, "--runs", "5") == 130
    assert_one_sentence("interrupted: no run was done yet, so there is nothing to show", capsys)


def interrupted_after(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    done = count()

    def interrupted(*arguments: Any) -> Run:
        if next(done) == runs:
            raise KeyboardInterrupt
        return run_compiled(*arguments)

    monkeypatch.setattr(simulation, "run_compiled", interrupted)


def without_seconds(shown: str) -> str:
    return re.sub(r"\d+\.\d+ s\b|\"seconds\": [\d.]+|seconds</dt><dd>[\d.]+", "", shown)


def test_an_unknown_command_is_answered_with_the_nearest(capsys: Captured) -> None:
    assert track("simulat") == 2
    assert_one_sentence("did you mean casemate track simulate?", capsys)


def assert_one_sentence(sentence: str, capsys: Captured) -> None:
    printed = capsys.readouterr()
    assert printed.out == "" and sentence in printed.err and printed.err.count("\n") == 1


HEAVY = {"numpy", "numba", "nats", "redis", "duckdb", "scipy"}
COMMANDS = ("simulate", "plan", "server", "site", "watch")


@pytest.mark.parametrize("words", [(), ("simulate",), ("server",)])
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    program = "import sys; from casemate.cli.main import ended; ended(sys.argv[1:])"
    told = f"{program}; print(*sys.modules, file=sys.stderr)"
    shown = subprocess.run(
        [sys.executable, "-c", told, "track", *words, "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in shown.stdout for name in (words or COMMANDS))
    assert not HEAVY & set(shown.stderr.split())
