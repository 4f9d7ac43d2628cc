"""The command `casemate attack extract`: classifiers of both kinds, bad input, and Ctrl-C."""

import json
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from casemate.cli import main

MODULE = """
import json, sys
import numpy as np
weights = np.array([1.0, -2.0, 0.5])
count = 0
def predict(points):
    global count
    count += len(points)
    return np.where(points @ weights + 0.3 > 0, "spam", "ham")
noise = np.random.default_rng(0)
def noisy(points):
    return (points @ weights + 0.3 + 0.2 * noise.normal(size=len(points)) > 0).astype(int)
def parabola(points):
    return (points[:, 1] > points[:, 0] ** 2 - 0.2).astype(int)
def constant(points):
    return ["ham"] * len(points)
def fails(points):
    raise ZeroDivisionError
def slow(points):
    if len(points) > 30:
        print("asked", file=sys.stderr, flush=True)
        import time
        time.sleep(60)
    return noisy(points)
if __name__ == "__main__":
    for line in sys.stdin:
        print(predict(np.array([json.loads(line)]))[0], flush=True)
"""
Captured = pytest.CaptureFixture[str]
CLASSIFIER = f"{sys.executable} stolen.py"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stolen.py").write_text(MODULE)
    (tmp_path / "truth.json").write_text('{"weights": [1, -2, 0.5], "intercept": 0.3}')
    (tmp_path / "short.csv").write_text("1,2")
    yield tmp_path
    sys.modules.pop("stolen", None)


def ended(*arguments: str) -> tuple[int, str]:
    """How the command ends, and what it says on an error."""
    with redirect_stderr(StringIO()) as said:
        code = main.ended(["attack", "extract", *arguments])
    return code, said.getvalue().removeprefix("casemate: ").strip()


def found(capsys: Captured, *options: str) -> dict[str, Any]:
    assert ended(*options, "--dimension", "3", "--seed", "1", "--format", "json") == (0, "")
    fields: dict[str, Any] = json.loads(capsys.readouterr().out)
    return fields


@pytest.mark.parametrize("classifier", [("--predict", "stolen:predict"), ("--command", CLASSIFIER)])
def test_a_function_and_a_process_are_copied_alike(
    classifier: tuple[str, str], capsys: Captured
) -> None:
    fields = found(capsys, *classifier, "--truth", "truth.json")
    assert fields["angle"] < 1e-5 and fields["offset"] < 1e-5
    assert fields["queries"] <= 21 * 4 and fields["labels"] == ["ham", "spam"]
    assert fields["learner"] == "lowd-meek" and fields["agreement"] == 1
    assert fields["weights"] == pytest.approx([0.43644, -0.87287, 0.21822], abs=1e-4)


def test_queries_are_what_the_classifier_was_asked(capsys: Captured) -> None:
    fields = found(capsys, "--predict", "stolen:predict", "--queries", "50")
    assert fields["queries"] == sys.modules["stolen"].count <= 50


def test_noisy_labels_are_told_with_their_noise(capsys: Captured) -> None:
    fields = found(capsys, "--predict", "stolen:noisy", "--truth", "truth.json")
    assert fields["learner"] == "filter" and fields["angle"] < 0.05
    assert 0.05 < fields["noise"] < 0.15  # 0.2 over the length of the weights


def test_bounds_may_be_anywhere(capsys: Captured) -> None:
    options = ("--predict", "stolen:predict", "--bounds=-30:5", "--truth", "truth.json")
    fields = found(capsys, *options)
    assert fields["bounds"] == [-30, 5] and fields["angle"] < 1e-5


def test_a_learner_can_be_asked_for(capsys: Captured) -> None:
    options = ("--predict", "stolen:noisy", "--learner", "retraining", "--queries", "400")
    fields = found(capsys, *options)
    assert fields["learner"] == "retraining" and fields["queries"] == 400


def test_a_curve_is_said_to_be_one(capsys: Captured) -> None:
    assert ended("--predict", "stolen:parabola", "--dimension", "2", "--seed", "1")[0] == 0
    printed = capsys.readouterr().out
    assert "no flat boundary explains" in printed and "the classifier is not linear" in printed
    assert "foretells the labels of" in printed


def test_the_page_goes_to_a_file(folder: Path) -> None:
    options = ("--predict", "stolen:predict", "--dimension", "3", "--truth", "truth.json")
    assert ended(*options, "--format", "html", "--output", "x.html", "--quiet") == (0, "")
    root = ET.fromstring((folder / "x.html").read_text())
    assert root.find(".//section[@id='progress']//svg") is not None


def test_the_same_seed_gives_the_same_report(capsys: Captured) -> None:
    one, other = (found(capsys, "--predict", "stolen:predict") for _ in range(2))
    del one["seconds"], other["seconds"]
    assert one == other


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "give one of --predict module:function and --command"),
        (("--predict", "stolen:predict", "--command", "x"), "give one of --predict"),
        (("--predict", "stolen"), "not module:function"),
        (("--predict", "stolen:gone"), "there is no gone in stolen"),
        (("--predict", "stolen:constant"), "gave the same label to all"),
        (("--predict", "stolen:fails"), "failed with ZeroDivisionError"),
        (("--command", "no-such-program-here"), "cannot be started"),
        (("--command", f"{sys.executable} -c ''"), "ended with exit code 0"),
        (("--predict", "stolen:predict", "--truth", "short.csv"), "has 2 numbers; expected 3"),
        (("--predict", "stolen:predict", "--truth", "gone.csv"), "cannot be read"),
        (("--predict", "stolen:predict", "--bounds", "5:5"), "needs two different ends"),
        (("--predict", "stolen:predict", "--bounds", "5:"), "needs two different ends"),
        (("--predict", "stolen:predict", "--bounds", "0:1e999"), "too large, or too narrow"),
        (("--predict", "stolen:predict", "--bounds", "1"), "not LO:HI"),
        (("--predict", "stolen:predict", "--queries", "1"), "--queries 1 is too few"),
        (("--predict", "stolen:predict", "--seed", "-1"), "--seed -1 is negative"),
        (("--predict", "stolen:predict", "--dimension", "0"), "--dimension 0 is too small"),
        (("--predict", "stolen:predict", "--learner", "magic"), "magic"),
    ],
)
def test_bad_input_is_one_sentence(
    options: tuple[str, ...], sentence: str, capsys: Captured
) -> None:
    given = options if "--dimension" in options else (*options, "--dimension", "3")
    code, said = ended(*given)
    assert code == 2 and sentence in said and "\n" not in said
    assert capsys.readouterr().out == ""


def test_a_dimension_that_the_classifier_does_not_have_is_one_sentence() -> None:
    code, said = ended("--predict", "stolen:predict", "--dimension", "5")
    assert code == 2 and "failed with ValueError when it was given an array of 2 x 5" in said


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_interrupt_writes_the_best_so_far_and_ends_with_130(form: str) -> None:
    """The function sleeps in its first large batch, which comes after a thousand labels."""
    options = ["--predict", "stolen:slow", "--dimension", "3", "--seed", "1", "--format", form]
    command = [sys.executable, "-m", "casemate", "attack", "extract", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stderr is not None and run.stderr.readline() == "asked\n"
        run.send_signal(signal.SIGINT)
        printed, said = run.communicate(timeout=120)
    assert run.returncode == 130
    assert said.endswith("interrupted: this is the best so far\n")
    if form == "json":
        fields = json.loads(printed)
        assert fields["finished"] is False and fields["agreement"] is None
        assert fields["learner"] == "filter" and fields["queries"] > 30
    else:
        assert "interrupted: this is the best so far" in printed
