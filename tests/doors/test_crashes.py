"""Real processes die between every two steps: a retry gets identical bytes, nothing is paid twice.

SIGKILL ends a process at once, without any clean-up, but leaves the operating system running; that
a commit also survives a loss of power is what synchronous=FULL and fsync are for.
"""

import json
from functools import partial
from pathlib import Path

import dying
import pytest
from doors.doorway import Doorway, in_file
from dying import sent

from casemate.doors.transcript import to_text

run = partial(dying.run, Path(__file__).with_name("dying_doors.py"))
QUESTIONS = ["easy", "hard", "measured", "total", "later"]
KINDS = ["opened", "easy", "hard", "measured", "total", "opened", "easy"]


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
    assert [entry.kind for entry in entries] == KINDS
    assert texts == {to_text(e.content) for e in entries if e.kind != "opened"}
    assert len(doorway.charges) == 4, "something was paid twice or never"
    vouched = {doorway.ledger.outcome(key) for key in doorway.charges}
    heads = {str(entries[number].head).encode() for number in (2, 3, 4)}
    assert vouched == heads | {None}, "the ledger names what each charge bought; one run is open"


@pytest.mark.parametrize(("step", "least"), [(5, 10), pytest.param(1, 50, marks=pytest.mark.slow)])
def test_killed_between_any_two_steps_and_again_a_retry_gets_identical_bytes(
    tmp_path: Path, step: int, least: int
) -> None:
    run(tmp_path, "every", 0, step)
    folders = list(tmp_path.iterdir())
    assert len(folders) > least, "every step has a moment before it and one after"
    for folder in folders:
        require_sound(folder)


def test_the_test_above_would_notice_a_measurement_sent_before_it_is_durable(
    tmp_path: Path,
) -> None:
    assert json.loads(run(tmp_path, "careless", *range(25, 45))), "none showed a second draw"


def test_the_test_above_would_notice_a_gate_that_forgets_its_run(tmp_path: Path) -> None:
    run(tmp_path / "l", "forgetful", 12)
    with pytest.raises(AssertionError):
        require_sound(tmp_path / "l")


def test_processes_at_once_get_one_answer_and_pay_once(tmp_path: Path) -> None:
    assert json.loads(run(tmp_path / "l", "race", 4)) == [0] * 4
    assert all(len(texts) == 1 for texts in sent(tmp_path / "l").values())
    doorway = in_file(tmp_path / "l")
    assert sorted(doorway.kinds) == sorted(KINDS) and len(doorway.charges) == 4
    doorway.close()
