"""All bits of a table by fewer queries than records: a detecting matrix written as SQL.

The sums of a detecting matrix (see `casemate.solve.detecting`) are about sets of records that no
range selects, so they are lists of values of a public column that tells all records apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.attack.plan_check import Reading
from casemate.attack.plan_subsets import Chosen, Subsets
from casemate.solve.detecting import DetectingMatrix


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """Queries about sets of records, from which every record's bit can be decoded.

    With `whole`, the first query is about everybody, and sets with too few records are asked for
    by their complements.
    """

    subsets: Subsets

    @cached_property
    def _matrix(self) -> DetectingMatrix:
        return DetectingMatrix(self.subsets.count)

    @cached_property
    def whole(self) -> bool:
        """Whether everybody has to be asked about too."""
        return any(self.subsets.turned(row) for row in self._matrix.rows)

    @property
    def possible(self) -> bool:
        """Whether every set, or its complement, may be asked for."""
        sizes = np.unique(self._matrix.rows.sum(axis=1)).tolist()
        return all(self.subsets.can_ask(size) for size in sizes)

    @property
    def sets(self) -> list[Chosen]:
        """The set of records of each query."""
        rows = [~row if self.subsets.turned(row) else row for row in self._matrix.rows]
        return [self.subsets.everybody, *rows] if self.whole else rows

    def queries(self) -> tuple[str, ...]:
        """The queries."""
        return tuple(self.subsets.statement(each) for each in self.sets)

    def decode(self, answers: Sequence[int]) -> NDArray[np.int64]:
        """Every record's bit, from the answers in the order of the queries."""
        total, sums = (answers[0], answers[1:]) if self.whole else (0, answers)
        pairs = zip(self._matrix.rows, sums, strict=True)
        return self._matrix.decode(
            [total - each if self.subsets.turned(row) else each for row, each in pairs]
        )

    def proved(self, reading: Reading) -> bool:
        """Whether queries, read back, are about exactly these sets."""
        secret = self.subsets.secret.unknown
        return all(
            {part.unknown: part.weight for part in reading.parts[number]} == secret
            and np.array_equal(reading.selected(number), chosen)
            and int(chosen.sum()) >= self.subsets.least
            for number, chosen in enumerate(self.sets)
        )
