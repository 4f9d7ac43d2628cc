"""People with several rows in extremes and medians: one value for many rows, or one total.

A column that is constant for each person has one unknown for all rows of a person. The extremes of
some rows are those of their people; in a median, somebody with two rows counts twice, which is
written as a second unknown that is known to be equal. In a column that varies, the total of a
person's rows is an unknown of its own, and audited like any other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order_nodes import Node
from casemate.published.people import People
from casemate.solve.order import audit_order
from casemate.solve.order_limit import Limit
from casemate.solve.order_question import Domain, Exact, Kind, Question
from casemate.solve.order_verdict import Exposed, Undecided, Verdicts


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """What was published about one private number of every record, and the custodian's values."""

    questions: Sequence[Question]
    domain: Domain
    truth: Sequence[Exact]
    extras: Mapping[int, Node] = field(default_factory=dict)  # other secrets, behind the records

    def asked(self) -> set[int]:
        """The positions of records that any question is about."""
        asked = {int(each) for question in self.questions for each in question.members}
        return asked - self.extras.keys()

    def settled(self, place: int) -> bool:
        """Whether a value was known before anything was published."""
        low = self.domain.low[place]
        return low is not None and low == self.domain.high[place]

    def possible(self) -> bool:
        """Whether the table's own values have the right type and lie within their bounds."""
        ends = zip(self.truth, self.domain.low, self.domain.high, strict=True)
        return all(
            (low is None or low <= value)
            and (high is None or value <= high)
            and not (self.domain.integer and value.denominator != 1)
            for value, low, high in ends
        )


class Copies:
    """Which unknowns stand for some rows; those that repeat another are remembered in `tied`."""

    def __init__(self, name: str, people: People) -> None:
        self._owners, self._people = people.owners(name), people
        self.tied: dict[int, int] = {}

    def members(self, kind: Kind, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The unknowns of which an aggregate of these rows is the same aggregate."""
        if self._owners is None or not len(rows):
            return rows
        owners, counts = np.unique(self._owners[rows], return_counts=True)
        # a median stays the same when everything is there equally many times more
        times = counts // np.gcd.reduce(counts) if kind == "median" else np.ones_like(counts)
        found = list(owners.tolist())
        for owner, number in zip(owners.tolist(), times.tolist(), strict=True):
            more = self._people.rows(owner)[1:number].tolist()
            self.tied.update(dict.fromkeys(more, owner))
            found += more
        return np.array(sorted(found), np.int64)

    def ties(self) -> Iterator[Question]:
        """That each copy is equal to what it repeats."""
        for copy, owner in self.tied.items():
            yield Question.of("sum", [owner, copy], 0, coefficients=[1, -1])


def audit_totals(
    name: str, log: Log, verdicts: Verdicts, people: People, limit: Limit | None
) -> tuple[Mapping[int, tuple[Fraction, str]], set[int]]:
    """The totals that follow, by the person's first row, and whose total was not decided."""
    left = [] if name in people.constant else _left(log, verdicts, people)
    if not left:
        return {}, set()
    longer = _with_totals(log, [people.rows(first) for first in left])
    found = audit_order(longer.questions, longer.domain, longer.truth, limit=limit)
    about = zip(left, found.records[len(log.truth) :], strict=True)
    exposed, undecided = {}, set()
    for first, verdict in about:
        if isinstance(verdict, Exposed):
            exposed[first] = Fraction(verdict.value), verdict.proof
        elif isinstance(verdict, Undecided):
            undecided.add(first)
    return exposed, undecided


def _left(log: Log, verdicts: Verdicts, people: People) -> list[int]:
    """People with several rows, all asked about and not all exposed, whose total may be fixed.

    A second table in which a total differs shows it to be free.
    """
    asked, free = log.asked(), set[int]()
    for witness in verdicts.witnesses:
        changes: dict[int, Exact] = {}
        for place, value in zip(witness.positions.tolist(), witness.values, strict=True):
            if place in log.extras:
                continue
            first = int(people.first[place])
            changes[first] = changes.get(first, 0) + value - log.truth[place]
        free.update(first for first, change in changes.items() if change)
    known = set(verdicts.positions(Exposed))
    several = set(np.flatnonzero(people.sizes > 1).tolist()) - free
    rows = {first: set(people.rows(first).tolist()) for first in sorted(several)}
    return [first for first, own in rows.items() if own <= asked and not own <= known]


def _with_totals(log: Log, people: Sequence[NDArray[np.int64]]) -> Log:
    """The log with one more unknown for each person: the total of these rows."""
    size, domain = len(log.truth), log.domain
    questions = [
        Question.of("sum", [*rows.tolist(), size + k], 0, coefficients=[*[1] * len(rows), -1])
        for k, rows in enumerate(people)
    ]
    low = tuple(_added([domain.low[row] for row in rows]) for rows in people)
    high = tuple(_added([domain.high[row] for row in rows]) for rows in people)
    totals = [sum((log.truth[row] for row in rows), Fraction(0)) for rows in people]
    wider = Domain((*domain.low, *low), (*domain.high, *high), domain.integer, domain.distinct)
    return Log([*log.questions, *questions], wider, [*log.truth, *totals], log.extras)


def _added(ends: Sequence[Exact | None]) -> Exact | None:
    """The sum of bounds; None where one is absent."""
    known = [end for end in ends if end is not None]
    return sum(known, Fraction(0)) if len(known) == len(ends) else None
