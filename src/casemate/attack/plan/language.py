"""The queries that a plan may use: one range or one equality on each of some public columns.

A query is a conjunction of conditions on public columns; ordered ones (numbers, dates) may be
asked for a range, every column for a single value, and NULL satisfies no condition. Identifier
columns are never used. What a query selects is a set of records, kept as the bits of one integer,
so that sets of ten thousand records meet in a microsecond.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.published import plain
from casemate.query.engines import PROTECTED
from casemate.query.language import Scalar
from casemate.query.parse import dialect_of
from casemate.query.records import Records
from casemate.table import ORDERED, Column, ColumnType, Policy, Role
from casemate.table.sources import Series, Source, quote_name

Span = tuple[int, int]
"""The first and the last of the values that a condition lets through, by their places."""

Box = Mapping[int, Span]
"""A query: the values let through on each axis that has a condition; the others are free."""

Bits = int
"""A set of records: bit i stands for the record in place i."""

PREFIX_CACHE_BYTES = 2**26


@dataclass(frozen=True, eq=False, repr=False)
class Axis:
    """A public column as queries see it: its values in order, and each record's place among them.

    A record whose value is NULL has the place -1.
    """

    column: Column
    values: tuple[Scalar, ...]
    places: NDArray[np.int64]
    ordered: bool

    @property
    def last(self) -> int:
        """The place of the largest value."""
        return len(self.values) - 1

    @cached_property
    def has_null(self) -> bool:
        """Whether some record's value is missing."""
        return bool((self.places < 0).any())

    @cached_property
    def before(self) -> NDArray[np.int64]:
        """How many records have a value that comes before each place, and how many have any."""
        counts = np.bincount(self.places[self.places >= 0], minlength=len(self.values))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def count(self, span: Span) -> int:
        """How many records a condition on this axis alone selects."""
        return int(self.before[span[1] + 1] - self.before[span[0]])

    def spans(self, least: int) -> Iterator[Span]:
        """The conditions on this axis that select at least so many records."""
        if not self.ordered:
            yield from ((i, i) for i in np.flatnonzero(np.diff(self.before) >= least).tolist())
            return
        ends = np.searchsorted(self.before, self.before[:-1] + max(1, least), side="left")
        for low, end in enumerate(ends.tolist()):
            yield from ((low, high - 1) for high in range(end, self.last + 2))

    def beside(self, own: int, spans: set[Span], coarse: bool) -> set[Span]:
        """Conditions that begin and end where some do, at one place, and at a few others."""
        spans = spans | {(own, own)} if own >= 0 else spans
        others = np.linspace(0, self.last + 1, COARSE_CUTS).astype(int).tolist() if coarse else []
        if not self.ordered:
            return spans | {(i, i) for i in range(min(len(others), self.last + 1))}
        cuts = {0, self.last + 1, *others, *(end for a, b in spans for end in (a, b + 1))}
        return {(a, b - 1) for a in cuts for b in cuts if a < b}


