"""The dataset's key, which chooses the rows of a person that count: made once, kept for ever."""

import os
import secrets
from pathlib import Path

from casemate.errors import Misconfigured

SUFFIX = "-key"
BYTES = 32


def dataset_key(beside: Path) -> bytes:
    """The key kept beside a file, made now if there is none; only its owner may read it."""
    path = beside.with_name(beside.name + SUFFIX)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return _read(path)
    except OSError as reason:
        raise Misconfigured(
            f"the dataset's key {path} cannot be written ({reason.strerror}); keep the ledger in "
            f"a folder that can"
        ) from reason
    key = secrets.token_bytes(BYTES)
    with os.fdopen(handle, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(handle)
    return key


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        mode, key = os.fstat(file.fileno()).st_mode, file.read()
    if mode & 0o077 or len(key) != BYTES:
        raise Misconfigured(
            f"{path} must hold the dataset's key of {BYTES} bytes for its owner alone; take the "
            f"permission away with chmod 600, or restore it from a copy"
        )
    return key
