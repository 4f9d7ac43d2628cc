"""Published sums one by one, and whose value each of them gives away: one scan for each.

The scan asks for the records of a statement's predicate and reads nothing private. They are kept as
one bit for each record, and keys of GROUP BY as one column of codes for all statements that have
them, so that coefficients on earlier pivots, and on candidates for a new one, are looked up in
memory: nothing is asked twice of the database.

Guarantee  That of `online.summed_space`, with independent random fingerprints of 50 bits.
Cost       The scan, and the algebra of `exact.PivotBasis` at the present rank. Memory: 16 bytes a
           record, 1 for every 8 predicates, and 4 for every list of keys.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online.questions import shown_keys
from casemate.audit.online.scan import KEYS
from casemate.audit.online.summed_space import CandidateUnknowns, Combined, Names, SummedSpace
from casemate.exact import RandomBytes
from casemate.published import Publication, ShownColumn, plain_sum_term
from casemate.query import Function, Select
from casemate.query.engines import Key, rows
from casemate.query.language import TRUE, Expression
from casemate.query.records import Records, Term
from casemate.query.sketch import cells_of
from casemate.table import ColumnType, Policy
from casemate.table.sources import Source

HALF_BITS = 25
"""Fingerprints are two halves of so many bits: doubles add up 2^28 of them exactly."""

SCANS_PER_BYTE = 8
TRIED_MEMBERS = 8
"""About so many records of a sum are looked at before all records are searched."""

FIRST_SEARCHED_RECORDS, MOST_SEARCHED_RECORDS = 2**13, 2**16
"""So many records are searched together for one in which a sum differs from earlier ones."""

MAX_ADDED_TERMS = 512
"""So many terms of a combination, below 2^54 each, are added up before they are reduced."""

Mask = NDArray[np.bool_]
CodesOf = Callable[[slice], NDArray[Any]]
"""A code of each record of a span."""


@dataclass(frozen=True, eq=False, repr=False)
class CellSum:
    """A private number added up over the records of one scan, in one cell of its keys."""

    memberships: "Memberships"
    scan: int
    keys: int  # which list of keys; 0 is none
    cell: int
    total: int

    @property
    def listed(self) -> tuple[int, int, int]:
        """Where it is: the scan, the list of keys, and the cell."""
        return self.scan, self.keys, self.cell

    def on(self, names: Names) -> NDArray[Any]:
        """Its coefficients, 0 or 1, of these records."""
        return self.memberships.are_in(self, names).astype(np.int8)


class Memberships:
    """Which records are in which scans and cells, in memory."""

    def __init__(self, source: Source, random: RandomBytes | None = None) -> None:
        self._records = Records(source)
        drawn = np.frombuffer((random or os.urandom)(8 * self._records.count), np.uint64)
        low, high = drawn % np.uint64(2**HALF_BITS), drawn >> np.uint64(64 - HALF_BITS)
        self._halves = np.stack([low, high]).astype(np.float64)
        self._bytes: list[NDArray[np.uint8]] = []  # bit s % 8 of number s // 8 is for scan s
        self._scans: dict[Expression, int] = {}
        self._codes: list[NDArray[np.int32]] = [np.zeros(self._records.count, np.int32)]
        self._listed: tuple[Sequence[CellSum], NDArray[np.int64]] = (), np.zeros((0, 3), np.int64)
        self._counts = [1]  # of the cells of each list of keys
        self._cells: dict[tuple[Expression, ...], tuple[int, tuple[Key, ...]]] = {(): (0, ((),))}

    def sums(self, predicate: Expression, keys: tuple[Expression, ...]) -> dict[Key, CellSum]:
        """What is added up over each cell that anybody is in."""
        scan, members = self._scan(predicate)
        place, cells = self._coded(keys)
        if not keys:
            low, high = (float(half[members].sum()) for half in self._halves)
            return {(): CellSum(self, scan, 0, 0, _joined(low, high))} if len(members) else {}
        codes = self._codes[place][members]
        low, high = (
            np.bincount(codes, half[members], len(cells)).tolist() for half in self._halves
        )
        return {
            cells[cell]: CellSum(self, scan, place, cell, _joined(low[cell], high[cell]))
            for cell in np.flatnonzero(np.bincount(codes)).tolist()
        }

    def are_in(self, asked: CellSum, places: Names | slice) -> Mask:
        """Which of some records a sum adds up."""
        inside = self._bits(asked.scan, places)
        return inside & (self._codes[asked.keys][places] == asked.cell) if asked.keys else inside

    # What `SummedSpace` asks ----------------------------------------------------------------------

    def fingerprint(self, name: int) -> int:
        """The secret random number of a record."""
        return _joined(*self._halves[:, name].tolist())

    def candidates(
        self, asked: CellSum, kept: Sequence[CellSum], turn: int, combined: Combined
    ) -> Iterator[CandidateUnknowns]:
        """Some records of the sum; else, of all, one in which it is not what is combined."""
        listed = self._list(kept)
        members = np.flatnonzero(self.are_in(asked, slice(0, self._records.count)))
        step = len(members) // TRIED_MEMBERS + 1
        some = members[turn % step :: step]
        yield CandidateUnknowns(some, asked.on(some), self._coefficients(listed, some))
        terms = self._terms(listed[combined.slots], combined.weights)
        for span in _spans(self._records.count, turn):
            own = self.are_in(asked, span)
            other = np.full(len(own), combined.prime, np.uint64) - own
            for number, (codes, table) in enumerate(terms, start=1):
                other += table[codes(span)]
                if number % MAX_ADDED_TERMS == 0:
                    other %= np.uint64(combined.prime)
            differing = np.flatnonzero(other % np.uint64(combined.prime))
            if len(differing):
                place = differing[:1] + span.start
                yield CandidateUnknowns(place, asked.on(place), self._coefficients(listed, place))

    def _list(self, kept: Sequence[CellSum]) -> NDArray[np.int64]:
        """Where each of the kept sums is; those that were kept before were listed before."""
        before, listed = self._listed
        known = listed if before is kept else listed[:0]
        further = [each.listed for each in kept[len(known) :]]
        listed = np.concatenate([known, np.array(further, np.int64).reshape(-1, 3)])
        self._listed = kept, listed
        return listed

    def _terms(
        self, listed: NDArray[np.int64], weights: NDArray[np.uint64]
    ) -> list[tuple[CodesOf, NDArray[np.uint64]]]:
        """A combination as what is added up at every record, by each of its codes."""
        scan, keys, cell = listed.T
        plain = np.zeros((len(self._bytes), SCANS_PER_BYTE), np.uint64)
        bare = keys == 0
        np.add.at(plain, np.divmod(scan[bare], SCANS_PER_BYTE), weights[bare])
        keyed: dict[tuple[int, int], NDArray[np.uint64]] = {}
        for place in np.flatnonzero(~bare & (weights > 0)).tolist():
            which = int(scan[place]), int(keys[place])
            if which not in keyed:  # one more, the last, stands for whoever is not in the scan
                keyed[which] = np.zeros(self._counts[which[1]] + 1, np.uint64)
            keyed[which][cell[place]] = weights[place]
        bytes_used = np.flatnonzero(plain.any(axis=1)).tolist()
        found = [(self._bytes[b].__getitem__, BITS @ plain[b]) for b in bytes_used]
        return [*found, *((partial(self._in_cell, *which), t) for which, t in keyed.items())]

    def _in_cell(self, scan: int, keys: int, span: slice) -> NDArray[np.int64]:
        """The cell of records that are in a scan, and -1 for the others."""
        return np.where(self._bits(scan, span), self._codes[keys][span], -1)

    def _coefficients(self, listed: NDArray[np.int64], places: Names) -> NDArray[np.uint8]:
        """Which of some records are in which of some sums: records x sums."""
        scan, keys, cell = listed.T
        packed = np.stack([each[places] for each in self._bytes], axis=1)
        found = np.unpackbits(packed, axis=1, bitorder="little")[:, scan]
        for each in np.unique(keys[keys > 0]).tolist():
            mine = np.flatnonzero(keys == each)
            found[:, mine] &= self._codes[each][places][:, None] == cell[mine]
        return found

    # Scans ----------------------------------------------------------------------------------------

    def _scan(self, predicate: Expression) -> tuple[int, Names]:
        """The records of a predicate: read once, and then known."""
        if predicate in self._scans:
            scan = self._scans[predicate]
            return scan, np.flatnonzero(self._bits(scan, slice(0, self._records.count)))
        source, scan = self._records.source, len(self._scans)
        found = source.read(rows(source, (), predicate, {}))["r"].values
        members = self._records.places(found)
        if scan % SCANS_PER_BYTE == 0:
            self._bytes.append(np.zeros(self._records.count, np.uint8))
        self._bytes[-1][members] |= np.uint8(1 << scan % SCANS_PER_BYTE)
        self._scans[predicate] = scan
        return scan, members

    def _bits(self, scan: int, places: Names | slice) -> Mask:
        byte, bit = divmod(scan, SCANS_PER_BYTE)
        return np.asarray(self._bytes[byte][places] >> np.uint8(bit) & np.uint8(1), np.bool_)

    def _coded(self, keys: tuple[Expression, ...]) -> tuple[int, tuple[Key, ...]]:
        """The codes of a list of keys by their number, and the cells they stand for."""
        if keys not in self._cells:
            found = cells_of(keys, self._records)
            self._cells[keys] = len(self._codes), found.keys
            self._codes.append(found.codes)
            self._counts.append(len(found.keys))
        return self._cells[keys]


BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(
    np.uint64
)
"""The bits of every byte, lowest first."""


def _spans(count: int, turn: int) -> Iterator[slice]:
    """All records in spans that become longer, beginning elsewhere each turn."""
    size, begin = FIRST_SEARCHED_RECORDS, turn * FIRST_SEARCHED_RECORDS % max(1, count)
    for first, stop in ((begin, count), (0, begin)):
        start = first
        while start < stop:
            yield slice(start, min(start + size, stop))
            start, size = start + size, min(2 * size, MOST_SEARCHED_RECORDS)


def _joined(low: float, high: float) -> int:
    return int(low) + (int(high) << HALF_BITS)


# Statements -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeterminedPlace:
    """A record's value that has become determined; the record is a place, from 0."""

    place: int
    column: str


