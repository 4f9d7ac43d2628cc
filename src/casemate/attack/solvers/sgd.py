"""Stochastic gradient descent, one equation at a time, with values kept in a box by a sigmoid.

Source     Source document 002, "Handling many queries": x = l + (u - l) sigmoid(z), and a step of
           0.01 along the gradient in z of one randomly chosen equation's squared residual.
Method     By default the step is as long as makes the equation hold, as far as the slopes of the
           sigmoids tell, which is the same for rows of any length; it is cut where some z would
           move further than 1. `rate=0.01` is the document's. Without a sigmoid z is x, and the
           step is Kaczmarz's. The averaged form is for equations that contradict; see `kaczmarz`.
Departure  The document's constant step leaves noisy answers wandering, and long rows may make it
           grow without end: `test_the_documents_constant_step_is_too_long_for_long_rows`. A value
           with one end only is kept on its side by clipping, as a sigmoid needs two ends.

A value between two ends is low + span * sigmoid(z); one with an end that is not finite is z itself,
kept on its side. `place` is (low, high, span), the span being 0 where an end is not finite; a path
is (behind, point, sums): z, the values, and sums as in `kaczmarz`.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress, Solved, iterate
from casemate.attack.solvers.kaczmarz import (
    NO_TRAIL,
    Order,
    RandomPasses,
    at,
    coefficient,
    own,
    shuffled_rows,
)
from casemate.compiled import compiled
from casemate.exact import Floats, Rows, ends

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

    >>> from casemate.exact.system import System
    >>> rows, draws = Rows.of(System.of([[1, 1], [0, 1]])), np.random.default_rng(0)
    >>> sgd(rows, np.array([5.0, 2.0]), random=draws, low=0, high=9).values.round(2).tolist()
    [3.0, 2.0]
    """
    behind = _Behind(ends(low, high, equations.width), start)
    sweeper = _StochasticDescent(equations, right, behind, rate)
    work = RandomPasses(sweeper, equations, right, lambda: order(equations, random), averaged)
    return iterate(work, tolerance, most, progress)


class _Behind:
    """The values, and the variables behind them."""

    def __init__(
        self, box: tuple[Floats, Floats], start: Floats | None, sigmoid: bool = True
    ) -> None:
        self._low, self._high = low, high = box
        both = np.isfinite(low) & np.isfinite(high) & sigmoid
        self._span: Floats = np.where(both, high - np.where(both, low, 0.0), 0.0)
        middle = np.where(both, low + self._span / 2, np.clip(0.0, low, high))
        self.jump(middle if start is None else start)

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


class _StochasticDescent:
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


