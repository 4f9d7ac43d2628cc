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
from casemate.exact import Floats, Rows

PASSES = 10
ROUNDING = 1e-9
"""Ranges are widened by this much of the numbers they are computed from."""

PROGRAM_TOLERANCE = 1e-7
MOST_PROGRAM_WORK = 2e5
"""Entries times unknowns that are asked for; above this there are no programs."""


@dataclass(frozen=True, eq=False)
class _Ranged:
    """Stored equations, not scaled, that come to something between two numbers."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, rows: Rows, low: Floats, high: Floats) -> "_Ranged":
        plain = np.ones(len(rows.columns)) if rows.values is None else rows.values
        return cls(rows.starts, rows.columns.astype(np.int64), plain, low, high)

    def with_more(self, more: "_Ranged") -> "_Ranged":
        return _Ranged(
            np.concatenate([self.starts, self.starts[-1] + more.starts[1:]]),
            np.concatenate([self.columns, more.columns]),
            np.concatenate([self.values, more.values]),
            np.concatenate([self.low, more.low]),
            np.concatenate([self.high, more.high]),
        )


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
    if len(ranged.columns) * len(places) <= MOST_PROGRAM_WORK:
        low, high = _programmed(ranged, low, high, places)
    crossed = (low > high).any()
    return (problem.low, problem.high) if crossed else (low, high)


def _stated(problem: Problem, equations: Rows, slack: Floats) -> _Ranged:
    """Everything a problem says without doubt, as rows with two ends."""
    found = _Ranged.of(equations, problem.answers - slack, problem.answers + slack)
    if problem.limits is not None:
        limits = problem.limits
        found = found.with_more(_Ranged.of(limits.rows, limits.low, limits.high))
    if problem.total is not None:
        width, total = equations.width, np.array([problem.total])
        every = np.arange(width)
        sum_of_all = _Ranged(np.array([0, width]), every, np.ones(width), total, total)
        found = found.with_more(sum_of_all)
    return found


def _propagated(ranged: _Ranged, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """What each equation, alone with the ends of the others, leaves to an unknown."""
    row = np.repeat(np.arange(len(ranged.low)), np.diff(ranged.starts))
    for _ in range(PASSES):
        before = low, high
        low, high = _one_pass(ranged, row, low, high)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _one_pass(
    ranged: _Ranged, row: NDArray[np.int64], low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    column, value = ranged.columns, ranged.values
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

    highs = _model(ranged, low, high)
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


def _model(ranged: _Ranged, low: Floats, high: Floats) -> Any:
    import highspy

    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(low), len(ranged.low)
    model.col_cost_ = np.zeros(len(low))
    model.col_lower_, model.col_upper_ = low, high
    model.row_lower_, model.row_upper_ = ranged.low, ranged.high
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = ranged.starts.astype(np.int32)
    model.a_matrix_.index_ = ranged.columns.astype(np.int32)
    model.a_matrix_.value_ = ranged.values
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1}.items():
        highs.setOptionValue(name, value)
    highs.passModel(model)
    return highs
