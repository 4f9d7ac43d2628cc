"""A classifier behind a real process: what it is told, what it answers, and how it fails."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.extract import classifier
from casemate.attack.extract.classifier import CommandClassifier, Lines, load_predict
from casemate.errors import Misconfigured

READS = "import json, sys\nfor line in sys.stdin:\n    "
ANSWERS = READS + "print(int(sum(json.loads(line)) > 0), flush=True)\n"
HOLDS = (
    "import sys\nout = open(1, 'w', buffering=8192)\nfor _ in sys.stdin:\n    out.write('1\\n')\n"
)
POINTS = np.array([[1.0, 2.0], [-3.0, 0.25], [0.0, 0.5]])


def command(folder: Path, program: str) -> str:
    path = folder / "classifier of mine.py"
    path.write_text(program)
    return f"{sys.executable} '{path}'"


def asked(
    folder: Path,
    program: str,
    points: np.ndarray[tuple[int, int], np.dtype[np.float64]] = POINTS,
    lines: Lines = "json",
    patience: float = 60.0,
) -> list[object]:
    with CommandClassifier(command(folder, program), lines, patience) as classifier:
        return list(classifier(points))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier, "GRACE_SECONDS", 0.5)


def test_a_label_comes_back_for_each_point_in_order(tmp_path: Path) -> None:
    with CommandClassifier(command(tmp_path, ANSWERS)) as classifier:
        assert classifier(POINTS) == [1, 0, 1]
        assert classifier(-POINTS[:2]) == [0, 1]


def test_points_may_be_written_with_commas(tmp_path: Path) -> None:
    program = READS + "print('yes' if line == '1.0,2.0\\n' else 'no', flush=True)\n"
    assert asked(tmp_path, program, lines="csv") == ["yes", "no", "no"]


def test_a_batch_larger_than_every_pipe_does_not_block(tmp_path: Path) -> None:
    points = np.ones((1000, 40))
    assert asked(tmp_path, ANSWERS, points) == [1] * 1000
    echo = READS + "print('x' * 200, flush=True)\n"
    assert asked(tmp_path, echo, points) == ["x" * 200] * 1000


def test_a_process_that_ignores_its_end_is_ended(tmp_path: Path) -> None:
    stays = ANSWERS + "import time\ntime.sleep(600)\n"
    assert asked(tmp_path, stays) == [1, 0, 1]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("", "ended with exit code 0 before every point had a label"),
        ("raise SystemExit(7)", "ended with exit code 7 before"),
        ("import os; os.kill(os.getpid(), 9)", "ended by signal 9 before"),
        (READS + "print(1, flush=True)\n    break\n", "ended with exit code 0 before"),
        ("import os, time\nos.close(1)\ntime.sleep(30)", "closed its output before"),
        (READS + "print(flush=True)\n", "wrote an empty line"),
        (HOLDS, "gave no label for 0.5 seconds; it has to flush each line"),
        ("import time\ntime.sleep(60)", "gave no label for 0.5 seconds"),
    ],
)
def test_a_failure_is_one_sentence(tmp_path: Path, program: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence) as caught:
        asked(tmp_path, program, patience=0.5)
    assert str(caught.value).startswith("the command `") and "\n" not in str(caught.value)


def test_more_lines_than_points_are_noticed(tmp_path: Path) -> None:
    program = READS + "print('1\\n1', flush=True)\n"
    with pytest.raises(Misconfigured, match="more lines than it was given points"):
        asked(tmp_path, program)
    banner = "print('ready', flush=True)\n" + ANSWERS
    with pytest.raises(Misconfigured, match="more lines than it was given points"):
        asked(tmp_path, banner)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("there-is-no-such-program", "cannot be started: no such file"),
        ("", "--command is empty"),
        ("python 'classifier", "a quote that is not closed"),
    ],
)
def test_a_command_that_cannot_start_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        CommandClassifier(line)


MODULE = """
import numpy as np
class Classifier:
    def predict(self, points):
        return np.where(points.sum(axis=1) > 0, "spam", "ham")
model = Classifier()
number = 3
def fails(points):
    raise KeyError("a secret")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stolen_model.py").write_text(MODULE)
    (tmp_path / "broken_model.py").write_text("def (")
    (tmp_path / "failing_model.py").write_text("1 / 0")
    (tmp_path / "needy_model.py").write_text("import no_such_package_at_all")
    yield tmp_path
    sys.modules.pop("stolen_model", None)


def test_a_method_of_a_module_in_this_folder_is_found(folder: Path) -> None:
    predict = load_predict("stolen_model:model.predict")
    assert predict(np.array([[1.0], [-1.0]])).tolist() == ["spam", "ham"]
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("stolen_model", "not module:function"),
        (":predict", "not module:function"),
        ("stolen_model:", "not module:function"),
        ("no_such_model:predict", "there is no module no_such_model"),
        ("no_such_model.inner:predict", "there is no module no_such_model.inner"),
        ("stolen_model:model.fit", "there is no fit in stolen_model"),
        ("stolen_model:number", "is not a function"),
        ("broken_model:predict", "importing broken_model failed with SyntaxError"),
        ("failing_model:predict", "importing failing_model failed with ZeroDivisionError"),
        ("needy_model:predict", "needy_model needs no_such_package_at_all; install it"),
    ],
)
def test_a_function_that_is_not_there_is_one_sentence(name: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence):
        load_predict(name)


def test_a_function_that_fails_is_one_sentence_without_its_words() -> None:
    with pytest.raises(
        Misconfigured, match=r"failed with KeyError when .* 4 x 2 numbers"
    ) as caught:
        load_predict("stolen_model:fails")(np.zeros((4, 2)))
    assert "secret" not in str(caught.value)
