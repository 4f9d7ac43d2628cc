"""Whole values that fit answers: the nearest whole point, and better ones near it.

Source     Source document 002, "Incorporating background knowledge": round each value of the least
           squares solution to the nearest whole number.
Method     After rounding into the ranges, values are changed alone while that lowers the loss, then
           in pairs: of the changes that cost least alone, each with each. The loss is that of an
           `AnswerLaw`: squares, absolute values, or what lies beyond a bound, in units of `spread`.
Cost       A round of single changes reads every entry a few times; one of pairs reads as many
           columns as there are pairs, at most `near` squared. Residuals are kept up to date.
Limit      The point found is best among its neighbours, not among all: `exact_decoding` is exact.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.answer_loss import (
    GAUSSIAN_LOSS,
    AnswerLaw,
    LossColumns,
    Noisy,
    change,
    loss_saved,
    parabola,
    total_loss,
)
from casemate.attack.solvers.iteration import Progress, Solved, iterate
from casemate.compiled import compiled
from casemate.exact import Floats, Rows, box_ends


def whole_ends(low: Floats | float, high: Floats | float, width: int) -> tuple[Floats, Floats]:
    """The least and the greatest whole number of each range; both must exist.

    >>> [end.tolist() for end in whole_ends(0.5, 3.2, 2)]
    [[1.0, 1.0], [3.0, 3.0]]
    """
    below, above = box_ends(low, high, width)
    if not (np.isfinite(below) & np.isfinite(above)).all():
        raise ValueError("whole unknowns need a finite range each; give both of its ends")
    below, above = np.ceil(below), np.floor(above)
    if (below > above).any():
        raise ValueError("a range without a whole number in it was given for a whole unknown")
    return below, above


def nearest_whole(point: Floats, low: Floats, high: Floats) -> Floats:
    """The whole point nearest to a point, within ranges of whole numbers; halves go up.

    >>> nearest_whole(np.array([0.5, 1.5, -2.0]), np.zeros(3), np.ones(3)).tolist()
    [1.0, 1.0, 0.0]
    """
    return np.clip(np.floor(point + 0.5), low, high)


# The search -------------------------------------------------------------------------------------


PAIRED_CHANGES = 200
"""So many of the cheapest changes are tried in pairs."""


def whole_decoding(
    equations: Rows,
    right: Floats,
    *,
    start: Floats,
    low: Floats | float,
    high: Floats | float,
    law: AnswerLaw = AnswerLaw.GAUSSIAN,
    spread: Floats | float = 1.0,
    near: int = PAIRED_CHANGES,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """The start rounded into ranges of whole numbers, improved until no change or pair helps.

    >>> from casemate.exact.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    >>> start = np.array([0.6, 0.6, 0.6])
    >>> found = whole_decoding(rows, np.array([1.0, 1.0, 0.0]), start=start, low=0, high=1)
    >>> found.values.tolist()
    [0.0, 1.0, 0.0]
    """
    box = whole_ends(low, high, equations.width)
    search = _WholeSearch(
        Noisy.of(equations, right, law, spread), nearest_whole(start, *box), box, near
    )
    return iterate(search, 0.0, most, progress)


class _WholeSearch:
    """A whole point, and what is left of the equations there, in spreads."""

    def __init__(
        self, answers: Noisy, start: Floats, box: tuple[Floats, Floats], near: int
    ) -> None:
        self._answers, self._box, self._near = answers, box, near
        self.steps, self._settled = 0, False
        self.point = start.copy()
        self._residuals = answers.residuals(start)

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return self._answers.residual(self._residuals)

    def is_done(self, _: float) -> bool:
        """Whether no change or pair helped."""
        return self._settled

    def step(self) -> None:
        """Change values alone, or a pair where that does not help."""
        self._settled = not (self._singles() or self._pairs())
        self.steps += 1

    def _singles(self) -> bool:
        """Change values alone while that helps; whether any was changed."""
        return change_alone(self._answers.columns, self._residuals, self.point, self._box) > 0

    def _pairs(self) -> bool:
        """Change the first pair found that helps; whether there was one."""
        moves = self._cheapest()
        return change_a_pair(self._answers.columns, self._residuals, self.point, moves)

    def _cheapest(self) -> "UnitMoves":
        """The changes by one that cost least alone."""
        found = np.empty((len(self.point), 2))
        savings(self._answers.columns, self._residuals, self.point, self._box, found)
        order = np.argsort(-found, axis=None, kind="stable")[: self._near]
        order = order[np.isfinite(found.ravel()[order])]
        return UnitMoves(order // 2, np.where(order % 2, 1.0, -1.0))


# Compiled changes of one or two values that lower a loss ----------------------------------------


LEAST_SAVING_SHARE = 1e-9
"""A change must save this part of the loss; less is rounding."""


class UnitMoves(NamedTuple):
    """Changes of one unknown each, by 1 or -1."""

    unknowns: NDArray[np.int64]
    steps: Floats


@compiled
def best_step(
    system: LossColumns, residuals: Floats, unknown: int, room: tuple[float, float]
) -> tuple[float, float]:
    """A step within the room (down, up) and what it saves; for squares the best of all steps."""
    down, up = room
    if system.law == GAUSSIAN_LOSS:
        slope, curve = parabola(system, residuals, unknown)
        step = np.floor(slope / curve + 0.5) if curve > 0 else 0.0
        step = min(max(step, down), up)
        return step, slope * step - 0.5 * curve * step * step
    found, most = 0.0, 0.0
    for step in (-1.0, 1.0):
        if down <= step <= up:
            worth = loss_saved(system, residuals, unknown, step)
            if worth > most:
                found, most = step, worth
    return found, most


@compiled
def change_alone(
    system: LossColumns, residuals: Floats, point: Floats, box: tuple[Floats, Floats]
) -> int:
    """Go over the unknowns, and over again, while changes help; how many did."""
    low, high = box
    least = LEAST_SAVING_SHARE * (1 + total_loss(system.law, residuals))
    count, before = 0, -1
    while before < count:
        before = count
        for j in range(point.shape[0]):
            room = low[j] - point[j], high[j] - point[j]
            step, worth = best_step(system, residuals, j, room)
            if worth > least:
                change(system, residuals, j, step)
                point[j] += step
                count += 1
    return count


@compiled
def savings(
    system: LossColumns,
    residuals: Floats,
    point: Floats,
    box: tuple[Floats, Floats],
    found: Floats,
) -> None:
    """What each step down and up by one saves; minus infinity outside the range."""
    low, high = box
    for j in range(point.shape[0]):
        down, up = point[j] > low[j], point[j] < high[j]
        found[j, 0] = loss_saved(system, residuals, j, -1.0) if down else -np.inf
        found[j, 1] = loss_saved(system, residuals, j, 1.0) if up else -np.inf


@compiled
def change_a_pair(system: LossColumns, residuals: Floats, point: Floats, moves: UnitMoves) -> bool:
    """Make the first two of these moves that help together; whether there are such."""
    unknowns, steps = moves
    least = LEAST_SAVING_SHARE * (1 + total_loss(system.law, residuals))
    for a in range(unknowns.shape[0]):
        i, step = unknowns[a], steps[a]
        alone = loss_saved(system, residuals, i, step)
        change(system, residuals, i, step)
        for b in range(unknowns.shape[0]):
            j = unknowns[b]
            if j != i and alone + loss_saved(system, residuals, j, steps[b]) > least:
                change(system, residuals, j, steps[b])
                point[i] += step
                point[j] += steps[b]
                return True
        change(system, residuals, i, -step)
    return False
