"""A new process between every two questions changes nothing, and a lost secret costs one run."""

import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answer.session_world import parity
from answer.small_dataset import world
from grid.small_grid import counting
from numpy.typing import NDArray

from casemate.answer import Session
from casemate.answer.dataset import Dataset
from casemate.cli.main import exit_code
from casemate.doors import EntryKind, dataset_key
from casemate.errors import Misconfigured
from casemate.grid import Origin
from casemate.table.sources.source import LaterSource

FEW = [
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM t WHERE a = 0 AND b = 1 AND c = 1",
    "SELECT b, avg(c) FROM t GROUP BY b",
]
EASY = "SELECT count(*) FROM t WHERE a = 0 AND b = 1 AND c IN (0, 1)"  # by the gate
GRID = (2, 2, 2, 3)


def four_columns(number: int = 20_000) -> NDArray[np.int64]:
    """A parity of three columns, so that surprises come now and then."""
    random_rows = np.random.default_rng(5)
    one, other = random_rows.integers(0, 2, (2, number))
    last = random_rows.integers(0, 2, number)
    last += last & random_rows.integers(0, 2, number)
    return np.stack([one, other, one ^ other, last], axis=1).astype(np.int64)


def test_a_construction_for_every_question_gives_what_one_long_one_gives(
    rng: random.Random,
) -> None:
    facts: dict[str, Any] = {"shape": GRID, "names": ("a", "b", "c", "d")}
    steady, broken = (world(four_columns(), **facts) for _ in range(2))
    construction, surprises = steady.construction(), 0
    for _ in range(100):
        masks: dict[int, Sequence[int]] = {
            a: [rng.randrange(GRID[a])] for a in range(4) if rng.random() < 0.7
        }
        question = counting(masks, GRID)
        outcome = construction.ask(question)
        assert broken.construction().ask(question) == outcome
        surprises += outcome.origin is Origin.MEASURED
    assert surprises > 0
    hashes = [[entry.hash for entry in each.transcript.replay()] for each in (steady, broken)]
    assert hashes[0] == hashes[1]
    assert steady.ledger.spent() == broken.ledger.spent()


# The secret ---------------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[tuple[Session, Path]]:
    """A session that has answered an easy question, and the file of its secret."""
    policy = parity(tmp_path)
    with Session(policy) as session:
        session.query(EASY)
        yield session, tmp_path / "casemate.ledger-gate"


def test_the_secret_is_for_its_owner_alone_and_only_it_has_the_thresholds_noise(
    opened: tuple[Session, Path],
) -> None:
    session, path = opened
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    secret = json.loads(path.read_text())
    assert sorted(secret) == ["format", "run", "state"]
    assert sorted(secret["state"]) == ["calibration", "noise", "positives"]
    entries = list(session._dataset.doors.transcript.replay())
    public = [set(json.loads(entry.text)) for entry in entries]
    assert all("noise" not in names and "state" not in names for names in public)
    answers = [
        e.text
        for e in entries
        if e.kind in (EntryKind.MEASURED, EntryKind.TOTAL, EntryKind.ANSWERED)
    ]
    assert not any(text in path.read_text() for text in answers)


def easy_history(shift: int) -> list[str]:
    """What left when everything was easy, with no noise but so much on the threshold."""
    room = world(four_columns(), shape=GRID, names=("a", "b", "c", "d"), seed=None)
    gate = room.plan.gate
    assert gate is not None

    def noise(scale: Any, size: int) -> NDArray[np.int64]:
        return np.full(size, shift if scale == gate.calibration.threshold else 0, np.int64)

    room.doors = replace(room.doors, noise=noise)
    several: list[dict[int, Sequence[int]]] = [{}, {0: [0]}, {0: [0], 1: [1], 3: [0, 1]}]
    for masks in several:
        assert room.construction().ask(counting(masks, GRID)).origin is Origin.SURROGATE
    secret = room.secrets.read()
    assert secret is not None and secret.state.noise == shift
    return [entry.text for entry in room.transcript.replay()]


def test_the_transcript_is_the_same_whatever_the_noise_on_the_threshold() -> None:
    """As long as it changes no comparison; a surprise's gap has it in it, as the proof allows."""
    assert easy_history(0) == easy_history(3) == easy_history(7)


@pytest.mark.parametrize("left", [None, "{", ""])
def test_losing_the_secret_costs_one_new_run_and_nothing_else(
    tmp_path: Path, left: str | None
) -> None:
    policy, secret = parity(tmp_path), tmp_path / "casemate.ledger-gate"
    with Session(policy) as session:
        before = [session.query(text).rows for text in FEW[:2]]
        session.query(EASY)  # the run after the surprise is open
        spent, plan = session.standing().spent.rho, session._dataset.construction.plan
    assert spent is not None
    secret.unlink() if left is None else secret.write_text(left)
    with Session(policy) as session:
        assert [session.query(text).rows for text in FEW[:2]] == before
        assert session.standing().spent.rho == spent
        answer = session.query("SELECT count(*) FROM t WHERE a IN (0, 1) AND b = 0 AND c = 1")
        surprise = plan.price_of(plan.surprise_law) * (answer.origin is Origin.MEASURED)
        assert session.standing().spent.rho == spent + plan.run_price + surprise
        assert len(session._dataset.doors.transcript.of_kinds((EntryKind.OPENED,))) >= 3