class FollowedSums:
    """The plain sums published so far; each private number has a space of its own."""

    def __init__(
        self,
        source: Source,
        random: RandomBytes | None = None,
        incomplete: Collection[str] = (),
    ) -> None:
        self._source, self._random, self._incomplete = source, random, incomplete
        self._memberships = Memberships(source, random)
        self._spaces: dict[str, SummedSpace[CellSum]] = {}

    @property
    def columns(self) -> frozenset[str]:
        """The private numbers that were added up."""
        return frozenset(self._spaces)

    def add(self, found: Publication, policy: Policy) -> list[DeterminedPlace]:
        """Take the sums of one statement, all of which `is_plain`, and say what they determine."""
        determined: dict[DeterminedPlace, None] = {}
        for column in found.columns:
            term = plain_sum_term(column, policy, self._incomplete)
            if term is not None and term.unknown is not None:
                name = term.unknown.column
                for place in self._take(self._space(name), column.select, term):
                    determined[DeterminedPlace(place, name)] = None
        return list(determined)

    def _take(self, space: SummedSpace[CellSum], select: Select, term: Term) -> Iterator[int]:
        sums = self._memberships.sums(term.predicate, term.keys)
        if select.having != TRUE:
            shown = shown_keys(select, self._source)
            sums = {key: each for key, each in sums.items() if key in shown}
        for each in sums.values():
            yield from space.add(each).determined

    def _space(self, column: str) -> SummedSpace[CellSum]:
        if column not in self._spaces:
            self._spaces[column] = SummedSpace(self._memberships, self._random)
        return self._spaces[column]


def is_plain(found: Publication, policy: Policy) -> bool:
    """Whether all that a statement tells is exact sums and averages over publicly chosen records.

    The table's own, that is: answers that a log gives may contradict each other.
    """
    if found.ordered or found.there or found.told or found.read_out:
        return False
    return all(_is_plain_column(column, policy) for column in found.columns)


def _is_plain_column(column: ShownColumn, policy: Policy) -> bool:
    term, select = plain_sum_term(column, policy), column.select
    if term is None or term.unknown is None or column.form.rounded or column.within:
        return False
    private = policy.column(term.unknown.column)
    if private is None or private.type is ColumnType.DOUBLE:
        return False  # whose sums are rounded
    if select.having != TRUE and not all(key.type in KEYS for key in select.keys):
        return False
    return column.form.divisor is None or _counts_rows(column)


def _counts_rows(column: ShownColumn) -> bool:
    """Whether a sum is divided by the number of its rows: not 0 where anybody is added up."""
    summed = column.select.aggregates[column.form.weights[0][0]]
    counted = column.select.aggregates[column.form.divisor or 0]
    return counted == replace(summed, function=Function.COUNT, argument=None)
