"""The records behind many sums where they are: each sum brings a linear sketch along, in SQL.

One statement for each predicate and keys adds up fingerprints by bucket, in whole numbers alone, on
any engine. Records that are needed one by one (a sample, and those that a sketch names) are read by
a query for them alone. The table itself never leaves its engine. `SketchStatements` writes the
statements, `SummedRecords` asks them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.exact import (
    Combination,
    Name,
    Places,
    RandomBytes,
    Residues,
    Sketches,
    SketchSearch,
    pack_combinations,
)
from casemate.query.aggregate import Aggregate, Function
from casemate.query.engines.answering import (
    RECORD_COLUMN,
    engine_of,
    group_by,
    pieces,
    rows,
    tables,
    values,
)
from casemate.query.engines.rendering import render
from casemate.query.language.expression import (
    TRUE,
    Call,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
)
from casemate.query.records.bitsets import membership
from casemate.query.sketch.passes import Family, Selection
from casemate.query.sketch.record_hash import (
    MAX_ADDED_FINGERPRINTS,
    SECOND_LANE_BITS,
    HashKeys,
    hash_lanes,
    join_lanes,
)
from casemate.table import ColumnType
from casemate.table.sources import RECORD, Frame, Source, literal

LOWER_PIECE_BITS = 16
"""Bits of the lower piece of the first lane; the upper has 15, and the second lane gives 7."""

BUCKETS_PER_LEVEL = 16
SKETCH_LEVELS = 21
_BUCKET_BITS = BUCKETS_PER_LEVEL.bit_length() - 1
PIECE_LIMITS = (2**15, 2**LOWER_PIECE_BITS, 2**SECOND_LANE_BITS)
"""The pieces of a record's name in a sketch are below these."""


@dataclass(frozen=True, eq=False)
class Only:
    """A source that shows some of the records of another."""

    source: Source
    records: Sequence[Scalar]

    @property
    def dialect(self) -> str:
        """What sqlglot calls the engine's SQL."""
        return self.source.dialect

    def relation(self, public: str | None = None) -> str:
        """The text to put after FROM."""
        if public is not None:
            return self.source.relation(public)
        listed = ", ".join(map(literal, self.records))
        return f"(SELECT * FROM {self.source.relation()} AS o WHERE o.{RECORD} IN ({listed}))"

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self.source.fields(public)

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        return self.source.read(sql)

    def close(self) -> None:
        """Nothing is held here."""


