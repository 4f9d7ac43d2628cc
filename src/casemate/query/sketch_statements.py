"""The statements of an audit that stays where the data is: sketches, look-ups and scans."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from casemate.query.engine import RECORD_COLUMN, engine_of, grouped, rows, tables
from casemate.query.expression import (
    TRUE,
    Call,
    Expression,
    Literal,
    Operation,
    Scalar,
    all_of,
)
from casemate.query.render import plain, render
from casemate.query.sketch_hash import SMALL, Keys, hashed
from casemate.query.sketch_selection import Family, Selection
from casemate.table.schema import ColumnType
from casemate.table.source import RECORD, Frame, Source

PIECE = 16
"""Bits of the lower piece of the first lane; the upper has 15, and the second lane gives 7."""

BUCKETS = 16
LEVELS = 21
_BUCKET_BITS = BUCKETS.bit_length() - 1
LIMITS = (2**15, 2**PIECE, 2**SMALL)
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
        listed = ", ".join(map(_written, self.records))
        return f"(SELECT * FROM {self.source.relation()} AS o WHERE o.{RECORD} IN ({listed}))"

    def fields(self, public: str | None = None) -> Mapping[str, ColumnType]:
        """The columns of a relation and their types."""
        return self.source.fields(public)

    def read(self, sql: str) -> Frame:
        """Run one SELECT and return its columns."""
        return self.source.read(sql)

    def close(self) -> None:
        """Nothing is held here."""


def _written(record: Scalar) -> str:
    whole = isinstance(record, int) and not isinstance(record, bool)
    return str(record) if whole else plain(record)


@dataclass(frozen=True, eq=False)
class Statements:
    """SQL over the records of a source and their hashes."""

    source: Source
    keys: Keys
    whole: bool  # whether records are named by whole numbers

    def lanes(self, columns: Sequence[str] = ("r",), source: Source | None = None) -> str:
        """Records, and the two lanes y and w of their hashes."""
        inner = rows(source or self.source, (), TRUE, {})
        return hashed(inner, self.keys, self.source.dialect, self.whole, columns)

    def sketch(self, family: Family) -> str:
        """By cell and bucket: how many records there are, and sums of the pieces of their names."""
        predicate, keys = family
        named = {f"k{i}": key for i, key in enumerate(keys)}
        inner = rows(self.source, (), predicate, named)
        lanes = hashed(inner, self.keys, self.source.dialect, self.whole, list(named))
        level, bucket = f"(w >> {SMALL + _BUCKET_BITS})", f"((w >> {SMALL}) & {BUCKETS - 1})"
        cell = f"({level} & (-{level})) * {BUCKETS} + {bucket} AS cell"
        shown = "".join(f"{name}, " for name in named)
        sums = {"a": f"y >> {PIECE}", "b": f"y & {2**PIECE - 1}", "c": f"w & {2**SMALL - 1}"}
        placed = f"SELECT {shown}{cell}, y, w FROM ({lanes}) AS l"
        results = {name: f"sum({text})" for name, text in sums.items()}
        return grouped(placed, [*named, "cell"], {"n": "count(*)", **results})

    def named(self, lanes: Iterable[int]) -> str:
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