@dataclass(eq=False, repr=False)
class Language:
    """The public columns of one table, and the sets of records that conditions on them select."""

    axes: tuple[Axis, ...]
    records: NDArray[Any]
    whole: bool = True  # no public column is left out
    _kept: OrderedDict[tuple[int, int], Bits] = field(default_factory=OrderedDict)

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.records)

    @cached_property
    def everybody(self) -> Bits:
        """All records."""
        return (1 << self.count) - 1

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """A number for each record, the same for records that agree in every public column."""
        alike = np.zeros(self.count, np.int64)
        for axis in self.axes:
            coded = alike * (len(axis.values) + 1) + axis.places + 1
            alike = np.unique(coded, return_inverse=True)[1].astype(np.int64)
        return alike

    @cached_property
    def alone(self) -> Bits:
        """The records that differ from every other record in some public column."""
        sizes = np.bincount(self.kinds)
        return pack_bits(sizes[self.kinds] == 1)

    def twins(self, place: int) -> list[int]:
        """The other records that agree with one in every public column."""
        return [i for i in np.flatnonzero(self.kinds == self.kinds[place]).tolist() if i != place]

    def between(self, number: int, span: Span) -> Bits:
        """The records whose value on an axis lies between two places."""
        return self._below(number, span[1] + 1) ^ self._below(number, span[0])

    def members(self, box: Box) -> Bits:
        """The records that a query selects."""
        found = self.everybody
        for number, span in box.items():
            found &= self.between(number, span)
        return found

    def _below(self, number: int, place: int) -> Bits:
        """The records whose value is there and comes before a place."""
        if place <= 0:
            return 0
        key = number, place
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        places = self.axes[number].places
        found = pack_bits((places >= 0) & (places < place))
        self._kept[key] = found
        if len(self._kept) * (self.count // 8 + 1) > PREFIX_CACHE_BYTES:
            self._kept.popitem(last=False)
        return found


def read_language(policy: Policy, source: Source) -> Language:
    """The language of a table: its public columns, read once."""
    columns = [column for column in policy.columns if column.role is Role.PUBLIC]
    if not columns:
        raise Misconfigured(
            "no column is public, so no query can tell records apart; declare in the policy which "
            "columns everybody knows"
        )
    records = Records(source)
    written = {
        f"v{i}": f"{quote_name(PROTECTED)}.{quote_name(c.name)}" for i, c in enumerate(columns)
    }
    read = records.read(written)
    axes = [_axis(column, read[f"v{i}"]) for i, column in enumerate(columns)]
    used = tuple(axis for axis in axes if axis is not None)
    return Language(used, records.names, whole=len(used) == len(axes))


def _axis(column: Column, series: Series) -> Axis | None:
    """A column with its values in order; None where SQL cannot write all of them."""
    there = ~series.missing
    distinct, found = np.unique(series.values[there], return_inverse=True)
    if distinct.dtype == np.float64 and not np.isfinite(distinct).all():
        return None
    places = np.full(len(there), -1, np.int64)
    places[there] = found
    return Axis(column, tuple(map(plain, distinct)), places, column.type in ORDERED)


# Sets of records as integers --------------------------------------------------------------------


def pack_bits(chosen: NDArray[np.bool_]) -> Bits:
    """The set of records that are chosen.

    >>> pack_bits(np.array([True, False, True]))
    5
    """
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def unpack_bits(bits: Bits, count: int) -> NDArray[np.bool_]:
    """For each of so many records, whether it is in the set."""
    raw = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(raw, count=count, bitorder="little").astype(np.bool_)


def lowest(bits: Bits) -> int:
    """The first record of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def record_places(bits: Bits) -> Iterable[int]:
    """The records of a set, in order."""
    size = max(1, bits.bit_length())
    return np.flatnonzero(unpack_bits(bits, size)).tolist()


# Queries as text, in the dialect that is asked for ----------------------------------------------


@dataclass(frozen=True)
class Writer:
    """How queries are written: in which dialect, and from which table."""

    dialect: str
    table: str = "t"

    def condition(self, axis: Axis, span: Span) -> str:
        """One condition in SQL."""
        name = self.name(axis.column.name)
        low, high = (self.constant(axis.values[place], axis.column.type) for place in span)
        if span[0] == span[1]:
            return f"{name} = {low}"
        if span[0] == 0 and span[1] < axis.last:
            return f"{name} <= {high}"
        if span[1] == axis.last and span[0] > 0:
            return f"{name} >= {low}"
        return f"{name} BETWEEN {low} AND {high}"

    def query(self, shown: str, conditions: Iterable[str]) -> str:
        """A statement that shows one number."""
        where = " AND ".join(conditions)
        return f"SELECT {shown} FROM {self.table}{where and f' WHERE {where}'}"

    def name(self, name: str) -> str:
        """A column's name, quoted."""
        if '"' in dialect_of(self.dialect).tokenizer_class.IDENTIFIERS:
            return quote_name(name)
        return f"`{name.replace('`', '``')}`"

    def constant(self, value: Scalar, kind: ColumnType | None = None) -> str:
        """A constant of a column's type; a date is a text, which every dialect compares with it."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float) or kind is ColumnType.DOUBLE:
            number = repr(float(str(value)))
            return number if "e" in number else f"{number}e0"
        if isinstance(value, str | date):
            return self._text(str(value))
        return str(value) if isinstance(value, int) else f"{value:f}"

    def _text(self, value: str) -> str:
        escapes = dialect_of(self.dialect).tokenizer_class.STRING_ESCAPES
        if "\\" in escapes:
            value = value.replace("\\", "\\\\")
        return "'" + value.replace("'", "''" if "'" in escapes else "\\'") + "'"


# Every set of records that can be selected, where they are few; else some of them ---------------


MOST_SELECTIONS = 2_000
"""The most selections that are enumerated."""

COARSE_CUTS = 5
"""Places at which coarse ranges begin and end, or single values that are tried."""

Choices = Mapping[int, Sequence[Span]]
"""The conditions to choose from on each axis."""


@dataclass(frozen=True, eq=False, repr=False)
class Selections:
    """Different sets of records, and a query for each; `complete` if there are no others."""

    boxes: tuple[Box, ...]
    sets: tuple[Bits, ...]
    complete: bool

    def matrix(self, count: int) -> NDArray[np.bool_]:
        """A row for each selection, a column for each record."""
        rows = [unpack_bits(each, count) for each in self.sets]
        return np.array(rows, np.bool_).reshape(len(rows), count)


def enumerate_selections(
    language: Language, least: int, most: int = MOST_SELECTIONS
) -> Selections | None:
    """All selections of at least so many records; None if there are more than can be kept."""
    choices: dict[int, Sequence[Span]] = {}
    for number, axis in enumerate(language.axes):
        choices[number] = list(islice(axis.spans(least), most + 1))
        if len(choices[number]) > most:  # each of them is a selection of its own
            return None
    found = selections(language, choices, least, most)
    return found if found.complete else None


def selections(
    language: Language, choices: Choices, least: int, most: int = MOST_SELECTIONS
) -> Selections:
    """The selections of at least so many records by the given conditions, the first so many."""
    found: dict[Bits, Box] = {language.everybody: {}}
    if language.count < least:
        return Selections((), (), True)
    for number, spans in choices.items():
        sets = [(span, language.between(number, span)) for span in spans]
        for others, box in list(found.items()):
            for span, inside in sets:
                both = others & inside
                if both not in found and both.bit_count() >= least:
                    found[both] = {**box, number: span}
            if len(found) > most:
                return Selections(tuple(found.values())[:most], tuple(found)[:most], False)
    return Selections(tuple(found.values()), tuple(found), True)


def choices_around(language: Language, target: int, boxes: Iterable[Box]) -> Choices:
    """Conditions beside one record, and like those of some queries, or coarse ones without any."""
    used = [box for box in boxes if box]
    found: dict[int, Sequence[Span]] = {}
    for number, axis in enumerate(language.axes):
        spans = {box[number] for box in used if number in box}
        if spans or not used:
            found[number] = sorted(axis.beside(int(axis.places[target]), spans, coarse=not used))
    return found
