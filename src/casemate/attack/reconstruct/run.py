"""Reconstruct what is private from what was published.

Source     Source document 002, "Solving the equations" to "Handling many queries".
Guarantee  None about the values: this is an attack. The intervals are calibrated, as
           `casemate.attack.reconstruct.confidence` says, if the noise is as stated.
Cost       That of the solver, and for the intervals a factorisation up to some thousand unknowns,
           or some dozens of solves beyond.

Which solver a problem asks for, by what is known of it and by what least squares leaves.

Without a stated law of noise the answers are first taken at their word. If they cannot all be true,
the question is whether a few of them are plainly wrong, or all of them a little: least absolute
deviations make most equations hold in the first case, and in no other.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from casemate.attack.reconstruct.confidence import confidence as how_sure
from casemate.attack.reconstruct.confidence import trusted_equations
from casemate.attack.reconstruct.noise import NoiseLaw
from casemate.attack.reconstruct.problem import Prior, Problem
from casemate.attack.reconstruct.reconstruction import Reconstruction, Solver, Watch
from casemate.attack.reconstruct.solvers import (
    MOST_VALUES,
    SolverResult,
    SolverWork,
    residual_at,
    solve,
)
from casemate.attack.solvers.iteration import Progress, Solved
from casemate.exact import Floats

AGREE = 1e-6
"""A relative residual so small is rounding: the answers can all be true."""

OUTLIER_RATIO = 2.5
"""The deviation of all residuals over that of the middle half: 1 for a bell, 1.4 for Laplace."""

NOISE_MISFIT_RATIO = 1.5
"""Residuals so many times larger than the stated noise allows are not that noise alone."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The solver that was chosen, and what it found where that is known already."""

    solver: Solver
    found: SolverResult | None = None


def choose(problem: Problem, work: SolverWork) -> Chosen:
    """The solver for a problem; some solving may be done on the way.

    Whole numbers are counted where noise, stated or seen, leaves several possible, and where
    without noise the rounded solution is none.
    """
    plain = Solver.CONVEX if constrained(problem) else _linear(problem)
    found = solve(problem, plain, work)
    loud = _is_loud(problem, found.solved)
    if loud:
        outvoted = _junk(problem, work)
        if outvoted is not None:
            return Chosen(Solver.ROBUST, outvoted)
    if problem.noise is not None or loud:
        count = not constrained(problem)
    else:
        count = not _is_whole(problem, found.solved.values)
    if count and countable(problem):
        return Chosen(Solver.INTEGER)
    return Chosen(plain, found)


def _is_loud(problem: Problem, solved: Solved) -> bool:
    """Whether the answers cannot all be true, or are further off than the stated noise allows."""
    if problem.noise is None:
        return solved.residual > AGREE
    left = leftovers(problem, solved.values) / problem.noise.deviation
    freedom = max(1.0, problem.equations.height - problem.equations.width)
    misfit = float(np.sqrt((left**2).sum() / freedom))
    return misfit > NOISE_MISFIT_RATIO and len(left) > 2 * freedom**0.5


def _junk(problem: Problem, work: SolverWork) -> SolverResult | None:
    """The point that outvotes a few wrong answers, if that is what there are."""
    found = solve(problem, Solver.ROBUST, work)
    values = found.solved.values
    if problem.whole.any():
        values = np.where(problem.whole, np.rint(values), values)
    left = np.abs(leftovers(problem, values))
    middle = 1.4826 * float(np.median(left))
    everything = float(np.sqrt(np.mean(left**2)))
    return found if everything > OUTLIER_RATIO * middle else None


def leftovers(problem: Problem, values: Floats) -> Floats:
    """What each answer differs from what the values add up to, in units of its spread."""
    lengths = problem.equations.lengths
    left = problem.answers - lengths * problem.equations.times(values)
    return np.asarray(left / np.maximum(np.abs(problem.spread), 1e-300))


def _linear(problem: Problem) -> Solver:
    free = problem.low < problem.high
    ends = np.isfinite(problem.low[free]) | np.isfinite(problem.high[free])
    return Solver.BOX if ends.any() else Solver.LEAST_SQUARES


def constrained(problem: Problem) -> bool:
    """Whether more than a range is known of the unknowns."""
    return problem.limits is not None or problem.total is not None or problem.sparse > 0


