"""What only the SQLite form promises: its place beside the ledger, torn ends, and damage."""

import shutil
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from doors.doorway import FACTS

from casemate.doors import Closed, open_transcript
from casemate.doors.transcript import FORM
from casemate.errors import TranscriptDamaged
from casemate.privacy import Pure
from casemate.privacy.ledger import open_ledger


def by_hand(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def filled(path: Path, count: int = 3) -> None:
    with open_transcript(path) as transcript:
        for number in range(count):
            transcript.append(Closed(f"r{number}", "tired"))


def test_a_ledger_and_its_transcript_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "hospital.ledger"
    for number in range(2):
        with open_ledger(path, **FACTS) as ledger, open_transcript(path) as transcript:
            ledger.charge(Pure(Fraction(1)), key=f"q{number}", purpose="count")
            transcript.append(Closed(f"r{number}", ""))
            assert ledger.verify().number == number + 1
            assert len(list(transcript.replay())) == number + 1
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE transcript SET text = '{}' WHERE number = 1", "entry 1 .* its hash"),
        ("DELETE FROM transcript WHERE number = 1", "entry 1 .* it is missing"),
        ("UPDATE transcript SET runs = 9 WHERE number = 0", "entry 0 .* its hash"),
    ],
)
def test_a_tampered_transcript_is_refused_when_it_is_opened(
    tmp_path: Path, statement: str, found: str
) -> None:
    filled(tmp_path / "t")
    by_hand(
        tmp_path / "t",
        "DROP TRIGGER transcript_never_changes",
        "DROP TRIGGER transcript_never_shrinks",
        statement,
    )
    with pytest.raises(TranscriptDamaged, match=found):
        open_transcript(tmp_path / "t")


def test_an_entry_whose_hash_was_made_anew_is_found_by_the_one_after_it(tmp_path: Path) -> None:
    filled(tmp_path / "t")
    with open_transcript(tmp_path / "t") as transcript:
        first, second = list(transcript.replay())[:2]
    changed = replace(first, text="{}")
    row = "X'" + FORM.digest(changed, bytes(32)).hex() + "'"
    by_hand(
        tmp_path / "t",
        "DROP TRIGGER transcript_never_changes",
        f"UPDATE transcript SET text = '{{}}', hash = {row} WHERE number = 0",
    )
    with pytest.raises(TranscriptDamaged, match=f"entry {second.number} .* its hash"):
        open_transcript(tmp_path / "t")


def test_a_transcript_is_opened_without_its_chain_where_nobody_walks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of the tests above: what they find is found by the walk and nothing else."""
    filled(tmp_path / "t")
    by_hand(
        tmp_path / "t",
        "DROP TRIGGER transcript_never_changes",
        "UPDATE transcript SET text = '{}' WHERE number = 1",
    )
    monkeypatch.setattr("casemate.doors.transcript.Transcript.verify", lambda _: None)
    open_transcript(tmp_path / "t").close()


@pytest.mark.parametrize("lost", [1, 100, 4096, 5000])
def test_a_torn_end_of_the_log_is_left_out_and_the_rest_is_whole(tmp_path: Path, lost: int) -> None:
    """What a loss of power in the middle of a write leaves: a log that ends within a page."""
    with open_transcript(tmp_path / "t") as transcript:
        for number in range(5):
            transcript.append(Closed(f"r{number}", "tired"))
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"t{suffix}", tmp_path / f"copy{suffix}")
    log = tmp_path / "copy-wal"
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - lost)
    with open_transcript(tmp_path / "copy") as copy:
        assert 0 < len(list(copy.replay())) < 5
        copy.append(Closed("r4", "again"))
        list(copy.replay())
