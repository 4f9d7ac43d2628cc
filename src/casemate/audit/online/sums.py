"""Sums, minima and maxima before they are answered: would they determine a value or a total?

Whether a sum determines anything follows from who is added up, and never from the answer; so a
refusal says nothing that the asker did not know. `OnlineSums` decides about sums, written out or
known by what a scan adds up of a `FingerprintedTable`; `would_expose` decides about minima and
maxima, of which `Components` says which are linked.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online.questions import ExtremeQuestion, Family
from casemate.audit.online.summed_space import CandidateUnknowns, Combined, Names, SummedSpace
from casemate.audit.order.online import OnlineExtremes
from casemate.errors import Misconfigured, Refused
from casemate.exact import (
    WIDE_PRIME_BITS,
    Added,
    Equation,
    RandomBytes,
    RowSpace,
    random_below,
)
from casemate.query import Join
from casemate.query.engines import Key, group_by, pieces, rows, values
from casemate.query.language import TRUE, Expression
from casemate.query.sketch import LANE_BITS, HashKeys, hash_lanes
from casemate.table.sources import Frame, Source

# Which unknowns are linked by the questions about them ------------------------------------------
# A question costs the number of its unknowns, and of the components it joins; unknowns that nobody
# asked about cost nothing.


Mark = TypeVar("Mark")


class Components(Generic[Mark]):
    """Components of linked unknowns, each with the mark of the questions that link it.

    >>> parts: Components[str] = Components(4)
    >>> parts.join(np.array([0, 1]), "sums")
    >>> parts.join(np.array([2, 3]), "extremes")
    >>> parts.marks(np.array([1, 2])) == {"sums", "extremes"}
    True
    """

    def __init__(self, size: int) -> None:
        self._label = np.full(size, -1, np.int64)  # -1: nobody asked about it
        self._parent: list[int] = []
        self._mark: list[Mark] = []

    def marks(self, members: NDArray[np.int64]) -> set[Mark]:
        """The marks of the components that these unknowns belong to."""
        return {self._mark[root] for root in self._roots(members)}

    def join(self, members: NDArray[np.int64], mark: Mark) -> None:
        """Link these unknowns by a question with this mark."""
        root = len(self._parent)
        self._parent.append(root)
        self._mark.append(mark)
        for other in self._roots(members):
            self._parent[other] = root
        self._label[members] = root

    def component(self, member: int) -> int:
        """A number that all unknowns of a component share, for as long as nothing is joined."""
        return self._root(int(self._label[member]))

    def copy(self) -> "Components[Mark]":
        """Another one with the same components, which goes its own way from here."""
        twin: Components[Mark] = Components(0)
        twin._label = self._label.copy()
        twin._parent, twin._mark = list(self._parent), list(self._mark)
        return twin

    def _roots(self, members: NDArray[np.int64]) -> set[int]:
        labels = np.unique(self._label[members]).tolist()
        return {self._root(label) for label in labels if label >= 0}

    def _root(self, label: int) -> int:
        while self._parent[label] != label:
            self._parent[label] = self._parent[self._parent[label]]  # shorter next time
            label = self._parent[label]
        return label


# Records known by secret fingerprints -----------------------------------------------------------


RECORD_NUMBER_BITS = 56
"""Bits of a record's number; those above it in a name say which column is meant."""

MAX_COLUMNS = 2 ** (62 - RECORD_NUMBER_BITS)
SAMPLE_RECORDS = 4096
"""About so many records are named one by one whenever a question adds them up."""

MAX_SCANS_REMEMBERED = 256
"""So many scans are remembered."""

_ALL = 2**RECORD_NUMBER_BITS
_MASK = _ALL - 1


Place = tuple[tuple[Join, ...], Expression, tuple[Expression, ...]]
"""Joins, predicate and keys: what the sums of one scan share."""


@dataclass(frozen=True, eq=False, repr=False)
class CellTally:
    """One cell of a scan: the sum of its records' numbers, and those of the sample, in order."""

    numbers: int
    members: Names


