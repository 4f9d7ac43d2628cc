"""The measurement: exact discrete noise on integer cells, charged before it is drawn.

Guarantee  What leaves is the exact cells plus noise whose cost the ledger granted, once for each
           question, edition (policy and data) and noise: a retry, another process or a later day
           gets the stored entry and charges nothing.
Order      open the table -> charge durable -> read the cells -> draw and append in one
           transaction -> send. A charge without an entry proves that nothing left, so one draw is
           still owed. The head of the entry becomes the charge's output in the ledger; a charge
           that has an output while the transcript has no such entry means that the transcript was
           cut, and nothing is drawn.
Cost       One scan, one draw for each cell, three waits for the disk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import TypeVar

from casemate.doors.transcript import (
    Edition,
    Measured,
    PeopleTotal,
    Transcript,
    TranscriptBook,
    TranscriptEntry,
    cut_off,
    write_once,
)
from casemate.errors import CasemateError, ScanFailed
from casemate.privacy.ledger import Ledger
from casemate.privacy.noise import Law, Sources

# Reading private cells for a door, so that a failure says nothing about them --------------------


Cells = Sequence[int]
"""Integers on a grid: counts, or sums that were clamped and scaled."""

Scan = Callable[[], Sequence[Cells]]
"""Reads the exact cells of a question, one sequence for each of its parts."""

FAILURES = (CasemateError, ArithmeticError, LookupError, OSError, ValueError)


def read_cells(scan: Scan, sizes: Sequence[int]) -> list[list[int]]:
    """The exact cells, of these public sizes; whatever goes wrong gives one constant message.

    Both doors come here after they have charged, so a failure is never free.
    """
    try:
        parts = [[index(cell) for cell in cells] for cells in scan()]
    except FAILURES:
        raise ScanFailed from None
    if [len(cells) for cells in parts] != list(sizes):
        raise ScanFailed
    return parts


# The measurement --------------------------------------------------------------------------------


LONGEST_PURPOSE = 1000
"""Characters of a question that the ledger's purpose shows."""

NUMBER_OF_PEOPLE = "the number of people"

Measurements = TypeVar("Measurements", bound=Measured)


@dataclass(frozen=True)
class Measurement:
    """The door through which noised cells leave.

    >>> from fractions import Fraction
    >>> from casemate.privacy.noise import LaplaceLaw
    >>> from casemate.doors.transcript import open_transcript
    >>> from casemate.privacy.ledger.ledger import open_ledger
    >>> from casemate.privacy.noise.noise import silence
    >>> ledger = open_ledger(":memory:", dataset="d", policy="p", epsilon=Fraction(1))
    >>> door = Measurement(
    ...     ledger, open_transcript(":memory:"), Edition("p", "v1"), Sources(laplace=silence)
    ... )
    >>> law = LaplaceLaw(Fraction(4))
    >>> door.measure("count by sex", lambda: [30, 12], cells=2, law=law).values
    (30, 12)
    >>> door.measure("count by sex", lambda: [31, 12], cells=2, law=law).values
    (30, 12)
    >>> ledger.remaining()
    Fraction(3, 4)
    """

    ledger: Ledger
    transcript: Transcript
    edition: Edition
    sources: Sources = field(default_factory=Sources)
    ready: Callable[[], object] = lambda: None  # opens the table, before anything is charged

    def measure(
        self,
        question: str,
        exact: Callable[[], Cells],
        *,
        cells: int,
        law: Law,
        principal: str = "",
    ) -> Measured:
        """The noised cells of a question, which is a normalised text; `exact` reads them."""
        return self._measure(Measured, question, exact, cells, law=law, principal=principal)

    def total(self, exact: Callable[[], int], *, law: Law, principal: str = "") -> PeopleTotal:
        """The noised number of people."""
        return self._measure(
            PeopleTotal, NUMBER_OF_PEOPLE, lambda: (exact(),), 1, law=law, principal=principal
        )

    def _measure(
        self,
        form: type[Measurements],
        question: str,
        exact: Callable[[], Cells],
        cells: int,
        *,
        law: Law,
        principal: str,
    ) -> Measurements:
        edition = self.edition
        blank = form(question, edition.policy, edition.data, law.name, law.scale, ())  # for its key
        key, purpose = blank.key, f"measure {question}"[:LONGEST_PURPOSE]
        if self.transcript.find(key) is None:
            self.ready()
        receipt = self.ledger.charge(law.cost, key=key, purpose=purpose, principal=principal)
        entry = self.transcript.find(key)
        if entry is None:
            if receipt.output is not None:
                raise cut_off(receipt.output)
            (values,) = read_cells(lambda: (exact(),), (cells,))
            entry = self.transcript.run(
                lambda book: self._draw_and_append(book, blank, values, law)
            )
        if receipt.output is None:
            self.ledger.record_output(key, str(entry.head).encode())
        content = entry.content
        assert isinstance(content, form), "the key of a measurement holds a measurement"
        return content

    def _draw_and_append(
        self, book: TranscriptBook, blank: Measured, values: list[int], law: Law
    ) -> TranscriptEntry:
        """Draw and append, unless another process was first."""
        stored = book.find(blank.key)
        if stored is not None:
            return stored
        noise = self.sources.draw(law, len(values))
        noisy = tuple(value + drawn for value, drawn in zip(values, noise, strict=True))
        return write_once(book, replace(blank, values=noisy))
