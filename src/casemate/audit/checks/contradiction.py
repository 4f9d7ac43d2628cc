"""Answers that cannot all be true: which of them contradict each other, and the audit of the rest.

Source     Source document 002, "Which records are exposed?", condition 1: rank(A) = rank([A | b]),
           for exact answers; with types, bounds and rounding, whether a linear program has any
           solution.
Method     Take what the equations add up to as one more column. The equations contradict each other
           iff that column is determined, and a certificate of it is a minimal contradictory set:
           multiples of the equations that add up to 0 on the left and not on the right.
           While some answers contradict each other, those among them that the table itself does
           not give are left out; if it gives them all, or is no help, the last of them is.
           Of numbers that extremes or medians meet, all that it does not give are.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from casemate.audit.case import Case
from casemate.audit.checks.ranges import ranges
from casemate.audit.checks.totals import impossible
from casemate.audit.order.audit import Ordered, met_by_extremes
from casemate.audit.region.bounds import Bounds
from casemate.audit.time_limit import Clock
from casemate.exact import Certificate, RandomBytes, System, certify, determine, within
from casemate.published import RefusedQuery, true_values, with_rows


def consistent(system: System, random: RandomBytes | None = None) -> bool:
    """Whether some values satisfy all equations at once.

    >>> consistent(System.of([[1, 1], [2, 2]], right=[3, 6]))
    True
    """
    extended = with_answers(system)
    return not determine(extended, random).determined[-1]


def contradiction(system: System, random: RandomBytes | None = None) -> Certificate | None:
    """A minimal set of equations that contradict each other, with their multiples.

    None where there is no contradiction, or none with coefficients of a readable size.

    >>> contradiction(System.of([[1, 1], [2, 2]], right=[3, 7])).coefficients
    {0: -2, 1: 1}
    """
    extended = with_answers(system)
    found = determine(extended, random)
    columns = [extended.columns - 1] if found.determined[-1] else []
    return next(certify(extended, found.block, columns), None)


def with_answers(system: System) -> System:
    """The system with its right side as a further column, all of it in integers."""
    if system.right is None:
        raise ValueError("consistency needs what each equation adds up to, and none was given")
    scale = lcm(*(answer.denominator for answer in system.right))
    wanted = [int(answer * scale) for answer in system.right]
    rows = [i for i, answer in enumerate(wanted) if answer]
    values = np.empty(len(rows), object)
    values[:] = [wanted[i] for i in rows]
    narrow = all(abs(value) < 2**62 for value in values)
    return System(
        system.rows,
        system.columns + 1,
        np.concatenate([system.row, np.array(rows, np.int64)]),
        np.concatenate([system.column, np.full(len(rows), system.columns, np.int64)]),
        np.concatenate([system.value, values.astype(np.int64) if narrow else values]),
    )


FALSE = "its answer is not the table's; beside extremes or medians it is audited only if it is"


# Answers left out of a case ---------------------------------------------------------------------


def without_contradictions(case: Case, clock: Clock) -> tuple[Case, Bounds | None, bool | None]:
    """Leave out answers until the others can all be true, or only the table's own are left.

    The case without the answers that were left out, its ranges if it took those to see, and
    whether none had to be; None where that was not decided.
    """
    answered_queries = {column.query for column in case.publication.columns if column.told}
    if not answered_queries:
        return case, None, True if case.publication.told else None  # of extremes and medians alone
    consistent_so_far: bool | None = True
    while True:
        rows, found = _conflict(case, clock)
        queries = {case.equations.places[row].query for row in rows if row < _count(case)}
        blamed = _statements_to_blame(case, rows, queries & answered_queries)
        reasons = {query: _reason(sorted(queries - {query})) for query in blamed}
        reasons = reasons or dict.fromkeys(_false_beside_extremes(case, answered_queries), FALSE)
        if not reasons:
            return case, found, False if rows else consistent_so_far
        case = _without(case, reasons)
        consistent_so_far = False if blamed else consistent_so_far and None


def _conflict(case: Case, clock: Clock) -> tuple[Collection[int], Bounds | None]:
    """Equations that cannot all hold, none if they can, and the ranges if it took those to see."""
    rows = _by_rank(case)
    if rows:
        return rows, None
    found = ranges(case, clock.seconds_left)
    return found.contradiction, found


def _count(case: Case) -> int:
    return case.equations.system.rows  # further rows of the region are types, not answers


def _by_rank(case: Case) -> Collection[int]:
    """Equations that contradict each other whatever the bounds are."""
    alone = impossible(case)
    if alone:
        return alone[:1]
    exact = case.exact
    if consistent(exact.system):
        return ()
    found = contradiction(exact.system)
    return exact.rows if found is None else [exact.rows[row] for row in found.coefficients]


def _statements_to_blame(
    case: Case, rows: Iterable[int], answered_queries: Collection[int]
) -> set[int]:
    """Of statements whose answers contradict each other, those to be left out."""
    if not answered_queries:
        return set()
    equations = case.equations
    true = true_values(equations, range(equations.system.columns), case.source)
    values = [true[column] for column in range(equations.system.columns)]
    wrong = {
        equations.places[row].query
        for row in rows
        if row < _count(case) and not _gives(case, row, values)
    }
    return (wrong & set(answered_queries)) or {max(answered_queries)}


def _gives(case: Case, row: int, values: Sequence[Fraction]) -> bool:
    """Whether the table's own values give the answer of a row."""
    total = sum((a * values[column] for column, a in case.region.equations[row]), Fraction(0))
    return within(total, case.equations.low[row], case.equations.high[row])


