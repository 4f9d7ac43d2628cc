"""Equations divided by the deviation of their noise: where least squares is at its best.

Source     Source document 002, "Solving the equations", min |A x - b|; C. F. Gauss and A. C. Aitken
           for the weights: of all linear estimates without bias, the one that divides every
           equation by the deviation of its noise has the least variance for every unknown at once.
Departure  Values that are known are not unknowns here: what they add to an answer is taken off.
           A total that is known counts as one more answer with very little noise.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from casemate.attack.problem import Problem
from casemate.solve.rows import Floats, Passes, Rows

SILENT = 1e-3
"""The deviation of an answer without noise, beside the smallest one that has some."""

UNSTORED = 16
"""Cells of equations that are not stored which cost as much to pass as a stored entry."""

Flags = NDArray[np.bool_]


def weights(problem: Problem) -> Floats:
    """What to multiply scaled equations by so that least squares has the least variance.

    For `solve.robust.Weighted`: with these weights every equation counts by the inverse of its
    noise's deviation. Without a stated law the noises are supposed to differ by `spread` alone.
    The typical weight is 1; where all noises and lengths are alike, all are.

    >>> weights(Problem.of([[1, 1], [1, 1], [1, 0]], [5, 5, 2])).round(3).tolist()
    [1.0, 1.0, 0.707]
    """
    found = problem.equations.lengths / _relative_deviations(problem)
    return np.asarray(found / (np.median(found) if len(found) else 1.0))


def _relative_deviations(problem: Problem) -> Floats:
    """How the deviations of the noises compare; none of them is 0."""
    spread = np.abs(problem.spread)
    least = float(spread[spread > 0].min(initial=np.inf))
    return np.maximum(spread, SILENT * (least if np.isfinite(least) else 1.0))


@dataclass(frozen=True, eq=False)
class Standard:
    """Equations in the free unknowns whose noises all have the deviation of an answer of spread 1.

    It is a `Passes` whose rows have length 1 by decree: right sides are divided already.
    """

    equations: Passes
    factors: Floats  # what the scaled equations are multiplied by; 0 leaves one out
    target: Floats
    free: NDArray[np.int64]
    total: float = 0.0  # what the sum of the free unknowns is multiplied by; 0 without a total
    used: int = field(default=0)

    @classmethod
    def of(cls, problem: Problem, trusted: Flags | None = None) -> "Standard":
        """The equations of a problem, without those that are not trusted."""
        equations, deviations = problem.equations, _relative_deviations(problem)
        kept = np.ones(equations.height, np.bool_) if trusted is None else trusted
        given = problem.low == problem.high
        known = np.where(given, problem.low, 0.0)
        left = problem.answers - equations.lengths * equations.times(known)
        target = np.where(kept, left / deviations, 0.0)
        factors = np.where(kept, equations.lengths / deviations, 0.0)
        total = 0.0
        if problem.total is not None:
            total = 1 / (SILENT * float(deviations.min(initial=1.0)))
            target = np.append(target, total * (problem.total - known.sum()))
        used = int(kept.sum()) + (problem.total is not None)
        return cls(equations, factors, target, np.flatnonzero(~given), total, used)

    @property
    def height(self) -> int:
        """How many equations there are, the total among them."""
        return len(self.target)

    @property
    def width(self) -> int:
        """How many unknowns are free."""
        return len(self.free)

    @property
    def lengths(self) -> Floats:
        """What right sides are still to be divided by: 1."""
        return np.ones(self.height)

    @property
    def entries(self) -> float:
        """How many entries a pass reads; a guess where they are not stored."""
        if isinstance(self.equations, Rows):
            return float(max(len(self.equations.columns), 1))
        return max(self.equations.height * self.equations.width / UNSTORED, 1.0)

    def times(self, point: Floats) -> Floats:
        """What each equation comes to at a point."""
        found = self.factors * self.equations.times(self._everywhere(point))
        return np.append(found, self.total * point.sum()) if self.total else found

    def transposed(self, weights: Floats) -> Floats:
        """The equations multiplied by weights and added up."""
        own = weights[: self.equations.height]
        found = self.equations.transposed(self.factors * own)[self.free]
        return found + self.total * weights[-1] if self.total else found

    def dense(self) -> Floats:
        """All the equations as a matrix, without those that are left out."""
        if isinstance(self.equations, Rows):
            matrix = _filled(self.equations)
            matrix = matrix if self.width == matrix.shape[1] else matrix[:, self.free]
            matrix *= (self.factors / self.equations.lengths)[:, None]
        else:
            units = (self._unit(place) for place in self.free)
            passes = [self.factors * self.equations.times(unit) for unit in units]
            matrix = np.array(passes).reshape(self.width, self.equations.height).T
        if self.total:
            matrix = np.vstack([matrix, np.full(self.width, self.total)])
        return matrix

    def _everywhere(self, point: Floats) -> Floats:
        if self.width == self.equations.width:
            return point
        found = np.zeros(self.equations.width)
        found[self.free] = point
        return found

    def _unit(self, place: np.int64) -> Floats:
        unit = np.zeros(self.equations.width)
        unit[place] = 1.0
        return unit


def _filled(rows: Rows) -> Floats:
    """Stored equations as a matrix, not scaled."""
    matrix = np.zeros((rows.height, rows.width))
    row = np.repeat(np.arange(rows.height), np.diff(rows.starts))
    np.add.at(matrix, (row, rows.columns), 1.0 if rows.values is None else rows.values)
    return matrix
