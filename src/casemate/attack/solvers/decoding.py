"""Decoding by programs: answers with any noise on a few or bounded noise on all, and whole values.

Source     Source document 002, "Solving the equations", for answers with noise or some that are
           junk. The least sum of absolute residuals is C. Dwork, F. McSherry and K. Talwar, "The
           price of privacy and the limits of LP decoding", STOC 2007; a point within the noise
           bound is I. Dinur and K. Nissim, "Revealing information while preserving privacy", PODS
           2003. "Incorporating background knowledge": whole unknowns make the problem an integer
           program, which can be solved where it is small.
Method     HiGHS. The least sum is found in its dual form, which has a row for each
           unknown and not one for each answer, by the interior-point method; the values are the
           multipliers of its rows. What they lose against the dual bound is checked, and where it
           is too much the simplex method finishes. Residuals count in units of `spread`.
Cost       Grows with the cube of the number of unknowns: 256 of them with 1,024 dense answers take
           0.2 s (0.3 s in the primal form), and least squares a hundredth of that. Whole values are
           exponential in the worst case. Half subsets, four for each unknown: 40 unknowns take 1 s
           and 60 take 5 to 14 s with noise; without noise both take a hundredth of that.
"""

from dataclasses import replace

import numpy as np

from casemate.attack.solvers.answer_loss import AnswerLaw, Noisy, spreads
from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.iteration import Progress, Solved, iterate, norm, relative_residual
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.attack.solvers.watched_program import (
    Program,
    ProgramOutcome,
    Watcher,
    as_sparse,
    run,
)
from casemate.attack.solvers.whole_decoding import nearest_whole, whole_ends
from casemate.exact import Floats, Passes, Rows, Status, box_ends

MOST_DUALITY_GAP = 1e-6
"""Values that lose at most this, relative to the least, are called the best."""

BOUND_SLACK = 1e-6
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

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1], [1], [1], [1]]))
    >>> least_absolute(rows, np.array([5.0, 5.0, 5.0, 90.0])).values.round(3).tolist()
    [5.0]
    """
    scales, box = spreads(spread, equations.height), box_ends(low, high, equations.width)
    program = _dual(equations, right, scales, box)
    watch = _watcher(equations, right, box, progress)

    def values(found: ProgramOutcome) -> tuple[Floats, bool]:
        point = np.clip(-found.multipliers[: equations.width], *box)
        loss = float(np.abs((right - equations.sums(point)) / scales).sum())
        close = loss + found.cost <= MOST_DUALITY_GAP * (1 + abs(loss))
        return point, found.status is Status.OPTIMAL and close

    found = run(program, watch=watch, solver="ipm", run_crossover="off")
    point, proved = values(found)
    if not proved:
        found = run(program, watch=watch, solver="simplex")
        point, proved = values(found)
    return _outcome(equations, right, point, found.steps, proved)


def _dual(equations: Rows, right: Floats, scales: Floats, box: Box) -> Program:
    """Prices of the answers and of the ends of each unknown's range that cancel for every unknown.

    An absent end has no price.
    """
    from scipy.sparse import eye_array, hstack

    width = equations.width
    at_low = eye_array(width)
    has_low, has_high = np.isfinite(box[0]), np.isfinite(box[1])
    return Program(
        np.concatenate([-right, np.where(has_high, box[1], 0.0), np.where(has_low, -box[0], 0.0)]),
        np.concatenate([-1 / scales, np.zeros(2 * width)]),
        np.concatenate([1 / scales, *(np.where(has, np.inf, 0.0) for has in (has_high, has_low))]),
        np.zeros(width),
        np.zeros(width),
        hstack([as_sparse(equations).T, -at_low, at_low]),
    )


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

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1], [1, 0]]))
    >>> found = within_noise(rows, np.array([2.0, 1.0]), bound=0.0, low=0.0, high=9.0)
    >>> found.values.round(6).tolist()
    [1.0, 1.0]
    """
    bounds, box = np.broadcast_to(bound, equations.height), box_ends(low, high, equations.width)
    if not (bounds >= 0).all():
        raise ValueError("a bound on the noise must not be negative")
    sides = right - bounds, right + bounds
    program = Program(np.zeros(equations.width), *box, *sides, as_sparse(equations))
    watch = _watcher(equations, right, box, progress)
    slack = BOUND_SLACK * (1 + float(np.abs(right).max(initial=0.0)))
    found = run(program, watch=watch, solver="ipm", run_crossover="off")
    for solver in ("simplex", None):
        values = np.clip(found.point, *box)
        left = np.abs(right - equations.sums(values))
        if found.status is Status.OPTIMAL and (left <= bounds + slack).all():
            return _outcome(equations, right, values, found.steps, done=True)
        if solver is None or found.status is Status.INFEASIBLE:
            break
        found = run(program, watch=watch, solver=solver)
    raise NoSuchValues(
        "no values in the given ranges bring every answer within its noise bound; "
        "widen the bound or the ranges"
    )


def _watcher(equations: Rows, right: Floats, box: Box, progress: Progress | None) -> Watcher | None:
    """Tell of the steps; before these methods end, least squares is all there is to show."""
    if progress is None:
        return None
    low, high = box
    shown = box_squares(equations, right, low=low, high=high, tolerance=1e-2, most=SHOWN_STEPS)
    return lambda steps, _: progress(steps, shown.residual, shown.values)


