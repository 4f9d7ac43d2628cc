"""Whose secret each unknown is: records, the people they belong to, and what is public of them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.features import Features, Places
from casemate.published.equations import Equations
from casemate.solve.rows import Floats

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

    @classmethod
    def of(cls, equations: Equations, features: Features, column: str | None = None) -> "Subjects":
        """The secrets behind published equations: of one private column, those that were told."""
        told = np.zeros(equations.system.columns, np.bool_)
        told[equations.system.column] = True
        names = np.array([each.column for each in equations.unknowns], object)
        own = names[equations.unknown]
        if column is None and len(set(own[told].tolist())) > 1:
            raise ValueError("several private columns were published; say which one is scored")
        scored = told & (own == column) if column is not None else told
        return cls(equations.record, equations.unknown, scored, equations.people.first, features)

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
