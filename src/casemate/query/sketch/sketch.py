"""The records behind many sums, as codes in memory: what the audit of a large table asks of them.

Columns are read once. Each pass over the records then costs a few nanoseconds a word of 64 sums;
which records a sum adds up is never stored, so a table of any length needs no more memory than its
codes. A GROUP BY stays one column of codes, however many cells it has: each key is coded by itself,
then they are put together.
"""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import (
    NOBODY,
    Combination,
    Places,
    RandomBytes,
    Residues,
    Vanishing,
    pack_combinations,
)
from casemate.query.engines.answering import Key, engine_of, tables, values
from casemate.query.engines.rendering import render
from casemate.query.language.expression import Expression, Scalar
from casemate.query.records.bitsets import CellCodes, Records, layout
from casemate.query.records.coding import MAX_LOOKUP_SPAN, codes_of, factorise
from casemate.query.sketch.passes import (
    CodedCells,
    HashedNames,
    PassShape,
    Selection,
    evaluate,
    survey,
)
from casemate.query.sketch.record_hash import MAX_ADDED_FINGERPRINTS, HashKeys, fingerprints, names
from casemate.table import ColumnType
from casemate.table.sources import Source

MAX_MARKED_CODES = 2**26
"""Codes up to which those in use are marked in a table; past that they are sorted."""

RECORDS_PER_PASS = 2**16
"""So few that what a pass finds of each record stays in the cache."""

Codes = NDArray[Any]


def cells_of(keys: Sequence[Expression], records: Records) -> CellCodes:
    """The cell of every record, and the keys of each cell."""
    codes: Codes = np.zeros(records.count, np.int32)
    cells: list[Key] = [()]
    for key in keys:
        inner, shown = _code_key(key, records)
        wide = codes.astype(np.int64) * len(shown) + inner
        codes, used = _in_use(wide, len(cells) * len(shown))
        cells = [(*cells[k // len(shown)], shown[k % len(shown)]) for k in used.tolist()]
    return CellCodes(codes, tuple(cells))


def pass_shape(selections: Sequence[Selection], records: Records) -> PassShape:
    """Selections as a compiled pass takes them: the columns that they ask about are read here."""
    lists = dict.fromkeys(each.keys for each in selections if each.keys)
    cells = CodedCells.of({keys: cells_of(keys, records) for keys in lists}, records.count)
    return PassShape(layout((each.predicate for each in selections), records), cells, selections)


def _code_key(key: Expression, records: Records) -> tuple[Codes, list[Scalar]]:
    """A code for each record's value of one key, and the values."""
    written = render(key, engine_of(records.source))
    if key.type is ColumnType.TEXT:
        distinct = _distinct(written, records)
        return codes_of(written, key.type, distinct, records.source, records.column), distinct
    series = records.column(written)
    if key.type is ColumnType.INTEGER and not series.missing.any() and records.count:
        low, high = int(series.values.min()), int(series.values.max())
        if high - low < MAX_LOOKUP_SPAN:
            narrow, used = _in_use(series.values - low, high - low + 1)
            return narrow, [low + each for each in used.tolist()]
    codes, found = factorise([series], records.count)
    return codes, [each for (each,) in found]


def _distinct(written: str, records: Records) -> list[Scalar]:
    inner = f"SELECT DISTINCT {written} AS v FROM {tables(records.source, ())}"
    return values(records.source.read(inner)["v"])


def _in_use(codes: Codes, size: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The codes renumbered without gaps, and which there are."""
    if size > MAX_MARKED_CODES:
        used, inner = np.unique(codes, return_inverse=True)
        return inner.astype(np.int32), used
    seen = np.zeros(size, np.bool_)
    seen[codes] = True
    place = (np.cumsum(seen) - 1).astype(np.int32)
    return place[codes], np.flatnonzero(seen)


# Records as codes --------------------------------------------------------------------------------


DENSITY_SAMPLE_RECORDS = 1024
"""Records on which it is seen which sums select more than half of them."""


class CodedRecords:
    """Selections of the records of a source, evaluated by compiled passes over their codes."""

    def __init__(
        self, selections: Sequence[Selection], source: Source, random: RandomBytes | None = None
    ) -> None:
        self._random = random or os.urandom
        self._records = Records(source)
        self._keys = HashKeys.draw(random)
        tried = self._sample(DENSITY_SAMPLE_RECORDS)
        self._shape = pass_shape(selections, self._records).flip_dense(tried)
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
        for task in pack_combinations(combinations):
            used = [e for e in task.weights if task.weights[e]]
            some = self._shape.only(used)
            weights = some.weights([task.weights[e] for e in used], task.modulus)
            for start, end in self._spans():
                values = evaluate(np.arange(start, end), some.compiled, weights)
                found.append(start + np.flatnonzero(values))
        return np.setdiff1d(np.concatenate(found), inside)

    def _spans(self) -> Iterator[tuple[int, int]]:
        """The records of each pass: their fingerprints add up within 63 bits."""
        for start in range(0, self.count, RECORDS_PER_PASS):
            yield start, min(start + RECORDS_PER_PASS, self.count)

    @property
    def totals(self) -> NDArray[Any]:
        """The total of the fingerprints of all records, for each equation."""
        if self._totals is None:
            self.survey(np.zeros(self.equations, np.int64), 2)
        return np.zeros(0) if self._totals is None else self._totals

    def survey(self, combination: Residues, prime: int) -> tuple[Places, Residues]:
        """Where a combination is not zero, by a pass over all records that also finds totals."""
        shape, hashed = self._shape, HashedNames(self._names, self._keys.lanes)
        weights = shape.weights(combination, prime)
        total = np.zeros(shape.width, object if self.count > MAX_ADDED_FINGERPRINTS else np.int64)
        places, values = [NOBODY], [NOBODY]
        for start, end in self._spans():
            added = np.zeros(shape.width, np.int64)
            seen = survey((start, end), shape.compiled, weights, added, hashed)
            places.append(start + np.flatnonzero(seen))
            values.append(seen[seen != 0])
            total = total + added
        self._totals = shape.totals(total)
        return np.concatenate(places), np.concatenate(values)

    def evaluate(self, places: Places, combination: Residues, prime: int) -> Residues:
        """A combination at some records."""
        return evaluate(places, self._shape.compiled, self._shape.weights(combination, prime))

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
        combination, prime = combinations.draw(self._random), combinations.prime
        if self._left is None:
            self._left, values = self._records.survey(combination, prime)
        else:
            values = self._records.evaluate(self._left, combination, prime)
            self._left, values = self._left[values != 0], values[values != 0]
        return spread(self._left, values, most)


def spread(places: Places, values: Residues, most: int) -> Places:
    """Up to `most` places of different values, evenly out of all of them."""
    step = max(1, len(places) // (4 * max(1, most)))
    _, first = np.unique(values[::step], return_index=True)  # the values are as good as random
    return places[::step][first[:most]]
