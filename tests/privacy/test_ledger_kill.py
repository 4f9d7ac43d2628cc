"""Real processes die by SIGKILL while they charge: nothing acknowledged is lost, or overspent.

SIGKILL ends a process at any instruction but leaves the operating system running; that a commit
also survives a loss of power is what synchronous=FULL and fsync are for, and no test here shows it.
"""

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from ledger_writer import FACTS
from privacy.places import Place

from casemate.privacy import Pure
from casemate.privacy.ledger import answer_once, open_ledger
from casemate.privacy.ledger.entry import RowKind

WRITER = Path(__file__).parents[1] / "ledger_writer.py"


def start(where: str, parts: int, habit: str = "after") -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(WRITER), where, str(parts), "4", habit]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def kill_after(writers: "list[subprocess.Popen[bytes]]", lines: int) -> list[str]:
    """Let each writer acknowledge some charges, kill them all, and return all acknowledged."""
    seen = b""
    for writer in writers:
        assert writer.stdout is not None
        seen += b"".join(writer.stdout.readline() for _ in range(lines))
    for writer in writers:
        writer.kill()
    for writer in writers:
        seen += writer.communicate()[0]
    return seen.decode().splitlines()


def charged(where: str) -> list[str]:
    """Every charge in the ledger, which opens only if it verifies."""
    with open_ledger(where, **FACTS) as ledger:
        return [entry.key for entry in ledger.history() if entry.kind == RowKind.CHARGE]


def lost(where: str, rounds: int, parts: int, rng: Random, habit: str = "after") -> set[str]:
    """Acknowledged charges that are not in the ledger after so many rounds of two writers."""
    acknowledged: set[str] = set()
    for _ in range(rounds):
        writers = [start(where, parts, habit) for _ in range(2)]
        acknowledged |= set(kill_after(writers, rng.randrange(1, 8)))
    return acknowledged - set(charged(where))


def run_dry(where: str, parts: int) -> None:
    """Let two writers that nobody kills spend what is left, and see that it is all there is."""
    writers = [start(where, parts) for _ in range(2)]
    assert [writer.communicate() and writer.returncode for writer in writers] == [0, 0]
    with open_ledger(where, **FACTS) as ledger:
        assert ledger.spent().amount == 1
    keys = charged(where)
    assert len(keys) == len(set(keys)) == parts


@pytest.mark.parametrize(
    ("rounds", "parts"), [(3, 400), pytest.param(15, 4000, marks=pytest.mark.slow)]
)
def test_killed_writers_lose_no_acknowledged_charge_and_never_overspend(
    place: Place, rng: Random, rounds: int, parts: int
) -> None:
    where = str(place.where)
    assert lost(where, rounds, parts, rng) == set()
    run_dry(where, parts)


def test_the_test_above_would_notice_an_acknowledgement_before_the_commit(
    tmp_path: Path, rng: Random
) -> None:
    where = str(tmp_path / "a.ledger")
    assert any(lost(where, 1, 400, rng, habit="before") for _ in range(8))


def test_a_process_that_dies_before_its_commit_has_charged_nothing(tmp_path: Path) -> None:
    where = str(tmp_path / "a.ledger")
    assert kill_after([start(where, 10, "before-commit")], 1) == []
    assert charged(where) == []


def test_a_process_that_dies_after_its_commit_has_charged_and_owes_one_draw(
    tmp_path: Path,
) -> None:
    where = str(tmp_path / "a.ledger")
    assert kill_after([start(where, 10, "after-commit")], 1) == []
    keys = charged(where)
    assert keys, "the commit stands although nobody was told"
    with open_ledger(where, **FACTS) as ledger:
        before = ledger.spent()
        assert answer_once(ledger, Pure(Fraction(1, 10)), keys[0], "race", lambda: b"4") == b"4"
        assert ledger.spent() == before
