"""Decide whose values a log of sums, averages, extremes, medians and counts gives away.

A log of exact maxima and minima, duplicates allowed, goes through clauses, propagation, moves and a
solver (`audit_extremes`); `audit_order` decides any log.

Source     source document 002, "Beyond linear queries".
Guarantee  `ExposedValue` is a proof and `Free` comes with a second table that was re-evaluated
           against every answer. `Undecided` means that the limit came first. Over integers in
           bounds every record is decided when the limit allows; over reals a log of exact
           maxima and minima is, and other mixtures may leave records undecided.
Cost       Maxima alone or minima alone: linear. Both, or any mixture over integers: hard in
           general, hence the limit.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casemate.audit.order.case import Intervals, OrderFindings, Verdicts, case_of
from casemate.audit.order.extremes import ExtremeClauses, Moves, UnitPropagation, clauses_of, swap
from casemate.audit.region.second import linked_components
from casemate.audit.time_limit import Clock, SearchLimit
from casemate.exact import Domain, Exact, OrderQuestion


def audit_extremes(
    findings: OrderFindings,
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
        from casemate.audit.order.solver import settle_literals

        settle_literals(findings, clauses, propagation, moves, clock)


def expose_forced(
    findings: OrderFindings, clauses: ExtremeClauses, propagation: UnitPropagation
) -> None:
    """Name whom the clauses determine on their own; true whatever else was published."""
    forced = (clauses.low == clauses.high) | (propagation.forced != 0)
    findings.expose(np.flatnonzero(forced), "order")


def is_extreme(question: OrderQuestion) -> bool:
    """Whether this is an exact maximum or minimum."""
    return question.kind in ("max", "min") and question.exact


# Any log ----------------------------------------------------------------------------------------


def audit_order(
    questions: Sequence[OrderQuestion],
    domain: Domain,
    truth: Sequence[Exact],
    width: Exact | Sequence[Exact] = 1,
    limit: SearchLimit | None = None,
) -> Verdicts:
    """Say of every record whether the answers determine it, with proofs and second tables.

    Questions that the truth does not answer as published are named, and the rest is audited.

    >>> maximum = OrderQuestion.of("max", [0, 1], 7)
    >>> total = OrderQuestion.of("sum", [0, 1], 14)
    >>> audit_order([maximum, total], Domain.of(2, 0, 100), [7, 7]).records[0]
    ExposedValue(value=7, proof='bounds')
    """
    case, contradicted = case_of(questions, domain, truth, width)
    findings, clock = OrderFindings(case), Clock(limit or SearchLimit())
    if all(map(is_extreme, case.questions)):
        audit_extremes(findings, case.questions, np.ones(len(domain), bool), clock)
    else:
        _audit_mixture(findings, clock)
    return findings.verdicts(contradicted)


def _audit_mixture(findings: OrderFindings, clock: Clock) -> None:
    """Extremes first, as far as they carry; then the parts that are more than that."""
    case = findings.case
    extremes = [question for question in case.questions if is_extreme(question)]
    clauses = clauses_of(extremes, case.low, case.high)
    propagation = UnitPropagation(clauses)
    expose_forced(findings, clauses, propagation)
    part = linked_components(len(case.truth), (question.members for question in case.questions))
    more = {int(part[q.members[0]]) for q in case.questions if len(q.members) and not is_extreme(q)}
    plain = ~np.isin(part, list(more))
    alone = [each for each in extremes if plain[each.members[0]]]
    audit_extremes(findings, alone, plain, clock)
    mixed = np.flatnonzero(~plain)
    swap(findings, mixed)
    if findings.open[mixed].any():
        _judge_parts(findings, part, mixed, clock)


def _judge_parts(
    findings: OrderFindings, part: NDArray[np.int64], mixed: NDArray[np.int64], clock: Clock
) -> None:
    from casemate.audit.order.solver import Judge

    names, where = np.unique(part[mixed], return_inverse=True)
    judge = Judge(findings, Intervals(findings.case), clock)
    of_part: dict[int, list[OrderQuestion]] = {int(name): [] for name in names}
    for question in findings.case.questions:
        if len(question.members) and int(part[question.members[0]]) in of_part:
            of_part[int(part[question.members[0]])].append(question)
    groups = np.split(mixed[np.argsort(where, kind="stable")], np.cumsum(np.bincount(where))[:-1])
    named = zip(names.tolist(), groups, strict=True)
    judge.run([(group, of_part[name]) for name, group in sorted(named, key=lambda p: len(p[1]))])
