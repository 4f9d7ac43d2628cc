"""The queries that a plan may use: one range or one equality on each of some public columns.

A query is a conjunction of conditions on public columns; ordered ones (numbers, dates) may be
asked for a range, every column for a single value, and NULL satisfies no condition. Identifier
columns are never used. What a query selects is a set of records, kept as the bits of one integer,
so that sets of ten thousand records meet in a microsecond.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.published.people import plain
from casemate.query.expression import Scalar
from casemate.query.membership import Records
from casemate.query.render import PROTECTED, quote
from casemate.table.domain import ORDERED
from casemate.table.schema import Column, Policy, Role
from casemate.table.source import Series, Source

Span = tuple[int, int]
"""The first and the last of the values that a condition lets through, by their places."""

Box = Mapping[int, Span]
"""A query: the values let through on each axis that has a condition; the others are free."""

Bits = int
"""A set of records: bit i stands for the record in place i."""

MOST_KEPT = 2**26  # bytes of prefixes that are kept


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
        return packed(sizes[self.kinds] == 1)

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
        found = packed((places >= 0) & (places < place))
        self._kept[key] = found
        if len(self._kept) * (self.count // 8 + 1) > MOST_KEPT:
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
    written = {f"v{i}": f"{quote(PROTECTED)}.{quote(c.name)}" for i, c in enumerate(columns)}
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


def packed(chosen: NDArray[np.bool_]) -> Bits:
    """The set of records that are chosen.

    >>> packed(np.array([True, False, True]))
    5
    """
    return int.from_bytes(np.packbits(chosen, bitorder="little").tobytes(), "little")


def unpacked(bits: Bits, count: int) -> NDArray[np.bool_]:
    """For each of so many records, whether it is in the set."""
    raw = np.frombuffer(bits.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(raw, count=count, bitorder="little").astype(np.bool_)


def lowest(bits: Bits) -> int:
    """The first record of a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def one_by_one(bits: Bits) -> Iterable[int]:
    """The records of a set, in order."""
    size = max(1, bits.bit_length())
    return np.flatnonzero(unpacked(bits, size)).tolist()
