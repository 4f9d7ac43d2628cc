"""A new process between every two questions changes nothing, and a lost secret costs one run."""

import json
import os
import random
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answer.parity_policy import COLUMNS, write_policy
from answer.small_dataset import world
from answer.tape_session import MEASURE, asked, on_tape
from grid.small_grid import counting
from numpy.typing import NDArray

from casemate.answer import Session
from casemate.answer.dataset import Dataset, open_durable
from casemate.doors import EntryKind, dataset_key
from casemate.errors import Unsupported
from casemate.grid import Origin, Relation
from casemate.privacy.ledger.entry import RowKind as Row
from casemate.privacy.noise import Noise
from casemate.table import Table

FEW = [
    "SELECT count(*) FROM t",
    "SELECT count(*) FROM t WHERE a = 0 AND b = 1 AND c = 1",
    f"{MEASURE}SELECT sum(c) FROM t WHERE a = 1",
    "SELECT b, avg(c) FROM t GROUP BY b",
    "SELECT count(*) FROM t",
    "SELECT a, b, c, count(*) FROM t GROUP BY a, b, c",
]


def kept(policy: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    """What two histories agree in: the entries to the byte, and the charges without their time."""
    dataset = open_durable(Table.open(policy))
    hashes = [entry.hash.hex() for entry in dataset.doors.transcript.replay()]
    rows = [(row.key, row.cost) for row in dataset.doors.ledger.history() if row.kind == Row.CHARGE]
    dataset.close()
    return hashes, rows


def test_a_session_for_every_statement_gives_what_one_long_session_gives(
    tmp_path: Path, rng: random.Random
) -> None:
    require_restarts_change_nothing(tmp_path, rng, statements=10)


def require_restarts_change_nothing(where: Path, rng: random.Random, statements: int) -> None:
    several = [statement(rng) for _ in range(statements)]
    long, short = (write_policy(where / name) for name in ("long", "short"))
    with on_tape(long) as session:
        expected = asked(session, several)
    found = []
    for text in several:
        with on_tape(short) as session:
            found += asked(session, [text])
    assert found == expected
    assert kept(short) == kept(long)


def statement(rng: random.Random) -> str:
    """A statement about some of the columns, now and then with a measurement of its own."""
    chosen = rng.sample(COLUMNS, rng.randrange(4))
    where = " AND ".join(f"{name} = {rng.randrange(2)}" for name in chosen) or "true"
    what = rng.choice(["count(*)", "sum(c)", "avg(a)", "count(*), sum(b)"])
    start = MEASURE if rng.random() < 0.05 else ""
    return f"{start}SELECT {what} FROM t WHERE {where}"


# In memory, hundreds of questions -----------------------------------------------------------------

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
    policy = write_policy(tmp_path)
    with Session(policy) as session:
        session.query(FEW[0])
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


def shifted(shift: int, scale: Any) -> Noise:
    """No noise but this on the threshold."""

    def noise(drawn: Any, size: int) -> NDArray[np.int64]:
        return np.full(size, shift if drawn == scale else 0, np.int64)

    return noise


def easy_history(shift: int) -> list[str]:
    """What left when everything was easy, with so much noise on the threshold."""
    room = world(four_columns(), shape=GRID, names=("a", "b", "c", "d"), seed=None)
    assert room.plan.gate is not None
    noise = shifted(shift, room.plan.gate.calibration.threshold)
    room.doors = type(room.doors)(**{**vars(room.doors), "noise": noise})
    several: list[dict[int, Sequence[int]]] = [{}, {0: [0]}, {0: [0], 1: [1]}]
    for masks in several:
        assert room.construction().ask(counting(masks, GRID)).origin is Origin.SURROGATE
    secret = room.secrets.read()
    assert secret is not None and secret.state.noise == shift
    return [entry.text for entry in room.transcript.replay()]


def test_the_transcript_is_the_same_whatever_the_noise_on_the_threshold() -> None:
    """As long as it changes no comparison; a surprise's gap has it in it, as the proof allows."""
    assert easy_history(0) == easy_history(3) == easy_history(-7)


def garbage(path: Path) -> None:
    path.write_text("{")


def emptied(path: Path) -> None:
    path.write_text("")


@pytest.mark.parametrize("lose", [Path.unlink, garbage, emptied])
def test_losing_the_secret_costs_one_new_run_and_nothing_else(tmp_path: Path, lose: Any) -> None:
    policy = write_policy(tmp_path)
    with Session(policy) as session:
        before = [session.query(text).rows for text in FEW[:2]]
        session.query(FEW[3])  # the run after the surprise is open
        spent, plan = (
            session._dataset.doors.ledger.spent().amount,
            session._dataset.construction.plan,
        )
    lose(tmp_path / "casemate.ledger-gate")
    with Session(policy) as session:
        assert [session.query(text).rows for text in FEW[:2]] == before
        assert session._dataset.doors.ledger.spent().amount == spent
        answer = session.query("SELECT count(*) FROM t WHERE b = 0")
        assert answer.origin is Origin.SURROGATE or answer.origin is Origin.MEASURED
        opened = session._dataset.doors.transcript.of_kinds((EntryKind.OPENED,))
        surprise = plan.price_of(plan.surprise_law) * (answer.origin is Origin.MEASURED)
        assert session._dataset.doors.ledger.spent().amount == spent + plan.run_price + surprise
        assert len(opened) >= 3


def test_what_a_crash_left_unsaid_in_the_ledger_is_said_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the ledger would take a table of the start that has left for one that is still owed."""
    policy = write_policy(tmp_path)
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


# Answers under several names ----------------------------------------------------------------------


def test_numbers_that_were_proven_one_by_one_do_not_prove_their_sum() -> None:
    one = counting({0: [0]}, GRID)
    together = type(one)(one.parts, together=2)
    assert one.text != together.text


# Many at once -------------------------------------------------------------------------------------


def test_many_at_once_are_refused_before_anything_is_charged_as_one_alone_is() -> None:
    shape = (2,) * 21
    room = world(np.zeros((5, 21), np.int64), shape=shape, names=[f"a{i}" for i in range(21)])
    several = [counting({}, shape), counting({a: [0] for a in range(21)}, shape)]
    with pytest.raises(Unsupported, match="kinds of people"):
        room.construction().ask_all(several)
    assert room.ledger.spent().amount == 0 and room.transcript.newest() is None


def test_what_everybody_knows_is_exact_also_among_many() -> None:
    facts: dict[str, Any] = {"shape": GRID, "names": ("a", "b", "c", "d"), "public": (0, 1)}
    room = world(four_columns(), relation=Relation(True, 1, counted=True), **facts)
    public = counting({0: [1]}, GRID)
    found, _ = room.construction().ask_all([public, counting({2: [1]}, GRID)])
    assert found.parts[0][0].lo == found.parts[0][0].hi == room.cells.exact(public)[0][0]
