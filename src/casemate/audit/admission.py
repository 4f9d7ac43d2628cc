"""Which rows can be published together, one after the other: by rank, and by room to move.

A row is admitted if, with those before it, its numbers determine nobody and leave everybody whose
value is at an end of its range room to move away from it. For numbers that need not be whole that
is all there is to it, so a row that is turned away once can never come back while the others stay:
one pass gives a choice to which no row can be added, and the order of the pass decides how many it
has. Large rows first loses least. What only whole numbers or extremes give away is not seen here,
and the room to move is computed in doubles: the audit of what is chosen decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from casemate.audit.stakes import Stakes
from casemate.audit.statements import Withheld
from casemate.solve.equation import Equation
from casemate.solve.primes import WIDE, random_prime
from casemate.solve.rank import RowSpace

SEVERAL_ORDERS = 3_000
"""Rows up to which more than one order is tried, where nobody needs room to move."""

SEVERAL_PROGRAMS = 300
"""The same where somebody does: each row is then a linear program."""


@dataclass(frozen=True)
class Offer:
    """A row, the equations that it publishes, and how many records they are about."""

    row: Withheld
    equations: tuple[int, ...]
    size: int


def chosen(stakes: Stakes, offers: Sequence[Offer]) -> list[Offer]:
    """As many rows as one of several orders lets be published together, in their own order."""
    best: list[Offer] = []
    most = SEVERAL_ORDERS if stakes.freedom() is None else SEVERAL_PROGRAMS
    for order in _orders(offers)[: 1 if len(offers) > most else None]:
        admission = Admission(stakes)
        kept = [offers[i] for i in order if admission.admit(offers[i])]
        best = max(best, kept, key=lambda some: (len(some), sum(each.size for each in some)))
        if len(best) == len(offers):
            break
    rows = {offer.row for offer in best}
    return [offer for offer in offers if offer.row in rows]


def _orders(offers: Sequence[Offer]) -> list[list[int]]:
    """Large rows first, by classes of size or by size itself, and as they come."""
    places = range(len(offers))
    return [
        sorted(places, key=lambda i: -offers[i].size.bit_length()),
        sorted(places, key=lambda i: -offers[i].size),
        list(places),
    ]


class Admission:
    """The rows published so far, and whether one more may be."""

    def __init__(self, stakes: Stakes) -> None:
        self._stakes, self._freedom = stakes, stakes.freedom()
        self._space = RowSpace(stakes.columns, primes=(random_prime(WIDE),))

    def admit(self, offer: Offer) -> bool:
        """Publish a row, unless that would expose somebody."""
        exact = [self._stakes.lines[i] for i in offer.equations if self._stakes.is_exact(i)]
        lines = [line for line in exact if len(line.columns)]
        if self._expose(lines):
            return False
        if self._freedom is not None:
            held = [self._stakes.held(i) for i in offer.equations]
            if not self._freedom.admit(held):
                return False
        for line in lines:
            self._space.add(line)
        return True

    def _expose(self, lines: Sequence[Equation]) -> bool:
        """Whether some more equations say somebody's value, one by one or together."""
        if any(self._exposes(self._space, line) for line in lines):
            return True
        space = self._space.copy() if len(lines) > 1 else self._space
        for line, following in pairwise(lines):
            space.add(line)
            if self._exposes(space, following):
                return True
        return False

    def _exposes(self, space: RowSpace, line: Equation) -> bool:
        return self._stakes.exposes(space.would_determine(line), space.determined)