def why_unchecked(case: Case, found: Bounds) -> str:
    """Why ranges could not be computed, unless the limit came first."""
    if not found.contradiction:
        return "no range of theirs could be proved: the numbers are too large or too close together"
    rows = (row for row in found.contradiction if row < _count(case))
    queries = sorted({case.equations.places[row].query for row in rows})
    show = "shows" if len(queries) == 1 else "show"
    which = f"what {_listed(queries)} {show}" if queries else "what is known of one record"
    return f"{which} contradicts the declared types, bounds or values; correct one of them"


def _false_beside_extremes(case: Case, answered_queries: Collection[int]) -> set[int]:
    """Statements with answers that are not the table's about numbers that extremes meet.

    Extremes and medians are decided from the table's own values, and no linear program knows them.
    So what contradicts them would not be noticed.
    """
    if not case.publication.ordered:
        return set()
    equations = case.equations
    true = true_values(equations, range(equations.system.columns), case.source)
    values = [true[column] for column in range(equations.system.columns)]
    told = (row for row, each in enumerate(equations.places) if each.query in answered_queries)
    false = [row for row in told if not _gives(case, row, values)]
    if not false:
        return set()
    system, met = equations.system, met_by_extremes(case)
    about = np.intersect1d(false, system.row[met[system.column]]).tolist()
    return {equations.places[row].query for row in about}


def _without(case: Case, reasons: Mapping[int, str]) -> Case:
    """The case without some statements, which are named among those not audited."""
    kept = [i for i, each in enumerate(case.equations.places) if each.query not in reasons]
    number = {row: place for place, row in enumerate(kept)}
    return replace(
        _with_refused(case, reasons),
        equations=with_rows(case.equations, kept),
        rounded=frozenset(number[row] for row in case.rounded if row in number),
    )


def without_false_extremes(case: Case, ordered: Iterable[Ordered]) -> Case:
    """Name the statements whose extremes or medians are not those of the table."""
    reason = "its answer is not the table's; an extreme or a median is audited only if it is"
    return _with_refused(case, {query: reason for each in ordered for query in each.contradicted})


def _with_refused(case: Case, reasons: Mapping[int, str]) -> Case:
    """The case with more statements among those not audited, all in the order of the log."""
    published = case.publication
    more = (
        RefusedQuery(query, published.lines[query - 1], None, published.statements[query - 1], why)
        for query, why in reasons.items()
    )
    refused = sorted((*published.refused, *more), key=lambda each: each.query)
    return replace(case, publication=replace(published, refused=tuple(refused)))


def _reason(others: Sequence[int]) -> str:
    if not others:
        return "no values of the right type within the bounds give its answer; correct it"
    which = "that" if len(others) == 1 else "those"
    return f"its answer contradicts {which} of {_listed(others)}; correct one of them"


def _listed(queries: Sequence[int]) -> str:
    """Statements in words: query 3, or queries 1, 2 and 3."""
    *first, last = map(str, queries)
    return f"queries {', '.join(first)} and {last}" if first else f"query {last}"
