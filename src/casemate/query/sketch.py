"""The records behind many sums, as codes in memory: what the audit of a large table asks of them.

Columns are read once. Each pass over the records then costs a few nanoseconds a word of 64 sums;
which records a sum adds up is never stored, so a table of any length needs no more memory than its
codes. A GROUP BY stays one column of codes, however many cells it has.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.query.membership import Records
from casemate.query.sketch_cells import cells_of
from casemate.query.sketch_hash import MOST_ADDED, Keys, fingerprints, names
from casemate.query.sketch_kernel import evaluate, strays, survey
from casemate.query.sketch_layout import layout
from casemate.query.sketch_selection import Selection
from casemate.query.sketch_shape import Cells, Shape
from casemate.solve.primes import RandomBytes
from casemate.solve.sketch import (
    NOBODY,
    Combination,
    Places,
    Residues,
    Vanishing,
    weighed_together,
)
from casemate.table.source import Source

TRIED = 1024
"""Records on which it is seen which sums select more than half of them."""


class CodedRecords:
    """Selections of the records of a source, evaluated by compiled passes over their codes."""

    def __init__(
        self, selections: Sequence[Selection], source: Source, random: RandomBytes | None = None
    ) -> None:
        self._random = random or os.urandom
        self._records = Records(source)
        self._keys = Keys.drawn(random)
        lists = dict.fromkeys(each.keys for each in selections if each.keys)
        cells = Cells.of({keys: cells_of(keys, self._records) for keys in lists}, self.count)
        self.layout = layout((each.predicate for each in selections), self._records)
        self._shape = Shape(self.layout, cells, selections).flipped(self._sample(TRIED))
        self._totals: NDArray[Any] | None = None

    @property
    def equations(self) -> int:
        """How many selections there are."""
        return len(self._shape.selections)

    @property
    def count(self) -> int:
        """How many records there are."""
        return self._records.count

    @property
    def names(self) -> NDArray[Any]:
        """The identity of every record, in order."""
        return self._records.names

    def sample(self, size: int) -> Places:
        """Records drawn at random, without repetition."""
        return np.unique(self._sample(size))

    def _sample(self, size: int) -> Places:
        drawn = np.frombuffer(self._random(8 * size), np.uint64) % np.uint64(max(1, self.count))
        return drawn.astype(np.int64) if self.count else NOBODY

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""
        return self._shape.rows(places)

    def search(self) -> "CodedSearch":
        """A search that begins with all records."""
        return CodedSearch(self, self._random)

    def rest(self, places: Places) -> NDArray[Any]:
        """The total of the fingerprints of all other records, for each equation."""
        marks = fingerprints(self._names[places], self._keys)
        others: NDArray[Any] = self.totals - self.rows(places).astype(np.int64) @ marks
        return others

    def strays(self, combinations: Sequence[Combination], inside: Places) -> Places:
        """The records outside `inside` on which a combination of equations is not zero."""
        found = [NOBODY]
        for task in weighed_together(combinations):
            used = [e for e in task.weights if task.weights[e]]
            some = self._shape.only(used)
            weights = some.weights([task.weights[e] for e in used], task.modulus)
            found.append(strays(self.count, some.compiled, weights))
        return np.setdiff1d(np.concatenate(found), inside)

    @property
    def totals(self) -> NDArray[Any]:
        """The total of the fingerprints of all records, for each equation."""
        if self._totals is None:
            self.surveyed(np.zeros(self.equations, np.int64), 2)
        return np.zeros(0) if self._totals is None else self._totals

    def surveyed(self, combination: Residues, prime: int) -> tuple[Places, Residues]:
        """Where a combination is not zero, by a pass over all records that also finds totals."""
        shape, named = self._shape, (self._names, self._keys.lanes)
        total = np.zeros(shape.width, object if self.count > MOST_ADDED else np.int64)
        found = [(NOBODY, NOBODY)]
        for start in range(0, self.count, MOST_ADDED):
            added = np.zeros(shape.width, np.int64)
            span = (start, min(start + MOST_ADDED, self.count))
            weights = shape.weights(combination, prime)
            found.append(survey(span, shape.compiled, weights, added, named))
            total = total + added
        self._totals = shape.totals(total)
        places, values = (np.concatenate(each) for each in zip(*found, strict=True))
        return places, values

    def evaluated(self, places: Places, combination: Residues, prime: int) -> Residues:
        """A combination at some records."""
        weights = self._shape.weights(combination, prime)
        values: Residues = evaluate(places, self._shape.compiled, weights)
        return values

    @cached_property
    def _names(self) -> NDArray[np.int64]:
        return names(self._records.names)


class CodedSearch:
    """Looks for records at which combinations do not vanish, each time within those before."""

    def __init__(self, records: CodedRecords, random: RandomBytes) -> None:
        self._records, self._random = records, random
        self._left: Places | None = None

    def differing(self, combinations: Vanishing, most: int) -> Places:
        """Up to `most` records at which one of the combinations, drawn at random, is not zero."""
        combination, prime = combinations.drawn(self._random), combinations.prime
        if self._left is None:
            self._left, values = self._records.surveyed(combination, prime)
        else:
            values = self._records.evaluated(self._left, combination, prime)
            self._left, values = self._left[values != 0], values[values != 0]
        return spread(self._left, values, most)


def spread(places: Places, values: Residues, most: int) -> Places:
    """Up to `most` places of different values, evenly out of all of them."""
    step = max(1, len(places) // (4 * max(1, most)))
    _, first = np.unique(values[::step], return_index=True)  # the values are as good as random
    return places[::step][first[:most]]
