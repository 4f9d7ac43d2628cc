"""Questions that a policy declares, recorded in the transcript before anything is measured.

Guarantee  One declaration for an edition, and none after its first measurement: whether that is so
           is looked up in the transaction that writes it, and again by whoever reads it, so a late
           one declares nothing. What was declared was chosen without the noise that proves it.
Order      every statement compiled -> declaration durable -> first charge.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from casemate.answer.work_limits import require_answerable
from casemate.doors import Declared, Doorway, Edition, EntryKind, Measured, declared_key
from casemate.errors import Misconfigured, Unsupported
from casemate.grid import Compiled, compile_statement
from casemate.query.parse import DIALECT, eliminate_joins, parse_statement, public_rows
from casemate.table import Table, Universe

MEASUREMENTS = (EntryKind.TOTAL, EntryKind.MEASURED)
NAMED_LATE = (
    "was named after the first measurement, so it declares nothing: its questions are answered "
    "like all others"
)
CHANGED = (
    "was changed since its questions were declared: those of then stand, and nothing can be "
    "declared any more"
)


def compile_question(sql: str, table: Table, universe: Universe, dialect: str) -> Compiled:
    """The question of a statement: from its text, the policy and public tables alone."""
    statement = parse_statement(sql, table.policy, dialect)
    rows = public_rows(table.source, table.policy, statement)
    return compile_statement(eliminate_joins(statement, rows, universe), universe)


def declared_questions(table: Table, universe: Universe) -> tuple[str, ...]:
    """The texts of the questions that a policy's file declares; the first mistake ends it."""
    where = table.policy.answering.declared
    if where is None:
        return ()
    from casemate.query.parse import Unread, read_queries  # which brings a database

    found = []
    for entry in read_queries(where, DIALECT):
        if isinstance(entry, Unread):
            raise _mistake(where, entry.line, entry.reason)
        try:
            asked = compile_question(entry.sql, table, universe, DIALECT).asked
            require_answerable(asked)
        except Unsupported as error:
            line = entry.line + max(0, error.line - 1)
            raise _mistake(where, line, error.reason) from None
        found.append(asked.text)
    return tuple(dict.fromkeys(found))


def _mistake(where: str, line: int, reason: str) -> Misconfigured:
    return Misconfigured(
        f"{where}, line {line}, declares a question that cannot be answered: {reason}; mend the "
        f"statement or leave it out, nothing was charged"
    )


def declared_texts(doors: Doorway, began: int | None) -> frozenset[str]:
    """What was declared before entry number `began`, the first that measured anything."""
    entry = doors.transcript.find(declared_key(doors.edition))
    if entry is None or (began is not None and began < entry.number):
        return frozenset()
    content = entry.content
    assert isinstance(content, Declared), "the key of a declaration holds one"
    return frozenset(content.questions)


@dataclass(frozen=True)
class Declaration:
    """What a policy's file declares about a dataset, if it names one."""

    table: Table
    universe: Universe
    doors: Doorway

    def record(self) -> None:
        """Make the declaration durable, unless there is one or something was measured."""
        if self.table.policy.answering.declared is None or self._is_settled():
            return
        edition = self.doors.edition
        questions = declared_questions(self.table, self.universe)
        content = Declared(questions, edition.policy, edition.data, self._digest())
        self.doors.transcript.append_unless(content, MEASUREMENTS, self._is_of_edition)

    def notes(self) -> tuple[str, ...]:
        """What of the file came too late to be declared."""
        where = self.table.policy.answering.declared
        if where is None or not self._is_settled():
            return ()
        entry, name = self.doors.transcript.find(self._key), Path(where).name
        if entry is None:
            return (f"{name} {NAMED_LATE}",)
        content = entry.content
        assert isinstance(content, Declared), "the key of a declaration holds one"
        if content.file == self._digest():
            return ()
        return (f"{name} {CHANGED}",)

    @property
    def _key(self) -> str:
        return declared_key(self.doors.edition)

    def _is_settled(self) -> bool:
        """Whether there is a declaration, or it is too late for one."""
        transcript = self.doors.transcript
        return transcript.find(self._key) is not None or any(
            self._is_of_edition(entry.content) for entry in transcript.of_kinds(MEASUREMENTS)
        )

    def _is_of_edition(self, content: object) -> bool:
        found = isinstance(content, Measured) and Edition(content.policy, content.data)
        return found == self.doors.edition

    def _digest(self) -> str:
        where = self.table.policy.answering.declared
        assert where is not None, "somebody asks for the digest of a file that is named"
        try:
            return hashlib.sha256(Path(where).read_bytes()).hexdigest()
        except OSError as reason:
            raise Misconfigured(
                f"`answer.questions` names {where}, which cannot be read ({reason.strerror}); "
                f"put it back"
            ) from reason