@dataclass(frozen=True, eq=False)
class SketchStatements:
    """SQL over the records of a source and their hashes."""

    source: Source
    keys: HashKeys
    whole: bool  # whether records are named by whole numbers

    def lanes(self, columns: Sequence[str] = ("r",), source: Source | None = None) -> str:
        """Records, and the two lanes y and w of their hashes."""
        inner = rows(source or self.source, (), TRUE, {})
        return hash_lanes(inner, self.keys, self.source.dialect, self.whole, columns)

    def sketch(self, family: Family) -> str:
        """By cell and bucket: how many records there are, and sums of the pieces of their names."""
        predicate, keys = family
        named = {f"k{i}": key for i, key in enumerate(keys)}
        inner = rows(self.source, (), predicate, named)
        lanes = hash_lanes(inner, self.keys, self.source.dialect, self.whole, list(named))
        level, bucket = (
            f"(w >> {SECOND_LANE_BITS + _BUCKET_BITS})",
            f"((w >> {SECOND_LANE_BITS}) & {BUCKETS_PER_LEVEL - 1})",
        )
        cell = f"({level} & (-{level})) * {BUCKETS_PER_LEVEL} + {bucket} AS cell"
        shown = "".join(f"{name}, " for name in named)
        sums = {
            "a": f"y >> {LOWER_PIECE_BITS}",
            "b": f"y & {2**LOWER_PIECE_BITS - 1}",
            "c": f"w & {2**SECOND_LANE_BITS - 1}",
        }
        placed = f"SELECT {shown}{cell}, y, w FROM ({lanes}) AS l"
        results = {name: f"sum({text})" for name, text in sums.items()}
        return group_by(placed, [*named, "cell"], {"n": "count(*)", **results})

    def with_first_lane(self, lanes: Iterable[int]) -> str:
        """The records whose first lane is one of these."""
        listed = ", ".join(map(str, lanes))
        return f"SELECT r, y, w FROM ({self.lanes()}) AS n WHERE y IN ({listed})"

    def sample(self, size: int, count: int) -> str:
        """About so many of the records, chosen by their hashes."""
        limit = min(2**31, -(-(size << 31) // max(1, count)))
        return f"SELECT r FROM ({self.lanes()}) AS n WHERE y < {limit}"

    def scan(self, weights: Mapping[Selection, int], modulus: int, most: int) -> str:
        """Records at which a weighted sum of selections is not zero; modulus 0 stands for none."""
        engine = engine_of(self.source)
        terms = [
            f"CASE WHEN coalesce({render(condition_of(each), engine)}, FALSE) THEN {w} ELSE 0 END"
            for each, w in weights.items()
        ]
        inner = f"SELECT {RECORD_COLUMN} AS r, {_sum(terms)} AS v FROM {tables(self.source, ())}"
        value = f"v % {modulus}" if modulus else "v"
        return f"SELECT r FROM ({inner}) AS s WHERE {value} <> 0 LIMIT {most}"


def _sum(terms: Sequence[str]) -> str:
    """A sum written as a balanced tree: engines limit how deep an expression may be."""
    if len(terms) == 1:
        return f"CAST({terms[0]} AS BIGINT)"
    half = len(terms) // 2
    return f"({_sum(terms[:half])} + {_sum(terms[half:])})"


def condition_of(selection: Selection) -> Expression:
    """The predicate of a selection, that its keys have their values included."""
    pinned = (
        Call(Operation.SAME, (key, Literal(value, key.type)), ColumnType.BOOLEAN)
        for key, value in zip(selection.keys, selection.key, strict=True)
    )
    return all_of(selection.predicate, *pinned)


# Records known by sums ---------------------------------------------------------------------------


RECORDS_PER_READ = 4096  # records read by one statement
EXTRA_SCANNED_RECORDS = 64  # records found by a scan beyond those that were to be expected


class SummedRecords:
    """Selections of the records of a source, known by sums that its engine computes."""

    def __init__(
        self, selections: Sequence[Selection], source: Source, random: RandomBytes | None = None
    ) -> None:
        self._selections, self._source = selections, source
        first = source.read(f"SELECT {RECORD_COLUMN} AS r FROM {tables(source, ())} LIMIT 1")["r"]
        whole = first.values.dtype == np.int64
        self._statements = SketchStatements(source, HashKeys.draw(random), whole)
        self._chance = SketchStatements(source, HashKeys.draw(random), whole)
        self._families: dict[Family, list[int]] = defaultdict(list)
        for place, each in enumerate(selections):
            self._families[each.family].append(place)
        self.names: list[Scalar] = []
        self._places: dict[Scalar, int] = {}
        self._marks: list[int] = []
        self._columns: list[NDArray[np.bool_]] = []

    @property
    def equations(self) -> int:
        """How many selections there are."""
        return len(self._selections)

    @cached_property
    def count(self) -> int:
        """How many records there are."""
        counted = self._source.read(f"SELECT count(*) AS n FROM {tables(self._source, ())}")
        return int(counted["n"].values[0])

    def sample(self, size: int) -> Places:
        """About so many records, drawn at random."""
        found = self._source.read(self._chance.sample(size, self.count))
        return self._places_of(values(found["r"]))

    def rows(self, places: Places) -> NDArray[np.bool_]:
        """Which equations add up which of these records: equations x records."""
        columns = [self._columns[place] for place in places.tolist()]
        return np.array(columns, np.bool_).reshape(-1, self.equations).T

    def search(self) -> SketchSearch:
        """A search that begins with all records."""
        return SketchSearch(self)

    def rest(self, places: Places) -> NDArray[Any]:
        """The total of the fingerprints of all other records, for each equation."""
        marks = np.array([self._marks[place] for place in places.tolist()], np.int64)
        others: NDArray[Any] = self.totals - self.rows(places).astype(np.int64) @ marks
        return others

    def strays(self, combinations: Sequence[Combination], inside: Places) -> Places:
        """The records outside `inside` on which a combination of equations is not zero."""
        found: list[Scalar] = []
        for task in pack_combinations(combinations):
            found += self._scan(task.weights, task.modulus, len(inside) + EXTRA_SCANNED_RECORDS)
        return np.setdiff1d(self._places_of(list(dict.fromkeys(found))), inside)

    def _scan(self, weights: Combination, modulus: int, most: int) -> list[Scalar]:
        merged: dict[Selection, int] = defaultdict(int)
        for equation, weight in weights.items():
            merged[self._selections[equation]] += weight
        return values(self._source.read(self._statements.scan(merged, modulus, most))["r"])

    # Records that are known one by one

    def _places_of(self, names: Sequence[Scalar]) -> Places:
        """The places of records, of which each new one is read."""
        new = [name for name in names if name not in self._places]
        for start in range(0, len(new), RECORDS_PER_READ):
            self._read(new[start : start + RECORDS_PER_READ])
        return np.array([self._places[name] for name in names], np.int64)

    def _read(self, names: Sequence[Scalar]) -> None:
        """Read the hashes of some records, and which equations add them up."""
        some = Only(self._source, names)
        lanes = some.read(self._statements.lanes(source=some))
        marks = join_lanes(lanes["y"].values, lanes["w"].values)
        mark = dict(zip(values(lanes["r"]), marks.tolist(), strict=True))
        listed = [Aggregate(Function.COUNT, None, *family) for family in self._families]
        found = membership(listed, some)
        inside = np.zeros((self.equations, len(names)), np.bool_)
        for index, equations in enumerate(self._families.values()):
            selected, groups = found.mask(index), found.groups[index]
            for place in equations:
                inside[place] = selected
                if groups is not None:
                    key = self._selections[place].key
                    number = groups.keys.index(key) if key in groups.keys else -2
                    inside[place] &= groups.codes == number
        for column, name in zip(inside.T, found.records.tolist(), strict=True):
            self._places[name] = len(self.names)
            self.names.append(name)
            self._marks.append(mark[name])
            self._columns.append(column)

    def lookup(self, wanted: Iterable[Name]) -> Places:
        """The records whose hashes have these pieces."""
        lanes = {((high << LOWER_PIECE_BITS) + low, small) for high, low, small in wanted}
        found: list[Scalar] = []
        for some in pieces(sorted({lane for lane, _ in lanes})):
            frame = self._source.read(self._statements.with_first_lane(some))
            small = frame["w"].values & ((1 << SECOND_LANE_BITS) - 1)
            pairs = zip(frame["y"].values.tolist(), small.tolist(), strict=True)
            records = zip(values(frame["r"]), pairs, strict=True)
            found += [name for name, pair in records if pair in lanes]
        return self._places_of(found)

    def scan(self, combination: Residues, prime: int, most: int) -> Places:
        """Some records at which a combination is not zero, found by the engine."""
        used = np.flatnonzero(combination).tolist()
        return self._places_of(self._scan({e: int(combination[e]) for e in used}, prime, most))

    # Sums

    @cached_property
    def sketches(self) -> Sketches:
        """The sketch of every equation."""
        sums = np.zeros((4, self.equations, SKETCH_LEVELS * BUCKETS_PER_LEVEL), np.int64)
        for family, equations in self._families.items():
            frame = self._source.read(self._statements.sketch(family))
            keys = zip(*(values(frame[f"k{i}"]) for i in range(len(family[1]))), strict=True)
            cells = list(keys) if family[1] else [()] * len(frame["n"].values)
            place = [_bucket(int(cell)) for cell in frame["cell"].values]
            number = {self._selections[equation].key: equation for equation in equations}
            added = np.array([[int(v) for v in frame[x].values] for x in "nabc"], np.int64)
            for column, (key, bucket) in enumerate(zip(cells, place, strict=True)):
                if key in number:
                    sums[:, number[key], bucket] += added[:, column]
            for equation in equations:
                sums[:, equation] = sums[:, number[self._selections[equation].key]]
        return Sketches(tuple(sums), PIECE_LIMITS)

    @cached_property
    def totals(self) -> NDArray[Any]:
        """The total of the fingerprints of all records, for each equation."""
        kind = object if self.count > MAX_ADDED_FINGERPRINTS else np.int64
        sums = (each.sum(axis=1).astype(kind) for each in self.sketches.sums)
        count, high, low, small = sums
        total: NDArray[Any] = (
            (((high << LOWER_PIECE_BITS) + low) << SECOND_LANE_BITS) + small
        ) + count
        return total


def _bucket(cell: int) -> int:
    """The number of a bucket: the level is written as a power of two."""
    return (cell // BUCKETS_PER_LEVEL).bit_length() * BUCKETS_PER_LEVEL + cell % BUCKETS_PER_LEVEL
