"""What a site must not forget when it is killed: its count, and where it stands in its epoch.

`MappedFile` is a file that one process holds, mapped into its memory: a few words, and the newest
of records. `Journal` is what a site asks of it; `FileJournal` keeps it there, `MemoryJournal`
nowhere.

Layout     Eight bytes that say what file it is, the number of its incarnation, six words, and two
           slots that are written in turn: a length, a checksum, a turn and a record. Then, where
           a site has used it, a length, a checksum and the name of that site.
Guarantee  The count is one aligned word, stored whole before `add` returns, and a process killed
           while it writes a record leaves the one before it: killed at any moment, with -9 too, it
           loses nothing it counted, and reads the newest whole standing back. A machine that loses
           power may lose the last seconds, unless they were flushed.
"""

import fcntl
import json
import mmap
import os
import struct
import zlib
from array import array
from collections.abc import MutableSequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from casemate.errors import Misconfigured, checked_path
from casemate.track.reporting_rule import Rule, SiteStanding, from_plain, to_plain

_HEAD = struct.Struct("<8sQ")  # what it is, incarnation; then the words
_FIRST_CELL, _CELL_COUNT = 2, 6
_CHECK = struct.Struct("<II")  # length and checksum of what follows in a slot
_TURN_BYTES = 8  # the bytes of a turn; the rest is the record
_SLOT_OFFSETS, _FILE_BYTES = (64, 576), 1088
_NAME_BYTES = 1024  # bytes at the end for the length, the checksum and the name of a site
MAX_RECORD_BYTES = 512 - _CHECK.size - _TURN_BYTES
"""Bytes of a record, at most."""


class MappedFile:
    """A mapped file with a place for six words, for one record, and for the name of its site.

    Its incarnation is a number that no other file has, nor this one before it began anew.
    The first who opens it with a name has it from then on; without a name nobody is asked.
    """

    def __init__(self, path: Path, kind: bytes, owner: str, name: str | None = None) -> None:
        self._kind = kind
        self._file = lock_file(
            path, f"the journal {path} is held by another process; give each site its own journal"
        )
        if os.fstat(self._file).st_size == 0:
            self._write_anew()
        try:
            self._check(path, owner, name)
        except Misconfigured:
            os.close(self._file)
            raise
        self._map = mmap.mmap(self._file, _FILE_BYTES)
        self._all = memoryview(self._map).cast("Q")
        self.cells = self._all[_FIRST_CELL : _FIRST_CELL + _CELL_COUNT]
        self.incarnation = self._all[1]
        self._turn = 0

    def _check(self, path: Path, owner: str, name: str | None) -> None:
        """Refuse what is no such file, and the file of another site; one of nobody is ours now."""
        size = os.fstat(self._file).st_size
        if (
            not _FILE_BYTES <= size <= _FILE_BYTES + _NAME_BYTES
            or os.pread(self._file, 8, 0) != self._kind
        ):
            raise Misconfigured(
                f"{path} is no journal of {owner}; name a new file, or the right one"
            )
        if name is None:
            return
        ours, theirs = _name_bytes(name), self._name()
        if theirs is None:
            text = _CHECK.pack(len(ours), zlib.crc32(ours)) + ours
            os.pwrite(self._file, text.ljust(_NAME_BYTES, b"\0"), _FILE_BYTES)
        elif theirs != ours:
            raise Misconfigured(
                f"the journal {path} belongs to site {theirs.decode(errors='replace')!r}; "
                f"name another file for {name!r}"
            )

    def _name(self) -> bytes | None:
        """The name that was written whole, or None where there is none."""
        found = os.pread(self._file, _NAME_BYTES, _FILE_BYTES).ljust(_NAME_BYTES, b"\0")
        length, checksum = _CHECK.unpack_from(found)
        name = found[_CHECK.size : _CHECK.size + length]
        return name if name and zlib.crc32(name) == checksum else None

    def begin_anew(self) -> None:
        """Forget everything: words are 0, there is no record, and the incarnation is another."""
        self._write_anew()
        self.incarnation, self._turn = self._all[1], 0

    def _write_anew(self) -> None:
        head = _HEAD.pack(self._kind, new_number())
        os.pwrite(self._file, head.ljust(_FILE_BYTES, b"\0"), 0)
        os.fsync(self._file)

    def newest(self) -> bytes | None:
        """The newest record whose checksum is right."""
        records = [found for start in _SLOT_OFFSETS if (found := self._read(start)) is not None]
        if not records:
            return None
        self._turn, record = max(records)
        return record

    def keep(self, record: bytes) -> None:
        """Write a record into the slot that is not the newest."""
        if len(record) > MAX_RECORD_BYTES:
            raise ValueError(f"a record has at most {MAX_RECORD_BYTES} bytes, got {len(record)}")
        self._turn += 1
        text = self._turn.to_bytes(_TURN_BYTES, "little") + record
        start = _SLOT_OFFSETS[self._turn % 2]
        end = start + _CHECK.size + len(text)
        self._map[start:end] = _CHECK.pack(len(text), zlib.crc32(text)) + text

    def _read(self, start: int) -> tuple[int, bytes] | None:
        length, checksum = _CHECK.unpack_from(self._map, start)
        begin = start + _CHECK.size
        text = self._map[begin : begin + min(length, _TURN_BYTES + MAX_RECORD_BYTES)]
        if len(text) < _TURN_BYTES or zlib.crc32(text) != checksum:
            return None
        return int.from_bytes(text[:_TURN_BYTES], "little"), text[_TURN_BYTES:]

    def flush(self) -> None:
        """Come back when the disk has everything."""
        self._map.flush()

    def close(self) -> None:
        """Let go of the file."""
        self.cells.release()
        self._all.release()
        self._map.close()
        os.close(self._file)


