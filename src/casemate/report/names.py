"""Who is meant: records and people by their keys, or by row numbers where nothing is revealed.

A key may be a name or a number that identifies somebody outside the table, and a report is read by
more people than the table is. A row number says which row of the table, to whoever has the table.
"""

from dataclasses import dataclass

from casemate.audit.result import Exposed, ExposedIfExact
from casemate.published.people import People
from casemate.query.expression import Scalar


@dataclass(frozen=True)
class Names:
    """How one report names the records and the people of one table."""

    people: People
    reveal: bool

    def record(self, record: Scalar) -> Scalar:
        """A record's key, or its place in the order of the records, from 1."""
        return record if self.reveal else _row(self.people.place(record))

    def person(self, exposed: Exposed | ExposedIfExact) -> Scalar:
        """A person's key, or the row number of the person's first record."""
        if self.reveal:
            return exposed.person
        if exposed.total:
            return _row(self.people.first_of(exposed.person))
        place = self.people.place(exposed.record)
        return None if place is None else _row(int(self.people.first[place]))

    def whose(self, exposed: Exposed | ExposedIfExact) -> str:
        """An exposed record in words, with the person where that is somebody else's name."""
        if exposed.total:
            return f"person {self.person(exposed)}, all rows together"
        said = f"record {self.record(exposed.record)}"
        return said if self.people.keys is None else f"{said} (person {self.person(exposed)})"


def _row(place: int | None) -> int | None:
    return None if place is None else place + 1
