"""Which solver a problem asks for, by what is known of it and by what least squares leaves.

Without a stated law of noise the answers are first taken at their word. If they cannot all be true,
the question is whether a few of them are plainly wrong, or all of them a little: least absolute
deviations make most equations hold in the first case, and in no other.
"""

from dataclasses import dataclass

import numpy as np

from casemate.attack.problem import Problem
from casemate.attack.reconstruction import Solver
from casemate.attack.solvers import MOST_VALUES, Found, Work, solve
from casemate.solve.rows import Floats

AGREE = 1e-6
"""A relative residual so small is rounding: the answers can all be true."""

JUNK = 2.5
"""The deviation of all residuals over that of the middle half: 1 for a bell, 1.4 for Laplace."""

LOUD = 1.5
"""Residuals so many times larger than the stated noise allows are not that noise alone."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The solver that was chosen, and what it found where that is known already."""

    solver: Solver
    found: Found | None = None


def choose(problem: Problem, work: Work) -> Chosen:
    """The solver for a problem; some solving may be done on the way."""
    if problem.noise is not None:
        return _with_noise(problem, work)
    plain = Solver.CONVEX if constrained(problem) else _linear(problem)
    found = solve(problem, plain, work)
    if found.solved.residual > AGREE:
        return _contradicting(problem, work, Chosen(plain, found))
    if countable(problem) and not _is_whole(problem, found.solved.values):
        return Chosen(Solver.INTEGER)
    return Chosen(plain, found)


def _with_noise(problem: Problem, work: Work) -> Chosen:
    """With a law stated: count values where that can be done, unless the noise is louder."""
    plain = Solver.CONVEX if constrained(problem) else _linear(problem)
    found = solve(problem, plain, work)
    stated = 1.0 if problem.noise is None else problem.noise.deviation
    left = leftovers(problem, found.solved.values) / stated
    freedom = max(1.0, problem.equations.height - problem.equations.width)
    if float(np.sqrt((left**2).sum() / freedom)) > LOUD and len(left) > 2 * freedom**0.5:
        outvoted = _junk(problem, work)
        if outvoted is not None:
            return Chosen(Solver.ROBUST, outvoted)
    if countable(problem) and not constrained(problem):
        return Chosen(Solver.INTEGER)
    return Chosen(plain, found)


def _contradicting(problem: Problem, work: Work, plain: Chosen) -> Chosen:
    """Answers that cannot all be true, and nobody said why."""
    outvoted = _junk(problem, work)
    if outvoted is not None:
        return Chosen(Solver.ROBUST, outvoted)
    if countable(problem) and not constrained(problem):
        return Chosen(Solver.INTEGER)
    return plain


def _junk(problem: Problem, work: Work) -> Found | None:
    """The point that outvotes a few wrong answers, if that is what there are."""
    found = solve(problem, Solver.ROBUST, work)
    values = found.solved.values
    if problem.whole.any():
        values = np.where(problem.whole, np.rint(values), values)
    left = np.abs(leftovers(problem, values))
    middle = 1.4826 * float(np.median(left))
    everything = float(np.sqrt(np.mean(left**2)))
    return found if everything > JUNK * middle else None


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