class FingerprintedTable:
    """Records by secret fingerprints, which the engine adds up beside an answer.

    It reads records by their numbers; nothing private is ever among what it reads.

    A record is named by a keyed hash of its identity, 56 bits, which only the engine computes. The
    fingerprint of its unknown in private column c is that number times a secret random factor of
    the column, so that one sum in SQL serves every column.

    Assumes that the hash of records xor a secret key is like random numbers to whoever does not
    know the key, in this sense: a combination of records that is not zero adds up to 0 modulo a
    prime with a chance near 1/p. Nobody sees a fingerprint or a total, only decisions. On DuckDB
    it is the engine's own fast hash (a mixing of 64 bits made for hash tables, not for
    cryptography); elsewhere the one of `query.sketch.hashed`. Where the assumption fails, a
    question that would expose somebody could be taken for one that follows from earlier ones;
    records chosen without knowing the key do not make it fail.
    """

    def __init__(
        self, source: Source, records: NDArray[np.generic], random: RandomBytes | None = None
    ) -> None:
        self.source = source
        self._whole = records.dtype == np.int64
        self._keys = HashKeys.draw(random)
        self._factors: list[int] = [
            1 + random_below(2**WIDE_PRIME_BITS - 1, random) for _ in range(MAX_COLUMNS)
        ]
        self.below = min(_ALL, _ALL * SAMPLE_RECORDS // max(1, len(records)))
        self.size = len(records)
        self.sample, _ = self.members((), f"v < {self.below}")
        self._known: dict[Place, dict[Key, CellTally]] = {
            ((), TRUE, ()): {(): CellTally(self._everybody(), self.sample)}
        }

    def fingerprint(self, name: int) -> int:
        """The secret random number of an unknown."""
        return self.column_total(name & _MASK, name >> RECORD_NUMBER_BITS)

    def column_total(self, total: int, column: int) -> int:
        """The fingerprints of unknowns of one column whose records add up to this."""
        return self._factors[column] * total

    def with_numbers(self, inner: str, columns: Sequence[str]) -> str:
        """A SELECT of some columns and the number v of the records r of another SELECT."""
        kept = "".join(f"{column}, " for column in columns)
        if self.source.dialect == "duckdb":
            return f"SELECT {kept}{self._by_duckdb()} AS v FROM ({inner}) AS h"
        lanes = hash_lanes(inner, self._keys, self.source.dialect, self._whole, columns)
        low_bits = RECORD_NUMBER_BITS - LANE_BITS
        number = f"(y << {low_bits}) + (w & {2**low_bits - 1})"
        return f"SELECT {kept}{number} AS v FROM ({lanes}) AS l"

    def _by_duckdb(self) -> str:
        one, other = (int(each) for each in self._keys.lanes[:, 0])
        secret = (one << LANE_BITS) + other
        mixed = f"xor(r, {secret})" if self._whole else f"xor(hash(r), CAST({secret} AS UBIGINT))"
        return f"CAST(hash({mixed}) >> {64 - RECORD_NUMBER_BITS} AS BIGINT)"

    # What earlier scans said ----------------------------------------------------------------------

    def known_cells(self, place: Place) -> dict[Key, CellTally] | None:
        """The cells of a predicate and keys, where they were scanned before."""
        return self._known.get(place)

    def keep(self, place: Place, cells: dict[Key, CellTally]) -> None:
        """Remember the cells of a scan, and forget the oldest where there are many."""
        self._known[place] = cells
        if len(self._known) > MAX_SCANS_REMEMBERED:
            del self._known[next(iter(self._known))]

    def _everybody(self) -> int:
        inner = self.with_numbers(rows(self.source, (), TRUE, {}), [])
        total = values(self.source.read(group_by(inner, [], {"t": "sum(v)"}))["t"])[0]
        return int(str(total or 0))

    def check(self, members: Iterable[Names]) -> None:
        """Refuse to go on where a scan has met records that the table did not have at first."""
        found = np.concatenate([self.sample[:0], *members])
        if not is_in(found, self.sample).all():
            raise Misconfigured(
                "the table's records are not those it had at first, and an audit is about one "
                "snapshot; start a new one"
            )

    # Single records -----------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> Names:
        """The number of every record, in the order of the records."""
        inner = rows(self.source, (), TRUE, {})
        frame = self.source.read(self.with_numbers(inner, ["r"]))
        found: Names = frame["v"].values[np.argsort(frame["r"].values, kind="stable")]
        return found

    def members(
        self, predicates: Sequence[Expression], condition: str, within: Expression = TRUE
    ) -> tuple[Names, NDArray[np.bool_]]:
        """Records of a condition on v, in order, and which of the predicates hold for each."""
        parts = [self._read(each, condition, within) for each in pieces([*predicates, TRUE])]
        names = np.sort(parts[0]["v"].values)
        found = np.zeros((len(names), 0), np.bool_)
        for part in parts:
            flags = [_true_flags(part, f"b{i}") for i in range(len(part) - 1)]
            order = np.argsort(part["v"].values, kind="stable")
            found = np.concatenate([found, np.stack(flags, axis=1)[order]], axis=1)
        return names, found[:, : len(predicates)]

    def _read(self, predicates: Sequence[Expression], condition: str, within: Expression) -> Frame:
        columns = {f"b{i}": each for i, each in enumerate(predicates)}
        inner = self.with_numbers(rows(self.source, (), within, columns), list(columns))
        return self.source.read(f"SELECT * FROM ({inner}) AS n WHERE {condition}")


def is_in(names: Names, ordered: Names) -> NDArray[np.bool_]:
    """Which of some names are among others, which are in order."""
    if not len(ordered):
        return np.zeros(len(names), np.bool_)
    place = np.minimum(np.searchsorted(ordered, names), len(ordered) - 1)
    return np.asarray(ordered[place] == names, np.bool_)


def among(names: Names) -> str:
    """The condition on v for records of these names."""
    return f"v IN ({', '.join(map(str, names & _MASK))})"


def between(low: int, high: int) -> str:
    """The condition on v for records from one number to just below another."""
    return f"v >= {low} AND v < {high}"


def _true_flags(frame: Frame, name: str) -> NDArray[np.bool_]:
    series = frame[name]
    flags: NDArray[np.bool_] = series.values.astype(np.bool_) & ~series.missing
    return flags


# Sums that a scan adds up -----------------------------------------------------------------------


WINDOW_RECORDS = 2**16
"""About so many records are looked at together where the sample does not help."""

_SAMPLE_STRIDE = 0x9E3779B1  # a prime near 2^32 / golden ratio: multiples of it spread evenly
_EVERYWHERE = "v >= 0"


@dataclass(frozen=True, eq=False, repr=False)
class PlainSum:
    """One private column added up over the records of a predicate.

    `looked_at` are the records, beside the sample, of which the scan said whether they are in it;
    `members` are those of both that are; each in order.
    """

    table: FingerprintedTable
    column: int
    predicate: Expression
    numbers: int  # the sum of the numbers of its records
    members: Names
    looked_at: Names

    @property
    def total(self) -> int:
        """The sum of its fingerprints."""
        return self.table.column_total(self.numbers, self.column)

    def on(self, names: Names) -> NDArray[Any]:
        """Its coefficients, 0 or 1, of these unknowns."""
        numbers = names & (2**RECORD_NUMBER_BITS - 1)
        mine = names >> RECORD_NUMBER_BITS == self.column
        found = mine & is_in(numbers, self.members)
        known_members = (numbers < self.table.below) | is_in(numbers, self.looked_at) | ~mine
        if not known_members.all():
            where, held = self.table.members([self.predicate], among(names[~known_members]))
            found |= mine & is_in(numbers, where[held[:, 0]])
        return np.asarray(found, np.int8)

    def on_sample(self, column: int) -> NDArray[Any]:
        """Its coefficients of the sample's unknowns in one column."""
        return self._sampled if column == self.column else np.zeros_like(self._sampled)

    @property
    def size(self) -> float:
        """About how many records it adds up, as the sample has it."""
        sampled = int(self._sampled.sum())
        return sampled * self.table.size / max(1, len(self.table.sample))

    @cached_property
    def _sampled(self) -> NDArray[np.int8]:
        return is_in(self.table.sample, self.members).astype(np.int8)


@dataclass(frozen=True, eq=False, repr=False)
class ListedSum:
    """A sum whose coefficients are written out, in the order of the names of its unknowns."""

    table: FingerprintedTable
    names: Names
    values: NDArray[Any]
    total: int

    @classmethod
    def of(cls, equation: Equation, table: FingerprintedTable) -> Self:
        """An equation over the unknowns as they are numbered by column and record."""
        columns, places = np.divmod(equation.columns, table.size)
        numbers, total = table.numbers[places], 0
        for column in np.unique(columns).tolist():
            part = Equation(places[columns == column], equation.values[columns == column])
            total += table.column_total(part.total(table.numbers.astype(np.uint64)), column)
        names = (columns << RECORD_NUMBER_BITS) | numbers
        order = np.argsort(names)
        return cls(table, names[order], equation.values[order], total)

    def on(self, names: Names) -> NDArray[Any]:
        """Its coefficients of these unknowns."""
        found = np.zeros(len(names), self.values.dtype)
        there = is_in(names, self.names)
        found[there] = self.values[np.searchsorted(self.names, names[there])]
        return found

    def on_sample(self, column: int) -> NDArray[Any]:
        """Its coefficients of the sample's unknowns in one column."""
        return self.on(self.table.sample | column << RECORD_NUMBER_BITS)


AskedSum = PlainSum | ListedSum


class TableUnknowns:
    """The unknowns of some private columns of a table, and a way through them.

    A plain sum is known by the total of its records' numbers and by which records of the sample are
    in it; a weighted one, or one over several columns, is written out. The row space asks for
    coefficients on earlier pivots, nearly all of them in the sample, and for an unknown in which a
    new sum differs from the old ones: in the sample first, else among the records of the sum if
    they are few, else through the whole table, a window at a time.
    """

    def __init__(self, table: FingerprintedTable, columns: int) -> None:
        self.table = table
        self._columns = range(columns)

    def fingerprint(self, name: int) -> int:
        """The secret random number of an unknown."""
        return self.table.fingerprint(name)

    def candidates(
        self, asked: AskedSum, kept: Sequence[AskedSum], turn: int, _combined: Combined
    ) -> Iterator[CandidateUnknowns]:
        """The sample, then the records of a sum over few, then everybody."""
        own = [asked.column] if isinstance(asked, PlainSum) else []
        order = [*own, *(each for each in self._columns if each not in own)]
        for column in order:
            yield from self._sample_candidates(column, asked, kept, turn)
        if isinstance(asked, PlainSum) and asked.size <= WINDOW_RECORDS:
            yield self._read(asked.column, asked, kept, _EVERYWHERE, asked.predicate)
        step = max(1, 2**RECORD_NUMBER_BITS * WINDOW_RECORDS // max(1, self.table.size))
        for column in order:
            for low in range(0, 2**RECORD_NUMBER_BITS, step):
                yield self._read(column, asked, kept, between(low, low + step))

    def _sample_candidates(
        self, column: int, asked: AskedSum, kept: Sequence[AskedSum], turn: int
    ) -> Iterator[CandidateUnknowns]:
        """Records of the sample, those of the sum first, beginning elsewhere each turn."""
        own, lines = asked.on_sample(column), [each.on_sample(column) for each in kept]
        names = self.table.sample | column << RECORD_NUMBER_BITS
        for places in (np.flatnonzero(own), np.flatnonzero(own == 0)):
            for part in _parts(turn * _SAMPLE_STRIDE % max(1, len(places)), len(places)):
                some = places[part]
                there = _columns([line[some] for line in lines], len(some))
                yield CandidateUnknowns(names[some], own[some], there)

    def _read(
        self,
        column: int,
        asked: AskedSum,
        kept: Sequence[AskedSum],
        condition: str,
        within: Expression = TRUE,
    ) -> CandidateUnknowns:
        """Records of a condition: the engine says which of the plain sums each is in."""
        sums = [asked, *kept]
        plain = {i: s for i, s in enumerate(sums) if isinstance(s, PlainSum) and s.column == column}
        predicates = [each.predicate for each in plain.values()]
        numbers, flags = self.table.members(predicates, condition, within)
        names = numbers | column << RECORD_NUMBER_BITS
        by_engine = dict(zip(plain, flags.T.astype(np.int8), strict=True))
        lines = [by_engine[i] if i in by_engine else each.on(names) for i, each in enumerate(sums)]
        return CandidateUnknowns(names, lines[0], _columns(lines[1:], len(names)))


def _parts(begin: int, count: int) -> Iterator[slice]:
    """All of so many places, beginning with one of them."""
    for first, stop in ((begin, count), (0, begin)):
        start, size = first, 4
        while start < stop:
            yield slice(start, min(start + size, stop))
            start, size = start + size, min(8 * size, 1024)


def _columns(lines: Sequence[NDArray[Any]], count: int) -> NDArray[Any]:
    """Lines as columns; there may be none."""
    return np.stack(lines, axis=1) if lines else np.zeros((count, 0), np.int8)


# Sums answered ----------------------------------------------------------------------------------


class EquationSpace(Protocol):
    """The combinations of some equations, written out or known by sums."""

    @property
    def rank(self) -> int:
        """How many of the equations are independent."""

    def would_determine(self, equation: Any, /) -> tuple[int, ...]:
        """The further unknowns that would be determined if this equation were added."""

    def add(self, equation: Any, /) -> Added:
        """Add an equation and say what it did."""

    def copy(self) -> "EquationSpace":
        """Another one with the same equations, which goes its own way from here."""


Asked = tuple[Equation, ...] | tuple[AskedSum, ...]
View = Callable[[Any], Any]
"""A sum as one space sees it."""


@dataclass(frozen=True, eq=False)
class _ConsideredSums:
    """Sums as each space sees them, and the spaces with them added if they are several."""

    asked: Asked
    seen: list[list[Any]]
    spaces: list[EquationSpace] | None
    exposing: bool


class OnlineSums:
    """The sums answered so far over some unknowns, in one space or in several views of them."""

    def __init__(
        self,
        spaces: Sequence[EquationSpace],
        views: Sequence[View],
        table: FingerprintedTable | None = None,
    ) -> None:
        self.table = table  # where records are known by what scans add up
        self._spaces, self._views = list(spaces), views
        self._last: _ConsideredSums | None = None

    @classmethod
    def by_records(cls, persons: NDArray[np.int64], random: RandomBytes | None = None) -> Self:
        """Over unknowns of which `persons` names the first one of the same person.

        Where a person has several of them, their total is a secret too. It is looked for in a
        second space, in which it stands in the place of the person's first unknown.
        """
        several = bool((persons != np.arange(len(persons))).any())
        views: list[View] = [lambda equation: equation]
        views += [_Totals(persons)] if several else []
        return cls([RowSpace(len(persons), random) for _ in views], views)

    @classmethod
    def by_scans(
        cls, table: FingerprintedTable, columns: int, random: RandomBytes | None = None
    ) -> Self:
        """Over the unknowns of a table of many records."""

        def as_listed_sum(asked: Equation | AskedSum) -> AskedSum:
            return ListedSum.of(asked, table) if isinstance(asked, Equation) else asked

        return cls([SummedSpace(TableUnknowns(table, columns), random)], [as_listed_sum], table)

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return self._spaces[0].rank

    @property
    def outside(self) -> Names:
        """The numbers of earlier pivots of a scanned table that are not in its sample."""
        pivots = [each.pivots for each in self._spaces if isinstance(each, SummedSpace)]
        numbers = np.unique(np.concatenate([np.zeros(0, np.int64), *pivots]) & _MASK)
        far: Names = numbers if self.table is None else numbers[numbers >= self.table.below]
        return far

    def would_expose(self, asked: Asked) -> bool:
        """Whether answering all of these would determine anything that is not determined."""
        return self._consider_once(asked).exposing

    def record(self, asked: Asked) -> None:
        """Take note of sums that were answered."""
        considered = self._consider_once(asked)
        if considered.spaces is not None:
            self._spaces = considered.spaces
        else:
            for space, seen in zip(self._spaces, considered.seen, strict=True):
                for each in seen:
                    space.add(each)
        self._last = None

    def _consider_once(self, asked: Asked) -> _ConsideredSums:
        """Sums asked about and then recorded are looked at once."""
        if self._last is None or self._last.asked is not asked:
            self._last = self._consider(asked)
        return self._last

    def _consider(self, asked: Asked) -> _ConsideredSums:
        seen = [list(map(view, asked)) for view in self._views]
        if len(asked) == 1:
            pairs = zip(self._spaces, seen, strict=True)
            exposing = any(space.would_determine(each[0]) for space, each in pairs)
            return _ConsideredSums(asked, seen, None, exposing)
        spaces = [space.copy() for space in self._spaces]
        pairs = zip(spaces, seen, strict=True)
        exposing = any(space.add(each).determined for space, some in pairs for each in some)
        return _ConsideredSums(asked, seen, None if exposing else spaces, exposing)


class _Totals:
    """Sums with x1 = total - x2 - ... - xk put in for the first unknown x1 of every person."""

    def __init__(self, persons: NDArray[np.int64]) -> None:
        self._persons, self._order = persons, np.argsort(persons, kind="stable")
        self._start = np.searchsorted(persons[self._order], np.arange(len(persons) + 1))

    def __call__(self, equation: Equation) -> Equation:
        columns, values = equation.columns, equation.values.astype(object)
        first = self._persons[columns] == columns
        begin, end = self._start[columns[first]] + 1, self._start[columns[first] + 1]
        length = end - begin
        places = np.arange(length.sum()) + np.repeat(begin - np.cumsum(length) + length, length)
        further = np.concatenate([columns, self._order[places]])
        changes = np.concatenate([values, -np.repeat(values[first], length)])
        distinct, place = np.unique(further, return_inverse=True)
        totals = np.zeros(len(distinct), object)
        np.add.at(totals, place, changes)
        kept = totals != 0
        return Equation(distinct[kept], totals[kept])


# Several minima and maxima at once --------------------------------------------------------------
# One of them is decided by trying every kind of answer (`OnlineExtremes`). Several that are linked
# are decided together, by trying every answer of the first before the second, and so on.


MAX_ANSWER_COMBINATIONS = 1_000
"""Combinations of answers up to which linked questions are decided together."""


def would_expose(
    asked: Sequence[ExtremeQuestion], past: OnlineExtremes, parts: Components[Family]
) -> bool:
    """Whether some answers that are consistent with the past would determine a record.

    Raises Refused where there are too many to try.
    """
    if any(past.would_expose(each.kind, each.members.tolist()) for each in asked):
        return True
    return any(
        _together(group, past) for group in _linked_questions(asked, parts) if len(group) > 1
    )


def _linked_questions(
    asked: Sequence[ExtremeQuestion], parts: Components[Family]
) -> list[list[ExtremeQuestion]]:
    """The questions, those together that earlier questions or common records link."""
    joined = parts.copy()
    for question in asked:
        joined.join(question.members, Family.EXTREMES)
    groups: dict[int, list[ExtremeQuestion]] = {}
    for question in asked:
        groups.setdefault(joined.component(int(question.members[0])), []).append(question)
    return list(groups.values())


def _together(asked: Sequence[ExtremeQuestion], past: OnlineExtremes) -> bool:
    """Whether some answers to all of these questions would determine a record."""
    everybody = np.unique(np.concatenate([each.members for each in asked])).tolist()
    known = len(past.answers(everybody))
    if math.prod(known + 2 * place for place in range(len(asked))) > MAX_ANSWER_COMBINATIONS:
        raise Refused(
            "earlier answers link its minima and maxima in too many ways to decide them together; "
            "ask for one of them at a time"
        )
    return _some_answers_expose(asked, past, everybody)


def _some_answers_expose(
    asked: Sequence[ExtremeQuestion], past: OnlineExtremes, everybody: list[int]
) -> bool:
    """Try every kind of answer to the first before the rest; the last tries its own."""
    first, *rest = asked
    members = first.members.tolist()
    if past.would_expose(first.kind, members):
        return True
    for answer in past.answers(everybody) if rest else ():
        if past.is_possible(first.kind, members, answer):
            later = past.copy()
            later.record(first.kind, members, answer)
            if _some_answers_expose(rest, later, everybody):
                return True
    return False
