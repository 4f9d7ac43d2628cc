"""The whole values that fit answers best of all, for a few dozen unknowns.

Source     Source document 002, "Incorporating background knowledge": whole unknowns make the
           problem an integer program, which can be solved where it is small.
Method     A mixed-integer program in HiGHS: the least sum of absolute residuals, in units of
           `spread`, from the best point of `whole_decoding`. Answers without noise are the case in
           which that sum is 0.
Cost       Exponential in the worst case. Half subsets, four for each unknown: 40 unknowns take 1 s
           and 60 take 5 to 14 s with noise; without noise both take a hundredth of that.
Limit      When the time is up the best point so far is given, and `proved` is False.
"""

from dataclasses import dataclass

import numpy as np

from casemate.solve.box_squares import box_squares
from casemate.solve.law import Law, Noisy
from casemate.solve.least_squares import Progress
from casemate.solve.linear_program import Status
from casemate.solve.rows import Floats, Rows
from casemate.solve.watched_program import Entries, Program, Watcher, run
from casemate.solve.whole_box import rounded, whole_ends
from casemate.solve.whole_decoding import whole_decoding

START_STEPS = 100
"""Steps of least squares, to a hundredth, that lead to the start."""

EXACTLY = {"mip_rel_gap": 0.0, "mip_abs_gap": 1e-7}


@dataclass(frozen=True, eq=False)
class Exact:
    """Whole values, their sum of absolute residuals in spreads, and whether no others have less."""

    values: Floats
    deviation: float
    proved: bool


def exact_decoding(
    equations: Rows,
    right: Floats,
    *,
    low: Floats | float,
    high: Floats | float,
    spread: Floats | float = 1.0,
    seconds: float = 60.0,
    progress: Progress | None = None,
) -> Exact:
    """The whole values in their ranges whose absolute residuals add up to the least.

    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[3, 5, 7]]))
    >>> found = exact_decoding(rows, np.array([12.0]), low=0, high=1)
    >>> found.values.tolist(), found.deviation, found.proved
    ([0.0, 1.0, 1.0], 0.0, True)
    """
    low, high = box = whole_ends(low, high, equations.width)
    answers = Noisy.of(equations, right, Law.LAPLACE, spread)
    near = box_squares(equations, right, low=low, high=high, tolerance=1e-2, most=START_STEPS)
    start = whole_decoding(
        equations, right, start=near.values, low=low, high=high, law=Law.LAPLACE, spread=spread
    ).values
    found = run(
        _program(answers, box),
        start=_extended(answers, start),
        watch=_watcher(answers, start, progress),
        seconds=seconds,
        **EXACTLY,
    )
    candidates = [start]
    if found.status is not Status.STOPPED or len(found.point):
        candidates.append(rounded(found.point[: equations.width], *box))
    deviation, best = min(((_deviation(answers, each), each) for each in candidates), key=_first)
    return Exact(best, deviation, proved=found.status is Status.OPTIMAL)


def _first(pair: tuple[float, Floats]) -> float:
    return pair[0]


def _deviation(answers: Noisy, point: Floats) -> float:
    """The sum of absolute residuals, in spreads."""
    return answers.loss(answers.left(point))


def _program(answers: Noisy, box: tuple[Floats, Floats]) -> Program:
    """Whole values, then how far each answer is above their sum and how far below."""
    height, width = answers.equations.height, answers.equations.width
    above = Entries.diagonal(np.ones(height), 0, width)
    return Program(
        np.concatenate([np.zeros(width), np.tile(1 / answers.spread, 2)]),
        np.concatenate([box[0], np.zeros(2 * height)]),
        np.concatenate([box[1], np.full(2 * height, np.inf)]),
        answers.right,
        answers.right,
        (Entries.of(answers.equations), above, above.to_the_right(height, -1.0)),
        whole=width,
    )


def _extended(answers: Noisy, point: Floats) -> Floats:
    """A point of the program from whole values."""
    left = answers.left(point) * answers.spread
    return np.concatenate([point, np.maximum(left, 0), np.maximum(-left, 0)])


def _watcher(answers: Noisy, start: Floats, progress: Progress | None) -> Watcher | None:
    """Tell of the steps, and of the best values so far."""
    if progress is None:
        return None

    def watch(steps: int, point: Floats | None) -> None:
        values = start if point is None else point[: len(start)]
        progress(steps, answers.residual(answers.left(values)), values)

    return watch
