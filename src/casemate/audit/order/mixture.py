"""Any mixture of sums, averages, extremes, medians and counts over integers in bounds.

A part is judged as a whole first, by the maximiser; what that leaves is judged one record at a
time, in growing balls around it. With everything outside a ball held at the truth, a second
table is a witness; with only the questions inside a ball, the lack of one is a proof.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from casemate.audit.order.case import IntegerCase, OrderFindings
from casemate.audit.order.literals import Settled, settle, values_of
from casemate.audit.order.model import LARGEST, IntegerModel, narrowed, publish
from casemate.audit.time_limit import Clock
from casemate.exact import OrderQuestion

ENTRIES = 1_000_000  # members of all questions together, in a model of a whole part
BALLS = (6, 12, 25, 50, 100, 200)
Wish = tuple[int, int]  # a record, and how far it is to move


@dataclass(frozen=True, eq=False)
class LinkedRecords:
    """Some records with all the questions about them, and the bounds they come with."""

    case: IntegerCase
    records: NDArray[np.int64]
    questions: tuple[OrderQuestion, ...]
    low: NDArray[Any]
    high: NDArray[Any]

    @property
    def too_large(self) -> bool:
        """Whether a value could leave the range in which a solver's sums are safe."""
        ends = (self.low[self.records], self.high[self.records])
        return bool(max(abs(end).max() for end in ends) >= LARGEST)

    @property
    def too_many(self) -> bool:
        """Whether building a model of the whole part would itself take too long."""
        return sum(len(question.members) for question in self.questions) > ENTRIES

    @cached_property
    def around(self) -> dict[int, list[OrderQuestion]]:
        """The questions about each record, smallest first."""
        found: dict[int, list[OrderQuestion]] = {each: [] for each in self.records.tolist()}
        for question in sorted(self.questions, key=lambda each: len(each.members)):
            for member in question.members.tolist():
                found[member].append(question)
        return found

    def model(
        self, questions: Iterable[OrderQuestion], frozen: NDArray[np.bool_] | None = None
    ) -> IntegerModel:
        """A model of some of the questions, with some records held at the truth."""
        asked = list(questions)
        low, high = narrowed(asked, self.low, self.high)
        if frozen is not None:
            low, high = (np.where(frozen, self.case.truth, end) for end in (low, high))
        model = IntegerModel(low, high, self.case.truth)
        for question in asked:
            publish(model, question)
        return model


@dataclass(frozen=True)
class Turn:
    """What a search works with: where it notes what it shows, and how long it may take."""

    findings: OrderFindings
    clock: Clock
    patience: float  # for one call of the solver


def maximise(
    turn: Turn, part: LinkedRecords, wanted: NDArray[np.int64], width: NDArray[Any]
) -> Settled:
    """Judge all the wanted records of a part at once."""
    findings = turn.findings
    model = part.model(part.questions)
    literals = {each: model.moved(each, int(width[each])) for each in wanted.tolist()}
    stuck = np.array([each for each, literal in literals.items() if literal is None], np.int64)
    moved = {each: literal for each, literal in literals.items() if literal is not None}
    asked = np.array(list(moved), np.int64)

    def accept(solver: cp_model.CpSolver) -> NDArray[np.bool_]:
        findings.offer(*values_of(solver, model.variables))
        return shown(findings, asked, width)

    settled = settle(model.model, moved, accept, turn.clock, turn.patience)
    unmovable = np.concatenate([stuck, settled.unmovable])
    return Settled(unmovable, settled.undecided, settled.together)


def shown(
    findings: OrderFindings, records: NDArray[np.int64], width: NDArray[Any]
) -> NDArray[np.bool_]:
    """Which records some witness moves, by the width of the case or by the least one."""
    least = width[records] < findings.case.width[records]
    found: NDArray[np.bool_] = np.where(least, findings.loose[records], findings.free[records])
    return found


def judge_alone(turn: Turn, part: LinkedRecords, wish: Wish) -> bool | None:
    """Whether a record can move, by growing balls around it; None if that stays open."""
    for size in BALLS:
        ball = _ball(part, wish[0], size)
        if turn.clock.over:
            return None
        if _moves_inside(turn, part, wish, ball):
            return True
        if _stays_inside(turn, part, wish, ball):
            return False
        if len(ball) == len(part.records):
            return None
    return None


def _ball(part: LinkedRecords, record: int, size: int) -> list[int]:
    """The records nearest to one, through small questions first."""
    found, order = {record}, [record]
    for each in order:
        for question in part.around[each]:
            fresh = [other for other in question.members.tolist() if other not in found]
            found.update(fresh)
            order += fresh
            if len(order) >= size:
                return order[:size]
    return order


def _moves_inside(turn: Turn, part: LinkedRecords, wish: Wish, ball: Sequence[int]) -> bool:
    frozen = np.ones(len(part.case.truth), bool)
    frozen[list(ball)] = False
    touched = {id(each): each for inside in ball for each in part.around[inside]}
    model = part.model(touched.values(), frozen)
    solver = _solved(turn, model, wish)
    if solver is None or solver.status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return False
    return turn.findings.offer(*values_of(solver.solver, model.variables))


def _stays_inside(turn: Turn, part: LinkedRecords, wish: Wish, ball: Sequence[int]) -> bool:
    members = set(ball)
    touched = {id(each): each for inside in ball for each in part.around[inside]}
    inside = [each for each in touched.values() if members.issuperset(each.members.tolist())]
    solver = _solved(turn, part.model(inside), wish)
    return solver is None or solver.status == cp_model.INFEASIBLE


@dataclass(frozen=True)
class _Run:
    solver: cp_model.CpSolver
    status: cp_model.CpSolverStatus


def _solved(turn: Turn, model: IntegerModel, wish: Wish) -> _Run | None:
    """Look for a table in which the record has moved; None if its bounds leave no room."""
    moved = model.moved(*wish)
    if moved is None:
        return None
    model.model.add_bool_or([moved])
    solver = turn.clock.solver(turn.patience)
    status = solver.solve(model.model)
    turn.clock.spent(solver)
    return _Run(solver, status)
