import os
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.doors import MemorySecrets, RunSecrets, SecretFile
from casemate.doors.run_secrets import RunSecret
from casemate.errors import Misconfigured
from casemate.privacy.mechanisms import Calibration, RunState

CALIBRATION = Calibration.of(Fraction(1, 10))
SECRET = RunSecret("r1", RunState(CALIBRATION, -4711))


@pytest.fixture(params=["memory", "file"])
def secrets(request: pytest.FixtureRequest, tmp_path: Path) -> RunSecrets:
    if request.param == "memory":
        return MemorySecrets()
    return SecretFile.beside(tmp_path / "hospital.ledger")


def test_a_secret_is_read_back_replaced_and_wiped(secrets: RunSecrets) -> None:
    assert secrets.read() is None
    pending = RunSecret("r1", RunState(CALIBRATION, None))
    for secret in (pending, SECRET, None, SECRET):
        secrets.write(secret)
        assert secrets.read() == secret
    assert SECRET.drawn and not pending.drawn


def test_holding_keeps_other_threads_out(secrets: RunSecrets) -> None:
    inside, most = 0, 0

    def enter() -> None:
        nonlocal inside, most
        for _ in range(50):
            with secrets.exclusive_lock():
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


# The file ---------------------------------------------------------------------------------------


def test_the_file_is_for_its_owner_alone_even_under_a_generous_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        secrets = SecretFile.beside(tmp_path / "l")
        with secrets.exclusive_lock():
            secrets.write(SECRET)
    finally:
        os.umask(before)
    names = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert names == {"l-gate": 0o600, "l-gate.lock": 0o600}


@pytest.mark.parametrize("length", [0, 1, 10, 50, 100])
def test_a_torn_file_is_a_lost_secret(tmp_path: Path, length: int) -> None:
    secrets, path = SecretFile.beside(tmp_path / "l"), tmp_path / "l-gate"
    secrets.write(SECRET)
    path.write_text(path.read_text()[:length])
    assert secrets.read() is None


@pytest.mark.parametrize("text", ["[]", "7", '{"format":"x"}', '{"format":"casemate.gate/1"}', "ÿ"])
def test_a_file_of_another_kind_is_a_lost_secret(tmp_path: Path, text: str) -> None:
    secrets = SecretFile.beside(tmp_path / "l")
    secrets.write(SECRET)
    (tmp_path / "l-gate").write_text(text, encoding="latin-1")
    assert secrets.read() is None


def test_what_a_crash_left_of_a_new_secret_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "l-gate.new").write_text("half a sec")
    (tmp_path / "l-gate.new").chmod(0o644)
    secrets = SecretFile.beside(tmp_path / "l")
    assert secrets.read() is None
    secrets.write(SECRET)
    assert secrets.read() == SECRET


def test_a_folder_that_cannot_be_written_is_misconfigured(tmp_path: Path) -> None:
    secrets = SecretFile(tmp_path / "missing" / "gate")
    with pytest.raises(Misconfigured, match="keep the ledger in a folder"):
        secrets.write(SECRET)
