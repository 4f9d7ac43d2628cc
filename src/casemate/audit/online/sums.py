"""Sums before they are answered: would they determine a value, or what a person's rows add up to?

Whether a sum determines anything follows from who is added up, and never from the answer; so a
refusal says nothing that the asker did not know.

Sums that a scan adds up: what is asked of them before they are answered, and how it is found.

A plain sum is known by the total of its records' numbers and by which records of the sample are
in it; a weighted one, or one over several columns, is written out. The row space asks for
coefficients on earlier pivots, nearly all of them in the sample, and for an unknown in which a new
sum differs from the old ones: in the sample first, else among the records of the sum if they are
few, else through the whole table, a window at a time.

Several minima and maxima at once, before they are answered.

One of them is decided by trying every kind of answer (`OnlineExtremes`). Several that are linked
are decided together, by trying every answer of the first before the second, and so on.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online.fingerprints import BITS, FingerprintedTable, among, between, is_in
from casemate.audit.online.questions import ExtremeQuestion, Family
from casemate.audit.online.summed_space import CandidateUnknowns, Components, Names, SummedSpace
from casemate.audit.order.online import OnlineExtremes
from casemate.errors import Refused
from casemate.exact import Equation, RandomBytes, RowSpace
from casemate.query.language import TRUE, Expression


@dataclass(frozen=True, eq=False)
class _ConsideredSums:
    """Equations as each space sees them, and the spaces with them added if they are several."""

    equations: tuple[Equation, ...]
    seen: list[list[Equation]]
    spaces: list[RowSpace] | None
    exposing: bool


class OnlineSums:
    """The sums answered so far over some unknowns.

    Where a person has several of them, their total is a secret too. It is looked for in a second
    space, in which it stands in the place of the person's first unknown.
    """

    def __init__(self, persons: NDArray[np.int64], random: RandomBytes | None = None) -> None:
        """`persons` names, for each unknown, the first one of the same person."""
        size = len(persons)
        several = bool((persons != np.arange(size)).any())
        self._persons = persons
        self._order = np.argsort(persons, kind="stable")
        self._start = np.searchsorted(persons[self._order], np.arange(size + 1))
        self._spaces = [RowSpace(size, random) for _ in range(2 if several else 1)]
        self._last: _ConsideredSums | None = None

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return self._spaces[0].rank

    def would_expose(self, equations: tuple[Equation, ...]) -> bool:
        """Whether answering all of these would determine anything that is not determined."""
        return self._considered(equations).exposing

    def record(self, equations: tuple[Equation, ...]) -> None:
        """Take note of sums that were answered."""
        considered = self._considered(equations)
        if considered.spaces is not None:
            self._spaces = considered.spaces
        else:
            for space, seen in zip(self._spaces, considered.seen, strict=True):
                for equation in seen:
                    space.add(equation)
        self._last = None

    def _considered(self, equations: tuple[Equation, ...]) -> _ConsideredSums:
        """Sums asked about and then recorded are looked at once."""
        if self._last is None or self._last.equations is not equations:
            self._last = self._consider(equations)
        return self._last

    def _consider(self, equations: tuple[Equation, ...]) -> _ConsideredSums:
        seen = [list(equations)]
        if len(self._spaces) > 1:
            seen.append([self._by_totals(each) for each in equations])
        if len(equations) == 1:
            asked = zip(self._spaces, seen, strict=True)
            exposing = any(space.would_determine(each[0]) for space, each in asked)
            return _ConsideredSums(equations, seen, None, exposing)
        spaces = [space.copy() for space in self._spaces]
        asked = zip(spaces, seen, strict=True)
        exposing = any(_determines(space, each) for space, each in asked)
        return _ConsideredSums(equations, seen, None if exposing else spaces, exposing)

    def _by_totals(self, equation: Equation) -> Equation:
        """The same sum with x1 = total - x2 - ... - xk put in for every first unknown x1."""
        columns, values = equation.columns, equation.values.astype(object)
        first = self._persons[columns] == columns
        begin, end = self._start[columns[first]] + 1, self._start[columns[first] + 1]
        others = self._order[_ranges(begin, end)]
        further = np.concatenate([columns, others])
        changes = np.concatenate([values, -np.repeat(values[first], end - begin)])
        distinct, place = np.unique(further, return_inverse=True)
        totals = np.zeros(len(distinct), object)
        np.add.at(totals, place, changes)
        kept = totals != 0
        return Equation(distinct[kept], totals[kept])


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of several ranges, one after the other.

    >>> _ranges(np.array([3, 9, 5]), np.array([5, 9, 6])).tolist()
    [3, 4, 5]
    """
    length = end - begin
    before = np.cumsum(length) - length
    numbers: NDArray[np.int64] = np.arange(length.sum()) + np.repeat(begin - before, length)
    return numbers


def _determines(space: RowSpace, equations: Sequence[Equation]) -> bool:
    """Add equations until one determines something."""
    return any(space.add(equation).determined for equation in equations)


# Online summed ----------------------------------------------------------------------------------


WINDOW = 2**16
"""About so many records are looked at together where the sample does not help."""