def _name_bytes(name: str) -> bytes:
    """A name as it is kept: all of one that can travel, and the beginning of a longer one."""
    return name.encode(errors="backslashreplace")[: _NAME_BYTES - _CHECK.size]


def folder_of(journals: str | os.PathLike[str] | None) -> Path | None:
    """The folder for journals, made for its owner's eyes alone where there is none."""
    if journals is None:
        return None
    folder = Path(checked_path(journals, "a folder for journals"))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as reason:
        raise Misconfigured(
            f"the folder {folder} for journals cannot be made ({reason.strerror}); "
            f"name a folder that can be written"
        ) from reason
    return folder


def lock_file(path: Path, taken: str) -> int:
    """A file for this process alone until it closes it; `taken` is said where another has it."""
    file = open_private_file(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise Misconfigured(taken) from None
    return file


def open_private_file(path: Path) -> int:
    """A file to read and write, made for its owner's eyes alone where there is none."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as reason:
        raise Misconfigured(
            f"the journal {path} cannot be opened ({reason.strerror}); "
            f"name a file that can be written"
        ) from reason


def new_number() -> int:
    """A number that nobody else has, from 1 to 2^62."""
    return 1 + (int.from_bytes(os.urandom(8), "little") >> 2)


# Journals ----------------------------------------------------------------------------------------


Record = TypeVar("Record")
Cells = MutableSequence[int] | memoryview
"""What was counted is the first of them."""


class Journal(Protocol[Record]):
    """Somewhere to keep a count and a standing."""

    incarnation: int

    @property
    def cells(self) -> Cells:
        """Where the count is kept."""
        ...

    def load(self) -> Record | None:
        """The newest standing, or None for a site that never had one."""
        ...

    def save(self, record: Record) -> None:
        """Write the standing down."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...


class MemoryJournal(Generic[Record]):
    """A journal that ends with its process."""

    def __init__(self, incarnation: int = 0) -> None:
        self.incarnation = incarnation
        self.cells: Cells = array("Q", [0])  # refuses what is no whole number
        self._newest: Record | None = None

    def load(self) -> Record | None:
        """What was saved last."""
        return self._newest

    def save(self, record: Record) -> None:
        """Keep it."""
        self._newest = record

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class JournalEntry:
    """A site's standing as it is written down."""

    epoch: int
    rule: Rule | None
    standing: SiteStanding
    next_trigger: int


class FileJournal(MappedFile):
    """A journal in a mapped file, which one site has, and one process at a time may hold."""

    def __init__(self, path: Path, site: str | None = None) -> None:
        super().__init__(path, b"casemate", "a casemate site", site)

    def load(self) -> JournalEntry | None:
        """The newest standing that was written whole."""
        record = self.newest()
        if record is None:
            return None
        epoch, rule, standing, next_trigger = json.loads(record)
        return JournalEntry(epoch, rule and from_plain(rule), SiteStanding(*standing), next_trigger)

    def save(self, record: JournalEntry) -> None:
        """Write the standing down beside the one before."""
        rule = record.rule and to_plain(record.rule)
        fields = [record.epoch, rule, astuple(record.standing), record.next_trigger]
        self.keep(json.dumps(fields, separators=(",", ":")).encode())
