"""The method of multipliers: sums that must lie in ranges, shifted until they do.

Method     Each round goes down the objective and the squared distance of shifted sums from their
           ranges, then shifts each sum by what it lies outside; the weight of the distance grows
           fourfold when a round has not brought the sums four times nearer. Rounds are short at
           first and become exact.
"""

import numpy as np

from casemate.solve.bowls import Bowl, Distance, Ranges, Squares, Stacked, Walls
from casemate.solve.linear_program import Status
from casemate.solve.projected_gradient import Accelerated, Nearest
from casemate.solve.projections import Allowed
from casemate.solve.rows import Floats, Passes
from casemate.solve.watched_program import Entries, Program, run

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


class Fitted:
    """Least squares among allowed points with sums in ranges, for `descend`."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        *,
        also: Ranges,
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
        also: Ranges | None,
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


def possible(allowed: Allowed, also: Ranges) -> bool:
    """Whether some values keep all constraints at once, by a linear program."""
    width, height = len(allowed.low), also.rows.height
    entries, low, high = [Entries.of(also.rows)], also.low, also.high
    if allowed.total is not None:
        weights = allowed.total.weights
        entries.append(Entries(np.full(width, height), np.arange(width), weights))
        low, high = np.append(low, allowed.total.low), np.append(high, allowed.total.high)
    program = Program(np.zeros(width), allowed.low, allowed.high, low, high, tuple(entries))
    return run(program).status is not Status.INFEASIBLE


def _walls(rows: Passes, ranges: Ranges) -> Walls:
    low, high = ranges.low / rows.lengths, ranges.high / rows.lengths
    return Walls(rows, low, high, np.zeros(rows.height), FIRST_WEIGHT)


def _fit(equations: Passes, good: Floats, also: Ranges | None) -> Walls:
    """The sums that a good point has, and what other sums must keep."""
    sums = equations.times(good)
    if also is None:
        return Walls(equations, sums, sums, np.zeros(equations.height), FIRST_WEIGHT)
    others = _walls(also.rows, also)
    low, high = np.concatenate([sums, others.low]), np.concatenate([sums, others.high])
    return Walls(Stacked(equations, also.rows), low, high, np.zeros(len(low)), FIRST_WEIGHT)


def _length(end: Floats) -> float:
    return float(np.linalg.norm(np.where(np.isfinite(end), end, 0.0)))
