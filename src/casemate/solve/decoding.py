"""Decoding by linear programs: answers with noise of any size on a few, or within a bound on all.

Source     Source document 002, "Solving the equations", for answers with noise. The least sum of
           absolute residuals is C. Dwork, F. McSherry and K. Talwar, "The price of privacy and the
           limits of LP decoding", STOC 2007; a point within the noise bound is I. Dinur and
           K. Nissim, "Revealing information while preserving privacy", PODS 2003.
Method     HiGHS. The two that minimise are solved in their dual form, which has a row for each
           unknown and not one for each answer, by the interior-point method; the values are the
           multipliers of its rows. What they lose against the dual bound is checked, and where it
           is too much the simplex method finishes. Residuals count in units of `spread`.
Cost       Grows with the cube of the number of unknowns: 256 of them with 1,024 dense answers take
           0.2 s (0.3 s in the primal form), and least squares a hundredth of that.
"""

from collections.abc import Callable

import numpy as np

from casemate.solve.box_squares import box_squares
from casemate.solve.columns import plain_sums
from casemate.solve.law import spreads
from casemate.solve.least_squares import Progress, Solved
from casemate.solve.linear_program import Status
from casemate.solve.rows import Floats, Rows, ends
from casemate.solve.watched_program import Entries, Outcome, Program, Watcher, run

GAP = 1e-6
"""Values that lose at most this, relative to the least, are called the best."""

KEPT = 1e-6
"""A bound that is exceeded by at most this, relative to the answers, is kept."""

SHOWN_STEPS = 100
"""Steps of the least squares that is shown while a program runs."""

Box = tuple[Floats, Floats]


class NoSuchValues(ValueError):
    """No values in the given ranges agree with the answers as they should."""


def least_absolute(
    equations: Rows,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    spread: Floats | float = 1.0,
    progress: Progress | None = None,
) -> Solved:
    """Values in the box whose absolute residuals, in spreads, add up to the least.

    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1], [1], [1], [1]]))
    >>> least_absolute(rows, np.array([5.0, 5.0, 5.0, 90.0])).values.round(3).tolist()
    [5.0]
    """
    scales, box = spreads(spread, equations.height), ends(low, high, equations.width)
    shares = Entries.of(equations).turned()
    program = _dual(box, -right, (-1 / scales, 1 / scales), (shares,))

    def lost(left: Floats) -> float:
        return float(np.abs(left / scales).sum())

    return _from_dual(equations, right, box, program, lost=lost, progress=progress)


def least_largest(
    equations: Rows,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    spread: Floats | float = 1.0,
    progress: Progress | None = None,
) -> Solved:
    """Values in the box whose largest residual, in spreads, is the least.

    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1], [1], [1]]))
    >>> least_largest(rows, np.array([5.0, 5.0, 9.0])).values.round(3).tolist()
    [7.0]
    """
    height, width = equations.height, equations.width
    scales, box = spreads(spread, height), ends(low, high, width)
    shares = Entries.of(equations).turned()
    both, zeros = np.tile(scales, 2), np.zeros(2 * height)
    total = Entries(np.full(2 * height, width), np.arange(2 * height), both)
    entries = (shares, shares.to_the_right(height, -1.0), total)
    program = _dual(box, np.concatenate([-right, right]), (zeros, zeros + np.inf), entries, total=1)

    def lost(left: Floats) -> float:
        return float(np.abs(left / scales).max(initial=0.0))

    return _from_dual(equations, right, box, program, lost=lost, progress=progress)


def within_noise(
    equations: Rows,
    right: Floats,
    *,
    bound: Floats | float,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    progress: Progress | None = None,
) -> Solved:
    """Values in the box that miss no answer by more than its bound, well inside if there is room.

    `NoSuchValues` is raised where there are none.

    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, 0]]))
    >>> found = within_noise(rows, np.array([2.0, 1.0]), bound=0.0, low=0.0, high=9.0)
    >>> found.values.round(6).tolist()
    [1.0, 1.0]
    """
    bounds, box = np.broadcast_to(bound, equations.height), ends(low, high, equations.width)
    if not (bounds >= 0).all():
        raise ValueError("a bound on the noise must not be negative")
    sides = right - bounds, right + bounds
    program = Program(np.zeros(equations.width), *box, *sides, (Entries.of(equations),))
    watch = _watcher(equations, right, box, progress)
    slack = KEPT * (1 + float(np.abs(right).max(initial=0.0)))
    found = run(program, watch=watch, solver="ipm", run_crossover="off")
    for solver in ("simplex", None):
        values = np.clip(found.point, *box)
        left = np.abs(right - plain_sums(equations, values))
        if found.status is Status.OPTIMAL and (left <= bounds + slack).all():
            return _solved(equations, right, values, found.steps, done=True)
        if solver is None or found.status is Status.INFEASIBLE:
            break
        found = run(program, watch=watch, solver=solver)
    raise NoSuchValues(
        "no values in the given ranges bring every answer within its noise bound; "
        "widen the bound or the ranges"
    )


def _dual(
    box: Box, cost: Floats, between: Box, entries: tuple[Entries, ...], total: int = 0
) -> Program:
    """Prices of the answers and of the ends of each unknown's range that cancel for every unknown.

    `total` is 1 where a last row adds up the prices to at most 1. An absent end has no price.
    """
    width, prices = len(box[0]), len(cost)
    at_high = Entries.diagonal(-np.ones(width), 0, prices)
    at_low = Entries.diagonal(np.ones(width), 0, prices + width)
    has_low, has_high = np.isfinite(box[0]), np.isfinite(box[1])
    return Program(
        np.concatenate([cost, np.where(has_high, box[1], 0.0), np.where(has_low, -box[0], 0.0)]),
        np.concatenate([between[0], np.zeros(2 * width)]),
        np.concatenate([between[1], *(np.where(has, np.inf, 0.0) for has in (has_high, has_low))]),
        np.concatenate([np.zeros(width), np.full(total, -np.inf)]),
        np.concatenate([np.zeros(width), np.ones(total)]),
        (*entries, at_high, at_low),
    )


def _from_dual(
    equations: Rows,
    right: Floats,
    box: Box,
    program: Program,
    *,
    lost: Callable[[Floats], float],
    progress: Progress | None,
) -> Solved:
    """The values behind the prices, proved by what the prices add up to."""
    watch = _watcher(equations, right, box, progress)

    def values(found: Outcome) -> tuple[Floats, bool]:
        point = np.clip(-found.multipliers[: equations.width], *box)
        loss = lost(right - plain_sums(equations, point))
        close = loss + found.cost <= GAP * (1 + abs(loss))
        return point, found.status is Status.OPTIMAL and close

    found = run(program, watch=watch, solver="ipm", run_crossover="off")
    point, proved = values(found)
    if not proved:
        found = run(program, watch=watch, solver="simplex")
        point, proved = values(found)
    return _solved(equations, right, point, found.steps, proved)


def _watcher(equations: Rows, right: Floats, box: Box, progress: Progress | None) -> Watcher | None:
    """Tell of the steps; before these methods end, least squares is all there is to show."""
    if progress is None:
        return None
    low, high = box
    shown = box_squares(equations, right, low=low, high=high, tolerance=1e-2, most=SHOWN_STEPS)
    return lambda steps, _: progress(steps, shown.residual, shown.values)


def _solved(equations: Rows, right: Floats, values: Floats, steps: int, done: bool) -> Solved:
    scaled = right / equations.lengths
    size = float(np.linalg.norm(scaled)) or 1.0
    rest = float(np.linalg.norm(scaled - equations.times(values)))
    return Solved(values, rest / size, steps, converged=done)
