"""Exact maxima and minima of reals that are all distinct: a matching of answers to records.

Source     source document 002, "Beyond linear queries"; the setting of Chin (1986).
Guarantee  Each answer is the value of exactly one record, a member of every question with that
           answer; anybody else has an interval of values to choose from. So a record is
           determined exactly when every matching gives it the same answer. The truth is one
           matching; its record can lose or change an answer when the answers can take records
           over from one another until somebody without an answer steps in.
Cost       One search through the graph of answers for each record that has one.
"""

from collections import deque
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from casemate.audit.order.case import OrderFindings
from casemate.audit.order.clauses import clauses_of

Holders = dict[int, int]  # for some values, the record that gets it


class Matching:
    """Which records could have each answer, and which has it in the truth."""

    def __init__(self, findings: OrderFindings) -> None:
        case = findings.case
        clauses = clauses_of(case.questions, case.low, case.high)
        self.low, self.high = clauses.low, clauses.high
        self.able: dict[int, set[int]] = {}
        for question in case.questions:
            value, members = int(question.low), question.members
            fits = (self.low[members] <= value) & (value <= self.high[members])
            chosen = set(members[fits].tolist())
            self.able[value] = self.able.get(value, chosen) & chosen
        for record in np.flatnonzero(self.low == self.high).tolist():
            self.able[int(self.low[record])] = {record}  # no other value is left to it
        self.where = {value: place for place, value in enumerate(case.truth.tolist())}
        self.taken = {*self.where, *self.able}
        self.holder = {value: self.where[value] for value in self.able}
        self.answer = {record: value for value, record in self.holder.items()}

    @cached_property
    def open_to(self) -> dict[int, list[int]]:
        """The answers that each record could have."""
        found: dict[int, list[int]] = {}
        for value, records in self.able.items():
            for record in records:
                found.setdefault(record, []).append(value)
        return found

    def released(self, record: int) -> Holders | None:
        """Holders that leave this record without an answer; None if there are none."""
        if record not in self.answer:
            return {}
        return self._rehomed(self.answer[record], record, None)

    def given(self, record: int, value: int) -> Holders | None:
        """Holders that give this record another answer; None if there are none."""
        if record not in self.answer:
            return {value: record}
        others = self._rehomed(self.answer[record], record, value)
        return None if others is None else {value: record, **others}

    def _rehomed(self, homeless: int, gone: int, taken: int | None) -> Holders | None:
        """Find the homeless answer a record when one is gone, and that of `taken` has come free."""
        freed = None if taken is None else self.holder[taken]
        came_from: dict[int, int | None] = {homeless: None}
        work = deque([homeless])
        while work:
            here = work.popleft()
            for record in self.able[here] - {gone}:
                there = None if record == freed else self.answer.get(record)
                if there is None:
                    return dict(self._way(here, record, came_from))
                if there not in came_from:
                    came_from[there] = here
                    work.append(there)
        return None

    def _way(
        self, last: int, record: int, came_from: dict[int, int | None]
    ) -> Iterator[tuple[int, int]]:
        """Each answer on the way takes over the record of the next."""
        here: int | None = last
        while here is not None:
            yield here, record
            record, here = self.holder[here], came_from[here]


def audit_distinct(findings: OrderFindings) -> None:
    """Decide every record of a case of exact extremes over distinct reals."""
    matching = Matching(findings)
    findings.expose(np.flatnonzero(matching.low == matching.high), "order")
    without = [each for each in range(len(matching.low)) if each not in matching.answer]
    _offer(findings, matching, {}, without)
    for record in np.flatnonzero(findings.open).tolist():
        _judge(findings, matching, record)


def _judge(findings: OrderFindings, matching: Matching, record: int) -> None:
    """Try every way in which one record can have another value."""
    holders = matching.released(record)
    if holders is not None:
        _offer(findings, matching, holders, _displaced(holders, record))
        for end in (int(matching.low[record]), int(matching.high[record])):
            if end not in matching.able and not findings.free[record]:
                sitting = [matching.where[end]] if end in matching.where else []
                away = [each for each in sitting if each not in {record, *holders.values()}]
                _offer(findings, matching, {**holders, end: record}, away)
    for value in matching.open_to.get(record, []):
        if not findings.free[record] and value != matching.answer.get(record):
            holders = matching.given(record, value)
            if holders is not None:
                displaced = _displaced(holders, matching.holder[value])
                _offer(findings, matching, holders, displaced)
    if not findings.loose[record]:
        findings.expose(np.array([record]), "order")
    findings.confine(np.array([record])[~findings.free[[record]]])


def _displaced(holders: Holders, record: int) -> list[int]:
    """The record that lost its answer, unless it got another."""
    return [] if record in holders.values() else [record]


def _offer(
    findings: OrderFindings, matching: Matching, holders: Holders, moving: list[int]
) -> None:
    """Put a table to the test in which some records get given values and others go elsewhere."""
    changes = {record: value for value, record in holders.items()}
    fresh = set(holders)
    for record in moving:
        changes[record] = _elsewhere(findings, matching, record, fresh)
        fresh.add(changes[record])
    values = np.array(list(changes.values()), findings.case.truth.dtype)
    findings.offer(np.array(list(changes), np.int64), values)


def _elsewhere(findings: OrderFindings, matching: Matching, record: int, fresh: set[int]) -> int:
    """A value that nobody has or had, beyond the width of the truth where there is room."""
    case = findings.case
    truth, width = int(case.truth[record]), int(case.width[record])
    low, high = int(matching.low[record]), int(matching.high[record])
    sign, end = (-1, low) if truth - low >= high - truth else (1, high)
    # Beyond the width and away; or, where there is no such room, from the end towards the truth.
    roomy = abs(truth - end) > width
    value, step = (truth + sign * width, sign) if roomy else (end, -sign)
    while value in matching.taken or value in fresh:
        value += step
    return value
