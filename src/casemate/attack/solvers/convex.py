"""Least squares with convex knowledge: ranges, known values, totals, other sums, sparsity.

Source     Source document 002, "Incorporating background knowledge as constraints": a convex solver
           over the unknowns; sparsity is R. Tibshirani's lasso (J. Royal Statistical Society B 58,
           1996), here towards any centre.
Method     Accelerated projected gradients, where a range for each unknown, one total and sparsity
           are met exactly at every step. Other sums are met by the augmented Lagrangian.
Which      Many points may fit equally well. Without sparsity the one nearest to `centre` is found:
           the sums at which all of them agree become constraints of a second descent, which is not
           needed where no constraint was met on the way from the centre. With sparsity few values
           depart from the centre, and which of several minimisers is found is not promised.
Converged  Like `projected_gradient`; constraints besides ranges and the total hold to `tolerance`,
           relative to their size.
Cost       Two passes a step; hundreds to thousands of steps. `box_squares` is faster for ranges.
"""

from dataclasses import replace

import numpy as np

from casemate.attack.solvers.convex_losses import (
    RangeConstraints,
    RangePenalty,
    SquaredDistance,
    Stacked,
)
from casemate.attack.solvers.iteration import Progress, Solved, after, iterate, norm
from casemate.attack.solvers.projected_gradient import (
    FIRST_WEIGHT,
    AugmentedLagrangian,
    ConstrainedLeastSquares,
)
from casemate.attack.solvers.projections import Allowed, TotalRange
from casemate.attack.solvers.watched_program import Program, as_sparse, run
from casemate.exact import Floats, Passes, Status


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
    >>> known = TotalRange.of(3, 9.0)
    >>> convex(rows, np.array([6.0]), low=0.0, total=known, centre=1.0).values.round(3).tolist()
    [3.0, 3.0, 3.0]
    """
    allowed = Allowed.of(equations.width, low, high, total)
    middle = np.broadcast_to(centre, equations.width).astype(np.float64)
    if also is not None:
        _check(allowed, also)

    def nearest(point: Floats, length: float) -> Floats:
        return allowed.pulled(point, middle, sparsity * length)

    work = ConstrainedLeastSquares(
        equations,
        right,
        nearest=nearest,
        start=middle,
        penalty=None if also is None else _penalty(also),
        pull=sparsity > 0,
    )
    found = iterate(work, tolerance, most, progress)
    if sparsity > 0 or (also is None and not work.met_a_constraint):
        return found
    again = _Nearby(equations, right, good=found.values, centre=middle, allowed=allowed, also=also)
    closer = iterate(again, tolerance, most, after(progress, found.iterations))
    steps, done = found.iterations + closer.iterations, found.converged and closer.converged
    return replace(closer, iterations=steps, converged=done)


class _Nearby:
    """The allowed point nearest to a centre that fits as well as a given one."""

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
        self._size = norm(self._target)
        self._scale = max(1.0, norm(good - centre))
        self._work = AugmentedLagrangian(
            SquaredDistance(centre),
            _fit(equations, good, also),
            lambda point, _: allowed.nearest(point),
            good,
        )
        self.steps = 0

    @property
    def point(self) -> Floats:
        """Where it is."""
        return self._work.point

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        sums = self._work.images[1][: self._height]
        return float(np.linalg.norm(sums - self._target)) / self._size

    def is_done(self, tolerance: float) -> bool:
        """Whether it fits as well, and no way leads nearer to the centre."""
        flat = self._work.flatness <= tolerance * self._scale
        return flat and self._work.violation <= tolerance

    def step(self) -> None:
        """Go on."""
        self._work.step(self._scale)
        self.steps += 1


def _check(allowed: Allowed, also: RangeConstraints) -> None:
    """Refuse constraints that no values keep at once, which a linear program decides."""
    if not len(also.low) == len(also.high) == also.rows.height:
        raise ValueError(
            f"{also.rows.height} constraints need as many low and high ends, "
            f"got {len(also.low)} and {len(also.high)}"
        )
    if not (also.low <= also.high).all():
        raise ValueError("the lower end of a constraint must not be above the upper one")
    from scipy.sparse import csr_array, vstack

    matrix, low, high = as_sparse(also.rows), also.low, also.high
    if allowed.total is not None:
        matrix = vstack([matrix, csr_array(allowed.total.weights[None, :])])
        low, high = np.append(low, allowed.total.low), np.append(high, allowed.total.high)
    program = Program(np.zeros(len(allowed.low)), allowed.low, allowed.high, low, high, matrix)
    if run(program).status is Status.INFEASIBLE:
        raise ValueError("no values keep all constraints at once; drop or widen one of them")


def _penalty(ranges: RangeConstraints) -> RangePenalty:
    lengths = ranges.rows.lengths
    ends = ranges.low / lengths, ranges.high / lengths
    return RangePenalty(ranges.rows, *ends, weight=FIRST_WEIGHT)


def _fit(equations: Passes, good: Floats, also: RangeConstraints | None) -> RangePenalty:
    """The sums that a good point has, and what other sums must keep."""
    sums = equations.times(good)
    if also is None:
        return RangePenalty(equations, sums, sums, weight=FIRST_WEIGHT)
    others = _penalty(also)
    low, high = np.concatenate([sums, others.low]), np.concatenate([sums, others.high])
    return RangePenalty(Stacked(equations, also.rows), low, high, weight=FIRST_WEIGHT)
