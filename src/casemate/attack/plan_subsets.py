"""Any set of records as a query: a list of values of a public column that tells all records apart.

This is a larger language than ranges and equalities: `column IN (...)`. A set with too few records
is asked for by its complement, once the answer for everybody is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_language import Axis, Language
from casemate.attack.plan_secret import Secret
from casemate.attack.plan_text import Writer
from casemate.query.expression import Scalar

LONGEST_LIST = 20_000
"""Values in a list: statements with more than 50,000 words and signs are not read."""

Chosen = NDArray[np.bool_]
"""A set of records: for each, whether it is in it."""


def telling_axis(language: Language) -> Axis | None:
    """A public column that has another value in every record; the shortest to write."""
    found = [
        axis for axis in language.axes if len(axis.values) == language.count and not axis.has_null
    ]
    return min(found, key=lambda axis: len("".join(map(str, axis.values))), default=None)


@dataclass(frozen=True, eq=False, repr=False)
class Subsets:
    """Queries about any set of at least `least` records."""

    axis: Axis
    least: int
    secret: Secret
    writer: Writer

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.axis.places)

    @property
    def everybody(self) -> Chosen:
        """The set of all records."""
        return np.ones(self.count, np.bool_)

    @property
    def any_set(self) -> bool:
        """Whether every set, or its complement, may be asked for."""
        return all(self.can_ask(size) for size in range(1, self.count))

    def can_ask(self, size: int) -> bool:
        """Whether a set of so many records, or its complement, may be asked for."""
        return any(self.least <= each <= LONGEST_LIST for each in (size, self.count - size))

    def turned(self, chosen: Chosen) -> bool:
        """Whether a set has to be asked for by its complement."""
        size = int(chosen.sum())
        return not self.least <= size <= LONGEST_LIST and size < self.count

    def statement(self, chosen: Chosen) -> str:
        """The query that adds up the secrets of a set as it is."""
        (place,) = self.secret.asked
        if chosen.all():
            return self.secret.statement([], place, self.writer)
        places = np.sort(self.axis.places[chosen])
        first, last = int(places[0]), int(places[-1])
        if self.axis.ordered and last - first + 1 == len(places):
            condition = self.writer.condition(self.axis, (first, last))
        else:
            condition = self._among([self.axis.values[i] for i in places.tolist()])
        return self.secret.statement([condition], place, self.writer)

    def _among(self, values: Sequence[Scalar]) -> str:
        kind = self.axis.column.type
        written = [self.writer.constant(value, kind) for value in values]
        name = self.writer.name(self.axis.column.name)
        return (
            f"{name} = {written[0]}" if len(written) == 1 else f"{name} IN ({', '.join(written)})"
        )
