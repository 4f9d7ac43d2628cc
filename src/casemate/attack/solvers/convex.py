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

The method of multipliers: sums that must lie in ranges, shifted until they do.

Method     Each round goes down the objective and the squared distance of shifted sums from their
           ranges, then shifts each sum by what it lies outside; the weight of the distance grows
           fourfold when a round has not brought the sums four times nearer. Rounds are short at
           first and become exact.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from casemate.attack.solvers.convex_losses import (
    Bowl,
    Distance,
    RangeConstraints,
    Squares,
    Stacked,
    Walls,
)
from casemate.attack.solvers.least_squares import Progress, Solved, after, descend
from casemate.attack.solvers.projected_gradient import (
    Accelerated,
    Allowed,
    Nearest,
    Residuals,
    TotalRange,
)
from casemate.attack.solvers.watched_program import Entries, Program, run
from casemate.exact import Floats, Passes, Status

FIRST_WEIGHT = 10.0
"""Of the squared distance from the ranges."""

GROWTH = 4.0

HOLDS = 1e-11
"""Sums that are outside their ranges by this, relative to their size, are inside."""

FIRST_GOAL, LAST_GOAL = 1e-2, 1e-11
"""How flat the way is when the first round ends, and when the last one does."""

SHARPER = 0.2
"""How much flatter each round ends than the one before."""


class Rounds:
    """A point on its way down an objective to sums in their ranges."""

    def __init__(self, bowl: Bowl, walls: Walls, nearest: Nearest, start: Floats) -> None:
        self._bowl, self._walls, self._nearest = bowl, walls, nearest
        self._size = max(1.0, *(_length(end) for end in (walls.low, walls.high)))
        self._work = Accelerated([bowl, walls], nearest, start)
        self._goal, self._last = FIRST_GOAL, np.inf
        self.flatness = np.inf  # of the way with the multipliers that a round ending now would set

    @property
    def point(self) -> Floats:
        """Where it is."""
        return self._work.point

    @property
    def images(self) -> list[Floats]:
        """What the objective sees of the point, and what the sums come to."""
        return self._work.images

    @property
    def violation(self) -> float:
        """How far sums lie outside their ranges, relative to their size."""
        sums = self._work.images[1]
        outside = sums - np.clip(sums, self._walls.low, self._walls.high)
        return float(np.linalg.norm(outside)) / self._size

    def step(self, scale: float) -> None:
        """One step down; a new round where the way has become flat enough for its scale."""
        self._work.step()
        self.flatness = self._work.flatness
        if self.flatness <= self._goal * scale:
            self._next_round()

    def _next_round(self) -> None:
        walls, violation = self._walls, self.violation
        shift, weight = walls.beyond(self._work.images[1]), walls.weight
        if violation > max(HOLDS, self._last / GROWTH):
            shift, weight = shift / GROWTH, weight * GROWTH
        self._last = min(violation, self._last)
        self._goal = max(LAST_GOAL, SHARPER * self._goal)
        self._walls = Walls(walls.rows, walls.low, walls.high, shift, weight)
        self._work = Accelerated([self._bowl, self._walls], self._nearest, self.point)


class ConstrainedLeastSquares:
    """Least squares among allowed points with sums in ranges, for `descend`."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        *,
        also: RangeConstraints,
        nearest: Nearest,
        start: Floats,
        pull: bool,
    ) -> None:
        self._pull = pull
        self._target = right / equations.lengths
        self._size = float(np.linalg.norm(self._target)) or 1.0
        bowl = Squares(equations, self._target)
        self._rounds = Rounds(bowl, _walls(also.rows, also), nearest, start)
        self.point, self.steps = self._rounds.point, 0

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._rounds.images[0] - self._target)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether sums lie in their ranges, and the equations hold or no way leads nearer."""
        flat = self._rounds.flatness <= tolerance * self._size * self.residual
        holds = self.residual <= tolerance and not self._pull
        return self._rounds.violation <= tolerance and (flat or holds)

    def step(self) -> None:
        """Go on."""
        self._rounds.step(self._size)
        self.point, self.steps = self._rounds.point, self.steps + 1


class Nearby:
    """The allowed point nearest to a centre that fits as well as a given one, for `descend`."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        *,
        good: Floats,
        centre: Floats,
        allowed: Allowed,
        also: RangeConstraints | None,
    ) -> None:
        self._target, self._height = right / equations.lengths, equations.height
        self._size = float(np.linalg.norm(self._target)) or 1.0
        self._scale = max(1.0, float(np.linalg.norm(good - centre)))
        walls = _fit(equations, good, also)
        self._rounds = Rounds(Distance(centre), walls, lambda p, _: allowed.nearest(p), good)
        self.point, self.steps = self._rounds.point, 0

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        sums = self._rounds.images[1][: self._height]
        return float(np.linalg.norm(sums - self._target)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether it fits as well, and no way leads nearer to the centre."""
        flat = self._rounds.flatness <= tolerance * self._scale
        return flat and self._rounds.violation <= tolerance

    def step(self) -> None:
        """Go on."""
        self._rounds.step(self._scale)
        self.point, self.steps = self._rounds.point, self.steps + 1


def possible(allowed: Allowed, also: RangeConstraints) -> bool:
    """Whether some values keep all constraints at once, by a linear program."""
    width, height = len(allowed.low), also.rows.height
    entries, low, high = [Entries.of(also.rows)], also.low, also.high
    if allowed.total is not None:
        weights = allowed.total.weights
        entries.append(Entries(np.full(width, height), np.arange(width), weights))
        low, high = np.append(low, allowed.total.low), np.append(high, allowed.total.high)
    program = Program(np.zeros(width), allowed.low, allowed.high, low, high, tuple(entries))
    return run(program).status is not Status.INFEASIBLE


def _walls(rows: Passes, ranges: RangeConstraints) -> Walls:
    low, high = ranges.low / rows.lengths, ranges.high / rows.lengths
    return Walls(rows, low, high, np.zeros(rows.height), FIRST_WEIGHT)


def _fit(equations: Passes, good: Floats, also: RangeConstraints | None) -> Walls:
    """The sums that a good point has, and what other sums must keep."""
    sums = equations.times(good)
    if also is None:
        return Walls(equations, sums, sums, np.zeros(equations.height), FIRST_WEIGHT)
    others = _walls(also.rows, also)
    low, high = np.concatenate([sums, others.low]), np.concatenate([sums, others.high])
    return Walls(Stacked(equations, also.rows), low, high, np.zeros(len(low)), FIRST_WEIGHT)


def _length(end: Floats) -> float:
    return float(np.linalg.norm(np.where(np.isfinite(end), end, 0.0)))


# Convex -----------------------------------------------------------------------------------------


def convex(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    total: TotalRange | None = None,
    also: RangeConstraints | None = None,
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

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
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
        else ConstrainedLeastSquares(equations, right, also=also, **way)
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

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
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
