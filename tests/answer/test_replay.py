"""Anybody replays a transcript: the chain is checked, the stand-in rebuilt, two copies compared."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from answer.session_world import parity

from casemate import Misconfigured, Replay, Session, replay
from casemate.answer.replaying import KEPT_DIFFERS
from casemate.cli.main import exit_code
from casemate.surrogate import KeptFit

SQL = "SELECT a, COUNT(*) FROM t GROUP BY a"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of which something was asked."""
    policy = parity(tmp_path_factory.mktemp("asked"))
    with Session(policy) as session:
        session.query(SQL)
    return policy


@pytest.fixture
def lines(asked: Path, tmp_path: Path) -> Path:
    """Its transcript as a custodian publishes it."""
    copy = tmp_path / "transcript.jsonl"
    copy.write_text("".join(replay(asked).lines()))
    return copy


def reads(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    code = exit_code(["replay", *map(str, arguments), "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


def elsewhere(asked: Path, tmp_path: Path) -> Path:
    """The policy alone, in a folder without ledger or data."""
    return Path(shutil.copy(asked, tmp_path / asked.name))


def test_a_whole_transcript_is_equal_to_itself_and_to_its_copies(
    asked: Path, lines: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = replay(asked)
    assert isinstance(alone, Replay) and alone.equal and alone.stand_in is not None
    assert alone.head == json.loads(lines.read_text().splitlines()[-1])["hash"]
    code, object_ = reads(capsys, asked, "--transcript", lines)
    assert code == 0 and object_["equal"] is True and object_["head"] == alone.head
    assert object_["schema"] == "casemate.replay/1" and object_["stand_in"] == alone.stand_in


def test_a_copy_is_replayed_where_neither_ledger_nor_data_are(
    asked: Path, lines: Path, tmp_path: Path
) -> None:
    policy = elsewhere(asked, tmp_path)
    with pytest.raises(Misconfigured, match="no transcript to replay"):
        replay(policy)
    files = {path.name for path in tmp_path.iterdir()}
    assert replay(policy, lines).stand_in == replay(asked).stand_in
    assert replay(policy, lines).equal
    assert {path.name for path in tmp_path.iterdir()} == files, "nothing is made"


def test_a_shorter_copy_is_whole_in_itself_and_unequal_to_the_own(
    asked: Path, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines.write_text("".join(lines.read_text().splitlines(keepends=True)[:-1]))
    code, object_ = reads(capsys, asked, "--transcript", lines)
    assert code == 1 and object_["equal"] is False and "entries and the copy" in str(object_)
    assert replay(elsewhere(asked, tmp_path), lines).equal


@pytest.mark.parametrize("alone", [True, False])
def test_a_changed_copy_is_found(
    asked: Path,
    lines: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    alone: bool,
) -> None:
    lines.write_text(lines.read_text().replace('"runs":0', '"runs":1', 1))
    policy = elsewhere(asked, tmp_path) if alone else asked
    code, object_ = reads(capsys, policy, "--transcript", lines)
    assert code == 1 and object_["equal"] is False
    assert "entry 0 of the transcript is damaged" in str(object_["notes"])


def test_a_copy_whose_last_line_is_cut_or_that_holds_nothing_is_not_sound(
    asked: Path, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, policy = lines.read_text(), elsewhere(asked, tmp_path)
    for kept, said in ((whole[:-40], "was cut off"), ("", "holds no entry of a transcript")):
        lines.write_text(kept)
        code, object_ = reads(capsys, policy, "--transcript", lines)
        assert code == 1 and object_["equal"] is False and said in str(object_["notes"])


def emptied(ledger: Path, *, keep: int = 0) -> None:
    """Cut the transcript in a ledger's file, as somebody who may write to it would."""
    with closing(sqlite3.connect(ledger)) as file, file:
        for (drop,) in file.execute(
            "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            file.execute(drop)
        file.execute("DELETE FROM transcript WHERE number >= ?", (keep,))


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("as_copy", [True, False])
def test_a_transcript_with_less_than_its_ledger_vouches_for_is_not_sound(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], keep: int, as_copy: bool
) -> None:
    world = Path(shutil.copytree(asked.parent, tmp_path / "world"))
    policy, ledger, files = world / asked.name, world / "casemate.ledger", set(world.iterdir())
    copy = Path(shutil.copy(ledger, tmp_path / "copy.ledger")) if as_copy else None
    arguments = [] if copy is None else ["--transcript", copy]
    assert reads(capsys, policy, *arguments)[0] == 0, "the twin: nothing was cut"
    emptied(copy or ledger, keep=keep)
    code, object_ = reads(capsys, policy, *arguments)
    assert code == 1 and object_["equal"] is False
    assert f"the ledger vouches for entry {keep} of the transcript" in str(object_["notes"])
    assert set(world.iterdir()) == files, "nothing is made"


def test_a_ledger_that_is_gone_or_emptied_is_not_sound_while_its_head_is_there(
    asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Path(shutil.copytree(asked.parent, tmp_path / "world"))
    policy, ledger = world / asked.name, world / "casemate.ledger"
    ledger.unlink()
    code, object_ = reads(capsys, policy)
    assert code == 1 and "casemate.ledger is gone" in str(object_["notes"])
    assert not ledger.exists(), "nothing is made"
    ledger.touch(0o600)
    code, object_ = reads(capsys, policy)
    assert code == 1 and "a receipt vouches for row" in str(object_["notes"])


def test_where_nothing_has_left_there_is_nothing_to_call_sound(tmp_path: Path) -> None:
    policy = parity(tmp_path)
    with Session(policy) as session:
        session.forecast(SQL)
    with pytest.raises(Misconfigured, match=r"nothing has left .* no transcript to replay"):
        replay(policy)


@pytest.mark.parametrize(
    ("written", "said"),
    [('"casemate.transcript/9"', "has the format 'casemate.transcript/9'"), ("null", "names no f")],
)
def test_lines_of_another_version_are_refused(
    asked: Path, lines: Path, written: str, said: str
) -> None:
    lines.write_text(lines.read_text().replace('"casemate.transcript/2"', written))
    with pytest.raises(Misconfigured, match=rf"this transcript {said}.* and this version") as found:
        replay(asked, lines)
    assert "None" not in str(found.value)


def test_a_kept_stand_in_that_the_transcript_does_not_lead_to_is_found(
    asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = asked.parent / "casemate.ledger-stand-in"
    whole = path.read_bytes()
    with Session.looking(asked) as session:
        found = session._dataset.construction.stand_in
        found.catch_up(session._dataset.doors.transcript)
        head, numbers = KeptFit(path).read(found.name) or ("", {})
    KeptFit(path).write(found.name, head, {**numbers, "cells": 2 * numbers["cells"]})
    code, object_ = reads(capsys, asked)
    assert code == 1 and object_["notes"] == [KEPT_DIFFERS]
    path.write_bytes(whole)
    assert replay(asked).equal
