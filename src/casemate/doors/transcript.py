"""The transcript: everything that ever left a dataset, in order, for anybody to read and replay.

An entry is public from the moment it is durable, so nothing in it is a secret: questions, noised
integers, and the scales of the noise. Its text is canonical JSON (sorted names, no spaces, ASCII)
and its hash is that of `casemate.privacy.book`, so anybody can check a copy in any language. As
lines, one JSON object each, it is what a custodian publishes.

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
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from casemate.errors import TranscriptDamaged
from casemate.privacy import Pure
from casemate.privacy.book import (
    IN_MEMORY,
    START,
    Book,
    Form,
    Head,
    MemoryBook,
    Result,
    SqlStore,
    Store,
    canonical_json,
    open_book,
)
from casemate.privacy.ledger import stored_outputs

# Entries: what each says, its text and its hash -------------------------------------------------


class EntryKind(StrEnum):
    """What an entry records."""

    OPENED = "opened"
    EASY = "easy"
    HARD = "hard"
    MEASURED = "measured"
    TOTAL = "total"
    CLOSED = "closed"
    ANSWERED = "answered"
    DECLARED = "declared"


@dataclass(frozen=True)
class Edition:
    """The policy (by its hash) and the state of the data that an answer is about."""

    policy: str
    data: str

    def key(self, *question: str) -> str:
        """A short name of the question under this edition; equal names mean equal questions."""
        named = canonical_json([self.policy, self.data, *question])
        return hashlib.sha256(named.encode()).hexdigest()


@dataclass(frozen=True)
class Opened:
    """A run of the gate was paid for; the noise of its threshold stays secret."""

    run: str
    epsilon: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    units: int  # of the deviation, to one sensitivity
    one_sided: bool  # whether its noise is

    kind = EntryKind.OPENED

    @property
    def cost(self) -> Pure:
        """What the ledger was charged for the run."""
        return Pure(self.epsilon)

    @property
    def key(self) -> str:
        """The name under which there is at most one entry."""
        return opened_key(self.run)


@dataclass(frozen=True)
class Easy:
    """A question passed the gate: nothing more left than that."""

    question: str
    policy: str
    data: str
    run: str
    at: int  # the question's number in the public schedule of thresholds
    threshold: int
    after: int  # the number of the newest entry that the stand-in knew; -1 if it knew none
    principal: str = field(default="", kw_only=True)  # who asked

    kind = EntryKind.EASY

    @property
    def key(self) -> str:
        """The same for every answer to this question, easy or hard."""
        return asked_key(self.question, Edition(self.policy, self.data))


@dataclass(frozen=True)
class Hard(Easy):
    """A question did not pass, which ended its run; the gap is read for free.

    The sign says on which side the largest deviation was found, and is 0 when the question was
    about the magnitude.
    """

    sign: int
    gap: int

    kind = EntryKind.HARD

    @property
    def reading(self) -> int:
        """A noisy reading of the deviation in units, conditional on having fired."""
        return self.threshold + self.gap


@dataclass(frozen=True)
class Measured:
    """Noised integers, one for each cell."""

    question: str
    policy: str
    data: str
    law: str
    scale: Fraction
    values: tuple[int, ...]

    kind = EntryKind.MEASURED

    @property
    def key(self) -> str:
        """The same for this question and noise; other noise is another measurement."""
        edition = Edition(self.policy, self.data)
        return f"{self.kind} {edition.key(self.question, self.law, str(self.scale))}"


@dataclass(frozen=True)
class PeopleTotal(Measured):
    """The noised number of people, which an add-remove guarantee keeps secret too."""

    kind = EntryKind.TOTAL

    @property
    def value(self) -> int:
        """The noised number."""
        return self.values[0]


@dataclass(frozen=True)
class Closed:
    """A run ended without having fired: its secret was lost, or its noise is no longer wanted."""

    run: str
    reason: str

    kind = EntryKind.CLOSED

    @property
    def key(self) -> str:
        """The name under which there is at most one entry."""
        return f"closed {self.run}"


@dataclass(frozen=True)
class Answered:
    """What was made of the entries before it in answer to a question, as it was sent."""

    question: str
    policy: str
    data: str
    answer: str

    kind = EntryKind.ANSWERED

    @property
    def key(self) -> str:
        """The same for every answer to this question."""
        return answered_key(self.question, Edition(self.policy, self.data))


@dataclass(frozen=True)
class Declared:
    """Questions that were named before anything was measured, and a digest of their file."""

    questions: tuple[str, ...]
    policy: str
    data: str
    file: str

    kind = EntryKind.DECLARED

    @property
    def key(self) -> str:
        """One for all, so that nothing can be declared twice."""
        return declared_key(Edition(self.policy, self.data))


Content = Opened | Easy | Hard | Measured | PeopleTotal | Closed | Answered | Declared

FORMS: dict[str, type[Content]] = {
    form.kind: form
    for form in (Opened, Easy, Hard, Measured, PeopleTotal, Closed, Answered, Declared)
}
ENDS_A_RUN = (EntryKind.HARD, EntryKind.CLOSED)
IS_A_QUESTION = (EntryKind.EASY, EntryKind.HARD)


def asked_key(question: str, edition: Edition) -> str:
    """The key of the gate's answer to a question."""
    return f"asked {edition.key(question)}"


