"""Kaczmarz's method: one equation at a time, drawn at random or as they come.

Source     Source document 002, "Handling many queries": the step of stochastic gradient descent
           that makes the drawn equation hold; rows are drawn by their squared lengths.
Method     Each step is a projection on one equation, followed by one into the box, which keeps what
           is known of each value (the document's change of variables by a sigmoid is in `sgd`).
           Where equations contradict, the averaged form comes to rest at least squares; see
           `sweeping`. It takes each row once a pass, so that all of them count alike.
Cost       A pass costs what reading the equations costs. Loose answers come within a few passes;
           for many digits `least_squares` and `swept_squares` are faster.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows, ends
from casemate.solve.sweeping import (
    NO_TRAIL,
    Order,
    drawn_rows,
    settle,
    settle_averaged,
    shuffled_rows,
)
from casemate.solve.trail import Trail

__all__ = ["Stream", "drawn_rows", "kaczmarz", "shuffled_rows"]


def kaczmarz(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    order: Order | None = None,
    averaged: bool = False,
    tolerance: float = 1e-4,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """A point of the box at which the equations nearly hold; `most` counts passes.

    `order` is `drawn_rows`, or `shuffled_rows` for the averaged form, unless it is given.

    >>> from casemate.solve.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> kaczmarz(rows, np.array([5.0, 2.0]), random=draws).values.round(2).tolist()
    [3.0, 2.0]
    """
    work = _Projections(equations, right, Stream(equations.width, low=low, high=high, start=start))
    go, usual = (settle_averaged, shuffled_rows) if averaged else (settle, drawn_rows)
    return go(
        work,
        equations,
        right,
        random=random,
        order=order or usual,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )


class _Projections:
    """Projections on one equation after another."""

    def __init__(self, equations: Rows, right: Floats, stream: "Stream") -> None:
        self._equations, self._right = equations, right.astype(np.float64)
        self._box, self.point = stream.box, stream.point

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """Go the part `relaxed` of the way to each equation."""
        from casemate.solve.kaczmarz_kernel import sweep

        turns, path = (order, relaxed), (self.point, sums)
        sweep(self._equations.compiled, self._right, turns, path, self._box)
        return len(order)

    def jump(self, point: Floats) -> None:
        """Go on from another point."""
        self.point = point


class Stream:
    """A point that follows equations as they come, each seen once and then forgotten.

    With `averaged` its point is the average of the end of its path, which comes to rest where
    noisy equations leave the path itself wandering.

    >>> stream = Stream(2, low=0.0)
    >>> stream.see(np.array([0, 1]), 5.0)
    >>> stream.see(np.array([1]), 2.0)
    >>> stream.point.tolist()
    [2.5, 2.0]
    """

    def __init__(
        self,
        width: int,
        *,
        low: Floats | float = -np.inf,
        high: Floats | float = np.inf,
        start: Floats | None = None,
        averaged: bool = False,
    ) -> None:
        self.box = ends(low, high, width)
        self._last: Floats = np.clip(np.zeros(width) if start is None else start, *self.box)
        self._trail = Trail(width) if averaged else None

    @property
    def point(self) -> Floats:
        """Where it is now, or on average."""
        return self._last if self._trail is None else self._trail.average(self._last)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        from casemate.solve.kaczmarz_kernel import project

        factors = None if values is None else values.astype(np.float64)
        squared = float(len(columns) if factors is None else factors @ factors)
        if squared > 0:
            trail = (NO_TRAIL, 0.0) if self._trail is None else self._trail.next(self._last)
            equation, path = (columns.astype(np.uint32), factors), (self._last, *trail)
            project(equation, float(answer), 1 / squared, path, self.box)
