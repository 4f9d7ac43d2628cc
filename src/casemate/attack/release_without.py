"""The same release made without some people: what would have been published had they stayed away.

Equation by equation, what they contributed is taken off the published number, and the noise stays
as it was. Rounding is no such noise: what is left of the sum is rounded again, because the part
that was cut off depends on everybody.
"""

from dataclasses import replace

import numpy as np

from casemate.attack.features import Places
from casemate.attack.problem import Limits, Problem
from casemate.attack.subjects import Bits
from casemate.solve.rows import Floats, Passes, Rows
from casemate.solve.views import Freed


def release_without(problem: Problem, truth: Floats, unknowns: Places) -> Problem:
    """The problem as it would be if these unknowns were nobody's: they are 0 and in no equation.

    Nothing of it depends on what their true values are.
    """
    own = np.zeros(problem.equations.width)
    own[unknowns] = truth[unknowns]
    low, high = problem.low.copy(), problem.high.copy()
    low[unknowns] = high[unknowns] = 0.0
    total = None if problem.total is None else problem.total - float(own.sum())
    return replace(
        problem,
        equations=_struck(problem.equations, unknowns),
        answers=_answers(problem, truth, own, unknowns),
        low=low,
        high=high,
        limits=_limits(problem.limits, own, unknowns),
        total=total,
    )


def _answers(problem: Problem, truth: Floats, own: Floats, unknowns: Places) -> Floats:
    law = problem.noise
    if law is None or law.kind != "round":
        return problem.answers - sums(problem.equations, own)
    others = truth.copy()
    others[unknowns] = 0.0
    exact = sums(problem.equations, others) / problem.spread + problem.public
    shown = np.round(exact / law.scale) * law.scale
    return np.asarray((shown - problem.public) * problem.spread)


def _struck(equations: Passes, unknowns: Places) -> Passes:
    kept = np.ones(equations.width, np.bool_)
    kept[unknowns] = False
    if not isinstance(equations, Rows):
        return Freed(equations, kept)
    return _rows(equations, kept[equations.columns])


def _rows(rows: Rows, inside: Bits) -> Rows:
    """Only these entries."""
    before = np.concatenate([[0], np.cumsum(inside)])
    values = None if rows.values is None else rows.values[inside]
    return Rows(before[rows.starts], rows.columns[inside], values, rows.width)


def _limits(limits: Limits | None, own: Floats, unknowns: Places) -> Limits | None:
    if limits is None:
        return None
    taken = sums(limits.rows, own)
    kept = np.ones(limits.rows.width, np.bool_)
    kept[unknowns] = False
    rows = _rows(limits.rows, kept[limits.rows.columns])
    return Limits(rows, limits.low - taken, limits.high - taken)


def sums(equations: Passes, point: Floats) -> Floats:
    """What each equation comes to before it is scaled; exactly, of stored whole numbers."""
    if not isinstance(equations, Rows):
        return equations.times(point) * equations.lengths
    from casemate.solve.rows_kernel import times

    found = np.empty(equations.height)
    values = np.zeros(0) if equations.values is None else equations.values
    times(equations.starts, equations.columns, values, point, found)
    return found
