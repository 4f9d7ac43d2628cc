"""Stochastic gradient descent, one equation at a time, with values kept in a box by a sigmoid.

Source     Source document 002, "Handling many queries": x = l + (u - l) sigmoid(z), and a step of
           0.01 along the gradient in z of one randomly chosen equation's squared residual.
Method     By default the step is as long as makes the equation hold, as far as the slopes of the
           sigmoids tell, which is the same for rows of any length; it is cut where some z would
           move further than 1. `rate=0.01` is the document's. Without a box z is x, and the step is
           Kaczmarz's. The averaged form is for equations that contradict; see `sweeping`.
Departure  The document's constant step leaves noisy answers wandering, and long rows may make it
           grow without end: `test_the_documents_constant_step_is_too_long_for_long_rows`. A value
           with one end only is kept on its side by clipping, as a sigmoid needs two ends.
"""

import numpy as np
from numpy.typing import NDArray

from casemate.solve.least_squares import Progress, Solved
from casemate.solve.rows import Floats, Rows, ends
from casemate.solve.sweeping import NO_TRAIL, Order, settle, settle_averaged, shuffled_rows
from casemate.solve.trail import Trail

INSIDE = 1e-12
"""A start is kept so far from the ends of the box, as a share of it."""


def sgd(
    equations: Rows,
    right: Floats,
    *,
    random: np.random.Generator,
    low: Floats | float = -np.inf,
    high: Floats | float = np.inf,
    start: Floats | None = None,
    rate: float | None = None,
    order: Order = shuffled_rows,
    averaged: bool = False,
    tolerance: float = 1e-4,
    most: int = 1_000,
    progress: Progress | None = None,
) -> Solved:
    """A point inside the box at which the equations nearly hold; `most` counts passes.

    It starts in the middle of the box, or at 0 where there is none.

    >>> from casemate.solve.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> sgd(rows, np.array([5.0, 2.0]), random=draws, low=0, high=9).values.round(2).tolist()
    [3.0, 2.0]
    """
    work = _Descent(equations, right, _Behind(ends(low, high, equations.width), start), rate)
    go = settle_averaged if averaged else settle
    return go(
        work,
        equations,
        right,
        random=random,
        order=order,
        tolerance=tolerance,
        most=most,
        progress=progress,
    )


class _Behind:
    """The values, and the variables behind them."""

    def __init__(self, box: tuple[Floats, Floats], start: Floats | None) -> None:
        low, high = box
        both = np.isfinite(low) & np.isfinite(high)
        self._low, self._high = low, high
        self._span: Floats = np.where(both, high - np.where(both, low, 0.0), 0.0)
        middle = low + self._span / 2
        self.jump(np.where(both, middle, np.clip(0.0, low, high)) if start is None else start)

    @property
    def place(self) -> tuple[Floats, Floats, Floats]:
        """What the compiled steps take."""
        return self._low, self._high, self._span

    @property
    def state(self) -> tuple[Floats, Floats]:
        """The variables and the values, which the compiled steps change."""
        return self._variables, self.point

    def jump(self, point: Floats) -> None:
        """Go to a point, or as near to it as the inside of the box allows."""
        inside = self._span > 0
        self.point: Floats = np.clip(point.astype(np.float64), self._low, self._high)
        share = (self.point[inside] - self._low[inside]) / self._span[inside]
        share = np.clip(share, INSIDE, 1 - INSIDE)
        self._variables: Floats = self.point.copy()
        self._variables[inside] = np.log(share / (1 - share))
        self.point[inside] = self._low[inside] + self._span[inside] * share


class _Descent:
    """Steps along the gradient of one equation after another."""

    def __init__(self, equations: Rows, right: Floats, behind: _Behind, rate: float | None) -> None:
        self._equations, self._right = equations, right.astype(np.float64)
        self._behind, self._rate = behind, _checked(rate)

    @property
    def point(self) -> Floats:
        """The values."""
        return self._behind.point

    def sweep(self, order: NDArray[np.int64], relaxed: float, sums: Floats) -> int:
        """One step for each row of the order."""
        from casemate.solve.sgd_kernel import sweep

        turns, path = (order, self._rate, relaxed), (*self._behind.state, sums)
        sweep(self._equations.compiled, self._right, turns, path, self._behind.place)
        return len(order)

    def jump(self, point: Floats) -> None:
        """Go on from another point."""
        self._behind.jump(point)


def _checked(rate: float | None) -> float:
    if rate is not None and not rate > 0:
        raise ValueError(f"a rate of descent must be above 0, not {rate}")
    return rate or 0.0


class SigmoidStream:
    """A point inside a box that follows equations as they come, each seen once.

    >>> stream = SigmoidStream(2, low=0.0, high=9.0)
    >>> for _ in range(50):
    ...     stream.see(np.array([0, 1]), 5.0)
    ...     stream.see(np.array([1]), 2.0)
    >>> stream.point.round(3).tolist()
    [3.0, 2.0]
    """

    def __init__(
        self,
        width: int,
        *,
        low: Floats | float = -np.inf,
        high: Floats | float = np.inf,
        start: Floats | None = None,
        rate: float | None = None,
        averaged: bool = False,
    ) -> None:
        self._behind = _Behind(ends(low, high, width), start)
        self._rate = _checked(rate)
        self._trail = Trail(width) if averaged else None

    @property
    def point(self) -> Floats:
        """Where it is now, or on average."""
        last = self._behind.point
        return last if self._trail is None else self._trail.average(last)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        from casemate.solve.sgd_kernel import step

        behind = self._behind
        trail = (NO_TRAIL, 0.0) if self._trail is None else self._trail.next(behind.point)
        factors = None if values is None else values.astype(np.float64)
        equation, path = (columns.astype(np.uint32), factors), (*behind.state, *trail)
        step(equation, float(answer), (self._rate, 1.0), path, behind.place)
