"""Files beside a ledger are used only where nobody else can have put or read them."""

import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.doors import SecretFile, dataset_key
from casemate.errors import Misconfigured
from casemate.privacy.ledger import open_ledger


def key(ledger: Path) -> None:
    dataset_key(ledger)


def gate(ledger: Path) -> None:
    SecretFile.beside(ledger).read()


def lock(ledger: Path) -> None:
    with SecretFile.beside(ledger).exclusive_lock():
        pass


def book(ledger: Path) -> None:
    open_ledger(ledger, dataset="d", policy="p", epsilon=Fraction(1)).close()


FILES: list[tuple[str, Callable[[Path], None]]] = [
    ("l-key", key),
    ("l-gate", gate),
    ("l-gate.lock", lock),
    ("l-head", book),
]


@pytest.mark.parametrize(("name", "use"), FILES)
@pytest.mark.parametrize("there", [True, False])
def test_a_link_in_the_place_of_a_file_is_not_followed(
    name: str, use: Callable[[Path], None], there: bool, tmp_path: Path
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


@pytest.mark.parametrize(("name", "use"), [*FILES, ("l", book)])
def test_a_file_of_somebody_else_is_not_used(
    name: str, use: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"x" * 32 if name == "l-key" else b"")
    (tmp_path / name).chmod(0o600)
    use(tmp_path / "l")  # the twin: a file of our own is used
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    found = os.stat_result((0o100600, 1, 1, 1, os.getuid() + 2, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "fstat", lambda _: found)
    monkeypatch.setattr(Path, "stat", lambda _, **__: found)
    with pytest.raises(Misconfigured, match="belongs to somebody else"):
        use(tmp_path / "l")


def test_a_folder_in_the_place_of_a_file_is_said_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "l-gate").mkdir()
    with pytest.raises(Misconfigured, match="no plain file"):
        gate(tmp_path / "l")


def test_a_ledger_that_others_may_write_to_is_refused_and_one_that_they_read_is_not(
    tmp_path: Path,
) -> None:
    book(tmp_path / "l")
    (tmp_path / "l").chmod(0o644)
    book(tmp_path / "l")
    (tmp_path / "l").chmod(0o664)
    with pytest.raises(Misconfigured, match="others than its owner"):
        book(tmp_path / "l")
