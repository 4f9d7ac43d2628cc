"""Maxima and minima as clauses: who can attain each answer, and second tables by moves and swaps.

Source     source document 002, "Beyond linear queries": MAX and MIN, duplicates allowed.
Guarantee  A record lies between its largest lower and its smallest upper bound. A MAX is attained
           by a member whose upper bound it is, so it is a clause "one of these is at its top"; a
           MIN is a clause about bottoms; nobody is at both, unless the two are equal. A table
           gives all the answers exactly when it satisfies the clauses, so a record is determined
           exactly when one of its literals is true in every solution. With maxima alone no two
           clauses interfere, and that is so only for a clause of a single record.
Cost       Linear in the size of the log; unit propagation is linear too. What it leaves is
           monotone satisfiability, hard in general (max(P) = 1 and min(N) = 0 encode any clause).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import IntegerCase, OrderFindings
from casemate.audit.region.second import linked_components
from casemate.audit.time_limit import Clock
from casemate.exact import OrderQuestion, integer_array

TOP, BOTTOM = 1, -1


class Contradictory(ValueError):
    """No table gives all the published answers."""


@dataclass(frozen=True, eq=False)
class ExtremeClauses:
    """For each extreme, the records that can attain it; entries are sorted by clause.

    `side` is TOP for a maximum and BOTTOM for a minimum. Clauses that a record with equal bounds
    satisfies are left out.
    """

    low: NDArray[Any]
    high: NDArray[Any]
    side: NDArray[np.int64]
    start: NDArray[np.int64]
    record: NDArray[np.int64]

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

    def occurs_at(self, side: int) -> NDArray[np.bool_]:
        """Which records occur in a clause of this side."""
        named = np.zeros(len(self.low), bool)
        named[self.record[self.side[self.clause] == side]] = True
        return named


def clauses_of(
    questions: Sequence[OrderQuestion], low: NDArray[Any], high: NDArray[Any]
) -> ExtremeClauses:
    """The clauses of a log of exact maxima and minima about at least one record each."""
    if any(not len(question.members) for question in questions):
        raise Contradictory
    record = np.concatenate([np.empty(0, np.int64), *(each.members for each in questions)])
    question = np.repeat(np.arange(len(questions)), [len(each.members) for each in questions])
    answer = integer_array([int(each.low) for each in questions])
    if answer.dtype == object:
        low, high = low.astype(object), high.astype(object)
    side = np.array([TOP if each.kind == "max" else BOTTOM for each in questions], np.int64)
    entry_side, entry_answer = side[question], answer[question]
    low, high = low.copy(), high.copy()
    tops, bottoms = entry_side == TOP, entry_side == BOTTOM
    np.minimum.at(high, record[tops], entry_answer[tops])
    np.maximum.at(low, record[bottoms], entry_answer[bottoms])
    if (low > high).any():
        raise Contradictory
    bound = np.where(tops, high[record], low[record])
    attains = bound == entry_answer
    if len(np.unique(question[attains])) < len(questions):
        raise Contradictory  # nobody can attain some answer
    satisfied = np.zeros(len(questions), bool)
    satisfied[question[attains & (low == high)[record]]] = True
    keep = attains & ~satisfied[question]
    kept = np.unique(question[keep])
    start = np.concatenate([[0], np.cumsum(np.bincount(question[keep], minlength=len(side))[kept])])
    return ExtremeClauses(low, high, side[kept], start, record[keep])


class UnitPropagation:
    """Which literals a set of clauses forces, one clause at a time."""

    def __init__(self, clauses: ExtremeClauses) -> None:
        self._clauses = clauses
        self.forced = np.zeros(len(clauses.low), np.int64)  # TOP, BOTTOM, or 0 for neither
        self.satisfied = np.zeros(len(clauses.side), bool)
        self._left = np.diff(clauses.start)
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
        self.forced[record] = side
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
            raise Contradictory


# Connected parts, which can be judged apart -----------------------------------------------------


def parts(clauses: ExtremeClauses, propagation: UnitPropagation) -> list[list[int]]:
    """The clauses that propagation left open, in connected parts."""
    open_clauses = np.flatnonzero(~propagation.satisfied).tolist()
    members = [np.array(clauses.records_of(clause), np.int64) for clause in open_clauses]
    free = [each[propagation.forced[each] == 0] for each in members]
    part = linked_components(len(clauses.low), free)
    found: dict[int, list[int]] = {}
    for clause, records in zip(open_clauses, free, strict=True):
        found.setdefault(int(part[records[0]]), []).append(clause)
    return list(found.values())


# Second tables by small moves away from the truth -----------------------------------------------
# Whoever is at neither end can go to either. Whoever is at an end that a clause needs can leave it
# when another member takes the place. Many records leave in one table as long as every clause keeps
# one; the few that remain are tried one at a time, with a chain of others stepping in.


MAX_HELPERS = 64  # members of a clause that are considered for stepping in
MAX_RECORDS_STEPPING_IN = 40  # records that may step in for one that leaves
MAX_IDLE_TABLES = 2  # tables in a row that may free nobody before single records are tried
NOBODY = np.iinfo(np.int64).max
FARTHEST = NOBODY // 2  # differences of two such values still fit 64 bits


class Moves:
    """Where each record stands in the truth, and where it would go.

    `at_end` is the end a record is at; `place` is the same where some clause names it there.
    """

    def __init__(
        self,
        findings: OrderFindings,
        clauses: ExtremeClauses,
        forced: NDArray[np.int64],
        records: NDArray[np.bool_],
    ) -> None:
        truth, low, high = findings.case.truth, clauses.low, clauses.high
        self._findings, self._clauses, self._truth = findings, clauses, truth
        fixed = (low == high) | (forced != 0)
        self.wanted = records & ~fixed & ~findings.loose
        farther_up = (high - truth) >= (truth - low)
        self.goal = np.where(farther_up, TOP, BOTTOM)
        self.at_end = np.where(truth == high, TOP, 0) + np.where(truth == low, BOTTOM, 0)
        needed = np.where(self.at_end == TOP, clauses.occurs_at(TOP), clauses.occurs_at(BOTTOM))
        self.place = np.where(fixed, forced, np.where(needed, self.at_end, 0))

    def values(self, records: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[Any]:
        """The ends of some records, or as near as 64 bits allow where no clause names an end."""
        chosen = np.where(sides == TOP, self._clauses.high[records], self._clauses.low[records])
        if self._truth.dtype != object:
            chosen = np.clip(chosen, -FARTHEST, FARTHEST)
        return chosen.astype(self._truth.dtype)

    def run(self, clock: Clock) -> None:
        """Free whom small moves free."""
        unneeded = np.flatnonzero(self.wanted & (self.place == 0))
        self._offer(unneeded, self.goal[unneeded])
        idle = turn = 0
        while self.wanted.any() and idle < MAX_IDLE_TABLES and not clock.over:
            turn += 1
            idle = 0 if self._together(turn) else idle + 1
        for record in np.flatnonzero(self.wanted).tolist():
            if self.wanted[record] and not clock.over:
                self._alone(record)

    def _offer(self, records: NDArray[np.int64], sides: NDArray[np.int64]) -> bool:
        """Put a second table to the test, and strike off whom it shows to be movable."""
        before = np.count_nonzero(self.wanted)
        self._findings.offer(records, self.values(records, sides))
        self.wanted &= ~self._findings.loose
        return bool(np.count_nonzero(self.wanted) < before)

    def _together(self, turn: int) -> bool:
        """Let all leave at once who are not kept; say whether that freed anybody."""
        clauses, clause = self._clauses, self._clauses.clause
        side = clauses.side[clause]
        keeper, stepped_in = self._keepers(clause, side, turn)
        leaving = np.flatnonzero(self.wanted & ~keeper)
        records = np.concatenate([leaving, stepped_in[0]])
        return self._offer(records, np.concatenate([-self.place[leaving], stepped_in[1]]))

    def _keepers(
        self, clause: NDArray[np.int64], side: NDArray[np.int64], turn: int
    ) -> tuple[NDArray[np.bool_], tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """One member for each clause to rely on, and the sides of those who must step in for it."""
        record, size = self._clauses.record, len(self._truth)
        place = self.place[record]
        # A record at neither end serves one side only in one table: by turns, where both ask.
        both = self._clauses.occurs_at(TOP) & self._clauses.occurs_at(BOTTOM)
        serves = np.where((np.arange(size) + turn) % 2, TOP, BOTTOM)[record]
        willing = (place == 0) & (~both[record] | (serves == side))
        shuffled = (record * 2654435761 + turn * 40503) % size
        rank = np.where(self.wanted[record], 1 + shuffled, 0)
        key = np.where((place == side) | willing, rank, NOBODY)
        least = np.minimum.reduceat(key, self._clauses.start[:-1])
        best = np.flatnonzero(key == least[clause])
        first = best[np.diff(clause[best], prepend=-1) > 0]
        keeper = np.zeros(size, bool)
        keeper[record[first]] = True
        raised, where = np.unique(record[first[willing[first]]], return_index=True)
        return keeper, (raised, side[first[willing[first]]][where])

    def _alone(self, record: int) -> None:
        """Let one record leave, and others step in for it one after another."""
        state = {record: -int(self.place[record])}
        broken = self._broken_clauses(record, state)
        while broken and len(state) < MAX_RECORDS_STEPPING_IN:
            clause = broken.pop()
            if self._is_kept(clause, state):
                continue
            helper = self._helper(clause, state)
            if helper is None:
                return
            state[helper] = int(self._clauses.side[clause])
            broken += self._broken_clauses(helper, state)
        if not broken:
            self._offer(np.array(list(state)), np.array(list(state.values())))

    def _is_kept(self, clause: int, state: dict[int, int]) -> bool:
        side = self._clauses.side[clause]
        members = self._clauses.records_of(clause)
        return any(state.get(each, self.place[each]) == side for each in members)

    def _broken_clauses(self, record: int, state: dict[int, int]) -> list[int]:
        """The clauses that nobody keeps once a record has left its place."""
        left = self.place[record]
        clauses = [
            each for each in self._clauses.of_record(record) if self._clauses.side[each] == left
        ]
        return [each for each in clauses if not self._is_kept(each, state)]

    def _helper(self, clause: int, state: dict[int, int]) -> int | None:
        """The member of a clause whose stepping in breaks least."""
        side = int(self._clauses.side[clause])
        members = [
            each
            for each in self._clauses.records_of(clause)[:MAX_HELPERS]
            if each not in state and (self.wanted[each] or self._findings.loose[each])
        ]
        costs = [len(self._broken_clauses(each, {**state, each: side})) for each in members]
        return members[costs.index(min(costs))] if members else None


# Second tables by exchange between records that every question treats alike ---------------------


ROTATION_FRACTIONS = (2, 4, 8)  # fractions of a group by which its sorted values are turned


def swap(findings: OrderFindings, records: NDArray[np.int64]) -> None:
    """Free whom an exchange of values frees among these records."""
    groups = [group for group in _alike(findings.case, records) if len(group) > 1]
    truth = findings.case.truth
    for shift in (*ROTATION_FRACTIONS, len(truth)):
        before = [group[np.argsort(truth[group], kind="stable")] for group in groups]
        after = [np.roll(group, max(1, len(group) // shift)) for group in before]
        if groups:
            findings.offer(np.concatenate(before), truth[np.concatenate(after)])


def _alike(case: IntegerCase, records: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Records in the same questions with the same coefficients and the same bounds."""
    found: dict[tuple[object, ...], list[int]] = {}
    weights = _weights(case)
    for record in records.tolist():
        asked = case.incidence.of_record(record)
        key = (asked.tobytes(), weights.get(record), case.low[record], case.high[record])
        found.setdefault(key, []).append(record)
    return [np.array(group, np.int64) for group in found.values()]


def _weights(case: IntegerCase) -> dict[int, tuple[int, ...]]:
    """The coefficients of each record in the sums that have them, in the order of the questions."""
    found: dict[int, tuple[int, ...]] = {}
    for question in case.questions:
        if question.coefficients is not None:
            factors = question.coefficients.tolist()
            for record, factor in zip(question.members.tolist(), factors, strict=True):
                found[record] = (*found.get(record, ()), factor)
    return found
