"""The solvers by name: each takes a problem and gives a point, in its own way.

Source     Source document 002, "Solving the equations" to "Handling many queries".
Departure  Rows are scaled to length 1 always, and weighted by their noise where that differs from
           row to row; the pseudo-inverse, cvxpy and PyTorch of the document are its reference.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from casemate.attack.reconstruct.problem import Problem, weights
from casemate.attack.reconstruct.reconstruction import Solver, Watch
from casemate.attack.solvers.answer_loss import AnswerLaw
from casemate.attack.solvers.box_squares import box_squares
from casemate.attack.solvers.convex import convex
from casemate.attack.solvers.decoding import (
    exact_decoding,
    least_absolute,
    least_deviations,
    within_noise,
)
from casemate.attack.solvers.iteration import Solved, after, relative_residual
from casemate.attack.solvers.kaczmarz import kaczmarz_blocks, swept_squares
from casemate.attack.solvers.least_squares import EquationView, least_squares
from casemate.attack.solvers.posterior import Posterior, posterior
from casemate.attack.solvers.sgd import sgd
from casemate.attack.solvers.whole_decoding import whole_decoding
from casemate.errors import Misconfigured
from casemate.exact import Floats, Passes, Rows

MOST_VALUES = 128
"""Whole numbers with more possible values each are rounded, and not counted one by one."""

MOST_EXACT = 200
"""So many whole unknowns are decided by an integer program where a search finds no solution."""

MILP_TIME_LIMIT_SECONDS = 60.0

SWEEPS_MIN_ROWS_PER_COLUMN = 0.75
"""From about so many equations an unknown on, sweeps are faster than conjugate gradients."""

EXACT_FIT_RESIDUAL = 1e-6
"""A relative residual so small is rounding, and no noise: the answers can all be true."""

EVEN_WEIGHT_RANGE = 1e-3
"""Weights that differ by less are left out."""


@dataclass(frozen=True, eq=False)
class SolverWork:
    """What a solver is given beside the problem."""

    random: np.random.Generator
    watch: Watch
    tolerance: float


@dataclass(frozen=True, eq=False)
class SolverResult:
    """What a solver found; `chances` where it counted the possible values of whole numbers.

    `history` has the relative residual after so many steps.
    """

    solved: Solved
    chances: Posterior | None = None
    history: tuple[tuple[int, float], ...] = ()


def solve(problem: Problem, solver: Solver, work: SolverWork) -> SolverResult:
    """The point that the solver of this name finds."""
    watch = Watch(work.watch)  # the history of this solver alone
    found = SOLVERS[solver](problem, replace(work, watch=watch))
    return replace(found, history=tuple(watch.history))


# Least squares --------------------------------------------------------------------------------


def weigh_equations(problem: Problem) -> Passes:
    """The equations, each counting by the inverse of its noise where noises differ."""
    if problem.noise is None:
        return problem.equations
    found = weights(problem)
    even = bool(np.ptp(found) <= EVEN_WEIGHT_RANGE) if len(found) else True
    return problem.equations if even else EquationView(problem.equations, found)


def _least_squares(problem: Problem, work: SolverWork) -> SolverResult:
    """Least squares with nothing but single known values beside the equations."""
    known = problem.low == problem.high
    if not known.any():
        return SolverResult(_plain_squares(problem, work))
    low, high = np.where(known, problem.low, -np.inf), np.where(known, problem.high, np.inf)
    return SolverResult(_within(problem, (low, high), None, work))


def _box(problem: Problem, work: SolverWork) -> SolverResult:
    """Least squares within the box: of all solutions one near to the middle of what was known."""
    return SolverResult(_within(problem, (problem.low, problem.high), middle(problem), work))


def _plain_squares(problem: Problem, work: SolverWork, start: Floats | None = None) -> Solved:
    """Least squares and nothing else; by sweeps where the answers may all be true."""
    equations, right = weigh_equations(problem), problem.answers
    often = (
        problem.noise is None and equations.height >= SWEEPS_MIN_ROWS_PER_COLUMN * equations.width
    )
    if often and isinstance(equations, Rows):
        return swept_squares(
            equations, right, start=start, tolerance=work.tolerance, progress=work.watch
        )
    return least_squares(
        equations, right, start=start, tolerance=work.tolerance, progress=work.watch
    )


def middle(problem: Problem) -> Floats:
    """The middle of each range; where it has none, the number in it that is nearest to 0."""
    both = np.isfinite(problem.low) & np.isfinite(problem.high)
    ends = np.where(both, problem.low, 0.0), np.where(both, problem.high, 0.0)
    return np.where(both, (ends[0] + ends[1]) / 2, np.clip(0.0, problem.low, problem.high))


def _within(
    problem: Problem, box: tuple[Floats, Floats], start: Floats | None, work: SolverWork
) -> Solved:
    """Least squares within a box, from the solution without one that is nearest to the start."""
    free = _plain_squares(problem, work, start)
    found = box_squares(
        weigh_equations(problem),
        problem.answers,
        low=box[0],
        high=box[1],
        start=free.values,
        tolerance=work.tolerance,
        progress=after(work.watch, free.iterations),
    )
    return replace(found, iterations=free.iterations + found.iterations)


def _robust(problem: Problem, work: SolverWork) -> SolverResult:
    found = least_deviations(
        weigh_equations(problem), problem.answers, tolerance=work.tolerance, progress=work.watch
    )
    return SolverResult(_inside(problem, found))


def _inside(problem: Problem, found: Solved) -> Solved:
    """The same point moved into the box."""
    values = np.clip(found.values, problem.low, problem.high)
    residual = residual_at(problem, values)
    return Solved(values, residual, found.iterations, found.converged)


def residual_at(problem: Problem, values: Floats) -> float:
    """How far the equations are from holding at a point, relative to their right sides."""
    return relative_residual(problem.equations, problem.answers)(values)


def _convex(problem: Problem, work: SolverWork) -> SolverResult:
    """Everything that is known, at once: ranges, a total, sums within limits, sparsity."""
    return SolverResult(
        convex(
            weigh_equations(problem),
            problem.answers,
            low=problem.low,
            high=problem.high,
            total=problem.total,
            also=problem.limits,
            sparsity=problem.sparse,
            centre=0.0 if problem.sparse else middle(problem),
            tolerance=work.tolerance,
            progress=work.watch,
        )
    )


# One equation, or a few, at a time ------------------------------------------------------------


def stored_rows(problem: Problem, solver: Solver) -> Rows:
    """The equations as stored rows, which some solvers need."""
    if isinstance(problem.equations, Rows):
        return problem.equations
    raise Misconfigured(
        f"the solver {solver} goes through stored rows, and these queries are too many to be "
        "stored; use least-squares or box"
    )


def _row_action(
    solver: Solver, steps: Callable[..., Solved]
) -> Callable[[Problem, SolverWork], SolverResult]:
    """A solver that goes through the rows some at a time, and averages where they contradict."""

    def solve_by_steps(problem: Problem, work: SolverWork) -> SolverResult:
        return SolverResult(
            steps(
                stored_rows(problem, solver),
                problem.answers,
                random=work.random,
                low=problem.low,
                high=problem.high,
                averaged=True,
                tolerance=max(work.tolerance, 1e-6),
                progress=work.watch,
            )
        )

    return solve_by_steps


# Linear programs ------------------------------------------------------------------------------


def _lp(problem: Problem, work: SolverWork) -> SolverResult:
    """Values within the noise where that is bounded, else with the least absolute residuals."""
    equations = stored_rows(problem, Solver.LP)
    box = {"low": problem.low, "high": problem.high}
    bound = None if problem.noise is None else problem.noise.bounded
    if bound is not None:
        limit = bound * np.abs(problem.spread)
        return SolverResult(
            within_noise(equations, problem.answers, bound=limit, progress=work.watch, **box)
        )
    spread = np.maximum(np.abs(problem.spread), 1e-300)
    return SolverResult(
        least_absolute(equations, problem.answers, spread=spread, progress=work.watch, **box)
    )


# Whole numbers --------------------------------------------------------------------------------


def _integer(problem: Problem, work: SolverWork) -> SolverResult:
    """Whole values: by their chances where there is noise, else such as satisfy the equations."""
    equations = stored_rows(problem, Solver.INTEGER)
    if not problem.whole.all():
        raise Misconfigured(
            "the solver integer needs whole numbers; say that they are with --integer"
        )
    near = _box(problem, work).solved
    reach = problem.high - problem.low
    if not np.isfinite(reach).all():
        return SolverResult(near)  # rounded later: nothing bounds what could be tried
    noise = _noise_of(problem, near)
    if noise is None:
        return SolverResult(_search_whole(problem, equations, near, work))
    law, spread = noise
    counted = posterior(
        equations,
        problem.answers,
        law=law,
        spread=spread,
        low=problem.low,
        high=problem.high,
        random=work.random,
        start=near.values,
        progress=after(work.watch, near.iterations),
    )
    values = counted.values
    steps = near.iterations + counted.sweeps
    solved = Solved(values, residual_at(problem, values), steps, counted.converged)
    return SolverResult(solved, counted)


def _search_whole(problem: Problem, equations: Rows, near: Solved, work: SolverWork) -> Solved:
    """Whole values at which the equations hold, or nearly: by search, and exactly for few."""
    found = whole_decoding(
        equations,
        problem.answers,
        start=near.values,
        low=problem.low,
        high=problem.high,
        progress=after(work.watch, near.iterations),
    )
    free = int((problem.low < problem.high).sum())
    if found.residual <= EXACT_FIT_RESIDUAL or free > MOST_EXACT:
        return replace(found, iterations=near.iterations + found.iterations)
    exact = exact_decoding(
        equations,
        problem.answers,
        low=problem.low,
        high=problem.high,
        start=found.values,
        seconds=MILP_TIME_LIMIT_SECONDS,
        progress=after(work.watch, near.iterations),
    )
    best = exact if exact.residual < found.residual else found
    return replace(best, iterations=near.iterations + found.iterations)


LAWS = {"gaussian": AnswerLaw.GAUSSIAN, "laplace": AnswerLaw.LAPLACE, "uniform": AnswerLaw.UNIFORM}


def _noise_of(problem: Problem, near: Solved) -> tuple[AnswerLaw, Floats] | None:
    """The law of the noise and its scale for each answer: stated, or seen in what is left."""
    spread = np.maximum(np.abs(problem.spread), 1e-12)
    if problem.noise is not None:
        kind, scale = problem.noise.kind, problem.noise.scale
        half = scale / 2 if kind == "round" else scale
        return LAWS.get(kind, AnswerLaw.UNIFORM), half * spread
    freedom = problem.equations.height - problem.equations.width
    if near.residual <= EXACT_FIT_RESIDUAL or freedom <= 0:
        return None
    left = problem.scaled_residuals(near.values)
    deviation = float(np.sqrt(left @ left / freedom))
    return AnswerLaw.GAUSSIAN, deviation * spread


SOLVERS: Mapping[Solver, Callable[[Problem, SolverWork], SolverResult]] = {
    Solver.LEAST_SQUARES: _least_squares,
    Solver.BOX: _box,
    Solver.CONVEX: _convex,
    Solver.ROBUST: _robust,
    Solver.LP: _lp,
    Solver.INTEGER: _integer,
    Solver.KACZMARZ: _row_action(Solver.KACZMARZ, kaczmarz_blocks),
    Solver.SGD: _row_action(Solver.SGD, sgd),
}


# Which solver -----------------------------------------------------------------------------------
#
# Which solver a problem asks for, by what is known of it and by what least squares leaves.
#
# Without a stated law of noise the answers are first taken at their word. If they cannot all be
# true, the question is whether a few of them are plainly wrong, or all of them a little: least
# absolute deviations make most equations hold in the first case, and in no other.

OUTLIER_RATIO = 2.5
"""The deviation of all residuals over that of the middle half: 1 for a bell, 1.4 for Laplace."""

NOISE_MISFIT_RATIO = 1.5
"""Residuals so many times larger than the stated noise allows are not that noise alone."""


def choose(problem: Problem, work: SolverWork) -> tuple[Solver, SolverResult | None]:
    """The solver for a problem, and what it found where it was tried on the way.

    Whole numbers are counted where noise, stated or seen, leaves several possible, and where
    without noise the rounded solution is none.
    """
    plain = Solver.CONVEX if is_constrained(problem) else _linear(problem)
    found = solve(problem, plain, work)
    misfit = _misfits(problem, found.solved)
    if misfit:
        outvoting = _outvoting_point(problem, work)
        if outvoting is not None:
            return Solver.ROBUST, outvoting
    if problem.noise is not None or misfit:
        count = not is_constrained(problem)
    else:
        count = not _is_whole(problem, found.solved.values)
    if count and is_countable(problem):
        return Solver.INTEGER, None
    return plain, found


def _misfits(problem: Problem, solved: Solved) -> bool:
    """Whether the answers cannot all be true, or are further off than the stated noise allows."""
    if problem.noise is None:
        return solved.residual > EXACT_FIT_RESIDUAL
    left = problem.scaled_residuals(solved.values) / problem.noise.deviation
    freedom = max(1.0, problem.equations.height - problem.equations.width)
    misfit = float(np.sqrt((left**2).sum() / freedom))
    return misfit > NOISE_MISFIT_RATIO and len(left) > 2 * freedom**0.5


def _outvoting_point(problem: Problem, work: SolverWork) -> SolverResult | None:
    """The point that outvotes a few wrong answers, if that is what there are."""
    found = solve(problem, Solver.ROBUST, work)
    values = found.solved.values
    if problem.whole.any():
        values = np.where(problem.whole, np.rint(values), values)
    left = np.abs(problem.scaled_residuals(values))
    middle = 1.4826 * float(np.median(left))
    everything = float(np.sqrt(np.mean(left**2)))
    return found if everything > OUTLIER_RATIO * middle else None


def _linear(problem: Problem) -> Solver:
    free = problem.low < problem.high
    ends = np.isfinite(problem.low[free]) | np.isfinite(problem.high[free])
    return Solver.BOX if ends.any() else Solver.LEAST_SQUARES


def is_constrained(problem: Problem) -> bool:
    """Whether more than a range is known of the unknowns."""
    return problem.limits is not None or problem.total is not None or problem.sparse > 0


def is_countable(problem: Problem) -> bool:
    """Whether every unknown is whole and has few enough possible values to count them."""
    reach = problem.high - problem.low
    return bool(problem.whole.all() and np.isfinite(reach).all() and (reach < MOST_VALUES).all())


def _is_whole(problem: Problem, values: Floats) -> bool:
    """Whether the rounded values satisfy the equations as well."""
    left = np.abs(problem.scaled_residuals(np.rint(values)))
    return bool((left <= EXACT_FIT_RESIDUAL * np.maximum(1.0, np.abs(problem.answers))).all())