class EquationStream:
    """A point in a box that follows equations as they come, each seen once and then forgotten.

    It is kept in the box by clipping, or by the sigmoid if that is asked for. With `averaged` its
    point is the average of the end of its path, which comes to rest where noisy equations leave
    the path itself wandering.

    >>> stream = EquationStream(2, low=0.0)
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
        sigmoid: bool = False,
        rate: float | None = None,
        averaged: bool = False,
    ) -> None:
        self._behind = _Behind(ends(low, high, width), start, sigmoid)
        self._rate = _checked(rate)
        self._trail = PathAverage(width) if averaged else None

    @property
    def point(self) -> Floats:
        """Where it is now, or on average."""
        last = self._behind.point
        return last if self._trail is None else self._trail.average(last)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        behind = self._behind
        trail = (NO_TRAIL, 0.0) if self._trail is None else self._trail.next(behind.point)
        factors = None if values is None else values.astype(np.float64)
        equation, path = (columns.astype(np.uint32), factors), (*behind.state, *trail)
        step(equation, float(answer), (self._rate, 1.0), path, behind.place)


class PathAverage:
    """The average of at least the last half of a path, and at most its last three quarters.

    >>> trail, point = PathAverage(1), np.zeros(1)
    >>> for value in (8.0, 2.0, 4.0):
    ...     sums, before = trail.next(point)
    ...     sums += before * (value - point)
    ...     point[:] = value
    >>> trail.average(point).round(6).tolist()  # of 8, 2 and 4: the start is forgotten
    [4.666667]
    """

    def __init__(self, width: int) -> None:
        self._sums: Floats = np.zeros(width)
        self._moves, self._until = 0, 1
        self._earlier: Floats = np.zeros(width)
        self._count = 0

    def next(self, point: Floats) -> tuple[Floats, float]:
        """Before each move: the sums to which it is to be added, and how often."""
        if self._moves == self._until:
            self._earlier = self._recent(point)
            self._count, self._moves, self._until = self._moves, 0, 2 * self._until
            self._sums = np.zeros(len(self._sums))
        self._moves += 1
        return self._sums, float(self._moves - 1)

    def average(self, point: Floats) -> Floats:
        """The average of the points, of which this is the last."""
        if self._moves == 0:
            return point.copy()
        share = self._count / (self._count + self._moves)
        return share * self._earlier + (1 - share) * self._recent(point)

    def _recent(self, point: Floats) -> Floats:
        """The average of the points since the last turn, without the one before the first move."""
        return point - self._sums / self._moves


# Kernels ----------------------------------------------------------------------------------------


LONGEST = 1.0
"""No z moves further than this in one step."""

FARTHEST = 30.0
"""Nor further away from 0 than this, where a value is at its end up to 1e-13 of the span."""


@compiled
def _slope(j: Any, point: Any, place: Any) -> Any:
    """By how much a value changes with the variable behind it."""
    low, high, span = place
    if span[j] == 0.0:
        return 1.0 if low[j] < high[j] else 0.0
    return (point[j] - low[j]) * (high[j] - point[j]) / span[j]


@compiled
def _gain(columns: Any, values: Any, rest: Any, point: Any, place: Any) -> Any:
    """The factor of the gradient that makes an equation hold as far as slopes tell.

    It is cut where a value behind a sigmoid would move too far.
    """
    squared, largest = 0.0, 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        part = _slope(j, point, place) * coefficient(values, k)
        squared += part * part
        if place[2][j] > 0.0:
            largest = max(largest, abs(part))
    if squared == 0.0:
        return 0.0
    gain = rest / squared
    return gain if abs(gain) * largest <= LONGEST else math.copysign(LONGEST / largest, gain)


@compiled
def step(equation: Any, answer: Any, steps: Any, path: Any, place: Any) -> None:
    """One step along the gradient of one equation's squared residual.

    `equation` is (columns, values), `steps` (rate, relaxed), and `path` (behind, point, sums,
    before). A positive rate is the factor of that gradient; else the step makes the equation hold.
    """
    columns, values = equation
    rate, relaxed = steps
    behind, point, sums, before = path
    trailed = sums.shape[0] > 0
    rest = answer - at(columns, values, point)
    gain = 2 * rate * rest if rate > 0 else _gain(columns, values, rest, point, place)
    for k in range(columns.shape[0]):
        j = columns[k]
        part = relaxed * gain * coefficient(values, k) * _slope(j, point, place)
        moved = _value(j, part, behind, place)
        if trailed:
            sums[j] += before * (moved - point[j])
        point[j] = moved


@compiled
def _value(j: Any, part: Any, behind: Any, place: Any) -> Any:
    """Move one variable, and give the value in front of it."""
    low, high, span = place
    if span[j] == 0.0:
        behind[j] = min(max(behind[j] + part, low[j]), high[j])
        return behind[j]
    behind[j] = min(max(behind[j] + part, -FARTHEST), FARTHEST)
    return low[j] + span[j] / (1.0 + math.exp(-behind[j]))


@compiled
def sweep(rows: Any, right: Any, turns: Any, path: Any, place: Any) -> None:
    """One step for each row of an order; `turns` is (order, rate, relaxed)."""
    starts, columns, values, _ = rows
    order, rate, relaxed = turns
    behind, point, sums = path
    for turn in range(order.shape[0]):
        i = order[turn]
        equation = (columns[starts[i] : starts[i + 1]], own(starts, values, i))
        step(equation, right[i], (rate, relaxed), (behind, point, sums, turn + 1.0), place)
