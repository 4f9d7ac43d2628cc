"""What a site of a quota must not forget when it is killed: what it used, and its bound.

Guarantee  What was used is one aligned word of a mapped file, stored before `acquire` returns; the
           bound is written down before a recall is answered. Both survive a process killed with
           -9. A machine that lost power may have lost the last seconds, so a journal that was not
           closed since the machine started anew is given up: the site begins as another
           incarnation, and what its lease had left is lost.
"""

import struct
from array import array
from collections.abc import MutableSequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from casemate.track.mapped import Mapped, new_number

_RECORD = struct.Struct("<QQQq")  # window, sequence, bound, ceiling (-1: none)
_BOOT, _CLOSED = slice(1, 3), 3  # words of the file; the first is what was used
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

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
        start = struct.unpack("<QQ", _this_start() if boot is None else boot)
        self._mapped = Mapped(path, b"casequot", "a quota's site")
        self.cells: Cells = self._mapped.words
        if not self._is_whole(start):
            self._mapped.begin_anew()
        self.incarnation = self._mapped.incarnation
        self._mapped.words[1], self._mapped.words[2] = start
        self._mapped.words[_CLOSED] = 0
        self._mapped.flush()

    def _is_whole(self, start: tuple[int, ...]) -> bool:
        """Whether nothing of the file can have been lost."""
        words = self._mapped.words
        return bool(words[_CLOSED]) or (tuple(words[_BOOT]) == start and any(start))

    def load(self) -> Standing:
        """The newest standing that was written whole."""
        record = self._mapped.newest()
        if record is None:
            return Standing()
        window, sequence, bound, ceiling = _RECORD.unpack(record)
        return Standing(window, sequence, bound, None if ceiling < 0 else ceiling)

    def save(self, standing: Standing) -> None:
        """Write the standing down beside the one before."""
        at, ceiling = standing, -1 if standing.ceiling is None else standing.ceiling
        self._mapped.keep(_RECORD.pack(at.window, at.sequence, at.bound, ceiling))

    def close(self) -> None:
        """Flush the file, say that nothing is missing, and let go of it."""
        self._mapped.flush()
        self._mapped.words[_CLOSED] = 1
        self._mapped.flush()
        self._mapped.close()


def _this_start() -> bytes:
    """What tells this start of the machine from others; zeros, which are never trusted, if none."""
    try:
        return bytes.fromhex(_BOOT_ID.read_text("ascii").strip().replace("-", ""))[:16]
    except (OSError, ValueError):
        return bytes(16)