def opened_key(run: str) -> str:
    """The key of the opening of a run."""
    return f"opened {run}"


def answered_key(question: str, edition: Edition) -> str:
    """The key of the answer that was sent to a question."""
    return f"answered {edition.key(question)}"


def declared_key(edition: Edition) -> str:
    """The key of what was declared beforehand."""
    return f"declared {edition.key()}"


@dataclass(frozen=True)
class TranscriptEntry:
    """One entry as stored; `content` is read from its text when asked for."""

    number: int
    kind: str
    key: str
    run: str  # that it belongs to, or nothing
    questions: int  # asked of the gate so far, this entry included
    runs: int  # opened so far, this entry included
    text: str
    hash: bytes = START

    @property
    def content(self) -> Content:
        """What the entry says."""
        try:
            return from_text(self.kind, self.text)
        except (ValueError, ArithmeticError, LookupError, TypeError) as reason:
            raise damaged(self.number, "it cannot be read") from reason

    @property
    def head(self) -> Head:
        """The number and the hash: kept elsewhere, they prove that nothing before it changed."""
        return Head(self.number, self.hash.hex())


FORM = Form(
    name="transcript",
    version="casemate.transcript/2",
    table="transcript",
    row=TranscriptEntry,
    columns="""number {integer} PRIMARY KEY CHECK (number >= 0),
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        run TEXT NOT NULL,
        questions {integer} NOT NULL,
        runs {integer} NOT NULL,
        text TEXT NOT NULL,
        hash {bytes} NOT NULL CHECK (length(hash) = 32)""",
    identity=("key",),
    group=("run",),
    damaged=TranscriptDamaged,
    entry="entry",
    stopped="nothing more can leave",
    again="ask again",
)
damaged = FORM.damage


def following(newest: TranscriptEntry | None, content: Content) -> TranscriptEntry:
    """The entry that this content becomes after the newest one."""
    bare = _without_hash(newest, content)
    return replace(bare, hash=FORM.digest(bare, START if newest is None else newest.hash))


def _without_hash(newest: TranscriptEntry | None, content: Content) -> TranscriptEntry:
    number, questions, runs = -1, 0, 0
    if newest is not None:
        number, questions, runs = newest.number, newest.questions, newest.runs
    return TranscriptEntry(
        number=number + 1,
        kind=content.kind.value,
        key=content.key,
        run="" if isinstance(content, Measured | Answered | Declared) else content.run,
        questions=questions + (content.kind in IS_A_QUESTION),
        runs=runs + (content.kind is EntryKind.OPENED),
        text=to_text(content),
    )


def require_chained(newest: TranscriptEntry | None, entry: TranscriptEntry) -> None:
    """Refuse an entry that is not the next one, or does not have the hash of its fields."""
    number, previous = (0, START) if newest is None else (newest.number + 1, newest.hash)
    FORM.require_chained(number, previous, entry)


def require_follows(newest: TranscriptEntry | None, entry: TranscriptEntry) -> None:
    """Refuse an entry that is not exactly what its own text leads to after the one before it."""
    require_chained(newest, entry)
    if replace(_without_hash(newest, entry.content), hash=entry.hash) != entry:
        raise damaged(entry.number, "its fields do not follow from what it says")


def to_text(content: Content) -> str:
    """What the content says, as canonical JSON."""
    plain = {field.name: getattr(content, field.name) for field in fields(content)}
    return canonical_json(
        {name: str(value) if name in _FRACTIONS else value for name, value in plain.items()}
    )


def from_text(kind: str, text: str) -> Content:
    """Read back what `to_text` wrote."""
    plain: Mapping[str, Any] = json.loads(text)
    read: dict[str, Any] = {n: Fraction(plain[n]) for n in _FRACTIONS if n in plain}
    read |= {name: tuple(plain[name]) for name in ("values", "questions") if name in plain}
    return FORMS[kind](**{**plain, **read})


_FRACTIONS = ("epsilon", "threshold_scale", "query_scale", "scale")


