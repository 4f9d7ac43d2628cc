"""Passes over equations in random order, by whatever step, until they hold or come no nearer.

Where the equations contradict, a step that makes each of them hold never comes to rest. The
averaged form then looks at the average of all points of a pass: where more of the equations hold
there than at its end, the point has only wandered, so it goes on from the average, with smaller
steps. After w such passes the steps are 1 / (1 + w): they fall, and their sum does not stay
bounded, which are the conditions of H. Robbins and S. Monro, "A stochastic approximation method",
1951. Averages are those of B. Polyak and A. Juditsky, "Acceleration of stochastic approximation by
averaging", 1992.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows

Order = Callable[[Rows, np.random.Generator], NDArray[np.int64]]
"""The rows of one pass, as they are to be taken."""

NO_TRAIL: Floats = np.zeros(0)
FEWEST = 16
"""Passes before it is asked whether the second half of them led any further."""


class Sweeper(Protocol):
    """A point that one pass over the equations moves."""

    @property
    def point(self) -> Floats:
        """Where it is."""

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of each step; how many moves that were. `sums` are a trail's."""

    def jump(self, point: Floats) -> None:
        """Go on from another point."""


def drawn_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """As many rows as there are, each drawn by its share of all squared lengths."""
    bands = np.cumsum(equations.lengths**2)
    drawn = random.random(len(bands)) * (bands[-1] if len(bands) else 0.0)
    found: NDArray[np.int64] = np.searchsorted(bands, drawn, side="right").astype(np.int64)
    return np.minimum(found, len(bands) - 1)


def shuffled_rows(equations: Rows, random: np.random.Generator) -> NDArray[np.int64]:
    """Every row once, in random order."""
    return random.permutation(equations.height).astype(np.int64)


def settle(
    work: Sweeper,
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    order: Order,
    tolerance: float,
    most: int,
    progress: Progress | None,
) -> Solved:
    """Go on until the equations hold, or so many passes are made."""
    residual = relative_residual(equations, right)
    done = 0
    while True:
        left = residual(work.point)
        if progress is not None:
            progress(done, left, work.point)
        if left <= tolerance or done == most:
            return Solved(work.point, left, done, converged=left <= tolerance)
        work.sweep(order(equations, random), 1.0, NO_TRAIL)
        done += 1


def settle_averaged(
    work: Sweeper,
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    order: Order,
    tolerance: float,
    most: int,
    progress: Progress | None,
) -> Solved:
    """Go on until the equations hold, or come no nearer to that in as many passes again."""
    residual = relative_residual(equations, right)
    best = Solved(work.point.copy(), residual(work.point), 0, converged=False)
    seen, wandered = [best.residual], 0
    while len(seen) <= most and not _is_settled(seen, tolerance):
        sums = np.zeros(equations.width)
        moves = work.sweep(order(equations, random), 1 / (1 + wandered), sums)
        average = work.point - sums / (moves + 1)
        left, of_average = residual(work.point), residual(average)
        if of_average < left:
            work.jump(average)
            wandered, left = wandered + 1, of_average
        if left < best.residual:
            best = Solved(work.point.copy(), left, len(seen), converged=False)
        if progress is not None:
            progress(len(seen), left, work.point)
        seen.append(left)
    return replace(best, iterations=len(seen) - 1, converged=_is_settled(seen, tolerance))


def _is_settled(seen: list[float], tolerance: float) -> bool:
    """Whether the equations hold, or the second half of the passes led no further."""
    if seen[-1] <= tolerance:
        return True
    half = len(seen) // 2
    return len(seen) > FEWEST and min(seen[:half]) - min(seen) <= tolerance * min(seen)


def relative_residual(equations: Rows, right: Floats) -> Callable[[Floats], float]:
    """How far the equations are from holding at a point, relative to their right sides."""
    target = right / equations.lengths
    size = float(np.linalg.norm(target)) or 1.0
    return lambda point: float(np.linalg.norm(target - equations.times(point))) / size
