"""Refusing maxima and minima before they are answered, without looking at the data.

Source     source document 002, "Beyond linear queries"; simulatable auditing after Kenthapadi,
           Mishra and Nissim (2005).
Guarantee  Whether a question is refused follows from the questions and answers so far, which the
           asker knows, so a refusal gives nothing away. A question is refused when some answer
           that is consistent with the past would determine a record. Only the order of an answer
           among the past ones matters, so trying each past answer and one point between any two,
           below all and above all, tries every answer there is.
Assumes    The values are reals without bounds, and two may be equal. With finitely many values
           nearly everything would have to be refused.
Cost       For each new question, twice as many propagations as its connected part has answers.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import IntegerCase, OrderFindings
from casemate.audit.order.decide import audit_extremes
from casemate.audit.order.extremes import (
    BOTTOM,
    TOP,
    Contradictory,
    ExtremeClauses,
    UnitPropagation,
    clauses_of,
)
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Exact, OrderQuestion

Extreme = Literal["max", "min"]
CANDIDATE_WORK_LIMIT = (
    5.0  # of a solver, on one candidate answer; repeatable, so that a refusal is too
)


class OnlineExtremes:
    """The maxima and minima answered so far, and whether one more could determine anybody.

    >>> auditor = OnlineExtremes(4)
    >>> auditor.would_expose("max", [0, 1, 2, 3])
    False
    >>> auditor.record("max", [0, 1, 2, 3], 9)
    >>> auditor.would_expose("max", [0, 1, 2])  # a smaller answer would give away the fourth
    True
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._questions: list[OrderQuestion] = []
        self._about: dict[int, list[int]] = {}

    def would_expose(self, kind: Extreme, members: Iterable[int]) -> bool:
        """Whether some answer consistent with the past would determine a record."""
        asked = self._question(kind, members, 0)
        if not len(asked.members):
            return False
        past = self._connected_questions(asked.members)
        answers = sorted({question.low for question in past})
        return any(
            _exposes(_rank_answers(past, answers), asked, candidate)
            for candidate in range(0, 4 * len(answers) + 2, 2)
        )

    def answers(self, members: Iterable[int]) -> list[Exact]:
        """An answer of every kind to a further question about these records.

        They are the past ones, one between any two, one below all and one above all; some may be
        impossible.
        """
        past = self._connected_questions(np.fromiter(members, np.int64))
        known = sorted({question.low for question in past})
        if not known:
            return [0]
        between = [Fraction(one + other) / 2 for one, other in pairwise(known)]
        return [known[0] - 1, *known, *between, known[-1] + 1]

    def is_possible(self, kind: Extreme, members: Iterable[int], answer: Exact) -> bool:
        """Whether some table gives this answer beside the past ones; False if that stays open."""
        asked = self._question(kind, members, answer)
        past = [*self._connected_questions(asked.members), asked]
        return _is_possible(_rank_answers(past, sorted({question.low for question in past})))

    def copy(self) -> "OnlineExtremes":
        """Another one with the same past, which goes its own way from here."""
        twin = OnlineExtremes(self._size)
        twin._questions = list(self._questions)
        twin._about = {member: list(places) for member, places in self._about.items()}
        return twin

    def record(self, kind: Extreme, members: Iterable[int], answer: Exact) -> None:
        """Take note of a question that was answered."""
        question = self._question(kind, members, answer)
        for member in question.members.tolist():
            self._about.setdefault(member, []).append(len(self._questions))
        self._questions.append(question)

    def _question(self, kind: Extreme, members: Iterable[int], answer: Exact) -> OrderQuestion:
        question = OrderQuestion.of(kind, members, answer)
        inside = (question.members >= 0) & (question.members < self._size)
        if kind not in ("max", "min") or not inside.all():
            raise ValueError(f"need a max or min of positions among the {self._size} records")
        return question

    def _connected_questions(self, members: NDArray[np.int64]) -> list[OrderQuestion]:
        """The past questions that are linked to these records, directly or through others."""
        seen, work = set(members.tolist()), members.tolist()
        found: dict[int, OrderQuestion] = {}
        while work:
            for place in self._about.get(work.pop(), ()):
                if place not in found:
                    found[place] = self._questions[place]
                    fresh = set(found[place].members.tolist()) - seen
                    seen |= fresh
                    work += fresh
        return [found[place] for place in sorted(found)]