def _outcome(equations: Rows, right: Floats, values: Floats, steps: int, done: bool) -> Solved:
    residual = relative_residual(equations, right)
    return Solved(values, residual(values), steps, converged=done)


# Least absolute deviations without a program ----------------------------------------------------
#
# Answers that are plainly wrong are outvoted, not averaged in. Reweighted least squares: each round
# weighs an equation by the inverse of what was left of it, at least a floor that falls from round
# to round; each round starts where the last one ended.


MOST_REWEIGHTINGS = 40
FLOOR_DECAY = 0.6
"""The floor of residuals, from round to round."""


def least_deviations(
    equations: Passes,
    right: Floats,
    *,
    tolerance: float = 1e-6,
    rounds: int = MOST_REWEIGHTINGS,
    progress: Progress | None = None,
) -> Solved:
    """A point at which the absolute residuals of the equations add up to about the least.

    >>> from casemate.exact.rows import Rows
    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1], [1], [1], [1]]))
    >>> least_deviations(rows, np.array([5.0, 5.0, 5.0, 90.0])).values.round(3).tolist()
    [5.0]
    """
    work = _Reweighted(equations, right, tolerance)
    found = iterate(work, tolerance, rounds, progress)
    return replace(found, iterations=work.inner_steps)


class _Reweighted:
    """The least squares of equations weighted by what the last round left of them."""

    def __init__(self, equations: Passes, right: Floats, tolerance: float) -> None:
        self._equations, self._right, self._tolerance = equations, right, tolerance
        self._target = right / equations.lengths
        self.steps = self.inner_steps = 0
        self._floor, self._moved = np.inf, np.inf
        self._solve(equations, None)

    def _solve(self, equations: Passes, start: Floats | None) -> None:
        found = least_squares(equations, self._right, start=start, tolerance=self._tolerance)
        self.point, self.inner_steps = found.values, self.inner_steps + found.iterations
        self._left = np.abs(self._target - self._equations.times(self.point))
        self._floor = min(FLOOR_DECAY * self._floor, float(np.median(self._left)))

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return float(np.linalg.norm(self._left)) / norm(self._target)

    def is_done(self, tolerance: float) -> bool:
        """Whether the point came to rest, or most equations hold."""
        flat = tolerance * norm(self._target) / max(1.0, np.sqrt(len(self._left)))
        return self._moved <= tolerance or self._floor <= flat

    def step(self) -> None:
        """Weigh the equations, and solve them again."""
        before = self.point
        weights = 1 / np.sqrt(np.maximum(self._left, self._floor))
        self._solve(EquationView(self._equations, weights), before)
        self._moved = float(np.abs(self.point - before).max(initial=0))
        self.steps += 1


# The whole values that fit answers best of all, for a few dozen unknowns ------------------------
#
# A mixed-integer program: the least sum of absolute residuals, in units of `spread`, from a point
# that is good already (`whole_decoding`). Answers without noise are the case in which that sum is
# 0. When the time is up the best point so far is given, and it has not `converged`.


NO_MIP_GAP = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-7}


def exact_decoding(
    equations: Rows,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    start: Floats,
    spread: Floats | float = 1.0,
    seconds: float = 60.0,
    progress: Progress | None = None,
) -> Solved:
    """The whole values in their ranges whose absolute residuals add up to the least.

    The search begins at the start, rounded.

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[3, 5, 7]]))
    >>> found = exact_decoding(rows, np.array([12.0]), low=0, high=1, start=np.zeros(3))
    >>> found.values.tolist(), found.residual, found.converged
    ([0.0, 1.0, 1.0], 0.0, True)
    """
    box = whole_ends(low, high, equations.width)
    answers = Noisy.of(equations, right, AnswerLaw.LAPLACE, spread)
    start = nearest_whole(start, *box)
    found = run(
        _program(answers, box),
        start=_with_slacks(answers, start),
        watch=_incumbent_watcher(answers, start, progress),
        seconds=seconds,
        **NO_MIP_GAP,
    )
    candidates = [start]
    if found.status is not Status.STOPPED or len(found.point):
        candidates.append(nearest_whole(found.point[: equations.width], *box))
    best = min(candidates, key=lambda each: answers.loss(answers.residuals(each)))
    return _outcome(equations, right, best, found.steps, found.status is Status.OPTIMAL)


def _program(answers: Noisy, box: tuple[Floats, Floats]) -> Program:
    """Whole values, then how far each answer is above their sum and how far below."""
    from scipy.sparse import eye_array, hstack

    height, width = answers.equations.height, answers.equations.width
    above = eye_array(height)
    return Program(
        np.concatenate([np.zeros(width), np.tile(1 / answers.spread, 2)]),
        np.concatenate([box[0], np.zeros(2 * height)]),
        np.concatenate([box[1], np.full(2 * height, np.inf)]),
        answers.right,
        answers.right,
        hstack([as_sparse(answers.equations), above, -above]),
        whole=width,
    )


def _with_slacks(answers: Noisy, point: Floats) -> Floats:
    """A point of the program from whole values."""
    left = answers.residuals(point) * answers.spread
    return np.concatenate([point, np.maximum(left, 0), np.maximum(-left, 0)])


def _incumbent_watcher(answers: Noisy, start: Floats, progress: Progress | None) -> Watcher | None:
    """Tell of the steps, and of the best values so far."""
    if progress is None:
        return None

    def watch(steps: int, point: Floats | None) -> None:
        values = start if point is None else point[: len(start)]
        progress(steps, answers.residual(answers.residuals(values)), values)

    return watch
