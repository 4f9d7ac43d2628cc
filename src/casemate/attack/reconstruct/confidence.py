"""How sure a reconstruction by linear equations is of each value: calibrated intervals.

Source     Source document 002, "Solving the equations"; the argument that the intervals hold the
           true value as often as they say is in docs/derivations/confidence.md. "Incorporating
           background knowledge": bounds and equations together leave less than either.
Guarantee  If the noises are independent and of the stated law, the interval of each unknown holds
           its true value with probability `level`, whatever the value is: exactly for Gaussian
           noise (or more often, at an end of the value's range and a level below a half), within a
           point for Laplace noise at 80 % and more. Where no law is stated and the
           equations contradict each other, the noise is taken for Gaussian and its deviation is
           estimated from what they leave. Where they agree, there is none, and what they determine
           has an interval of the width of rounding. Where noise cannot pass a bound, the true value
           is in the range that the equations leave at that bound.
Departure  An interval is around the estimate of weighted least squares, which errs by a known law;
           values of a solver that uses a box may be nearer to the truth, and are moved into the
           interval where they are outside it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.reconstruct.covariance import Covariance, covariance
from casemate.attack.reconstruct.intervals import (
    MOST_FREEDOM,
    ErrorLaw,
    EstimateWithLaw,
    intervals,
    whole_numbers,
)
from casemate.attack.reconstruct.problem import Flags, Kind, Problem, Standard
from casemate.attack.solvers.watched_program import Program, as_sparse, load_program
from casemate.exact import Floats, Rows, Status, status_of

MOST_PROPAGATION_PASSES = 10
RANGE_ROUNDING = 1e-9
"""Ranges are widened by this much of the numbers they are computed from."""

PROGRAM_TOLERANCE = 1e-7
MOST_PROGRAM_WORK = 2e5
"""Entries times unknowns that are asked for; above this there are no programs."""


@dataclass(frozen=True, eq=False)
class _RangeSystem:
    """Sparse equations, not scaled, that come to something between two numbers."""

    matrix: Any
    low: Floats
    high: Floats


def feasible_ranges(
    problem: Problem, slack: Floats, places: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """The range of every unknown, tightest for those asked for, if no noise passes its slack.

    Propagation: what an equation leaves to one unknown when the others are at their ends; then, for
    small systems, the least and the greatest value by linear programs. Both in doubles, widened by
    their tolerance: this is an attacker's estimate, not an auditor's proof.

    Without stored equations, or where they contradict each other at this slack, it is the range
    known before.

    >>> from casemate.attack.reconstruct.problem import Prior
    >>> problem = Problem.of([[1, 1]], [10.0], Prior(low=0.0, high=np.array([3.0, 20.0])))
    >>> low, high = feasible_ranges(problem, np.zeros(1), np.arange(2))
    >>> low.round(6).tolist(), high.round(6).tolist()
    ([0.0, 7.0], [3.0, 10.0])
    """
    if not isinstance(problem.equations, Rows):
        return problem.low, problem.high
    system = _range_system(problem, problem.equations, slack)
    low, high = _propagate(system, problem.low, problem.high)
    if system.matrix.nnz * len(places) <= MOST_PROGRAM_WORK:
        low, high = _optimise_ranges(system, low, high, places)
    crossed = (low > high).any()
    return (problem.low, problem.high) if crossed else (low, high)


def _range_system(problem: Problem, equations: Rows, slack: Floats) -> _RangeSystem:
    """Everything a problem says without doubt, as rows with two ends."""
    from scipy.sparse import csr_array, vstack

    answers, limits = problem.answers, problem.limits
    parts = [(as_sparse(equations), answers - slack, answers + slack)]
    if limits is not None:
        parts.append((as_sparse(limits.rows), limits.low, limits.high))
    if problem.total is not None:
        total = np.array([problem.total])
        parts.append((csr_array(np.ones((1, equations.width))), total, total))
    matrices, lows, highs = zip(*parts, strict=True)
    return _RangeSystem(vstack(matrices).tocoo(), np.concatenate(lows), np.concatenate(highs))


def _propagate(system: _RangeSystem, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """What each equation, alone with the ends of the others, leaves to an unknown."""
    for _ in range(MOST_PROPAGATION_PASSES):
        before = low, high
        low, high = _one_pass(system, low, high)
        if np.array_equal(before[0], low) and np.array_equal(before[1], high):
            break
    return low, high


def _one_pass(system: _RangeSystem, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    row, column, value = system.matrix.row, system.matrix.col, system.matrix.data
    up = value > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        least = value * np.where(up, low[column], high[column])
        most = value * np.where(up, high[column], low[column])
        room_above = system.high[row] - _others(least, row, len(system.low), -np.inf)
        room_below = system.low[row] - _others(most, row, len(system.low), np.inf)
        above = np.where(up, room_above, room_below) / value
        below = np.where(up, room_below, room_above) / value
    size = np.abs(np.where(np.isfinite(least), least, 0)) + np.abs(system.high[row])
    loose = RANGE_ROUNDING * np.where(np.isfinite(size), size + np.abs(above), 0.0)
    new_low, new_high = low.copy(), high.copy()
    np.minimum.at(new_high, column, np.where(np.isnan(above), np.inf, above + loose))
    np.maximum.at(new_low, column, np.where(np.isnan(below), -np.inf, below - loose))
    return _keep_gains(low, new_low, high - low), _keep_gains(high, new_high, high - low)


def _others(terms: Floats, row: NDArray[np.int64], rows: int, open_end: float) -> Floats:
    """The sum of the other terms of each term's equation; infinite where one of them is."""
    is_open = ~np.isfinite(terms)
    closed = np.where(is_open, 0.0, terms)
    sums = np.bincount(row, closed, rows)
    opens = np.bincount(row, is_open, rows)
    return np.where(opens[row] > is_open, open_end, sums[row] - closed)


