"""Sums that a scan adds up: what is asked of them before they are answered, and how it is found.

A plain sum is known by the total of its records' numbers and by which records of the sample are
in it; a weighted one, or one over several columns, is written out. The row space asks for
coefficients on earlier pivots, nearly all of them in the sample, and for an unknown in which a new
sum differs from the old ones: in the sample first, else among the records of the sum if they are
few, else through the whole table, a window at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from casemate.audit.online_fingerprints import BITS, FingerprintedTable, among, between
from casemate.query.expression import TRUE, Expression
from casemate.solve.equation import Equation
from casemate.solve.primes import RandomBytes
from casemate.solve.summed_space import Candidates, Names, SummedSpace

WINDOW = 2**16
"""About so many records are looked at together where the sample does not help."""

_STRIDE = 0x9E3779B1  # a prime near 2^32 / golden ratio: multiples of it spread evenly
_EVERYWHERE = "v >= 0"


@dataclass(frozen=True, eq=False, repr=False)
class PlainSum:
    """One private column added up over the records of a predicate.

    `looked_at` are the records, beside the sample, of which the scan said whether they are in it;
    `members` are those of both that are.
    """

    table: FingerprintedTable
    column: int
    predicate: Expression
    size: int
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
        found = mine & np.isin(numbers, self.members)
        known = (numbers < self.table.below) | np.isin(numbers, self.looked_at) | ~mine
        if not known.all():
            where, held = self.table.members([self.predicate], among(names[~known]))
            found |= mine & np.isin(numbers, where[held[:, 0]])
        return found.astype(np.int8)

    def on_sample(self, column: int) -> NDArray[Any]:
        """Its coefficients of the sample's unknowns in one column."""
        return self._sampled if column == self.column else np.zeros_like(self._sampled)

    @cached_property
    def _sampled(self) -> NDArray[np.int8]:
        return np.isin(self.table.sample, self.members).astype(np.int8)


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
        place = np.searchsorted(self.names, names)
        there = place < len(self.names)
        there[there] = self.names[place[there]] == names[there]
        found[there] = self.values[place[there]]
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
    ) -> Iterator[Candidates]:
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
    ) -> Iterator[Candidates]:
        """Records of the sample, beginning elsewhere each turn, more and more at a time."""
        names = self.table.sample | column << BITS
        own, lines = asked.on_sample(column), [each.on_sample(column) for each in kept]
        begin = turn * _STRIDE % max(1, len(names))
        for part in _parts(begin, len(names)):
            kept_there = _columns([line[part] for line in lines], len(names[part]))
            yield Candidates(names[part], own[part], kept_there)

    def _read(
        self,
        column: int,
        asked: AskedSum,
        kept: Sequence[AskedSum],
        condition: str,
        within: Expression = TRUE,
    ) -> Candidates:
        """Records of a condition: the engine says which of the plain sums each is in."""
        sums = [asked, *kept]
        plain = {i: s for i, s in enumerate(sums) if isinstance(s, PlainSum) and s.column == column}
        predicates = [each.predicate for each in plain.values()]
        numbers, held = self.table.members(predicates, condition, within)
        names = numbers | column << BITS
        by_engine = dict(zip(plain, held.T.astype(np.int8), strict=True))
        lines = [by_engine[i] if i in by_engine else each.on(names) for i, each in enumerate(sums)]
        return Candidates(names, lines[0], _columns(lines[1:], len(names)))


def _parts(begin: int, count: int) -> Iterator[slice]:
    """All of so many places, beginning with one of them."""
    for first, stop in ((begin, count), (0, begin)):
        start, size = first, 64
        while start < stop:
            yield slice(start, min(start + size, stop))
            start, size = start + size, min(4 * size, 1024)


def _columns(lines: Sequence[NDArray[Any]], count: int) -> NDArray[Any]:
    """Lines as columns; there may be none."""
    return np.stack(lines, axis=1) if lines else np.zeros((count, 0), np.int8)


class ScannedSums:
    """The sums answered so far about a table that is read by scans."""

    def __init__(
        self, table: FingerprintedTable, columns: int, random: RandomBytes | None = None
    ) -> None:
        self._space = SummedSpace[AskedSum](TableUnknowns(table, columns), random)
        self._table = table
        self._last: tuple[tuple[AskedSum, ...], SummedSpace[AskedSum]] | None = None

    @property
    def rank(self) -> int:
        """How many independent sums were answered."""
        return self._space.rank

    @property
    def outside(self) -> Names:
        """The numbers of earlier pivots that are not in the sample."""
        numbers = np.unique(self._space.pivots & (2**BITS - 1))
        return numbers[numbers >= self._table.below]

    def would_expose(self, asked: tuple[AskedSum, ...]) -> bool:
        """Whether answering all of these would determine anything that is not determined."""
        if len(asked) == 1:
            return bool(self._space.would_determine(asked[0]))
        later = self._space.copy()
        exposing = any(later.add(each).determined for each in asked)
        self._last = None if exposing else (asked, later)
        return exposing

    def record(self, asked: tuple[AskedSum, ...]) -> None:
        """Take note of sums that were answered."""
        if self._last is not None and self._last[0] is asked:
            self._space = self._last[1]
        else:
            for each in asked:
                self._space.add(each)
        self._last = None
