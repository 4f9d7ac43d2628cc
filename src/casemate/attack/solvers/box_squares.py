"""Least squares within a box: what is known of each value holds exactly, at every step.

Source     Source document 002, "Incorporating background knowledge": min |A x - b| within bounds.
           The method is block principal pivoting: J. Júdice and F. Pires, "A block principal
           pivoting algorithm for large-scale strictly monotone linear complementarity problems",
           Computers & Operations Research 21 (1994).
Method     From the solution without a box unless a start is given. Values at an end of the box stay
           there while the others are solved for without a box. Those that left it are put to the
           end they passed, and those that would rather leave their end are let go, all at once;
           until nothing wants to change. Where the number of those that do no longer falls, as on
           narrow ranges with much noise, `projected_gradient` goes on from the point.
Cost       Some rounds of least squares, each from where the last one ended: about twice the steps
           of least squares without a box on random subsets, however hard the box presses. SciPy's
           `lsq_linear` factorises, or takes an interior-point step for each.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.convex import projected_gradient
from casemate.attack.solvers.iteration import (
    Progress,
    Solved,
    after,
    iterate,
    norm,
    relative_residual,
)
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.exact import Floats, Passes, box_ends

Flags = NDArray[np.bool_]

MOST_PIVOTING_ROUNDS = 50
PIVOTING_PATIENCE = 3
"""Rounds after which the number of changes must have fallen."""

LEAVING_SLOPE_SHARE = 1e-7
"""A value at an end leaves it for a slope of this share of the steepest."""

BOX_SLACK = 1e-9
"""Values so little outside of the box are rounding, as a share of their size."""


def box_squares(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    start: Floats | None = None,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations come closest to holding.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1]]))
    >>> box_squares(rows, np.array([6.0]), low=0.0, high=np.array([1.0, 9.0])).values.tolist()
    [1.0, 5.0]
    """
    steps = 0
    if start is None:
        free = least_squares(equations, right, tolerance=tolerance, most=most, progress=progress)
        start, steps = free.values, free.iterations
    box = {"low": low, "high": high}
    found = pivoting(
        equations,
        right,
        **box,
        start=start,
        tolerance=tolerance,
        most=most,
        progress=after(progress, steps),
    )
    steps += found.iterations
    if found.converged or found.residual <= tolerance:
        return replace(found, iterations=steps, converged=True)
    last = projected_gradient(
        equations,
        right,
        **box,
        start=found.values,
        tolerance=tolerance,
        most=most,
        progress=after(progress, steps),
    )
    return replace(last, iterations=steps + last.iterations)


def pivoting(
    equations: Passes,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    start: Floats,
    tolerance: float = 1e-6,
    most: int = 10_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations come closest to holding, or not `converged`.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, 0]]))
    >>> found = pivoting(rows, np.array([6.0, 4.0]), low=0.0, high=3.0, start=np.zeros(2))
    >>> found.values.round(6).tolist(), found.converged
    ([3.0, 3.0], True)
    """
    box = box_ends(low, high, equations.width)
    inner = _InnerSolve(tolerance, most, progress)
    work = _ActiveSet(equations, right, box, start, inner)
    found = iterate(work, tolerance, most, None)
    return replace(found, converged=work.changes == 0)


@dataclass(frozen=True)
class _InnerSolve:
    """How least squares over the free values is called."""

    tolerance: float
    most: int
    progress: Progress | None


class _ActiveSet:
    """The point, and which end each value is at: -1 the low one, 1 the high one, 0 neither."""

    def __init__(
        self,
        equations: Passes,
        right: Floats,
        box: tuple[Floats, Floats],
        start: Floats,
        inner: "_InnerSolve",
    ) -> None:
        self._equations, self._right = equations, right / equations.lengths
        self._low, self._high = box
        self._free_point, self._inner = start.astype(np.float64), inner
        self._end = np.sign(self._violation()).astype(np.int8)
        self._measure = relative_residual(equations, right)
        self.steps = self._rounds = 0
        self.changes = self._fewest = equations.width + 1  # values that changed sides last
        self._patience = PIVOTING_PATIENCE

    @property
    def point(self) -> Floats:
        """The point moved into the box."""
        return np.clip(self._free_point, self._low, self._high)

    @property
    def residual(self) -> float:
        """How far the equations are from holding there, relative to their right sides."""
        return self._measure(self.point)

    def is_done(self, _: float) -> bool:
        """Whether no value changes sides, or no fewer than before for some rounds."""
        stuck = self._patience == 0 or self._rounds == MOST_PIVOTING_ROUNDS
        return self.changes == 0 or stuck

    def step(self) -> None:
        """Solve for the free values, then exchange."""
        free = self._end == 0
        held = np.where(free, 0.0, np.where(self._end < 0, self._low, self._high))
        left = self._right - self._equations.times(held)
        share = norm(left) / norm(self._right)
        found = least_squares(
            EquationView(self._equations, free=free),
            left * self._equations.lengths,
            start=np.where(free, self._free_point, 0.0),
            tolerance=self._inner.tolerance,
            most=max(1, self._inner.most - self.steps),
            progress=_progress_of_all(self._inner.progress, self.steps, held, share),
        )
        self.steps += found.iterations
        self._free_point = np.where(free, found.values, held)
        self.changes, self._rounds = self._exchange(free), self._rounds + 1
        if self.changes < self._fewest:
            self._fewest, self._patience = self.changes, PIVOTING_PATIENCE
        else:
            self._patience -= 1

    def _exchange(self, free: Flags) -> int:
        past = np.where(free, self._violation(), 0)
        slope = -self._equations.transpose_times(
            self._right - self._equations.times(self._free_point)
        )
        least = LEAVING_SLOPE_SHARE * float(np.abs(slope).max(initial=0.0))
        leaving = (self._end != 0) & (self._low < self._high) & (slope * self._end > least)
        changed = (past != 0) | leaving
        self._end = np.where(changed, np.sign(past), self._end).astype(np.int8)
        return int(changed.sum())

    def _violation(self) -> Floats:
        """By how much each value is past an end of the box: negative below, positive above it."""
        slack = BOX_SLACK * np.maximum(1.0, np.abs(self._free_point))
        above = np.where(self._free_point > self._high + slack, self._free_point - self._high, 0.0)
        return np.where(self._free_point < self._low - slack, self._free_point - self._low, above)


def _progress_of_all(
    progress: Progress | None, done: int, held: Floats, share: float
) -> Progress | None:
    """Progress of the free values, told as that of all of them."""
    if progress is None:
        return None
    return lambda steps, residual, point: progress(done + steps, share * residual, point + held)
