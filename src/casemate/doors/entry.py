"""The entries of a transcript: what each says, its text, and the chain of hashes they form.

An entry is public from the moment it is durable, so nothing in it is a secret: questions, noised
integers, and the scales of the noise. Its text is canonical JSON (sorted names, no spaces, ASCII)
and its hash is that of `casemate.privacy.book`, so anybody can check a copy in any language.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from casemate.errors import TranscriptDamaged
from casemate.privacy import Pure
from casemate.privacy.book import START, Form, Head


class EntryKind(StrEnum):
    """What an entry records."""

    OPENED = "opened"
    EASY = "easy"
    HARD = "hard"
    MEASURED = "measured"
    TOTAL = "total"
    CLOSED = "closed"
    ANSWERED = "answered"


@dataclass(frozen=True)
class Edition:
    """The policy (by its hash) and the state of the data that an answer is about."""

    policy: str
    data: str

    def key(self, *question: str) -> str:
        """A short name of the question under this edition; equal names mean equal questions."""
        return hashlib.sha256(_json([self.policy, self.data, *question]).encode()).hexdigest()


@dataclass(frozen=True)
class Opened:
    """A run of the gate was paid for; the noise of its threshold stays secret."""

    run: str
    epsilon: Fraction
    threshold_scale: Fraction
    query_scale: Fraction
    units: int  # of the deviation, to one sensitivity

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


Content = Opened | Easy | Hard | Measured | PeopleTotal | Closed | Answered

FORMS: dict[str, type[Content]] = {
    form.kind: form for form in (Opened, Easy, Hard, Measured, PeopleTotal, Closed, Answered)
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
    version="casemate.transcript/1",
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
    bare = _unhashed(newest, content)
    return replace(bare, hash=FORM.digest(bare, START if newest is None else newest.hash))


def _unhashed(newest: TranscriptEntry | None, content: Content) -> TranscriptEntry:
    number, questions, runs = -1, 0, 0
    if newest is not None:
        number, questions, runs = newest.number, newest.questions, newest.runs
    return TranscriptEntry(
        number=number + 1,
        kind=content.kind.value,
        key=content.key,
        run="" if isinstance(content, Measured | Answered) else content.run,
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
    if replace(_unhashed(newest, entry.content), hash=entry.hash) != entry:
        raise damaged(entry.number, "its fields do not follow from what it says")


def to_text(content: Content) -> str:
    """What the content says, as canonical JSON."""
    plain = {field.name: getattr(content, field.name) for field in fields(content)}
    return _json(
        {name: str(value) if name in _FRACTIONS else value for name, value in plain.items()}
    )


def from_text(kind: str, text: str) -> Content:
    """Read back what `to_text` wrote."""
    plain: Mapping[str, Any] = json.loads(text)
    return FORMS[kind](**{name: _READ.get(name, _as_it_is)(plain[name]) for name in plain})


def _as_it_is(value: Any) -> Any:
    return value


_FRACTIONS = ("epsilon", "threshold_scale", "query_scale", "scale")
_READ: dict[str, Callable[[Any], Any]] = dict.fromkeys(_FRACTIONS, Fraction) | {"values": tuple}


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _json(value: Any) -> str:
    return _ENCODER.encode(value)
