"""Maxima and minima as clauses: who can be the one that attains each answer.

Source     source document 002, "Beyond linear queries": MAX and MIN, duplicates allowed.
Guarantee  A record lies between its largest lower and its smallest upper bound. A MAX is attained
           by a member whose upper bound it is, so it is a clause "one of these is at its top"; a
           MIN is a clause about bottoms; nobody is at both, unless the two are equal. A table
           gives all the answers exactly when it satisfies the clauses, so a record is determined
           exactly when one of its literals is true in every solution. With maxima alone no two
           clauses interfere, and that is so only for a clause of a single record.
Cost       Linear in the size of the log; unit propagation is linear too. What it leaves is
           monotone satisfiability, hard in general (max(P) = 1 and min(N) = 0 encode any clause).

Connected parts: records and questions that nothing published links can be judged apart.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.region.second import linked
from casemate.exact import Contradictory, Kind, OrderQuestion

TOP, BOTTOM = 1, -1


@dataclass(frozen=True, eq=False)
class ExtremeClauses:
    """For each extreme, the records that can attain it; entries are sorted by clause.

    `side` is TOP for a maximum and BOTTOM for a minimum. Clauses that a record with equal bounds
    satisfies are left out; `question` says where each of the others came from.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    side: NDArray[np.int64]
    question: NDArray[np.int64]
    start: NDArray[np.int64]
    record: NDArray[np.int64]
    asked: Sequence[OrderQuestion]

    @property
    def clause(self) -> NDArray[np.int64]:
        """The clause of every entry."""
        return np.repeat(np.arange(len(self.side)), np.diff(self.start))

    @cached_property
    def _by_record(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.record, kind="stable")
        counts = np.bincount(self.record, minlength=len(self.low))
        return self.clause[order], np.concatenate([[0], np.cumsum(counts)])

    def of_record(self, record: int) -> list[int]:
        """The clauses that name a record."""
        clauses, start = self._by_record
        found: list[int] = clauses[start[record] : start[record + 1]].tolist()
        return found

    def records_of(self, clause: int) -> list[int]:
        """The records that a clause names."""
        found: list[int] = self.record[self.start[clause] : self.start[clause + 1]].tolist()
        return found

    def named(self, side: int) -> NDArray[np.bool_]:
        """Which records occur in a clause of this side."""
        named = np.zeros(len(self.low), bool)
        named[self.record[self.side[self.clause] == side]] = True
        return named


def clauses_of(
    questions: Sequence[OrderQuestion], low: NDArray[Any], high: NDArray[Any]
) -> ExtremeClauses:
    """The clauses of a log of exact maxima and minima about at least one record each."""
    if any(not len(question.members) for question in questions):
        empty = [place for place, each in enumerate(questions) if not len(each.members)]
        raise Contradictory((empty[0] + 1,))
    record = np.concatenate([np.empty(0, np.int64), *(each.members for each in questions)])
    question = np.repeat(np.arange(len(questions)), [len(each.members) for each in questions])
    answer = np.array([each.low for each in questions], low.dtype)
    side = np.array([TOP if each.kind == "max" else BOTTOM for each in questions], np.int64)
    entry_side, entry_answer = side[question], answer[question]
    low, high = low.copy(), high.copy()
    tops, bottoms = entry_side == TOP, entry_side == BOTTOM
    np.minimum.at(high, record[tops], entry_answer[tops])
    np.maximum.at(low, record[bottoms], entry_answer[bottoms])
    if (low > high).any():
        _name_crossing(questions, int(np.flatnonzero(low > high)[0]))
    bound = np.where(tops, high[record], low[record])
    attains = bound == entry_answer
    _name_unattained(questions, question[attains], high, low)
    satisfied = np.zeros(len(questions), bool)
    satisfied[question[attains & (low == high)[record]]] = True
    keep = attains & ~satisfied[question]
    kept = np.unique(question[keep])
    start = np.concatenate([[0], np.cumsum(np.bincount(question[keep], minlength=len(side))[kept])])
    return ExtremeClauses(low, high, side[kept], kept, start, record[keep], questions)


