"""The one secret that must survive a restart: the open run's noise on the threshold.

It is kept beside the ledger in a file for its owner alone, never in the transcript. The file is
replaced as a whole and flushed, so a crash leaves the old one or the new one. If it is lost or
cannot be read, the run it held is lost with it and the gate charges a new one; whether an old copy
was put back is decided by the transcript and the ledger, not here. `exclusive_lock` is one lock
over all threads and processes that use the file, so comparisons of a run are made one at a time.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from casemate.errors import Misconfigured
from casemate.privacy.book import flush_folder, open_private
from casemate.privacy.mechanisms import RunState

SUFFIX = "-gate"
FORMAT = "casemate.gate/1"


@dataclass(frozen=True)
class RunSecret:
    """A run by its public name, and its state; before its threshold is drawn it has no noise.

    The name is kept before the run is charged, so that a crash after the charge does not lose what
    was paid for. A state without noise answers nothing: `AboveThreshold` takes it for a halted run.
    """

    run: str
    state: RunState = field(repr=False)

    @property
    def drawn(self) -> bool:
        """Whether the run has its noise, so that it can compare."""
        return self.state.noise is not None

    def to_text(self) -> str:
        """The secret as JSON."""
        return json.dumps({"format": FORMAT, "run": self.run, "state": self.state.as_secret()})

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote."""
        plain: dict[str, Any] = json.loads(text)
        if plain["format"] != FORMAT:
            raise ValueError("another version wrote this secret")
        return cls(plain["run"], RunState.from_secret(plain["state"]))


class RunSecrets(Protocol):
    """Where the secret of the open run is kept."""

    def exclusive_lock(self) -> AbstractContextManager[None]:
        """Keep everybody else out for the length of the block."""
        ...

    def read(self) -> RunSecret | None:
        """The secret; None when there is none, or when it cannot be read any more."""
        ...

    def write(self, secret: RunSecret | None) -> None:
        """Replace the secret, durably."""
        ...


class MemorySecrets:
    """A secret that ends with the process: for simulations, which promise nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secret: RunSecret | None = None

    def exclusive_lock(self) -> AbstractContextManager[Any]:
        """Keep other threads out for the length of the block."""
        return self._lock

    def read(self) -> RunSecret | None:
        """The secret, if there is one."""
        return self._secret

    def write(self, secret: RunSecret | None) -> None:
        """Replace the secret."""
        self._secret = secret


class SecretFile:
    """A file of mode 0600, and a lock file beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock_path = path.with_name(path.name + ".lock")

    @classmethod
    def beside(cls, ledger: Path) -> Self:
        """The secret that belongs to the ledger in this file."""
        return cls(ledger.with_name(ledger.name + SUFFIX))

    @contextmanager
    def exclusive_lock(self) -> Iterator[None]:
        """Keep other threads and processes out for the length of the block."""
        handle = self._open(self._lock_path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)  # of this handle, so it parts threads too
            yield
        finally:
            os.close(handle)  # which lets go of the lock, as does the end of the process

    def read(self) -> RunSecret | None:
        """The secret; a file that others can read is refused, one that is torn is lost."""
        if not os.path.lexists(self._path):
            return None
        handle = self._open(self._path, os.O_RDONLY)
        with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
            try:
                return RunSecret.from_text(file.read())
            except (ValueError, LookupError, TypeError, AttributeError):
                return None

    def write(self, secret: RunSecret | None) -> None:
        """Replace the file as a whole and flush it, its name included."""
        new = self._path.with_name(self._path.name + ".new")
        new.unlink(missing_ok=True)  # of a crash; its mode is made afresh
        handle = self._open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("" if secret is None else secret.to_text())
            file.flush()
            os.fsync(handle)
        new.replace(self._path)
        flush_folder(self._path.parent)

    def _open(self, path: Path, flags: int) -> int:
        try:
            return open_private(path, flags)
        except OSError as reason:
            raise Misconfigured(
                f"the gate's secret {path} cannot be opened ({reason.strerror}); keep the ledger "
                f"in a folder that can be written, and no link there"
            ) from reason
