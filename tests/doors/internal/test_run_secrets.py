"""What is kept beside a ledger for its owner alone: the open run's secret, and a key."""

import threading
from fractions import Fraction
from pathlib import Path

import pytest

from casemate.doors import MemorySecrets, RunSecrets, SecretFile, dataset_key
from casemate.doors.dataset import KEY_BYTES
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


TORN = [SECRET.to_text()[:length] for length in (0, 1, 10, 50, 100)]
NEWER = SECRET.to_text().replace("casemate.gate/1", "casemate.gate/2")


@pytest.mark.parametrize(
    "text", [*TORN, NEWER, "[]", "7", '{"format":"x"}', '{"format":"casemate.gate/1"}', "ÿ"]
)
def test_a_torn_file_or_one_of_another_kind_is_a_lost_secret_and_is_replaced(
    tmp_path: Path, text: str
) -> None:
    secrets = SecretFile.beside(tmp_path / "l")
    secrets.write(SECRET)
    (tmp_path / "l-gate").write_text(text, encoding="latin-1")
    assert secrets.read() is None
    (tmp_path / "l-gate.new").write_text("half a sec")  # what a crash left of a new one
    (tmp_path / "l-gate.new").chmod(0o644)
    assert secrets.read() is None
    secrets.write(SECRET)
    assert secrets.read() == SECRET


def test_a_folder_that_cannot_be_written_is_misconfigured(tmp_path: Path) -> None:
    secrets = SecretFile(tmp_path / "missing" / "gate")
    with pytest.raises(Misconfigured, match="keep the ledger in a folder"):
        secrets.write(SECRET)
    with pytest.raises(Misconfigured, match="cannot be written"):
        dataset_key(tmp_path / "missing" / "a.ledger")


# The key that chooses which rows of a person count -------------------------------------------


def test_the_key_is_made_once_and_nothing_else_is_left(tmp_path: Path) -> None:
    first = dataset_key(tmp_path / "a.ledger")
    assert len(first) == KEY_BYTES and dataset_key(tmp_path / "a.ledger") == first
    (path,) = tmp_path.iterdir()
    assert path.name == "a.ledger-key"


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_what_is_not_a_key_is_refused_and_stays_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.ledger-key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Misconfigured, match="32 bytes"):
        dataset_key(tmp_path / "a.ledger")
    assert path.read_bytes() == content
