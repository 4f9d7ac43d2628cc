"""Whole values that fit answers: the nearest whole point, and better ones near it.

Source     Source document 002, "Incorporating background knowledge": round each value of the least
           squares solution to the nearest whole number.
Method     After rounding into the ranges, values are changed alone while that lowers the loss, then
           in pairs: of the changes that cost least alone, each with each. The loss is that of a
           `Law`: squares, absolute values, or what lies beyond a bound, in units of `spread`.
Cost       A round of single changes reads every entry a few times; one of pairs reads as many
           columns as there are pairs, at most `near` squared. Residuals are kept up to date.
Limit      The point found is best among its neighbours, not among all: `exact_decoding` is exact.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.law import Law, Noisy
from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows
from casemate.solve.whole_box import rounded, whole_ends

NEAR = 200
"""So many of the cheapest changes are tried in pairs."""


def whole_decoding(
    equations: Rows,
    right: Floats,
    *,
    start: Floats,
    low: Floats | float,
    high: Floats | float,
    law: Law = Law.GAUSSIAN,
    spread: Floats | float = 1.0,
    near: int = NEAR,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """The start rounded into ranges of whole numbers, improved until no change or pair helps.

    >>> from casemate.solve.system import System
    >>> rows = Rows.of(System.of([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))
    >>> start = np.array([0.6, 0.6, 0.6])
    >>> found = whole_decoding(rows, np.array([1.0, 1.0, 0.0]), start=start, low=0, high=1)
    >>> found.values.tolist()
    [0.0, 1.0, 0.0]
    """
    box = whole_ends(low, high, equations.width)
    search = _Search(Noisy.of(equations, right, law, spread), rounded(start, *box), box)
    for done in range(1, most + 1):
        settled = not (search.singles() or search.pairs(near))
        if progress is not None:
            progress(done, search.residual, search.point)
        if settled:
            break
    return Solved(search.point, search.residual, done, converged=settled)


class _Search:
    """A whole point, and what is left of the equations there, in spreads."""

    def __init__(self, answers: Noisy, start: Floats, box: tuple[Floats, Floats]) -> None:
        self._answers, self._box = answers, box
        self.point = start.copy()
        self._left = answers.left(start)

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""
        return self._answers.residual(self._left)

    def singles(self) -> bool:
        """Change values alone while that helps; whether any was changed."""
        from casemate.solve.whole_kernel import change_alone

        return bool(change_alone(self._answers.system, self._left, self.point, self._box))

    def pairs(self, near: int) -> bool:
        """Change the first pair found that helps; whether there was one."""
        from casemate.solve.whole_kernel import change_a_pair

        moves = self._cheapest(near)
        return bool(change_a_pair(self._answers.system, self._left, self.point, moves))

    def _cheapest(self, near: int) -> tuple[NDArray[np.int64], Floats]:
        """The changes by one that cost least alone: unknowns and steps."""
        from casemate.solve.whole_kernel import savings

        found = np.empty((len(self.point), 2))
        savings(self._answers.system, self._left, self.point, self._box, found)
        order = np.argsort(-found, axis=None, kind="stable")[:near]
        order = order[np.isfinite(found.ravel()[order])]
        return order // 2, np.where(order % 2, 1.0, -1.0)
