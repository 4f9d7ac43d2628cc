"""How an audit is put into words: who is meant, how a value follows, and what is hidden.

Without `reveal` no value, bound or total is written, and records and people are named by row
numbers: a key may be a name or a number that identifies somebody outside the table, and a report is
read by more people than the table is. A row number says which row, to whoever has the table. The
keys of the rows that a repair withholds are public, and written out in any case.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from fractions import Fraction

from casemate.audit.result import (
    Exposed,
    ExposedIfExact,
    MissingValue,
    Proof,
    PublishedCertificate,
)
from casemate.published import People, Place
from casemate.query.language import Scalar
from casemate.report import Code, Link, Prose, plain, words_of

HIDDEN = "•"
NAMES_SHOWN = 100
REASONS = {
    Proof.BOUNDS: "bounds and types",
    Proof.INTEGER: "bounds, and that numbers are whole",
    Proof.ORDER: "extremes, medians and comparisons",
    Proof.MISSING: "counts of values that are there",
}


@dataclass(frozen=True)
class ReportNames:
    """How one report names the records and the people of one table."""

    people: People
    reveal: bool

    def record(self, record: Scalar) -> Scalar:
        """A record's key, or its place in the order of the records, from 1."""
        return record if self.reveal else _row(self.people.place(record))

    def person(self, exposed: Exposed | ExposedIfExact | MissingValue) -> Scalar:
        """A person's key, or the row number of the person's first record."""
        if self.reveal:
            return exposed.person
        if _is_total(exposed):
            return _row(self.people.first_of(exposed.person))
        place = self.people.place(exposed.record)
        return None if place is None else _row(int(self.people.first[place]))

    def whose(self, exposed: Exposed | ExposedIfExact | MissingValue) -> str:
        """An exposed record in words, with the person where that is somebody else's name."""
        if _is_total(exposed):
            return f"person {self.person(exposed)}, all rows together"
        said = f"record {self.record(exposed.record)}"
        return said if self.people.keys is None else f"{said} (person {self.person(exposed)})"

    def records(self, records: Sequence[Scalar]) -> str:
        """Some records in words."""
        names = ", ".join(str(self.record(record)) for record in records[:NAMES_SHOWN])
        more = len(records) - NAMES_SHOWN
        word = "record" if len(records) == 1 else "records"
        return f"{word} {names}" + (f" and {more:,} more" if more > 0 else "")

    def value(self, value: Scalar | Fraction | tuple[Scalar, ...]) -> str:
        """A private value in words, if values are revealed."""
        return plain(value) if self.reveal else HIDDEN


def _is_total(exposed: Exposed | ExposedIfExact | MissingValue) -> bool:
    return not isinstance(exposed, MissingValue) and exposed.total


def _row(place: int | None) -> int | None:
    return None if place is None else place + 1


def how_it_follows(exposed: Exposed, linked: Container[int] = ()) -> Prose:
    """How an exposed value follows: a combination of statements, or bounds and types."""
    if exposed.certificate is None and exposed.proof is Proof.RANK:
        return f"many numbers together, the last of them in query {exposed.by}"
    if exposed.proof is Proof.READ:
        name = f"query {exposed.by}"
        linked_name = Link(name, f"query-{exposed.by}") if exposed.by in linked else name
        return (linked_name, ", which shows it as it is")
    if exposed.certificate is None:
        return REASONS[exposed.proof]
    return combination(exposed.certificate, linked)


def reason(exposed: Exposed) -> str:
    """The same in plain words."""
    return words_of(how_it_follows(exposed))


def place_name(place: Place) -> str:
    """A published number: its statement, and the cell of it."""
    if place.key is None:
        return f"query {place.query}"
    keys = ", ".join(f"{name} = {plain(value)}" for name, value in place.key)
    return f"query {place.query} [{keys}]"


def combination(certificate: PublishedCertificate, linked: Container[int] = ()) -> Code:
    """A certificate as arithmetic, for example query 1 - query 2, with links to statements."""
    parts: list[Prose] = []
    for term in certificate.terms:
        sign = "-" if term.coefficient < 0 else "+" if parts else ""
        size = "" if abs(term.coefficient) == 1 else f"{abs(term.coefficient)} * "
        name, query = place_name(term.place), term.place.query
        parts += [
            f"{' ' if parts else ''}{sign}{' ' if sign else ''}{size}",
            Link(name, f"query-{query}") if query in linked else name,
        ]
    if certificate.divisor != 1:
        parts = ["(", *parts, f") / {certificate.divisor}"]
    return Code(tuple(parts))
