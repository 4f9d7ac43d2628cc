"""Least squares with convex knowledge: ranges, known values, totals, other sums, sparsity.

Source     Source document 002, "Incorporating background knowledge as constraints": a convex solver
           over the unknowns; sparsity is R. Tibshirani's lasso (J. Royal Statistical Society B 58,
           1996), here towards any centre.
Method     Accelerated projected gradients, where a range for each unknown, one total and sparsity
           are met exactly at every step. Other sums are met by the method of multipliers
           (D. Bertsekas, Constrained Optimization and Lagrange Multiplier Methods, 1982): each
           round minimises the residuals and the squared distance of shifted sums from their
           ranges, then shifts them.
Which      Many points may fit equally well. Without sparsity the one nearest to `centre` is found:
           the sums at which all of them agree become constraints of a second descent, which is not
           needed where no constraint was met on the way from the centre. With sparsity few values
           depart from the centre, and which of several minimisers is found is not promised.
Converged  Like `projected_gradient`; constraints besides ranges and the total hold to `tolerance`,
           relative to their size.
Cost       Two passes a step; hundreds to thousands of steps. `box_squares` is faster for ranges.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from casemate.solve.bowls import Ranges
from casemate.solve.least_squares import Progress, Solved, after, descend
from casemate.solve.multipliers import Fitted, Nearby, possible
from casemate.solve.projected_gradient import Residuals
from casemate.solve.projections import Allowed, Total
from casemate.solve.rows import Floats, Passes


def convex(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    total: Total | None = None,
    also: Ranges | None = None,
    sparsity: float = 0.0,
    centre: Floats | float = 0.0,
    tolerance: float = 1e-6,
    most: int = 20_000,
    progress: Progress | None = None,
) -> Solved:
    """The allowed point at which the equations come closest to holding, nearest to the centre.

    A value is known where its low and high end are equal. With `sparsity`, what is minimised is
    half the squared residual of the scaled equations and `sparsity` times the sum of all
    departures from the centre.

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0]]))
    >>> known = Total.of(3, 9.0)
    >>> convex(rows, np.array([6.0]), low=0.0, total=known, centre=1.0).values.round(3).tolist()
    [3.0, 3.0, 3.0]
    """
    allowed = Allowed.of(equations.width, low, high, total)
    middle = np.broadcast_to(centre, equations.width).astype(np.float64)
    if also is not None and not possible(allowed, also):
        raise ValueError("no values keep all constraints at once; drop or widen one of them")

    def nearest(point: Floats, length: float) -> Floats:
        return allowed.pulled(point, middle, sparsity * length)

    way: dict[str, Any] = {"nearest": nearest, "start": middle, "pull": sparsity > 0}
    work = (
        Residuals(equations, right, **way)
        if also is None
        else Fitted(equations, right, also=also, **way)
    )
    found = descend(work, tolerance, most, progress)
    if sparsity > 0 or (isinstance(work, Residuals) and not work.met_a_constraint):
        return found
    again = Nearby(equations, right, good=found.values, centre=middle, allowed=allowed, also=also)
    closer = descend(again, tolerance, most, after(progress, found.iterations))
    steps, done = found.iterations + closer.iterations, found.converged and closer.converged
    return replace(closer, iterations=steps, converged=done)


def with_few_departures(
    equations: Passes,
    right: Floats,
    *,
    departures: int,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    sparsity: float = 0.0,
    centre: Floats | float = 0.0,
    tolerance: float = 1e-6,
    most: int = 20_000,
    progress: Progress | None = None,
) -> Solved:
    """A good point at which at most so many values depart from the centre.

    Those that depart most in the solution of `convex` may; the others are set to the centre, and
    the rest is solved again. The choice is a guess: finding the best one is as hard as searching.

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 1, 1]]))
    >>> with_few_departures(rows, np.array([2.0, 2.0]), departures=1).values.round(3).tolist()
    [0.0, 2.0, 0.0]
    """
    below, above = (np.broadcast_to(end, equations.width) for end in (low, high))
    middle = np.clip(np.broadcast_to(centre, equations.width), below, above)
    first = convex(
        equations,
        right,
        low=low,
        high=high,
        sparsity=sparsity,
        centre=middle,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )
    order = np.argsort(-np.abs(first.values - middle), kind="stable")
    fixed = np.ones(equations.width, np.bool_)
    fixed[order[:departures]] = False
    second = convex(
        equations,
        right,
        low=np.where(fixed, middle, below),
        high=np.where(fixed, middle, above),
        centre=middle,
        tolerance=tolerance,
        most=most,
        progress=after(progress, first.iterations),
    )
    return replace(second, iterations=first.iterations + second.iterations)
