"""Sessions are killed between any two steps, or run at once: one answer, and one charge for it.

What is checked does not depend on the noise: every answer to a statement has the same bytes, every
entry that costs something was charged once and nothing else was, every run of the gate but the last
has ended, and each stand-in that answered is the one that its part of the transcript leads to.
"""

import json
import re
from functools import partial
from pathlib import Path

import dying
import pytest
from answer.dying_session import STATEMENTS, digest
from answer.session_world import parity
from dying import KILLED, sent
from servers import PostgresServer

from casemate.answer.dataset import Dataset, open_durable
from casemate.doors import Answered, EntryKind, Measured, Opened
from casemate.doors.transcript import ENDS_A_RUN
from casemate.privacy.ledger.entry import RowKind as Row
from casemate.surrogate import StandIn
from casemate.table import Table

run = partial(dying.run, Path(__file__).with_name("dying_session.py"))


# What must be true of a folder whatever happened in it ------------------------------------------


def require_sound(folder: Path) -> None:
    answers = sent(folder)
    assert sorted(answers) == sorted(STATEMENTS)
    assert all(len(texts) == 1 for texts in answers.values()), "a statement had two answers"
    dataset = open_durable(Table.open(folder / "casemate.toml"))
    try:
        require_paid_once(dataset)
        require_runs_ended(dataset)
        require_replayed(dataset, folder)
    finally:
        dataset.close()


def require_paid_once(dataset: Dataset) -> None:
    """Whatever left was charged, once, and nothing else was; the ledger names what each bought."""
    costly = {}
    for entry in dataset.doors.transcript.replay():
        match entry.content:
            case Opened() as content:
                costly[f"gate run {content.run}"] = entry
            case Measured() as content:
                costly[content.key] = entry
    charges = [row for row in dataset.doors.ledger.history() if row.kind == Row.CHARGE]
    keys = [row.key for row in charges]
    assert sorted(keys) == sorted(costly), "something was free, or paid twice, or paid for nothing"
    for key, entry in costly.items():
        if entry.kind != EntryKind.OPENED:
            assert dataset.doors.ledger.outcome(key) == str(entry.head).encode()


def require_runs_ended(dataset: Dataset) -> None:
    """Every run but the last ended with a surprise, so that no run was opened for nothing."""
    entries = dataset.doors.transcript.of_kinds((EntryKind.OPENED, *ENDS_A_RUN))
    kinds = [entry.kind for entry in entries]
    assert kinds.count(EntryKind.CLOSED) == 0, "a secret was lost"
    whole = [EntryKind.OPENED, EntryKind.HARD] * len(kinds)
    assert kinds == whole[: len(kinds)], "a run was opened for nothing"
    assert EntryKind.HARD in kinds, "there was no surprise"


def require_replayed(dataset: Dataset, folder: Path) -> None:
    """Each stand-in that answered, in any life, is that of the transcript up to its number."""
    transcript, construction = dataset.doors.transcript, dataset.construction
    kept = [e for e in transcript.replay() if isinstance(e.content, Answered)]
    assert len(kept) == len(STATEMENTS)
    shared = construction.stand_in
    answered = [(number, seen) for _, _, number, seen in dying.rows(folder) if number >= 0]
    found = {}
    for number in {number for number, _ in answered}:
        again = StandIn(shared.names, shared.shape, dataset.doors.edition)
        again.catch_up(transcript, number)
        found[number] = digest(again)
    assert answered and all(found[number] == seen for number, seen in answered)


# Killed -----------------------------------------------------------------------------------------


def require_sound_at(where: Path, first: int, step: int, least: int) -> None:
    parity(where)
    run(where, "every", first, step)
    folders = [folder for folder in where.iterdir() if folder.is_dir()]
    assert len(folders) > least, "every step has a moment before it and one after"
    for folder in folders:
        require_sound(folder)


@pytest.mark.slow
def test_killed_at_every_step_and_again_a_retry_gets_identical_bytes_and_pays_once(
    tmp_path: Path,
) -> None:
    require_sound_at(tmp_path, 0, 1, least=100)


def test_killed_in_every_life_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """Seven lives, each of which gets a little further or not at all."""
    parity(tmp_path)
    deaths = [3, 9, 14, 16, 20, 24]
    ends = json.loads(run(tmp_path, "sound", *deaths))
    assert ends[-1] == 0 and ends.count(KILLED) > 4
    require_sound(tmp_path)


@pytest.mark.parametrize("place", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_processes_at_once_get_one_answer_and_pay_once(
    tmp_path: Path, place: str, request: pytest.FixtureRequest
) -> None:
    """Each begins with another statement, so they meet in every order."""
    parity(tmp_path, ledger=None if place == "file" else request.getfixturevalue("postgres"))
    assert json.loads(run(tmp_path, "race", 4)) == [0] * 4
    require_sound(tmp_path)


# Twins ------------------------------------------------------------------------------------------


def test_the_tests_above_would_notice_a_measurement_sent_before_it_is_durable(
    tmp_path: Path,
) -> None:
    parity(tmp_path)
    run(tmp_path, "careless", 10**6)
    assert max(len(texts) for texts in sent(tmp_path).values()) > 1


@pytest.mark.slow
@pytest.mark.parametrize("habit", ["forgetful", "generous"])
def test_the_tests_above_would_notice_a_lost_secret_and_a_charge_made_again(
    tmp_path: Path, habit: str
) -> None:
    """Which moments fall between the two depends on the noise, so several are tried."""
    found = (complaint(tmp_path / str(moment), habit, moment) for moment in (44, 40, 48, 36, 52))
    assert re.search("for nothing|paid twice", next(filter(None, found), ""))


def complaint(folder: Path, habit: str, moment: int) -> str:
    """What is found wrong after three lives that end at this moment; nothing if all is sound."""
    parity(folder)
    run(folder, habit, moment, moment, moment)
    try:
        require_sound(folder)
    except AssertionError as noticed:
        return str(noticed)
    return ""


# PostgreSQL -------------------------------------------------------------------------------------


@pytest.mark.postgres
def test_killed_with_a_ledger_in_postgresql_a_retry_gets_identical_bytes_and_pays_once(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    for moment in range(1, 130, 9):
        with postgres_server.database() as url:
            folder = tmp_path / str(moment)
            parity(folder, ledger=url)
            run(folder, "sound", moment, moment // 2 + 1)
            require_sound(folder)
