"""Least absolute deviations: answers that are plainly wrong are outvoted, not averaged in.

Source     Source document 002, "Solving the equations", for published numbers some of which are
           junk; decoding by least absolute deviations is C. Dwork, F. McSherry and K. Talwar, "The
           price of privacy and the limits of LP decoding", STOC 2007.
Method     Reweighted least squares: each round weighs an equation by the inverse of what was left
           of it, at least a floor that falls from round to round; each round starts where the last
           one ended. `is_heavy_tailed` says when plain least squares leaves residuals that no
           bell-shaped noise would.
"""

import numpy as np

from casemate.solve.least_squares import Progress, Solved, least_squares
from casemate.solve.rows import Floats, Passes
from casemate.solve.views import Weighted

ROUNDS = 40
FALL = 0.6
"""The floor of residuals, from round to round."""

HEAVY = 6.0
"""Fourth moment over squared second: 3 for a bell, below it for uniform noise."""


def least_deviations(
    equations: Passes,
    right: Floats,
    *,
    tolerance: float = 1e-6,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> Solved:
    """A point at which the absolute residuals of the equations add up to about the least.

    >>> from casemate.solve.rows import Rows
    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1], [1], [1], [1]]))
    >>> least_deviations(rows, np.array([5.0, 5.0, 5.0, 90.0])).values.round(3).tolist()
    [5.0]
    """
    target = right / equations.lengths
    size = float(np.linalg.norm(target)) or 1.0
    found = least_squares(equations, right, tolerance=tolerance)
    steps, floor, settled = found.iterations, np.inf, False
    for _ in range(rounds):
        left = np.abs(target - equations.times(found.values))
        floor = min(FALL * floor, float(np.median(left)))
        settled = settled or floor <= tolerance * size / max(1.0, np.sqrt(len(left)))
        if settled:
            break
        weighted = Weighted(equations, 1 / np.sqrt(np.maximum(left, floor)))
        before = found.values
        found = least_squares(weighted, right, start=before, tolerance=tolerance)
        steps += found.iterations
        if progress is not None:
            progress(steps, float(np.linalg.norm(left)) / size, found.values)
        settled = bool(np.abs(found.values - before).max(initial=0) <= tolerance)
    left = target - equations.times(found.values)
    return Solved(found.values, float(np.linalg.norm(left)) / size, steps, converged=settled)


def is_heavy_tailed(residuals: Floats) -> bool:
    """Whether a few residuals are larger than noise of one scale would leave them."""
    second = float(np.mean(residuals**2)) if len(residuals) else 0.0
    return second > 0 and float(np.mean(residuals**4)) > HEAVY * second**2
