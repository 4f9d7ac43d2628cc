"""The range that equations leave to an unknown when their noise cannot pass a bound.

Source     Source document 002, "Incorporating background knowledge": bounds and equations together
           leave less than either.
Method     Propagation: what an equation leaves to one unknown when the others are at their ends;
           then, for small systems, the least and the greatest value by linear programs. Both in
           doubles, widened by their tolerance: this is an attacker's estimate, not an auditor's
           proof (`solve.bounds`).
Guarantee  Where the slack is true, the true value is in its range.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.reconstruct.problem import Problem
from casemate.attack.solvers.watched_program import Program, as_sparse, loaded
from casemate.exact import Floats, Rows

PASSES = 10
ROUNDING = 1e-9
"""Ranges are widened by this much of the numbers they are computed from."""

PROGRAM_TOLERANCE = 1e-7
MOST_PROGRAM_WORK = 2e5
"""Entries times unknowns that are asked for; above this there are no programs."""


@dataclass(frozen=True, eq=False)
class _Ranged:
    """Sparse equations, not scaled, that come to something between two numbers."""

    matrix: Any
    low: Floats
    high: Floats


def leftover(problem: Problem, slack: Floats, places: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The range of every unknown, tightest for those asked for, if no noise passes its slack.

    Without stored equations, or where they contradict each other at this slack, it is the range
    known before.

    >>> from casemate.attack.reconstruct.problem import Prior
    >>> problem = Problem.of([[1, 1]], [10.0], Prior(low=0.0, high=np.array([3.0, 20.0])))
    >>> low, high = leftover(problem, np.zeros(1), np.arange(2))
    >>> low.round(6).tolist(), high.round(6).tolist()
    ([0.0, 7.0], [3.0, 10.0])
    """
    if not isinstance(problem.equations, Rows):
        return problem.low, problem.high
    ranged = _stated(problem, problem.equations, slack)
    low, high = _propagated(ranged, problem.low, problem.high)
    if ranged.matrix.nnz * len(places) <= MOST_PROGRAM_WORK:
        low, high = _programmed(ranged, low, high, places)
    crossed = (low > high).any()
    return (problem.low, problem.high) if crossed else (low, high)


def _stated(problem: Problem, equations: Rows, slack: Floats) -> _Ranged:
    """Everything a problem says without doubt, as rows with two ends."""
    from scipy.sparse import csr_array, vstack

    answers, limits = problem.answers, problem.limits
    parts = [(as_sparse(equations), answers - slack, answers + slack)]
    if limits is not None:
        parts.append((as_sparse(limits.rows), limits.low, limits.high))
    if problem.total is not None:
        total = np.array([problem.total])
        parts.append((csr_array(np.ones((1, equations.width))), total, total))
    matrices, lows, highs = zip(*parts, strict=True)
    return _Ranged(vstack(matrices).tocoo(), np.concatenate(lows), np.concatenate(highs))


def _propagated(ranged: _Ranged, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """What each equation, alone with the ends of the others, leaves to an unknown."""
    for _ in range(PASSES):
        before = low, high
        low, high = _one_pass(ranged, low, high)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _one_pass(ranged: _Ranged, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    row, column, value = ranged.matrix.row, ranged.matrix.col, ranged.matrix.data
    up = value > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        least = value * np.where(up, low[column], high[column])
        most = value * np.where(up, high[column], low[column])
        room_above = ranged.high[row] - _others(least, row, len(ranged.low), -np.inf)
        room_below = ranged.low[row] - _others(most, row, len(ranged.low), np.inf)
        above = np.where(up, room_above, room_below) / value
        below = np.where(up, room_below, room_above) / value
    size = np.abs(np.where(np.isfinite(least), least, 0)) + np.abs(ranged.high[row])
    loose = ROUNDING * np.where(np.isfinite(size), size + np.abs(above), 0.0)
    new_low, new_high = low.copy(), high.copy()
    np.minimum.at(new_high, column, np.where(np.isnan(above), np.inf, above + loose))
    np.maximum.at(new_low, column, np.where(np.isnan(below), -np.inf, below - loose))
    return _worth_it(low, new_low, high - low), _worth_it(high, new_high, high - low)


def _others(terms: Floats, row: NDArray[np.int64], rows: int, open_end: float) -> Floats:
    """The sum of the other terms of each term's equation; infinite where one of them is."""
    is_open = ~np.isfinite(terms)
    closed = np.where(is_open, 0.0, terms)
    sums = np.bincount(row, closed, rows)
    opens = np.bincount(row, is_open, rows)
    return np.where(opens[row] > is_open, open_end, sums[row] - closed)


def _worth_it(old: Floats, new: Floats, width: Floats) -> Floats:
    """The new ends, except gains too small to go on for."""
    with np.errstate(invalid="ignore"):
        crumb = np.abs(new - old) <= 1e-3 * width
    return np.where(crumb & np.isfinite(width), old, new)


def _programmed(
    ranged: _Ranged, low: Floats, high: Floats, places: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """The least and the greatest value of some unknowns by linear programs, one after another."""
    import highspy

    ends = low, high, ranged.low, ranged.high
    highs = loaded(Program(np.zeros(len(low)), *ends, ranged.matrix))
    found_low, found_high = low.copy(), high.copy()
    for place in places.tolist():
        for sign, found, better in ((1.0, found_low, max), (-1.0, found_high, min)):
            highs.changeColCost(place, sign)
            highs.run()
            if highs.getModelStatus() == highspy.HighsModelStatus.kOptimal:
                end = float(highs.getSolution().col_value[place])
                loose = PROGRAM_TOLERANCE * (1 + abs(end))
                found[place] = better(found[place], end - sign * loose)
            highs.changeColCost(place, 0.0)
    return found_low, found_high
