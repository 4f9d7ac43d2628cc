"""A classifier behind a real process: what it is told, what it answers, and how it fails."""

import sys
from pathlib import Path

import numpy as np
import pytest

from casemate.attack.extract.classifier import CommandClassifier, Lines, read_label
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


def test_a_label_comes_back_for_each_point_in_order(tmp_path: Path) -> None:
    with CommandClassifier(command(tmp_path, ANSWERS)) as classifier:
        assert classifier(POINTS) == [1, 0, 1]
        assert classifier(-POINTS[:2]) == [0, 1]


def test_points_may_be_written_with_commas(tmp_path: Path) -> None:
    program = READS + "print('yes' if line == '1.0,2.0\\n' else 'no', flush=True)\n"
    assert asked(tmp_path, program, lines="csv") == ["yes", "no", "no"]


def test_numbers_arrive_with_all_their_digits(tmp_path: Path) -> None:
    program = READS + "print(json.loads(line)[0].hex(), flush=True)\n"
    points = np.array([[0.1], [1 / 3], [1e-300]])
    assert asked(tmp_path, program, points) == [x.hex() for x in points.ravel().tolist()]


def test_a_batch_larger_than_every_pipe_does_not_block(tmp_path: Path) -> None:
    points = np.ones((3000, 40))
    assert asked(tmp_path, ANSWERS, points) == [1] * 3000
    echo = READS + "print('x' * 200, flush=True)\n"
    assert asked(tmp_path, echo, points) == ["x" * 200] * 3000


def test_a_slow_start_is_waited_for(tmp_path: Path) -> None:
    assert asked(tmp_path, "import time\ntime.sleep(1)\n" + ANSWERS) == [1, 0, 1]


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
        (HOLDS, "gave no label for 1.5 seconds; it has to flush each line"),
        ("import time\ntime.sleep(60)", "gave no label for 1.5 seconds"),
    ],
)
def test_a_failure_is_one_sentence(tmp_path: Path, program: str, sentence: str) -> None:
    with pytest.raises(Misconfigured, match=sentence) as caught:
        asked(tmp_path, program, patience=1.5)
    assert str(caught.value).startswith("the command `") and "\n" not in str(caught.value)


def test_more_lines_than_points_are_noticed(tmp_path: Path) -> None:
    program = READS + "print('1\\n1', flush=True)\n"
    with pytest.raises(Misconfigured, match="more lines than it was given points"):
        asked(tmp_path, program)
    banner = "print('ready', flush=True)\n" + ANSWERS
    with pytest.raises(Misconfigured, match="more lines than it was given points"):
        asked(tmp_path, banner)


def test_it_says_so_again_when_a_dead_process_is_asked_again(tmp_path: Path) -> None:
    with CommandClassifier(command(tmp_path, "")) as classifier:
        for _ in range(2):
            with pytest.raises(Misconfigured, match="ended with exit code 0"):
                classifier(POINTS)


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


def test_labels_are_numbers_where_they_can_be() -> None:
    assert [read_label(text) for text in ("0", "1.5", "true", "[1]", "spam", "null")] == [
        0,
        1.5,
        True,
        "[1]",
        "spam",
        "null",
    ]