# The transcript ---------------------------------------------------------------------------------


TranscriptBook = Book[TranscriptEntry]

ENTRIES_PER_PAGE = 1000
"""Entries read at a time when the whole transcript is replayed."""


class Transcript:
    """An append-only list of entries, each under a key of its own.

    >>> from casemate.doors.transcript import Closed
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

    def append_unless(
        self, content: Content, kinds: Sequence[EntryKind], late: Callable[[Content], bool]
    ) -> None:
        """Write the content unless its key, or a `late` one of these kinds, has an entry."""

        def work(book: TranscriptBook) -> None:
            entries = book.of_kinds([str(kind) for kind in kinds], 0)
            if not any(late(entry.content) for entry in entries):
                write_once(book, content)

        self.run(work)

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
        newest = deque(_walk_chain(self._entries(), require_chained), maxlen=1)
        return newest[0].head if newest else None

    def replay(self, expected_head: Head | None = None) -> Iterator[TranscriptEntry]:
        """Every entry in order, checked as it is read; a head kept elsewhere is looked for."""
        awaited = expected_head
        for entry in _walk_chain(self._entries(), require_follows):
            if awaited is not None and entry.number == awaited.number:
                _require_vouched(entry, awaited)
                awaited = None
            yield entry
        if awaited is not None:
            raise damaged(awaited.number, "it is missing, and a head kept elsewhere has it")

    def of_kinds(self, kinds: Sequence[EntryKind], first: int = 0) -> Sequence[TranscriptEntry]:
        """Every entry of these kinds in order, from this number on."""
        return self._store.read(lambda book: book.of_kinds([str(kind) for kind in kinds], first))

    def _entries(self) -> Iterator[TranscriptEntry]:
        """Every entry as it is stored, read a page at a time."""
        first = 0
        while page := self._page(first):
            yield from page
            first = page[-1].number + 1

    def _page(self, first: int) -> Sequence[TranscriptEntry]:
        return self._store.read(lambda book: book.rows(first, ENTRIES_PER_PAGE))

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _walk_chain(
    entries: Iterable[TranscriptEntry],
    require_next: Callable[[TranscriptEntry | None, TranscriptEntry], None],
) -> Iterator[TranscriptEntry]:
    """The entries, each held against the one before it."""
    before: TranscriptEntry | None = None
    for entry in entries:
        require_next(before, entry)
        before = entry
        yield entry


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


def read_transcript(where: str | Path, *, copy: bool = False) -> list[TranscriptEntry] | None:
    """Every entry in a place, held against the ledger there; None where there is no ledger."""
    vouched = stored_outputs(where, copy=copy)
    if vouched is None:
        return None
    with open_transcript(where) as transcript:
        entries = list(transcript.replay())
    heads = {str(entry.head).encode() for entry in entries}
    for head in vouched:
        if head not in heads:
            raise cut_off(head)
    return entries


def cut_off(head: bytes) -> TranscriptDamaged:
    """The error for an entry that the ledger vouches for and the transcript does not have."""
    number = head.decode().partition(":")[0]
    return TranscriptDamaged(
        f"the ledger vouches for entry {number} of the transcript, which is not there; nothing "
        f"more can leave: restore the transcript from a copy that has it"
    )


def transcript_of(entries: Iterable[TranscriptEntry]) -> Transcript:
    """A transcript in memory of entries whose chain was checked."""
    book = MemoryBook(FORM)
    for entry in entries:
        book.append(entry)
    return Transcript(book)


# As text, one JSON object a line ----------------------------------------------------------------


def to_lines(entries: Iterable[TranscriptEntry]) -> Iterator[str]:
    """Each entry as one line, its hash in hexadecimal digits."""
    for entry in entries:
        plain = {name: getattr(entry, name) for name in FORM.names}
        plain |= {"format": FORM.version, "hash": entry.hash.hex()}
        yield json.dumps(plain, separators=(",", ":"), ensure_ascii=True) + "\n"


def from_lines(lines: Iterable[str]) -> Iterator[TranscriptEntry]:
    """Read the lines back and check their chain."""
    entries = (_entry(line, number) for number, line in enumerate(lines))
    yield from _walk_chain(entries, require_follows)


def _entry(line: str, number: int) -> TranscriptEntry:
    try:
        plain: dict[str, Any] = json.loads(line)
        written = plain.pop("format")
        entry = TranscriptEntry(**(plain | {"hash": bytes.fromhex(plain["hash"])}))
    except (ValueError, LookupError, TypeError, AttributeError) as reason:
        raise damaged(number, "its line cannot be read, or was cut off") from reason
    FORM.require_version(written)
    return entry
