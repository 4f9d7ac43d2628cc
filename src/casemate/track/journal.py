"""What a site must not forget when it is killed: its count, and where it stands in its epoch.

Guarantee  The count is one aligned word of a mapped file, stored before `add` returns: a process
           killed at any moment loses nothing it counted, and reads the newest whole standing back.
           A machine that loses power may lose the last seconds.
"""

import json
from array import array
from collections.abc import MutableSequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

from casemate.track.instruction import Rule, Standing, from_plain, to_plain
from casemate.track.mapped import Mapped


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
        self.cells: MutableSequence[int] = array("Q", [0])  # refuses what is no whole number

    def load(self) -> Entry | None:
        """Nothing is remembered."""
        return None

    def save(self, entry: Entry) -> None:
        """Nothing needs to be written."""


class FileJournal:
    """A journal in a mapped file, which one site has, and one process at a time may hold."""

    def __init__(self, path: Path, site: str | None = None) -> None:
        self._mapped = Mapped(path, b"casemate", "a casemate site", site)
        self.incarnation = self._mapped.incarnation
        self.cells = self._mapped.words

    def load(self) -> Entry | None:
        """The newest standing that was written whole."""
        record = self._mapped.newest()
        if record is None:
            return None
        epoch, rule, standing, next_trigger = json.loads(record)
        return Entry(epoch, rule and from_plain(rule), Standing(*standing), next_trigger)

    def save(self, entry: Entry) -> None:
        """Write the standing down beside the one before."""
        rule = entry.rule and to_plain(entry.rule)
        fields = [entry.epoch, rule, astuple(entry.standing), entry.next_trigger]
        self._mapped.keep(json.dumps(fields, separators=(",", ":")).encode())

    def close(self) -> None:
        """Let go of the file."""
        self._mapped.close()
