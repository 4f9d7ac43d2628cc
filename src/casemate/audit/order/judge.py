"""The order in which the parts of a mixture are judged, and what each result proves."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import OrderFindings, Proof
from casemate.audit.order.interval import Intervals
from casemate.audit.order.literals import Settled
from casemate.audit.order.mixture import LinkedRecords, Turn, judge_alone, maximise
from casemate.audit.time_limit import Clock
from casemate.exact import COUNTS, OrderQuestion

COMPARING = ("max", "min", "step", "whole", *COUNTS)
PATIENCE = 5.0  # for the first maximisation of a part that finds nobody, then for all balls


class Judge:
    """Judges every part as a whole, smallest first, and then what is left record by record.

    The lack of a second table proves something only where the solver looked everywhere: over
    integers whose bounds are known, and where values are only compared, because another table
    then has a neighbour on the grid that gives the same answers. Elsewhere it only looked on a
    grid in a box.
    """

    def __init__(self, findings: OrderFindings, intervals: Intervals, clock: Clock) -> None:
        case = findings.case
        self._findings, self._clock, self._case = findings, clock, case
        self._least = np.ones(len(case.truth), np.int64)
        pairs = list(zip(intervals.low, intervals.high, strict=True))
        fixed = [low is not None and low == high for low, high in pairs]
        findings.expose(np.flatnonzero(fixed), "bounds")
        self._known = np.array([None not in pair for pair in pairs], bool)
        self._low = _ends(case.low, [None if low is None else math.ceil(low) for low, _ in pairs])
        self._high = _ends(case.high, [None if up is None else math.floor(up) for _, up in pairs])

    def run(self, parts: Sequence[tuple[NDArray[np.int64], Sequence[OrderQuestion]]]) -> None:
        """Judge the parts, with more patience each time something stays open."""
        left = [self._part(*part) for part in parts]
        together = {id(part): len(part.records) for part in left}
        judged, patience = list(left), PATIENCE
        while left and not self._clock.over:
            turn = Turn(self._findings, self._clock, patience)
            again = [part for part in left if self._whole(turn, part, together)]
            balls = Turn(self._findings, self._clock.within(patience), patience / 10)
            for part in again:
                for record in self._open(part).tolist():
                    self._alone(balls, part, record)
            left = [part for part in again if len(self._open(part))]
            patience *= 2
        for part in judged:
            self._findings.give_up(min(together[id(part)], len(self._open(part))))

    def _part(
        self, records: NDArray[np.int64], questions: Sequence[OrderQuestion]
    ) -> LinkedRecords:
        low, high, exposed = self._low.copy(), self._high.copy(), self._findings.exposed
        low[exposed] = high[exposed] = self._case.truth[exposed]
        return LinkedRecords(self._case, records, tuple(questions), low, high)

    def _proves(self, part: LinkedRecords) -> bool:
        known = self._case.integer and bool(self._known[part.records].all())
        return known or only_compared(part.questions, self._known)

    def _open(self, part: LinkedRecords) -> NDArray[np.int64]:
        return part.records[self._findings.open[part.records]]

    def _whole(self, turn: Turn, part: LinkedRecords, together: dict[int, int]) -> bool:
        """Judge a part by the maximiser, and say whether more patience could show more."""
        wanted = self._open(part)
        if part.too_large or not len(wanted):
            return False
        if part.too_many:
            return True
        least = self._findings.narrow[wanted]
        settled = self._maximised(turn, part, wanted[~least], self._case.width)
        if self._proves(part):
            together[id(part)] = settled.together
            narrow = self._open(part)
            narrow = narrow[self._findings.narrow[narrow]]
            exact = self._maximised(turn, part, narrow, self._least)
            return bool(len(settled.undecided) or len(exact.undecided))
        return bool(len(settled.undecided))

    def _maximised(
        self, turn: Turn, part: LinkedRecords, wanted: NDArray[np.int64], width: NDArray[Any]
    ) -> Settled:
        settled = maximise(turn, part, wanted, width)
        if self._proves(part):
            self._conclude(settled.unmovable, width)
        return settled

    def _conclude(self, records: NDArray[np.int64], width: NDArray[Any]) -> None:
        """Note that no table moves these by the width."""
        self._findings.confine(records)
        proof: Proof = "integer" if self._case.integer else "order"
        self._findings.expose(records[width[records] == 1], proof)

    def _alone(self, turn: Turn, part: LinkedRecords, record: int) -> None:
        """Judge one record by the balls around it, by its width and then by the least."""
        while self._findings.open[record]:
            width = 1 if self._findings.narrow[record] else int(self._case.width[record])
            movable = judge_alone(turn, part, (record, width))
            if movable is not False or not self._proves(part):
                return
            self._conclude(np.array([record]), np.full(len(self._least), width))


def only_compared(questions: Iterable[OrderQuestion], bounded: NDArray[np.bool_]) -> bool:
    """Whether no value is added to another, except marks of steps and bounded whole numbers."""
    asked = list(questions)
    marks = {int(q.members[1]) for q in asked if q.kind == "step"}
    whole = (each for q in asked if q.kind == "whole" for each in q.members.tolist())
    marks.update(each for each in whole if bounded[each])
    return all(
        q.kind in COMPARING
        or (q.kind == "median" and len(q.members) % 2 == 1)
        or (q.kind in ("sum", "avg") and marks.issuperset(q.members.tolist()))
        for q in asked
    )


def _ends(stood_in: NDArray[Any], known: Sequence[int | None]) -> NDArray[Any]:
    """The known bounds, and where there is none the one that stands in."""
    ends = stood_in.copy()
    for place, end in enumerate(known):
        if end is not None:
            ends[place] = end
    return ends
