"""Records whose equations are written down after all, so that every answer can be checked.

`WrittenRecords` answers a search by looking at everybody, `SketchedRecords` through sketches with
few levels and buckets, and each notes which way a record was found.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from casemate.exact import (
    Combination,
    Name,
    Places,
    Residues,
    Sketches,
    SketchSearch,
    Vanishing,
    pack_combinations,
)

Matrix = list[list[int]]


class WrittenRecords:
    """A dense 0/1 matrix as a source of records."""

    def __init__(self, matrix: Matrix, rng: Random, sampled: int = 2, marked: bool = True) -> None:
        self.matrix = np.array(matrix, np.int64)
        self.equations, self.count = self.matrix.shape
        self._rng, self._sampled = rng, sampled
        marks = [rng.randrange(1, 2**38) if marked else 0 for _ in range(self.count)]
        self.marks = np.array(marks, np.int64)
        self.ways: Counter[str] = Counter()

    @property
    def totals(self) -> NDArray[np.int64]:
        return self.matrix @ self.marks

    def sample(self, size: int) -> Places:
        drawn = self._rng.sample(range(self.count), min(size, self._sampled, self.count))
        return np.array(sorted(drawn), np.int64)

    def rows(self, places: Places) -> NDArray[np.bool_]:
        return self.matrix[:, places].astype(np.bool_)

    def search(self) -> "Looking":
        return Looking(self)

    def rest(self, places: Places) -> NDArray[np.int64]:
        others = np.setdiff1d(np.arange(self.count), places)
        return self.matrix[:, others] @ self.marks[others]

    def strays(self, combinations: Sequence[Combination], inside: Places) -> Places:
        found = set()
        for task in pack_combinations(combinations):
            for record in range(self.count):
                total = sum(w * int(self.matrix[e, record]) for e, w in task.weights.items())
                if total % task.modulus if task.modulus else total:
                    found.add(record)
        return np.array(sorted(found.difference(inside.tolist())), np.int64)


class Looking:
    """Evaluates a random combination at every record."""

    def __init__(self, records: WrittenRecords) -> None:
        self._records = records

    def differing(self, combinations: Vanishing, most: int) -> Places:
        drawn = combinations.draw().astype(object)
        values = drawn @ self._records.matrix.astype(object) % combinations.prime
        return np.flatnonzero(values != 0)[:most]


class SketchedRecords(WrittenRecords):
    """The same behind sketches of two levels with two buckets each."""

    LEVELS, BUCKETS, LIMITS = 2, 2, (2**11, 2**12)

    def __init__(self, matrix: Matrix, rng: Random, sampled: int = 1) -> None:
        super().__init__(matrix, rng, sampled)
        size, bits = self.LEVELS * self.BUCKETS, self.LIMITS
        self._names = [tuple(rng.randrange(each) for each in bits) for _ in range(self.count)]
        pieces = np.array([(1, *name) for name in self._names], np.int64).T
        bucket = np.array([self._bucket(rng) for _ in range(self.count)])
        spread = np.eye(size, dtype=np.int64)[bucket]
        self.sketches = Sketches(tuple((self.matrix * p) @ spread for p in pieces), bits)

    def _bucket(self, rng: Random) -> int:
        level = next(k for k in range(self.LEVELS) if k + 1 == self.LEVELS or rng.random() < 0.5)
        return level * self.BUCKETS + rng.randrange(self.BUCKETS)

    def sample(self, size: int) -> Places:
        found = super().sample(size)
        self.ways["sample"] += len(found)
        return found

    def search(self) -> SketchSearch:  # type: ignore[override]  # another kind of search
        return SketchSearch(self)

    def lookup(self, wanted: Iterable[Name]) -> Places:
        names = set(wanted)
        found = [place for place, name in enumerate(self._names) if name in names]
        self.ways["sketch"] += len(found)
        return np.array(found, np.int64)

    def scan(self, combination: Residues, prime: int, most: int) -> Places:
        values = combination.astype(object) @ self.matrix.astype(object) % prime
        found = np.flatnonzero(values != 0)[:most]
        self.ways["scan"] += len(found)
        return found
