"""Logs of exact maxima and minima, duplicates allowed: clauses, propagation, moves, a solver."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import Findings
from casemate.audit.order.clauses import ExtremeClauses, UnitPropagation, clauses_of
from casemate.audit.order.moves import Moves
from casemate.audit.time_limit import Clock
from casemate.exact import OrderQuestion


def audit_extremes(
    findings: Findings,
    questions: Sequence[OrderQuestion],
    records: NDArray[np.bool_],
    clock: Clock,
) -> None:
    """Decide these records, about which nothing but these exact extremes was asked."""
    case = findings.case
    clauses = clauses_of(questions, case.low, case.high)
    propagation = UnitPropagation(clauses)
    expose_forced(findings, clauses, propagation)
    reach = np.maximum(clauses.high - case.truth, case.truth - clauses.low)
    findings.confine(np.flatnonzero(records & (reach < case.width)))
    moves = Moves(findings, clauses, propagation.forced, records)
    moves.run(clock)
    if moves.wanted.any():
        from casemate.audit.order.literals import settle_literals

        settle_literals(findings, clauses, propagation, moves, clock)


def expose_forced(
    findings: Findings, clauses: ExtremeClauses, propagation: UnitPropagation
) -> None:
    """Name whom the clauses determine on their own; true whatever else was published."""
    forced = (clauses.low == clauses.high) | (propagation.forced != 0)
    findings.expose(np.flatnonzero(forced), "order")


def is_extreme(question: OrderQuestion) -> bool:
    """Whether this is an exact maximum or minimum."""
    return question.kind in ("max", "min") and question.exact
