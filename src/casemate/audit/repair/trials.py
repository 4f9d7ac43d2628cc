"""What may be published, decided by auditing it: rows that take part in an exposure go.

While the audit of what is left exposes somebody, or does not decide about somebody, rows are taken
out that are about these people: those of a certificate where there is one, and otherwise the rows
of which most of the people are exposed, the smallest first. Each round takes twice as many for each
person as the round before it, so that few audits are needed; what was taken out in vain is given
back in the end, in batches.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.audit.result import Audited, Exposed, Verdict
from casemate.audit.statements import AuditedStatements, Withheld
from casemate.published import People
from casemate.query.language import Scalar
from casemate.query.parse import Logged

MOST_GIVEN_BACK = 100
"""Audits that giving back may cost."""

PATIENCE = 2
"""Audits that may leave somebody undecided before rows are looked for that are easy to decide."""

Auditing = Callable[[Sequence[Logged]], Audited]


@dataclass(frozen=True, eq=False)
class Members:
    """Which records, by their positions, each of some rows is about."""

    rows: tuple[Withheld, ...]
    people: People
    records: Mapping[Withheld, NDArray[np.int64]]

    @cached_property
    def _touching(self) -> Mapping[int, list[Withheld]]:
        found: dict[int, list[Withheld]] = {}
        for row in self.rows:
            for record in self.records[row].tolist():
                found.setdefault(record, []).append(row)
        return found

    def touching(self, record: int) -> list[Withheld]:
        """The rows that are about a record."""
        return self._touching.get(record, [])

    def share(self, row: Withheld, some: NDArray[np.bool_]) -> float:
        """Which part of the records of a row are among some."""
        return float(some[self.records[row]].sum()) / max(1, len(self.records[row]))

    def size(self, row: Withheld) -> int:
        """How many records a row is about."""
        return len(self.records[row])


class Trials:
    """Audits of the statements without some of their rows."""

    def __init__(self, statements: AuditedStatements, members: Members, audit: Auditing) -> None:
        self._statements, self._members, self._audit = statements, members, audit
        self._rows = members.rows

    def of(self, kept: Iterable[Withheld]) -> Audited:
        """Audit what is published if these rows are, and no others."""
        texts = self._texts(set(kept))
        return self._audit([Logged(text, 1) for text in texts.values()])

    def _texts(self, kept: set[Withheld]) -> dict[int, str]:
        return self._statements.texts([row for row in self._rows if row not in kept])

    def safe(
        self, kept: Sequence[Withheld], easy: Callable[[], Sequence[Withheld]]
    ) -> list[Withheld]:
        """Take rows out until nobody is exposed and nobody is left undecided.

        Where audits cannot decide, they go on with rows that are easy to decide about.
        """
        left, most, open_ = list(kept), 1, 0
        while left:
            found = self.of(left)
            if found.verdict is Verdict.NONE_EXPOSED:
                break
            open_ += bool(found.undecided or found.unchecked)
            if open_ == PATIENCE:
                left, most, open_ = list(easy()), 1, PATIENCE + 1
            else:
                left, most = self.narrowed(found, left, most), 2 * most
        return left

    def narrowed(self, found: Audited, kept: Sequence[Withheld], most: int = 1) -> list[Withheld]:
        """These rows without some that are to blame for what was found, so many for each person."""
        blamed = self._blamed(found, set(kept), most)
        return self._listed(set(kept) - blamed) if blamed else []

    def given_back(
        self, kept: Sequence[Withheld], others: Sequence[Withheld], seconds: float = float("inf")
    ) -> list[Withheld]:
        """Add as many of the other rows as can be had in so many seconds, in batches.

        A batch that does no harm is followed by one twice as large, any other by a quarter of it.
        """
        left, pending, size = set(kept), list(others), len(others)
        deadline = time.monotonic() + seconds
        for _ in range(MOST_GIVEN_BACK):
            if not pending or time.monotonic() >= deadline:
                break
            batch = pending[:size]
            if self.of(left.union(batch)).verdict is Verdict.NONE_EXPOSED:
                left |= set(batch)
                pending, size = pending[size:], 2 * size
            elif size == 1:
                pending = pending[1:]
            else:
                size = max(1, min(size, len(pending)) // 4)
        return self._listed(left)

    def _listed(self, kept: set[Withheld]) -> list[Withheld]:
        return [row for row in self._rows if row in kept]

    # Who is to blame ------------------------------------------------------------------------------

    def _blamed(self, found: Audited, kept: set[Withheld], most: int) -> set[Withheld]:
        """Up to so many rows for each person about whom something follows, or may follow."""
        queries = list(self._texts(kept))
        bad = np.zeros(len(self._members.people.records), np.bool_)
        suspects: list[tuple[Exposed | None, list[int]]] = []
        suspects += [(each, self._places(each)) for each in found.exposed]
        suspects += [(None, self._named(name)) for name in (*found.undecided, *found.unchecked)]
        for _, places in suspects:
            bad[places] = True
        guilt = {row: (-self._members.share(row, bad), self._members.size(row)) for row in kept}
        blamed: set[Withheld] = set()
        for exposed, places in suspects:
            rows = self._proving(exposed, queries, kept) or self._about(places, kept)
            if not blamed.intersection(rows) or most > 1:
                blamed.update(sorted(rows, key=guilt.__getitem__)[:most])
        return blamed

    def _places(self, exposed: Exposed) -> list[int]:
        """The positions of the records that an exposed value is about."""
        if exposed.record is not None:
            return self._named(exposed.record)
        people = self._members.people
        first = people.first_of(exposed.person)
        return [] if first is None else people.rows(first).tolist()

    def _named(self, record: Scalar) -> list[int]:
        place = self._members.people.place(record)
        return [] if place is None else [place]

    def _about(self, places: Iterable[int], kept: set[Withheld]) -> list[Withheld]:
        found = (row for place in places for row in self._members.touching(place))
        return [row for row in dict.fromkeys(found) if row in kept]

    def _proving(
        self, exposed: Exposed | None, queries: Sequence[int], kept: set[Withheld]
    ) -> list[Withheld]:
        """The rows that a certificate names."""
        if exposed is None or exposed.certificate is None:
            return []
        places = [term.place for term in exposed.certificate.terms]
        named = {(queries[place.query - 1], place.key) for place in places}
        return [row for row in self._rows if row in kept and (row.query, row.cell) in named]
