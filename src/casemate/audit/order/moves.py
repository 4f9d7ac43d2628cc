"""Second tables for a log of maxima and minima, found by small moves away from the truth.

Whoever is at neither end can go to either. Whoever is at an end that a clause needs can leave it
when another member takes the place. Many records leave in one table as long as every clause
keeps one; the few that remain are tried one at a time, with a chain of others stepping in.

Second tables by exchange: records that every question treats alike can trade their values.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import IntegerCase, OrderFindings
from casemate.audit.order.clauses import BOTTOM, TOP, ExtremeClauses
from casemate.audit.time_limit import Clock

HELPERS = 64  # members of a clause that are considered for stepping in
STEPS = 40  # records that may step in for one that leaves
IDLE = 2  # tables in a row that may free nobody before single records are tried
NOBODY = np.iinfo(np.int64).max


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
        needed = np.where(self.at_end == TOP, clauses.named(TOP), clauses.named(BOTTOM))
        self.place = np.where(fixed, forced, np.where(needed, self.at_end, 0))

    def values(self, records: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[Any]:
        """The ends of some records."""
        chosen = np.where(sides == TOP, self._clauses.high[records], self._clauses.low[records])
        return chosen.astype(self._truth.dtype)

    def run(self, clock: Clock) -> None:
        """Free whom small moves free."""
        unneeded = np.flatnonzero(self.wanted & (self.place == 0))
        self._offer(unneeded, self.goal[unneeded])
        idle = turn = 0
        while self.wanted.any() and idle < IDLE and not clock.over:
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
        both = self._clauses.named(TOP) & self._clauses.named(BOTTOM)
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
        broken = self._broken(record, state)
        while broken and len(state) < STEPS:
            clause = broken.pop()
            if self._kept(clause, state):
                continue
            helper = self._helper(clause, state)
            if helper is None:
                return
            state[helper] = int(self._clauses.side[clause])
            broken += self._broken(helper, state)
        if not broken:
            self._offer(np.array(list(state)), np.array(list(state.values())))

    def _kept(self, clause: int, state: dict[int, int]) -> bool:
        side = self._clauses.side[clause]
        members = self._clauses.records_of(clause)
        return any(state.get(each, self.place[each]) == side for each in members)

    def _broken(self, record: int, state: dict[int, int]) -> list[int]:
        """The clauses that nobody keeps once a record has left its place."""
        left = self.place[record]
        clauses = [
            each for each in self._clauses.of_record(record) if self._clauses.side[each] == left
        ]
        return [each for each in clauses if not self._kept(each, state)]

    def _helper(self, clause: int, state: dict[int, int]) -> int | None:
        """The member of a clause whose stepping in breaks least."""
        side = int(self._clauses.side[clause])
        members = [
            each
            for each in self._clauses.records_of(clause)[:HELPERS]
            if each not in state and (self.wanted[each] or self._findings.loose[each])
        ]
        costs = [len(self._broken(each, {**state, each: side})) for each in members]
        return members[costs.index(min(costs))] if members else None


# Order swaps ------------------------------------------------------------------------------------


SHIFTS = (2, 4, 8)  # fractions of a group by which its sorted values are turned


def swap(findings: OrderFindings, records: NDArray[np.int64]) -> None:
    """Free whom an exchange of values frees among these records."""
    groups = [group for group in _alike(findings.case, records) if len(group) > 1]
    truth = findings.case.truth
    for shift in (*SHIFTS, len(truth)):
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
