"""Real processes die between every two steps: a retry gets identical bytes, nothing is paid twice.

os._exit ends a process at once, without any clean-up, but leaves the operating system running; that
a commit also survives a loss of power is what synchronous=FULL and fsync are for.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from doors.doorway import Doorway, in_file

from casemate.doors.entry import to_text

TESTS = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("dying_doors.py")
QUESTIONS = ["easy", "hard", "measured", "total", "later"]


def run(folder: Path, habit: str, *numbers: int) -> str:
    command = [sys.executable, str(SCRIPT), str(folder), habit, *map(str, numbers)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout


def sent(folder: Path) -> dict[str, set[str]]:
    """Every text that ever left as the answer to each question."""
    texts = defaultdict(set)
    for line in (folder / "sent").read_text().splitlines():
        key, text = json.loads(line)
        texts[key].add(text)
    return texts


def require_sound(folder: Path) -> None:
    """One answer to each question, all on record, two runs and two measurements paid, no more."""
    answers = sent(folder)
    assert sorted(answers) == sorted(QUESTIONS)
    assert all(len(texts) == 1 for texts in answers.values()), "a question had two answers"
    doorway = in_file(folder)
    try:
        require_on_record(doorway, {text for texts in answers.values() for text in texts})
    finally:
        doorway.close()


def require_on_record(doorway: Doorway, texts: set[str]) -> None:
    entries = list(doorway.transcript.replay())
    kinds = ["opened", "easy", "hard", "measured", "total", "opened", "easy"]
    assert [entry.kind for entry in entries] == kinds
    assert texts == {to_text(e.content) for e in entries if e.kind != "opened"}
    assert len(doorway.charges) == 4, "something was paid twice or never"
    vouched = {doorway.ledger.outcome(key) for key in doorway.charges}
    heads = {str(entries[number].head).encode() for number in (2, 3, 4)}
    assert vouched == heads | {None}, "the ledger names what each charge bought; one run is open"


def moments(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), key=lambda each: int(each.name))


def test_killed_between_any_two_steps_and_again_a_retry_gets_identical_bytes(
    tmp_path: Path,
) -> None:
    run(tmp_path, "every", 0, 1)
    folders = moments(tmp_path)
    assert len(folders) > 50, "every step has a moment before it and one after"
    for folder in folders:
        require_sound(folder)


def test_the_test_above_would_notice_a_measurement_sent_before_it_is_durable(
    tmp_path: Path,
) -> None:
    for moment in range(25, 45):
        folder = tmp_path / str(moment)
        run(folder, "careless", moment)
        if len(sent(folder)["measured"]) > 1:
            return
    pytest.fail("no moment showed two draws for one charge")


def test_the_test_above_would_notice_a_gate_that_forgets_its_run(tmp_path: Path) -> None:
    run(tmp_path / "l", "forgetful", 12)
    with pytest.raises(AssertionError):
        require_sound(tmp_path / "l")


@pytest.mark.parametrize("processes", [2, 4])
def test_processes_at_once_get_one_answer_and_pay_once(tmp_path: Path, processes: int) -> None:
    assert json.loads(run(tmp_path / "l", "race", processes)) == [0] * processes
    answers = sent(tmp_path / "l")
    assert all(len(texts) == 1 for texts in answers.values())
    doorway = in_file(tmp_path / "l")
    assert sorted(doorway.kinds) == sorted(
        ["opened", "easy", "hard", "measured", "total", "opened", "easy"]
    )
    assert len(doorway.charges) == 4
    doorway.close()