def _keep_gains(old: Floats, new: Floats, width: Floats) -> Floats:
    """The new ends, except gains too small to go on for."""
    with np.errstate(invalid="ignore"):
        crumb = np.abs(new - old) <= 1e-3 * width
    return np.where(crumb & np.isfinite(width), old, new)


def _optimise_ranges(
    system: _RangeSystem, low: Floats, high: Floats, places: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """The least and the greatest value of some unknowns by linear programs, one after another."""
    ends = low, high, system.low, system.high
    highs = load_program(Program(np.zeros(len(low)), *ends, system.matrix))
    found_low, found_high = low.copy(), high.copy()
    for place in places.tolist():
        for sign, found, better in ((1.0, found_low, max), (-1.0, found_high, min)):
            highs.changeColCost(place, sign)
            highs.run()
            if status_of(highs) is Status.OPTIMAL:
                end = float(highs.getSolution().col_value[place])
                loose = PROGRAM_TOLERANCE * (1 + abs(end))
                found[place] = better(found[place], end - sign * loose)
            highs.changeColCost(place, 0.0)
    return found_low, found_high


# Calibrated intervals ---------------------------------------------------------------------------


EXACT_FIT_RESIDUAL = 1e-7
"""Residuals so much smaller than the answers are rounding."""

ROUNDING_DEVIATION = 1e-13
"""The deviation of rounding, beside the answers, where nothing is left to estimate it from."""

ROUNDING_INTERVAL_DEVIATIONS = 10.0
"""Deviations of rounding in an interval without noise, or the root of the number of equations if
that is more: residuals of length r move no estimate by more than r times its deviation."""

OUTLIER_DEVIATIONS = 6.0
"""Equations are not trusted that are left so many robust deviations from holding."""


@dataclass(frozen=True, eq=False, repr=False)
class Confidence:
    """For each unknown the value, the interval that holds the true one, and how sure that is.

    `probability` is how likely a whole number is the right one: NaN for numbers that are not whole
    or not identified. `deviation` is that of the estimate: infinite where the equations do not
    identify the unknown, 0 where it was known before. `noise` is the deviation of an answer of
    spread 1, stated or estimated.
    """

    values: Floats
    low: Floats
    high: Floats
    probability: Floats
    deviation: Floats
    identified: Flags
    noise: float


@dataclass(frozen=True)
class _Noise:
    """What is supposed of the noise of an answer of spread 1."""

    kind: Kind
    deviation: float
    freedom: float = np.inf
    rounding: float = 0.0  # deviations to either side, where there is nothing but rounding


def confidence(
    problem: Problem,
    values: Floats | None = None,
    *,
    level: float = 0.9,
    random: np.random.Generator,
    trusted: Flags | None = None,
) -> Confidence:
    """How sure the equations make anybody of each value.

    `values` are those of any solver, by default the estimates of weighted least squares. They come
    back moved to the nearest number of their interval, and whole where they are whole numbers.
    Equations that are not `trusted` are left out (see `trusted_equations`). `random` is used for
    large systems alone.

    >>> problem = Problem.of([[1, 1, 0], [0, 1, 0]], [5.0, 2.0])
    >>> sure = confidence(problem, random=np.random.default_rng(0))
    >>> sure.values.round(6).tolist(), sure.high.round(6).tolist()
    ([3.0, 2.0, 0.0], [3.0, 2.0, inf])
    """
    standard = Standard.of(problem, trusted)
    found = covariance(standard, random)
    noise = _noise(problem, standard, found)
    estimate = _estimate(problem, standard, found, noise)
    seen = np.isfinite(estimate.deviation)
    within = _bounded_noise_ranges(problem, noise, seen, trusted)
    low, high = _law_intervals(estimate, noise, level)
    low, high = np.clip(low, *within), np.clip(high, *within)
    chosen = estimate.centre if values is None else values
    chosen = np.clip(chosen, low, high)
    probability = np.full(len(chosen), np.nan)
    if problem.whole.any():
        narrowed = replace(estimate, low=within[0], high=within[1])
        _round_to_whole(problem.whole, narrowed, level, (chosen, low, high, probability))
    identified = seen | (problem.low == problem.high)
    return Confidence(
        chosen, low, high, probability, estimate.deviation, identified, noise.deviation
    )


def trusted_equations(problem: Problem, values: Floats) -> Flags:
    """Which equations hold at a solution as well as most do: for solutions that outvote junk.

    Pass it to `confidence` together with the values of a robust solver: the answers that it
    outvoted are then left out, and intervals are those of the rest.
    """
    left = np.abs(problem.scaled_residuals(values))
    typical = 1.4826 * float(np.median(left)) if len(left) else 0.0
    stated = 0.0 if problem.noise is None else problem.noise.deviation
    rounding = EXACT_FIT_RESIDUAL * float(np.abs(problem.answers).max(initial=0.0))
    return np.asarray(left <= OUTLIER_DEVIATIONS * max(typical, stated) + rounding)


def _noise(problem: Problem, standard: Standard, found: Covariance) -> _Noise:
    """The stated noise; else what the residuals show, if they show more than rounding."""
    if problem.noise is not None:
        return _Noise(problem.noise.kind, problem.noise.deviation)
    size = float(np.sqrt(np.mean(standard.target**2))) if standard.height else 0.0
    freedom = max(standard.used - found.rank, 0.0)
    left = float(np.sqrt(found.squares / max(freedom, 1.0)))
    if freedom < 0.5 or left <= EXACT_FIT_RESIDUAL * size:
        reach = max(ROUNDING_INTERVAL_DEVIATIONS, float(np.sqrt(standard.height)))
        return _Noise("gaussian", max(left, ROUNDING_DEVIATION * size), rounding=reach)
    return _Noise("gaussian", left, max(freedom, 1.0))


def _estimate(
    problem: Problem, standard: Standard, found: Covariance, noise: _Noise
) -> EstimateWithLaw:
    """The estimate of every unknown: exact for known ones, without end for those not seen."""
    width, free = problem.equations.width, standard.free
    centre = np.where(problem.low == problem.high, problem.low, 0.0)
    deviation, concentration = np.zeros(width), np.ones(width)
    freedom = np.full(width, np.inf)
    centre[free] = found.estimate
    spread = np.maximum(noise.deviation * np.sqrt(found.variance), 1e-300)
    deviation[free] = np.where(found.identified, spread, np.inf)
    concentration[free] = found.concentration
    freedom[free] = 1 / np.maximum(1 / found.freedom + 1 / noise.freedom, 1 / MOST_FREEDOM)
    law = ErrorLaw.of(noise.kind, concentration, freedom)
    return EstimateWithLaw(centre, deviation, law, problem.low, problem.high)


def _law_intervals(estimate: EstimateWithLaw, noise: _Noise, level: float) -> tuple[Floats, Floats]:
    """The interval of each unknown by the law of its estimate; its range where there is none."""
    low, high = estimate.low.copy(), estimate.high.copy()
    seen = np.isfinite(estimate.deviation) & (low < high)
    some = estimate.some(seen)
    if noise.rounding:
        reach = noise.rounding * some.deviation
        low[seen] = np.clip(some.centre - reach, some.low, some.high)
        high[seen] = np.clip(some.centre + reach, some.low, some.high)
    else:
        low[seen], high[seen] = intervals(some, level)
    return low, high


def _bounded_noise_ranges(
    problem: Problem, noise: _Noise, seen: Flags, trusted: Flags | None
) -> tuple[Floats, Floats]:
    """The ranges outside of which no value can be, where noise is bounded or absent."""
    bound = None if problem.noise is None else problem.noise.bounded
    if noise.rounding:
        bound, asked = noise.rounding * noise.deviation, np.flatnonzero(~seen)
    elif bound is None:
        return problem.low, problem.high
    else:
        asked = np.flatnonzero(problem.low < problem.high)
    if not len(asked):
        return problem.low, problem.high
    slack = bound * np.abs(problem.spread)
    if trusted is not None:
        slack = np.where(trusted, slack, np.inf)
    return feasible_ranges(problem, slack, asked)


def _round_to_whole(
    whole: Flags,
    estimate: EstimateWithLaw,
    level: float,
    found: tuple[Floats, Floats, Floats, Floats],
) -> None:
    """Move values and intervals of whole numbers to whole numbers, and say how likely they are."""
    values, low, high, probability = found
    ends = np.ceil(estimate.low - 1e-6), np.floor(estimate.high + 1e-6)
    values[whole] = np.clip(np.round(values), *ends)[whole]
    low[whole], high[whole] = ends[0][whole], ends[1][whole]
    probability[whole & (low == high)] = 1.0
    places = np.flatnonzero(whole & np.isfinite(estimate.deviation) & (low < high))
    some = replace(estimate, low=low, high=high).some(places)
    ends_and_odds = whole_numbers(some, values[places], level)
    low[places], high[places], probability[places] = ends_and_odds
    values[whole] = np.clip(values, low, high)[whole]