def _name_crossing(questions: Sequence[OrderQuestion], record: int) -> None:
    """Raise with the maximum and the minimum that leave a record no value."""
    about = [place for place, each in enumerate(questions) if record in each.members]
    maxima = [place for place in about if questions[place].kind == "max"]
    minima = [place for place in about if questions[place].kind == "min"]
    lowest = min(maxima, key=lambda place: questions[place].low, default=None)
    highest = max(minima, key=lambda place: questions[place].low, default=None)
    named = [place + 1 for place in (lowest, highest) if place is not None]
    raise Contradictory(tuple(sorted(named)))


def _name_unattained(
    questions: Sequence[OrderQuestion],
    attained: NDArray[np.int64],
    high: NDArray[Any],
    low: NDArray[Any],
) -> None:
    """Raise if nobody can attain an answer, with the answers that press its members away."""
    reached = np.zeros(len(questions), bool)
    reached[attained] = True
    if not reached.all():
        missing = int(np.flatnonzero(~reached)[0])
        pressing = _pressing(questions, missing, low, high)
        raise Contradictory(tuple(sorted(place + 1 for place in {missing, *pressing})))


def _pressing(
    questions: Sequence[OrderQuestion], place: int, low: NDArray[Any], high: NDArray[Any]
) -> set[int]:
    """One question for each member that is kept from attaining an answer by another answer."""
    question = questions[place]
    ends = high if question.kind == "max" else low
    kept = [record for record in question.members.tolist() if ends[record] != question.low]
    found = {_presses(questions, question.kind, record, ends[record]) for record in kept}
    return {each for each in found if each is not None}


def _presses(questions: Sequence[OrderQuestion], kind: Kind, record: int, end: int) -> int | None:
    """The first question of a kind that gives a record this bound; None if it was declared."""
    same = (place for place, each in enumerate(questions) if (each.kind, each.low) == (kind, end))
    return next((place for place in same if record in questions[place].members), None)


class UnitPropagation:
    """Which literals a set of clauses forces, one clause at a time, and why."""

    def __init__(self, clauses: ExtremeClauses) -> None:
        self._clauses = clauses
        self.forced = np.zeros(len(clauses.low), np.int64)  # TOP, BOTTOM, or 0 for neither
        self.satisfied = np.zeros(len(clauses.side), bool)
        self._left = np.diff(clauses.start)
        self._reason: dict[int, int] = {}
        self._work = deque(np.flatnonzero(self._left == 1).tolist())
        while self._work:
            self._settle(self._work.popleft())

    def _settle(self, clause: int) -> None:
        """Force the last literal of a clause that has only one left."""
        if self.satisfied[clause]:
            return
        side = int(self._clauses.side[clause])
        literals = self._clauses.records_of(clause)
        (record,) = [each for each in literals if self.forced[each] != -side]
        self.forced[record], self._reason[record] = side, clause
        for other in self._clauses.of_record(record):
            if self._clauses.side[other] == side:
                self.satisfied[other] = True
            elif not self.satisfied[other]:
                self._shrink(other)

    def _shrink(self, clause: int) -> None:
        self._left[clause] -= 1
        if self._left[clause] == 1:
            self._work.append(clause)
        elif self._left[clause] == 0:
            raise Contradictory(self._because(clause))

    def _because(self, clause: int) -> tuple[int, ...]:
        """The questions whose answers together leave a clause without literals."""
        clauses, seen, work = self._clauses, {clause}, [clause]
        while work:
            for record in clauses.records_of(work.pop()):
                reason = self._reason.get(record)
                if reason is not None and reason not in seen:
                    seen.add(reason)
                    work.append(reason)
        places = {int(clauses.question[each]) for each in seen}
        for place in tuple(places):
            places |= _pressing(clauses.asked, place, clauses.low, clauses.high)
        return tuple(sorted(place + 1 for place in places))


# Order parts ------------------------------------------------------------------------------------


def parts(clauses: ExtremeClauses, propagation: UnitPropagation) -> list[list[int]]:
    """The clauses that propagation left open, in connected parts."""
    open_clauses = np.flatnonzero(~propagation.satisfied).tolist()
    members = [np.array(clauses.records_of(clause), np.int64) for clause in open_clauses]
    free = [each[propagation.forced[each] == 0] for each in members]
    part = linked(len(clauses.low), free)
    found: dict[int, list[int]] = {}
    for clause, records in zip(open_clauses, free, strict=True):
        found.setdefault(int(part[records[0]]), []).append(clause)
    return list(found.values())
