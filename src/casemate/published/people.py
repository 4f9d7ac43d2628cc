"""Whose row each record is.

A person may have several rows. A private column that is the same in all of them is then one
unknown for the person, not one for each row; a column that varies has one for each row, and what
the rows of one person add up to is a secret too. In stacked tables, whose rows are versions of a
person's record, equal values of a person are one unknown, and others are their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.errors import Misconfigured
from casemate.query.engines import PROTECTED, RECORD_COLUMN, tables
from casemate.query.language import Scalar
from casemate.query.records import factorise
from casemate.table import PerPerson, Policy
from casemate.table.sources import Series, Source, quote_name


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """The records in order, and for each of them the position of its person's first row.

    `keys` names the person of each record; it is None where one record is one person. A record
    whose person is missing is a person of its own. `shared` gives for the private columns that
    are the same in several rows of a person the first row that has each record's value. `called`
    is what a record is called where keys are hidden, if that is not its place from 1.
    """

    records: NDArray[Any]
    first: NDArray[np.int64]
    keys: Series | None = None
    shared: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    called: Sequence[Scalar] | None = None

    @classmethod
    def of(cls, records: NDArray[Any], policy: Policy, source: Source) -> "People":
        """The people of a table whose records, in order, are these."""
        alone = np.arange(len(records), dtype=np.int64)
        if policy.person in (None, policy.key):
            return cls(records, alone)
        keys = _cells(str(policy.person), source)

        def first_alike(*cells: Series) -> NDArray[np.int64]:
            codes, _ = factorise([keys, *cells], len(records))
            _, start, place = np.unique(codes, return_index=True, return_inverse=True)
            return np.where(keys.missing, alone, start[place]).astype(np.int64)

        first = first_alike()
        shared = {
            column.name: first_alike(_cells(column.name, source)) if column.kept else first
            for column in policy.private()
            if column.per_person is PerPerson.CONSTANT
        }
        return cls(records, first, keys, shared)

    def __repr__(self) -> str:
        """How many there are; never who they are."""
        return f"<People: {len(self.records)} records of {len(np.unique(self.first))} people>"

    def record(self, place: int) -> Scalar:
        """The identity of the record at a position."""
        return plain(self.records[place])

    def person(self, place: int) -> Scalar:
        """Whose the record at a position is; None where the table does not say."""
        if self.keys is None:
            return self.record(place)
        return None if self.keys.missing[place] else plain(self.keys.values[place])

    def owners(self, column: str) -> NDArray[np.int64] | None:
        """Where a column is constant, the position that stands for each record's person."""
        return self.shared.get(column)

    @property
    def constant(self) -> frozenset[str]:
        """The private columns that are the same in several rows of a person."""
        return frozenset(self.shared)

    def row(self, place: int) -> Scalar:
        """What the record at a position is called where keys are hidden."""
        return place + 1 if self.called is None else self.called[place]

    def place(self, record: Scalar) -> int | None:
        """The position of a record, or None if there is none of that name."""
        if self.records.dtype != np.int64:
            named = self._places
            return named.get(record, named.get(str(record)))
        if isinstance(record, str) and record.isdecimal():
            record = int(record)
        if not isinstance(record, int):
            return None
        found = int(np.searchsorted(self.records, record))
        return found if found < len(self.records) and self.records[found] == record else None

    def first_of(self, person: Scalar) -> int | None:
        """The position of a person's first row, or None if there is none of that name."""
        return self.place(person) if self.keys is None else self._people.get(person)

    def rows(self, first: int) -> NDArray[np.int64]:
        """The positions of all rows of the person whose first row is there."""
        return self._positions(None, first)

    def copies(self, column: str, owner: int) -> NDArray[np.int64]:
        """The positions of all records for whose value of a column that position stands."""
        return self._positions(column, owner)

    @cached_property
    def alone(self) -> bool:
        """Whether nobody has more than one row."""
        return bool((self.sizes < 2).all())

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows the person has whose first row is there; 0 at other rows."""
        return np.bincount(self.first, minlength=len(self.first)).astype(np.int64)

    def _positions(self, column: str | None, first: int) -> NDArray[np.int64]:
        """The positions of which that one is the first, by person or by the value of a column."""
        if column not in self._orders:
            owner = self.first if column is None else self.shared[column]
            ends = np.cumsum(np.bincount(owner, minlength=len(owner)))
            self._orders[column] = np.argsort(owner, kind="stable"), np.append(0, ends)
        order, starts = self._orders[column]
        return order[starts[first] : starts[first + 1]]

    @cached_property
    def _orders(self) -> dict[str | None, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        return {}

    @cached_property
    def _places(self) -> dict[Scalar, int]:
        return {self.record(place): place for place in range(len(self.records))}

    @cached_property
    def _people(self) -> dict[Scalar, int]:
        return {self.person(place): place for place in np.flatnonzero(self.sizes).tolist()}


def plain(value: Any) -> Scalar:
    """A member of an array as a Python value."""
    found: Scalar = value.item() if isinstance(value, np.generic) else value
    return found


def _cells(column: str, source: Source) -> Series:
    """A column, in the order of the records."""
    written = f"{quote_name(PROTECTED)}.{quote_name(column)}"
    frame = source.read(f"SELECT {RECORD_COLUMN} AS r, {written} AS p FROM {tables(source, ())}")
    order = np.argsort(frame["r"].values, kind="stable")
    return Series(frame["p"].values[order], frame["p"].missing[order])


# Columns that the policy calls constant ---------------------------------------------------------


def check_constant(columns: Iterable[str], people: People, policy: Policy, source: Source) -> None:
    """Refuse a table in which a column that the policy calls constant differs within a person."""
    kept = {column.name for column in policy.private() if column.kept}
    names = sorted(people.constant.intersection(columns) - kept)
    if policy.person is None or not names:
        return
    columns_read = ", ".join(
        f"count(DISTINCT t.{quote_name(name)}) AS d{i}, count(t.{quote_name(name)}) AS n{i}"
        for i, name in enumerate(names)
    )
    person = f"t.{quote_name(policy.person)}"
    inner = (
        f"SELECT count(*) AS n, {columns_read} FROM {source.relation()} AS t "
        f"WHERE {person} IS NOT NULL GROUP BY {person}"
    )
    counts = ", ".join(
        f"count(*) FILTER (WHERE d{i} > 1 OR (n{i} > 0 AND n{i} < n)) AS c{i}"
        for i in range(len(names))
    )
    frame = source.read(f"SELECT {counts} FROM ({inner}) AS q")
    for i, name in enumerate(names):
        if int(frame[f"c{i}"].values[0]):
            raise Misconfigured(
                f"the policy says that {name} is constant for each person, and in the table it "
                f"differs between rows of one person; correct the table, or declare the column "
                f'per_person = "varying"'
            )
