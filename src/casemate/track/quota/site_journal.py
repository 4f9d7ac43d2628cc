"""What a site of a quota must not forget when it is killed: what it used, and its bound.

Guarantee  What was used is one aligned word of a mapped file, stored before `acquire` returns. The
           bound is kept in two slots written in turn, each with a checksum, before a recall is
           answered. Both survive a process killed with -9. A machine that lost power may have lost
           the last seconds, so a journal that was not closed since the machine started anew is
           given up: the site begins as another incarnation, and what its lease had left is lost.
"""

import fcntl
import mmap
import os
import struct
import zlib
from array import array
from collections.abc import MutableSequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

from casemate.errors import Misconfigured

_MAGIC = b"casequot"
_HEAD = struct.Struct("<8sQQ16sQ")  # magic, incarnation, used, start of the machine, closed
_SLOT = struct.Struct("<QQQQqI")  # turn, window, sequence, bound, ceiling (-1: none), checksum
_SLOTS = (64, 128)
_SIZE = 192
_BOOT = Path("/proc/sys/kernel/random/boot_id")

Cells = MutableSequence[int] | memoryview
"""What was used is the first of them."""


@dataclass(frozen=True)
class Standing:
    """The newest order that a site follows, and what it makes of it."""

    window: int = 0
    sequence: int = 0
    bound: int = 0
    ceiling: int | None = None


class SiteJournal(Protocol):
    """Somewhere to keep what was used, and a standing."""

    incarnation: int
    cells: Cells

    def load(self) -> Standing:
        """The newest standing."""
        ...

    def save(self, standing: Standing) -> None:
        """Write the standing down."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class Memory:
    """A journal that ends with its process."""

    def __init__(self, incarnation: int | None = None) -> None:
        self.incarnation = new_number() if incarnation is None else incarnation
        self.cells: Cells = array("Q", [0])
        self._standing = Standing()

    def load(self) -> Standing:
        """What was saved last."""
        return self._standing

    def save(self, standing: Standing) -> None:
        """Keep it."""
        self._standing = standing

    def close(self) -> None:
        """Nothing is held."""


class FileJournal:
    """A journal in a mapped file, which one process at a time may hold."""

    def __init__(self, path: Path, boot: bytes | None = None) -> None:
        self._boot = _this_start() if boot is None else boot
        self._file = _held(path)
        self._map = self._mapped(path)
        self.incarnation = int.from_bytes(self._map[8:16], "little")
        self._map[24:48] = self._boot + bytes(8)  # open since this start of the machine
        self._map.flush()
        self._turn = 0
        self._words = memoryview(self._map).cast("Q")
        self._used = self._words[2:3]
        self.cells: Cells = self._used

    def _mapped(self, path: Path) -> mmap.mmap:
        size = os.fstat(self._file).st_size
        if size not in (0, _SIZE) or (size and os.pread(self._file, 8, 0) != _MAGIC):
            os.close(self._file)
            raise Misconfigured(
                f"{path} is no journal of a quota's site; name a new file, or the right one"
            )
        if not size or not self._trusted():
            head = _HEAD.pack(_MAGIC, new_number(), 0, self._boot, 0)
            os.pwrite(self._file, head.ljust(_SIZE, b"\0"), 0)
            os.fsync(self._file)
        return mmap.mmap(self._file, _SIZE)

    def _trusted(self) -> bool:
        """Whether nothing of the file can have been lost."""
        _, _, _, boot, closed = _HEAD.unpack(os.pread(self._file, _HEAD.size, 0))
        return bool(closed) or (boot == self._boot and any(boot))

    def load(self) -> Standing:
        """The newest standing whose checksum is right."""
        slots = [_SLOT.unpack_from(self._map, start) for start in _SLOTS]
        whole = [slot for slot in slots if slot[0] and slot[5] == _checksum(slot[:5])]
        if not whole:
            return Standing()
        self._turn, window, sequence, bound, ceiling, _ = max(whole)
        return Standing(window, sequence, bound, None if ceiling < 0 else ceiling)

    def save(self, standing: Standing) -> None:
        """Write into the slot that is not the newest."""
        self._turn += 1
        window, sequence, bound, ceiling = astuple(standing)
        fields = (self._turn, window, sequence, bound, -1 if ceiling is None else ceiling)
        _SLOT.pack_into(self._map, _SLOTS[self._turn % 2], *fields, _checksum(fields))

    def close(self) -> None:
        """Flush the file, say that nothing is missing, and let go of it."""
        self._used.release()
        self._words.release()
        self._map.flush()
        self._map[40:48] = (1).to_bytes(8, "little")
        self._map.flush()
        self._map.close()
        os.close(self._file)


def new_number() -> int:
    """A number that nobody else has, from 1 to 2^62."""
    return 1 + (int.from_bytes(os.urandom(8), "little") >> 2)


def _held(path: Path) -> int:
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as reason:
        raise Misconfigured(
            f"the journal {path} cannot be opened ({reason.strerror}); "
            f"name a file that can be written"
        ) from reason
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Misconfigured(
            f"the journal {path} is held by another process; give each site its own journal"
        ) from None
    return file


def _checksum(fields: tuple[int, ...]) -> int:
    return zlib.crc32(struct.pack("<QQQQq", *fields))


def _this_start() -> bytes:
    """What tells this start of the machine from others; zeros, which are never trusted, if none."""
    try:
        return bytes.fromhex(_BOOT.read_text("ascii").strip().replace("-", ""))[:16]
    except (OSError, ValueError):
        return bytes(16)
