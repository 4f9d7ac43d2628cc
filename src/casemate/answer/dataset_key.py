"""The dataset's key, which chooses the rows of a person that count: made once, kept for ever."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from casemate.errors import Misconfigured
from casemate.privacy.private_file import open_private

SUFFIX = "-key"
BYTES = 32


def dataset_key(beside: Path) -> bytes:
    """The key kept beside a file, made now if there is none; only its owner may read it."""
    path = beside.with_name(beside.name + SUFFIX)
    try:
        if not os.path.lexists(path):
            _make(path)
        return _read(path)
    except OSError as reason:
        raise Misconfigured(
            f"the dataset's key {path} cannot be written ({reason.strerror}); keep the "
            f"ledger in a folder that can, with no link in its place"
        ) from reason


def _make(path: Path) -> None:
    """Write a key as a whole, then give it its name unless another process was first.

    So nobody ever sees half a key: neither a process that comes at the same time, nor one after a
    crash.
    """
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(BYTES))
            file.flush()
            os.fsync(handle)
        with suppress(FileExistsError):
            os.link(new, path)
        _flush(path.parent)
    finally:
        new.unlink()


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> bytes:
    with os.fdopen(open_private(path, os.O_RDONLY), "rb") as file:
        key = file.read()
    if len(key) != BYTES:
        raise Misconfigured(
            f"{path} must hold the dataset's key of {BYTES} bytes; restore it from a copy"
        )
    return key
