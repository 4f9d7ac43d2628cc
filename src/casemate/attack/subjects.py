"""Whose secret each unknown is: records, the people they belong to, and what is public of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.features import Features, Places
from casemate.errors import Misconfigured
from casemate.exact import Floats
from casemate.table import NO_PRIVATE, Column, Policy


def private_column(policy: Policy, private: str | None) -> Column:
    """The column of this name, or the only private one; with several, it has to be named."""
    columns = policy.private()
    if not columns:
        raise Misconfigured(NO_PRIVATE)
    if private is None and len(columns) > 1:
        names = ", ".join(column.name for column in columns)
        raise Misconfigured(f"several columns are private ({names}); name one with --private")
    column = next((each for each in columns if private in (None, each.name)), None)
    if column is None:
        raise Misconfigured(f"the column {private!r} is not private; name one that is")
    return column


Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Subjects:
    """The record of each unknown, which of the record's unknowns it is, and each record's person.

    A private number is one unknown of its record; a private category is several, of different
    kinds, and what is right or wrong is all of them together. Only unknowns that are `scored`
    count; all of them leave with their person.
    """

    record: Places
    kind: Places
    scored: Bits
    person: Places
    features: Features

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if not len(self.record) == len(self.kind) == len(self.scored):
            raise ValueError("every unknown needs a record, a kind, and whether it is scored")
        if self.features.records != len(self.person):
            raise ValueError(
                f"there are {len(self.person)} records and public columns of "
                f"{self.features.records}; give one row of them for each record"
            )
        if not self.scored.any():
            raise ValueError("no published number is about any of these secrets; nothing to score")

    @classmethod
    def alone(
        cls, width: int, features: Features | None = None, person: Places | None = None
    ) -> "Subjects":
        """One unknown for each record, and one record for each person unless told otherwise."""
        each = np.arange(width, dtype=np.int64)
        people = each if person is None else np.unique(person, return_inverse=True)[1]
        kind, scored = np.zeros(width, np.int64), np.ones(width, np.bool_)
        return cls(each, kind, scored, people.astype(np.int64), features or Features(width))

    def __repr__(self) -> str:
        """How many there are; never who they are."""
        return f"<Subjects: {len(self.records)} secrets of {len(np.unique(self.person))} people>"

    @cached_property
    def records(self) -> Places:
        """The records that have something to score, in order; others are counted by these."""
        return np.unique(self.record[self.scored])

    @cached_property
    def people(self) -> Places:
        """The person of each of those records."""
        return self.person[self.records]

    @cached_property
    def kinds(self) -> Places:
        """The kinds of unknowns that are scored."""
        return np.unique(self.kind[self.scored])

    @cached_property
    def _place(self) -> tuple[Places, Places]:
        rows = np.searchsorted(self.records, self.record[self.scored])
        return rows, np.searchsorted(self.kinds, self.kind[self.scored])

    def by_record(self, values: Floats, absent: float = 0.0) -> Floats:
        """The scored unknowns, a row for each record and a column for each kind."""
        found = np.full((len(self.records), len(self.kinds)), absent)
        found[self._place] = values[self.scored]
        return found

    def unknowns_of(self, people: Places) -> Places:
        """All unknowns of these people, scored or not."""
        return np.flatnonzero(np.isin(self.person[self.record], people))
