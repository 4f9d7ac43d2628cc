"""What a site must not forget when it is killed: its count, and where it stands in its epoch.

Guarantee  The count is one aligned word of a mapped file, stored before `add` returns: a process
           killed at any moment loses nothing it counted. Standings are kept in two slots written in
           turn, each with a checksum: the newest whole one is read back. The file survives a
           process killed with -9; a machine that loses power may lose the last seconds.
"""

import fcntl
import json
import mmap
import os
import zlib
from collections.abc import MutableSequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Protocol

from casemate.errors import Misconfigured
from casemate.track.instruction import Rule, Standing, from_plain, to_plain

_MAGIC = b"casemate"
_SLOT = 512
_SIZE = 64 + 2 * _SLOT


@dataclass(frozen=True)
class Entry:
    """A site's standing as it is written down."""

    epoch: int
    rule: Rule | None
    standing: Standing
    next_trigger: int


class Journal(Protocol):
    """Somewhere to keep a count and a standing."""

    incarnation: int

    @property
    def cells(self) -> MutableSequence[int] | memoryview:
        """Where the count is kept: it is the first of them."""
        ...

    def load(self) -> Entry | None:
        """The newest standing, or None for a site that never had one."""
        ...

    def save(self, entry: Entry) -> None:
        """Write the standing down."""
        ...


class Memory:
    """A journal that ends with its process."""

    def __init__(self, incarnation: int = 0) -> None:
        self.incarnation = incarnation
        self.cells: MutableSequence[int] = [0]

    def load(self) -> Entry | None:
        """Nothing is remembered."""
        return None

    def save(self, entry: Entry) -> None:
        """Nothing needs to be written."""


class FileJournal:
    """A journal in a mapped file, which one process at a time may hold."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise Misconfigured(
                f"the journal {path} is held by another process; give each site its own journal"
            ) from None
        self._map = self._mapped(path)
        self.incarnation = int.from_bytes(self._map[8:16], "little")
        self._words = memoryview(self._map).cast("Q")
        self.cells = self._words[2:3]
        self._turn = 0

    def _mapped(self, path: Path) -> mmap.mmap:
        if os.fstat(self._file).st_size == 0:
            new = _MAGIC + (int.from_bytes(os.urandom(8), "little") >> 2).to_bytes(8, "little")
            os.pwrite(self._file, new.ljust(_SIZE, b"\0"), 0)
            os.fsync(self._file)
        if os.fstat(self._file).st_size != _SIZE or os.pread(self._file, 8, 0) != _MAGIC:
            os.close(self._file)
            raise Misconfigured(
                f"{path} is no journal of a casemate site; name a new file, or the right one"
            )
        return mmap.mmap(self._file, _SIZE)

    def load(self) -> Entry | None:
        """The newest standing whose checksum is right."""
        whole = [slot for slot in map(self._read, (0, 1)) if slot is not None]
        if not whole:
            return None
        newest = max(whole, key=lambda fields: fields["turn"])
        self._turn = newest["turn"]
        rule = newest["rule"] and from_plain(newest["rule"])
        return Entry(newest["epoch"], rule, Standing(*newest["standing"]), newest["next"])

    def save(self, entry: Entry) -> None:
        """Write into the slot that is not the newest."""
        self._turn += 1
        rule = entry.rule and to_plain(entry.rule)
        fields = {
            "turn": self._turn,
            "epoch": entry.epoch,
            "rule": rule,
            "standing": list(astuple(entry.standing)),
            "next": entry.next_trigger,
        }
        text = json.dumps(fields, separators=(",", ":")).encode()
        start = 64 + (self._turn % 2) * _SLOT
        head = len(text).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little")
        self._map[start : start + 8 + len(text)] = head + text

    def _read(self, slot: int) -> dict[str, Any] | None:
        start = 64 + slot * _SLOT
        length = int.from_bytes(self._map[start : start + 4], "little")
        crc = int.from_bytes(self._map[start + 4 : start + 8], "little")
        text = self._map[start + 8 : start + 8 + min(length, _SLOT - 8)]
        if not length or zlib.crc32(text) != crc:
            return None
        fields: dict[str, Any] = json.loads(text)
        return fields

    def close(self) -> None:
        """Let go of the file."""
        self.cells.release()
        self._words.release()
        self._map.close()
        os.close(self._file)