@pytest.mark.parametrize("command", ["ask", "budget"])
def test_a_garbled_or_unreadable_head_beside_the_ledger_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    policy, head = parity(tmp_path), tmp_path / "casemate.ledger-head"
    asked = [command, str(policy), *(FEW[:1] if command == "ask" else [])]
    with Session(policy) as session:
        session.query(FEW[0])
    head.write_text("garbled")
    assert exit_code(asked) == 3
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "-head does not name a row of the ledger" in err
    head.unlink()
    head.mkdir()
    assert exit_code(asked) == 2
    assert "-head, which names the ledger's newest row, cannot be opened" in capsys.readouterr().err


@pytest.mark.parametrize("setting", [None, "other.ledger"])
@pytest.mark.parametrize("command", ["ask", "budget", "replay", "plan"])
def test_a_link_in_the_place_of_the_ledger_is_not_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, setting: str | None
) -> None:
    """The twin: the file itself is used, so it is the link that is refused."""
    policy, ledger = parity(tmp_path, ledger=setting), tmp_path / (setting or "casemate.ledger")
    asked = [command, str(policy), *(FEW[:1] if command == "ask" else [])]
    with Session(policy) as session:
        session.query(FEW[0])
    assert exit_code(asked) == 0
    ledger.rename(tmp_path / "elsewhere")
    ledger.symlink_to(tmp_path / "elsewhere")
    capsys.readouterr()
    assert exit_code(asked) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "link" in err


def test_what_a_crash_left_unsaid_in_the_ledger_is_said_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the ledger would take a table of the start that has left for one that is still owed."""
    policy = parity(tmp_path)
    with Session(policy) as session:
        monkeypatch.setattr(session._dataset.doors.ledger, "record_output", lambda *_: b"")
        session._dataset.construction.start()
    with Session(policy) as session:
        assert unvouched(session._dataset)
        session.query(FEW[0])
        assert not unvouched(session._dataset)


def unvouched(dataset: Dataset) -> list[str]:
    entries = dataset.doors.transcript.of_kinds((EntryKind.TOTAL, EntryKind.MEASURED))
    return [entry.key for entry in entries if dataset.doors.ledger.outcome(entry.key) is None]


# The key that chooses rows ------------------------------------------------------------------------


def test_the_datasets_key_is_whole_or_absent_whenever_its_maker_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    ledger = tmp_path / "l"
    for name in ("fsync", "link"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, dies)
            with pytest.raises(KeyboardInterrupt):
                dataset_key(ledger)
    key = dataset_key(ledger)
    assert len(key) == 32 and dataset_key(ledger) == key
    assert [path.name for path in tmp_path.iterdir()] == ["l-key"]
    assert stat.S_IMODE((tmp_path / "l-key").stat().st_mode) == 0o600


def test_two_makers_of_the_datasets_key_get_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, link, other = tmp_path / "l", os.link, list[bytes]()

    def late(new: Path, path: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        other.append(dataset_key(ledger))  # another process is quicker
        link(new, path)

    monkeypatch.setattr(os, "link", late)
    assert dataset_key(ledger) == other[0]


# The kept stand-in, and a table that is not opened ------------------------------------------------


def test_without_its_kept_stand_in_the_next_process_answers_the_same(tmp_path: Path) -> None:
    policy, kept = parity(tmp_path), tmp_path / "casemate.ledger-stand-in"
    with Session(policy) as session:
        session.query(FEW[1])
        expected = session._dataset.construction.stand_in.surrogate.marginal((0, 1, 2)).tobytes()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for damage in (lambda: None, kept.unlink, lambda: kept.write_bytes(b"torn")):
        damage()
        with Session(policy) as session:
            session._dataset.construction.start()
            found = session._dataset.construction.stand_in.surrogate.marginal((0, 1, 2))
            assert found.tobytes() == expected


def test_a_cached_answer_a_forecast_and_the_budget_leave_the_table_shut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = parity(tmp_path)
    with Session(policy) as session:
        answer = session.query(FEW[2])
    monkeypatch.setattr(LaterSource, "opened", property(lambda _: pytest.fail("it was opened")))
    with Session(policy) as session:
        assert session.query(FEW[2]).rows == answer.rows
        assert session.forecast(FEW[1]).cost.epsilon > 0
        assert session.standing().spent.epsilon > 0


@pytest.mark.parametrize("measure", [False, True])
def test_a_table_that_is_not_as_the_policy_says_is_refused_before_a_charge(
    tmp_path: Path, measure: bool
) -> None:
    policy = parity(tmp_path)
    with Session(policy) as session:
        session.query(FEW[0])
    policy.write_text(policy.read_text() + "\n[columns.nowhere]\nvalues = [0, 1]\n")
    with Session(policy) as session:
        before = session.standing().spent
        with pytest.raises(Misconfigured, match="nowhere"):
            session.query("SELECT count(*) FROM t WHERE nowhere = 1", measure=measure)
        assert session.standing().spent == before


def test_asking_again_loads_no_solver_no_compiler_and_no_database(tmp_path: Path) -> None:
    policy = parity(tmp_path)
    with Session(policy) as session:
        session.query(FEW[2])
    heavy = ("scipy", "ortools", "highspy", "numba", "duckdb", "pyarrow", "pandas")
    script = (
        "import sys; from casemate.cli.main import exit_code; "
        f"assert exit_code(['ask', {str(policy)!r}, {FEW[2]!r}]) == 0; "
        f"print([each for each in {heavy} if each in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    assert shown.stdout.splitlines()[-1] == "[]", shown.stderr