def _rank_answers(
    questions: Sequence[OrderQuestion], answers: Sequence[Exact]
) -> list[OrderQuestion]:
    """The questions with their answers replaced by 2, 6, 10, ... in the same order.

    Candidates are 0, 2, 4, ...: each of these, and one between any two. The odd numbers are left
    for values between a candidate and an answer.
    """
    ranks = [4 * bisect_left(answers, question.low) + 2 for question in questions]
    return [
        OrderQuestion(question.kind, question.members, rank, rank)
        for question, rank in zip(questions, ranks, strict=True)
    ]


def _exposes(past: Sequence[OrderQuestion], asked: OrderQuestion, candidate: int) -> bool:
    """Whether the past with one more answer is possible and determines somebody."""
    local = _local([*past, OrderQuestion(asked.kind, asked.members, candidate, candidate)])
    try:
        clauses, propagation = _propagate(local)
    except Contradictory:
        return False
    determined = bool(propagation.forced.any() or (clauses.low == clauses.high).any())
    spare = _spare(clauses, propagation)
    if spare >= 2 or (spare == 1 and determined):
        return determined
    return _search(local, clauses, propagation, determined)


def _is_possible(log: Sequence[OrderQuestion]) -> bool:
    """Whether some table gives all these answers."""
    from casemate.audit.order.solver import any_table

    try:
        clauses, propagation = _propagate(_local(log))
        clock = Clock(SearchLimit(seconds=math.inf, work=CANDIDATE_WORK_LIMIT, workers=1))
        return any_table(clauses, propagation, clock) is not None
    except (Contradictory, TimeoutError):
        return False


def _local(log: Sequence[OrderQuestion]) -> list[OrderQuestion]:
    """The same questions, with the records numbered from 0 without gaps."""
    _, where = np.unique(np.concatenate([each.members for each in log]), return_inverse=True)
    ends = np.cumsum([len(each.members) for each in log])[:-1]
    return [
        OrderQuestion(each.kind, members, each.low, each.high)
        for each, members in zip(log, np.split(where, ends), strict=True)
    ]


def _propagate(local: Sequence[OrderQuestion]) -> tuple[ExtremeClauses, UnitPropagation]:
    """What the answers force, with bounds beyond all of them; raises if they cannot be."""
    known = 1 + max(int(each.members.max()) for each in local)
    beyond = np.full(known, 8 * (len(local) + 1), np.int64)
    clauses = clauses_of(local, -beyond, beyond)
    return clauses, UnitPropagation(clauses)


def _spare(clauses: ExtremeClauses, propagation: UnitPropagation) -> int:
    """The fewest members that an open clause has to itself: whom no clause of the other side names.

    With one each, all clauses can hold together; with two, nobody is needed for any of them.
    """
    clause = clauses.clause
    alive = ~propagation.satisfied[clause] & (propagation.forced[clauses.record] == 0)
    if not alive.any():
        return 2
    side = clauses.side[clause]
    named = np.zeros((len(clauses.low), 2), bool)
    named[clauses.record[alive & (side == TOP)], 0] = True
    named[clauses.record[alive & (side == BOTTOM)], 1] = True
    torn = named[:, 0] & named[:, 1]
    own = alive & ~torn[clauses.record]
    counts = np.bincount(clause[own], minlength=len(clauses.side))
    return int(counts[~propagation.satisfied].min())


def _search(
    questions: Sequence[OrderQuestion],
    clauses: ExtremeClauses,
    propagation: UnitPropagation,
    determined: bool,
) -> bool:
    """Decide with a solver; what stays open counts as exposing."""
    from casemate.audit.order.solver import any_table

    clock = Clock(SearchLimit(seconds=math.inf, work=CANDIDATE_WORK_LIMIT, workers=1))
    try:
        table = any_table(clauses, propagation, clock)
    except TimeoutError:
        return True
    if table is None or determined:
        return table is not None
    size = len(clauses.low)
    ends = np.full(size, 8 * (len(questions) + 1), np.int64)
    unknown, width = np.zeros(size, bool), np.ones(size, np.int64)
    case = IntegerCase(tuple(questions), table, -ends, ends, unknown, unknown, width, integer=False)
    findings = OrderFindings(case)
    audit_extremes(findings, questions, np.ones(size, bool), clock)
    return bool((~findings.loose).any())
