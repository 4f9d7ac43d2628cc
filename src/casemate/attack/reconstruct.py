"""Reconstruct what is private from what was published.

Source     Source document 002, "Solving the equations" to "Handling many queries".
Guarantee  None about the values: this is an attack. The intervals are calibrated, as
           `casemate.attack.confidence` says, if the noise is as stated.
Cost       That of the solver, and for the intervals a factorisation up to some thousand unknowns,
           or some dozens of solves beyond.
"""

import time
from typing import Any

import numpy as np

from casemate.attack.choice import choose
from casemate.attack.confidence import confidence as how_sure
from casemate.attack.confidence import trusted_equations
from casemate.attack.noise_law import NoiseLaw
from casemate.attack.problem import Prior, Problem
from casemate.attack.reconstruction import Reconstruction, Solver
from casemate.attack.solvers import Found, Work, residual_at, solve
from casemate.attack.watch import Watch
from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats


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
    work = Work(random or np.random.default_rng(), Watch(progress), tolerance)
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


def _solved(problem: Problem, solver: Solver | None, work: Work) -> tuple[Solver, Found, bool]:
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
        return named or Solver.LEAST_SQUARES, Found(stopped, history=seen), False


def _sure(
    problem: Problem, solver: Solver, found: Found, level: float | None, work: Work
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
