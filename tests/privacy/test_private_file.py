"""Files beside a ledger are for their owner: nobody else can have put, read or changed them."""

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.doors import SecretFile, dataset_key
from casemate.doors.run_secrets import RunSecret
from casemate.errors import Misconfigured
from casemate.privacy.ledger import open_ledger
from casemate.privacy.mechanisms import Calibration, RunState


def key(ledger: Path) -> None:
    dataset_key(ledger)


def gate(ledger: Path) -> None:
    secrets = SecretFile.beside(ledger)
    secrets.read()
    secrets.write(RunSecret("r1", RunState(Calibration.of(Fraction(1)), -4711)))


def lock(ledger: Path) -> None:
    with SecretFile.beside(ledger).exclusive_lock():
        pass


def book(ledger: Path) -> None:
    open_ledger(ledger, dataset="d", policy="p", epsilon=Fraction(1)).close()


Use = Callable[[Path], None]
FILES: list[tuple[str, Use]] = [
    ("l-key", key),
    ("l-gate", gate),
    ("l-gate.lock", lock),
    ("l-head", book),
    ("l", book),
]
every_file = pytest.mark.parametrize(("name", "use"), FILES)


@every_file
def test_it_is_made_for_its_owner_alone_even_under_a_generous_umask(
    name: str, use: Use, tmp_path: Path
) -> None:
    before = os.umask(0)
    try:
        use(tmp_path / "l")
    finally:
        os.umask(before)
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


@every_file
def test_one_that_others_may_use_is_refused_and_a_ledger_that_they_only_read_is_not(
    name: str, use: Use, tmp_path: Path
) -> None:
    use(tmp_path / "l")
    (tmp_path / name).chmod(0o664)
    with pytest.raises(Misconfigured, match=r"others than its owner.*chmod 600"):
        use(tmp_path / "l")
    (tmp_path / name).chmod(0o644)
    if use is book:
        use(tmp_path / "l")
    else:
        with pytest.raises(Misconfigured, match="chmod 600"):
            use(tmp_path / "l")


@every_file
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_place_of_a_file_is_not_followed(
    name: str, use: Use, there: bool, tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    elsewhere = tmp_path / "own" / "diary"
    if there:
        elsewhere.write_bytes(b"x" * 32)
        elsewhere.chmod(0o600)
    (tmp_path / name).symlink_to(elsewhere)
    with pytest.raises(Misconfigured):
        use(tmp_path / "l")
    assert elsewhere.exists() == there
    assert not there or elsewhere.read_bytes() == b"x" * 32


@every_file
def test_a_file_of_somebody_else_is_not_used(
    name: str, use: Use, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"x" * 32 if name == "l-key" else b"")
    (tmp_path / name).chmod(0o600)
    use(tmp_path / "l")  # the twin: a file of our own is used
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = os.stat_result((0o100600, 1, 1, 1, os.getuid() + 2, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _: found)
    monkeypatch.setattr(Path, "lstat", lambda _: found)
    with pytest.raises(Misconfigured, match="belongs to somebody else"):
        use(tmp_path / "l")


def test_a_folder_in_the_place_of_a_file_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "l-gate").mkdir()
    with pytest.raises(Misconfigured, match="no plain file"):
        gate(tmp_path / "l")
