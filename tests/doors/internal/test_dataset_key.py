"""The key that chooses which rows of a person count."""

import stat
from pathlib import Path

import pytest

from casemate.doors import dataset_key
from casemate.doors.dataset import KEY_BYTES
from casemate.errors import Misconfigured


def test_the_key_is_made_once_for_its_owner_alone_and_nothing_else_is_left(tmp_path: Path) -> None:
    first = dataset_key(tmp_path / "a.ledger")
    assert len(first) == KEY_BYTES and dataset_key(tmp_path / "a.ledger") == first
    (path,) = tmp_path.iterdir()
    assert path.name == "a.ledger-key" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    dataset_key(tmp_path / "a.ledger")
    (tmp_path / "a.ledger-key").chmod(0o640)
    with pytest.raises(Misconfigured, match="chmod 600"):
        dataset_key(tmp_path / "a.ledger")


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_what_is_not_a_key_is_refused_and_stays_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger-key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Misconfigured, match="32 bytes"):
        dataset_key(tmp_path / "a.ledger")
    assert path.read_bytes() == content


def test_a_folder_that_is_not_there_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="cannot be written"):
        dataset_key(tmp_path / "absent" / "a.ledger")