_STRIDE = 0x9E3779B1  # a prime near 2^32 / golden ratio: multiples of it spread evenly
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
        return self.table.scaled(self.numbers, self.column)

    def on(self, names: Names) -> NDArray[Any]:
        """Its coefficients, 0 or 1, of these unknowns."""
        numbers = names & (2**BITS - 1)
        mine = names >> BITS == self.column
        found = mine & is_in(numbers, self.members)
        known = (numbers < self.table.below) | is_in(numbers, self.looked_at) | ~mine
        if not known.all():
            where, held = self.table.members([self.predicate], among(names[~known]))
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
            total += table.scaled(part.total(table.numbers.astype(np.uint64)), column)
        names = (columns << BITS) | numbers
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
        return self.on(self.table.sample | column << BITS)


AskedSum = PlainSum | ListedSum


class TableUnknowns:
    """The unknowns of some private columns of a table, and a way through them."""

    def __init__(self, table: FingerprintedTable, columns: int) -> None:
        self.table = table
        self._columns = range(columns)

    def fingerprint(self, name: int) -> int:
        """The secret random number of an unknown."""
        return self.table.fingerprint(name)

    def candidates(
        self, asked: AskedSum, kept: Sequence[AskedSum], turn: int
    ) -> Iterator[CandidateUnknowns]:
        """The sample, then the records of a sum over few, then everybody."""
        own = [asked.column] if isinstance(asked, PlainSum) else []
        order = [*own, *(each for each in self._columns if each not in own)]
        for column in order:
            yield from self._sampled(column, asked, kept, turn)
        if isinstance(asked, PlainSum) and asked.size <= WINDOW:
            yield self._read(asked.column, asked, kept, _EVERYWHERE, asked.predicate)
        step = max(1, 2**BITS * WINDOW // max(1, self.table.size))
        for column in order:
            for low in range(0, 2**BITS, step):
                yield self._read(column, asked, kept, between(low, low + step))

    def _sampled(
        self, column: int, asked: AskedSum, kept: Sequence[AskedSum], turn: int
    ) -> Iterator[CandidateUnknowns]:
        """Records of the sample, those of the sum first, beginning elsewhere each turn."""
        own, lines = asked.on_sample(column), [each.on_sample(column) for each in kept]
        names = self.table.sample | column << BITS
        for places in (np.flatnonzero(own), np.flatnonzero(own == 0)):
            for part in _parts(turn * _STRIDE % max(1, len(places)), len(places)):
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
        numbers, held = self.table.members(predicates, condition, within)
        names = numbers | column << BITS
        by_engine = dict(zip(plain, held.T.astype(np.int8), strict=True))
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


class OnlineScans:
    """The sums answered so far about a table of many records; the same in use as `OnlineSums`."""

    def __init__(
        self, table: FingerprintedTable, columns: int, random: RandomBytes | None = None
    ) -> None:
        self.table = table
        self._space = SummedSpace[AskedSum](TableUnknowns(table, columns), random)
        self._listed: tuple[tuple[Equation, ...], tuple[AskedSum, ...]] | None = None
        self._last: tuple[tuple[AskedSum, ...], SummedSpace[AskedSum]] | None = None

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return self._space.rank

    @property
    def outside(self) -> Names:
        """The numbers of earlier pivots that are not in the sample."""
        numbers = np.unique(self._space.pivots & (2**BITS - 1))
        far: Names = numbers[numbers >= self.table.below]
        return far

    def would_expose(self, equations: tuple[Equation, ...]) -> bool:
        """Whether answering all of these would determine anything that is not determined."""
        return self.sums_would_expose(self._sums(equations))

    def record(self, equations: tuple[Equation, ...]) -> None:
        """Take note of sums that were answered."""
        self.record_sums(self._sums(equations))

    def _sums(self, equations: tuple[Equation, ...]) -> tuple[AskedSum, ...]:
        """Equations asked about and then recorded are the same sums."""
        if self._listed is None or self._listed[0] is not equations:
            listed = tuple(ListedSum.of(each, self.table) for each in equations)
            self._listed = equations, listed
        return self._listed[1]

    def sums_would_expose(self, asked: tuple[AskedSum, ...]) -> bool:
        """The same of sums that were scanned."""
        if len(asked) == 1:
            return bool(self._space.would_determine(asked[0]))
        later = self._space.copy()
        exposing = any(later.add(each).determined for each in asked)
        self._last = None if exposing else (asked, later)
        return exposing

    def record_sums(self, asked: tuple[AskedSum, ...]) -> None:
        """Take note of sums that were scanned and answered."""
        if self._last is not None and self._last[0] is asked:
            self._space = self._last[1]
        else:
            for each in asked:
                self._space.add(each)
        self._last = self._listed = None


# Online extremes --------------------------------------------------------------------------------


MOST_ANSWERS = 1_000
"""Combinations of answers up to which linked questions are decided together."""


def would_expose(
    asked: Sequence[ExtremeQuestion], past: OnlineExtremes, parts: Components[Family]
) -> bool:
    """Whether some answers that are consistent with the past would determine a record.

    Raises Refused where there are too many to try.
    """
    if any(past.would_expose(each.kind, each.members.tolist()) for each in asked):
        return True
    return any(_together(group, past) for group in _linked(asked, parts) if len(group) > 1)


def _linked(
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
    if math.prod(known + 2 * place for place in range(len(asked))) > MOST_ANSWERS:
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
