"""The transcript: everything that ever left a dataset, in order, for anybody to read and replay.

Guarantee  An entry is durable before it is sent, and never changes afterwards. There is at most one
           entry under a key, so a retry gets the stored text. Whatever is made of the transcript,
           a surrogate above all, costs no privacy, because all of it has left already.
Order      charge durable (ledger) -> draw -> append durable (here) -> send. The draw and the append
           are one transaction, begun by looking whether the key has an entry already, so of two
           processes with one question only one draws.
Torn       A transaction that was cut off by a crash is rolled back by the database, so half an
           entry is never seen. What was durable and is missing is found through the ledger, which
           stores the head of the entry that a charge paid for; what was changed is found when the
           transcript is opened, by its chain of hashes.
Where      In the ledger's own database: the same SQLite file or PostgreSQL, tables of its own. Open
           the ledger first: it refuses a file that is there already and holds no ledger.

A transcript as text, one JSON object a line: what a custodian publishes and anybody replays.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from casemate.doors.entry import (
    FORM,
    Content,
    EntryKind,
    TranscriptEntry,
    damaged,
    following,
    require_chained,
    require_follows,
)
from casemate.errors import Misconfigured
from casemate.privacy.book import (
    IN_MEMORY,
    Book,
    Head,
    MemoryBook,
    Result,
    SqlStore,
    Store,
    open_book,
)

TranscriptBook = Book[TranscriptEntry]

PAGE = 1000
"""Entries read at a time when the whole transcript is replayed."""


class Transcript:
    """An append-only list of entries, each under a key of its own.

    >>> from casemate.doors.entry import Closed
    >>> transcript = open_transcript(IN_MEMORY)
    >>> transcript.append(Closed("r1", "retired")).number
    0
    >>> transcript.append(Closed("r1", "something else")).content
    Closed(run='r1', reason='retired')
    """

    def __init__(self, store: Store[TranscriptEntry]) -> None:
        self._store = store

    def append(self, content: Content) -> TranscriptEntry:
        """Write the content unless its key has an entry, and return the entry under the key."""
        return self.run(lambda book: write_once(book, content))

    def append_all(self, contents: Sequence[Content]) -> list[TranscriptEntry]:
        """Write several contents in one wait for the disk."""
        return self.run(lambda book: [write_once(book, content) for content in contents])

    def run(self, work: Callable[[TranscriptBook], Result]) -> Result:
        """Do the work in one transaction, alone, and return its result once that is durable."""
        return self._store.run(work)

    def find(self, key: str) -> TranscriptEntry | None:
        """The entry under this key, if it has left."""
        return self._store.read(lambda book: book.find(key))

    def latest(self, run: str) -> TranscriptEntry | None:
        """The newest entry of this run of the gate."""
        return self._store.read(lambda book: book.latest(run))

    def newest(self) -> TranscriptEntry | None:
        """The last entry; its head, kept elsewhere, vouches for all before it."""
        return self._store.read(lambda book: book.newest())

    def verify(self) -> Head | None:
        """Walk the whole chain of hashes and return the newest head; a broken one is refused."""
        before: TranscriptEntry | None = None
        while page := self._page(0 if before is None else before.number + 1):
            for entry in page:
                require_chained(before, entry)
                before = entry
        return None if before is None else before.head

    def replay(self, expected_head: Head | None = None) -> Iterator[TranscriptEntry]:
        """Every entry in order, checked as it is read; a head kept elsewhere is looked for."""
        before: TranscriptEntry | None = None
        while page := self._page(0 if before is None else before.number + 1):
            for entry in page:
                require_follows(before, entry)
                if expected_head is not None and entry.number == expected_head.number:
                    _require_vouched(entry, expected_head)
                before = entry
                yield entry
        if expected_head is not None and (before is None or before.number < expected_head.number):
            raise damaged(expected_head.number, "it is missing, and a head kept elsewhere has it")

    def of_kinds(self, kinds: Sequence[EntryKind], first: int = 0) -> Sequence[TranscriptEntry]:
        """Every entry of these kinds in order, from this number on."""
        return self._store.read(lambda book: book.of_kinds([str(kind) for kind in kinds], first))

    def _page(self, first: int) -> Sequence[TranscriptEntry]:
        return self._store.read(lambda book: book.rows(first, PAGE))

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _require_vouched(entry: TranscriptEntry, expected: Head) -> None:
    if entry.head != expected:
        raise damaged(entry.number, "it is not the one that a head kept elsewhere vouches for")


def write_once(book: TranscriptBook, content: Content) -> TranscriptEntry:
    """Append the content inside a transaction, or return the entry that its key has already."""
    stored = book.find(content.key)
    if stored is None:
        stored = following(book.newest(), content)
        book.append(stored)
    return stored


def open_transcript(where: str | Path) -> Transcript:
    """Open or start the transcript beside the ledger that is in this place; its chain is walked."""
    if where == IN_MEMORY:
        return Transcript(MemoryBook(FORM))
    with open_book(where, FORM) as session:
        transcript = Transcript(SqlStore(session, FORM))
    try:
        transcript.verify()
    except BaseException:
        transcript.close()
        raise
    return transcript


def transcript_of(entries: Iterable[TranscriptEntry]) -> Transcript:
    """A transcript in memory of entries whose chain was checked."""
    book = MemoryBook(FORM)
    for entry in entries:
        book.append(entry)
    return Transcript(book)


# Transcript lines -------------------------------------------------------------------------------


def to_lines(entries: Iterable[TranscriptEntry]) -> Iterator[str]:
    """Each entry as one line, its hash in hexadecimal digits."""
    for entry in entries:
        plain = {name: getattr(entry, name) for name in FORM.names}
        plain |= {"format": FORM.version, "hash": entry.hash.hex()}
        yield json.dumps(plain, separators=(",", ":"), ensure_ascii=True) + "\n"


def from_lines(lines: Iterable[str]) -> Iterator[TranscriptEntry]:
    """Read the lines back and check their chain.

    A last line that was cut off, and so does not end in a newline, is left out: it was never whole.
    """
    before: TranscriptEntry | None = None
    for line in lines:
        if not line.endswith("\n"):
            return
        entry = _entry(line, 0 if before is None else before.number + 1)
        require_follows(before, entry)
        before = entry
        yield entry


def _entry(line: str, number: int) -> TranscriptEntry:
    try:
        plain: dict[str, Any] = json.loads(line)
        written = plain.pop("format")
        entry = TranscriptEntry(**(plain | {"hash": bytes.fromhex(plain["hash"])}))
    except (ValueError, LookupError, TypeError) as reason:
        raise damaged(number, "its line cannot be read") from reason
    if written != FORM.version:
        raise Misconfigured(
            f"these lines have the format {written!r} and this version of casemate reads "
            f"{FORM.version!r}; read them with the version that wrote them"
        )
    return entry