def countable(problem: Problem) -> bool:
    """Whether every unknown is whole and has few enough possible values to count them."""
    reach = problem.high - problem.low
    return bool(problem.whole.all() and np.isfinite(reach).all() and (reach < MOST_VALUES).all())


def _is_whole(problem: Problem, values: Floats) -> bool:
    """Whether the rounded values satisfy the equations as well."""
    left = np.abs(leftovers(problem, np.rint(values)))
    return bool((left <= AGREE * np.maximum(1.0, np.abs(problem.answers))).all())


# Reconstruct ------------------------------------------------------------------------------------


def reconstruct(
    aggregates: Any,
    answers: Any,
    knowledge: Prior | None = None,
    *,
    noise: NoiseLaw | str | None = None,
    solver: Solver | str | None = None,
    confidence: float | None = 0.9,
    tolerance: float = 1e-6,
    random: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Reconstruction:
    """The private values behind published answers: a row of coefficients and a number for each.

    `aggregates` is a matrix, dense or sparse, or equations in any form that can be gone through.
    The solver is chosen by what is known unless it is named. Without `confidence` there are no
    intervals, which saves their cost. An interrupt ends the work with the best so far.

    >>> found = reconstruct([[1, 1, 0], [0, 1, 1], [0, 1, 0]], [11.0, 9.0, 4.0])
    >>> found.values.round(4).tolist(), found.solver.value
    ([7.0, 4.0, 5.0], 'least-squares')
    """
    law = NoiseLaw.read(noise) if isinstance(noise, str) else noise
    return reconstructed(
        Problem.of(aggregates, answers, knowledge, law),
        solver=None if solver is None else Solver(solver),
        confidence=confidence,
        tolerance=tolerance,
        random=random,
        progress=progress,
    )


def reconstructed(
    problem: Problem,
    *,
    solver: Solver | None = None,
    confidence: float | None = 0.9,
    tolerance: float = 1e-6,
    random: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> Reconstruction:
    """The reconstruction of a problem."""
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"the confidence must lie between 0 and 1, got {confidence}")
    start = time.process_time()
    work = SolverWork(random or np.random.default_rng(), Watch(progress), tolerance)
    named, found, finished = _solved(problem, solver, work)
    try:
        sure = _sure(problem, named, found, confidence if finished else None, work)
    except KeyboardInterrupt:
        sure, finished = _sure(problem, named, found, None, work), False
    values, low, high, probability = sure
    return Reconstruction(
        named,
        values,
        low,
        high,
        probability,
        confidence or 0.0,
        residual_at(problem, values),
        found.solved.iterations,
        time.process_time() - start,
        found.history,
        finished,
    )


def _solved(
    problem: Problem, solver: Solver | None, work: SolverWork
) -> tuple[Solver, SolverResult, bool]:
    """The solver, what it found, and whether it was allowed to finish."""
    named = solver
    try:
        if named is None:
            chosen = choose(problem, work)
            named = chosen.solver
            if chosen.found is not None:
                return named, chosen.found, True
        return named, solve(problem, named, work), True
    except KeyboardInterrupt:
        watch = work.watch
        middle = np.clip(0.0, problem.low, problem.high)
        point = middle if watch.point is None else np.clip(watch.point, problem.low, problem.high)
        stopped = Solved(point, watch.residual, watch.steps, converged=False)
        seen = tuple(watch.history)
        return named or Solver.LEAST_SQUARES, SolverResult(stopped, history=seen), False


def _sure(
    problem: Problem, solver: Solver, found: SolverResult, level: float | None, work: SolverWork
) -> tuple[Floats, Floats, Floats, Floats]:
    """Values, the ends of their intervals, and how likely whole ones are right."""
    if found.chances is not None and level is not None:
        return found.chances.values, *found.chances.interval(level), found.chances.probability
    values = found.solved.values
    if level is None:
        whole = np.clip(np.rint(values), np.ceil(problem.low), np.floor(problem.high))
        kept = np.where(problem.whole, whole, values)
        return kept, problem.low, problem.high, np.full(len(values), np.nan)
    outvoting = trusted_equations(problem, values) if solver in (Solver.ROBUST, Solver.LP) else None
    sure = how_sure(problem, values, level=level, random=work.random, trusted=outvoting)
    return sure.values, sure.low, sure.high, sure.probability
