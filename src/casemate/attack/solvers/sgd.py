"""Stochastic gradient descent, one equation at a time, with values kept in a box by a sigmoid.

Source     Source document 002, "Handling many queries": x = l + (u - l) sigmoid(z), and a step of
           0.01 along the gradient in z of one randomly chosen equation's squared residual.
Method     By default the step is as long as makes the equation hold, as far as the slopes of the
           sigmoids tell, which is the same for rows of any length; it is cut where some z would
           move further than 1. `rate=0.01` is the document's. Without a sigmoid z is x, and the
           step is Kaczmarz's. The averaged form is for equations that contradict; see
           `RandomPasses` of `kaczmarz`.
Departure  The document's constant step leaves noisy answers wandering, and long rows may make it
           grow without end: `test_the_documents_constant_step_is_too_long_for_long_rows`. A value
           with one end only is kept on its side by clipping, as a sigmoid needs two ends.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.iteration import Progress, Solved, iterate
from casemate.attack.solvers.kaczmarz import (
    NO_TRAIL,
    BoxedPoint,
    Order,
    RandomPasses,
    coefficient,
    row_value,
    row_values,
    shuffled_rows,
)
from casemate.compiled import compiled
from casemate.exact import Floats, RowArrays, Rows, box_ends


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
    boxed = BoxedPoint(box_ends(low, high, equations.width), start)
    pace, right = _check_rate(rate), right.astype(np.float64)
    box = SigmoidBox(boxed.low, boxed.high, boxed.span)

    def one_pass(relaxation: float, sums: Floats) -> int:
        turns = StepTurns(order(equations, random), StepRule(pace, relaxation))
        path = SigmoidPath(boxed.variables, boxed.point, sums, 1.0)
        sweep(equations.arrays, right, turns, path, box)
        return len(turns.order)

    work = RandomPasses(boxed, one_pass, equations, right, averaged)
    return iterate(work, tolerance, most, progress)


def _check_rate(rate: float | None) -> float:
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
        self._boxed = BoxedPoint(box_ends(low, high, width), start, sigmoid)
        self._rate = _check_rate(rate)
        self._trail = PathAverage(width) if averaged else None

    @property
    def point(self) -> Floats:
        """Where it is now, or on average."""
        last = self._boxed.point
        return last if self._trail is None else self._trail.average(last)

    def see(
        self, columns: NDArray[np.integer], answer: float, values: Floats | None = None
    ) -> None:
        """Take in one equation: the unknowns it adds up, their coefficients (1), and the answer."""
        boxed = self._boxed
        sums, before = (NO_TRAIL, 0.0) if self._trail is None else self._trail.next(boxed.point)
        factors = None if values is None else values.astype(np.float64)
        path = SigmoidPath(boxed.variables, boxed.point, sums, before)
        box = SigmoidBox(boxed.low, boxed.high, boxed.span)
        equation, rule = SparseRow(columns.astype(np.uint32), factors), StepRule(self._rate, 1.0)
        step(equation, float(answer), rule, path, box)


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


# Compiled steps ---------------------------------------------------------------------------------


LONGEST_STEP = 1.0
"""No z moves further than this in one step."""

FARTHEST_VARIABLE = 30.0
"""Nor further away from 0 than this, where a value is at its end up to 1e-13 of the span."""


class SigmoidBox(NamedTuple):
    """A value is low + span * sigmoid(z); z itself, kept on its side, where the span is 0."""

    low: Floats
    high: Floats
    span: Floats  # 0 where an end is not finite


class StepRule(NamedTuple):
    """A positive rate is the factor of the gradient; else a step makes its equation hold."""

    rate: float
    relaxation: float  # the part of the step that is gone


class StepTurns(NamedTuple):
    """The rows of a pass, and the rule of its steps."""

    order: NDArray[np.int64]
    rule: StepRule


class SigmoidPath(NamedTuple):
    """The variables z, the values before them, and sums as in `kaczmarz`."""

    variables: Floats
    point: Floats
    sums: Floats
    before: float  # points before the next move


class SparseRow(NamedTuple):
    """One equation."""

    columns: NDArray[np.uint32]
    values: Floats | None  # None: all of them are 1


@compiled
def _slope(j: int, point: Floats, box: SigmoidBox) -> float:
    """By how much a value changes with the variable behind it."""
    low, high, span = box
    if span[j] == 0.0:
        return 1.0 if low[j] < high[j] else 0.0
    slope: float = (point[j] - low[j]) * (high[j] - point[j]) / span[j]
    return slope


@compiled
def _gain(equation: SparseRow, residual: float, point: Floats, box: SigmoidBox) -> float:
    """The factor of the gradient that makes an equation hold as far as slopes tell.

    It is cut where a value behind a sigmoid would move too far.
    """
    columns, values = equation
    squared, largest = 0.0, 0.0
    for k in range(columns.shape[0]):
        j = columns[k]
        part = _slope(j, point, box) * coefficient(values, k)
        squared += part * part
        if box.span[j] > 0.0:
            largest = max(largest, abs(part))
    if squared == 0.0:
        return 0.0
    gain = residual / squared
    too_long = abs(gain) * largest > LONGEST_STEP
    return math.copysign(LONGEST_STEP / largest, gain) if too_long else gain


@compiled
def step(
    equation: SparseRow, answer: float, rule: StepRule, path: SigmoidPath, box: SigmoidBox
) -> None:
    """One step along the gradient of one equation's squared residual."""
    columns, values = equation
    rate, relaxation = rule
    variables, point, sums, before = path
    averaged = sums.shape[0] > 0
    residual = answer - row_value(columns, values, point)
    gain = 2 * rate * residual if rate > 0 else _gain(equation, residual, point, box)
    for k in range(columns.shape[0]):
        j = columns[k]
        part = relaxation * gain * coefficient(values, k) * _slope(j, point, box)
        moved = _moved_value(j, part, variables, box)
        if averaged:
            sums[j] += before * (moved - point[j])
        point[j] = moved


@compiled
def _moved_value(j: int, part: float, variables: Floats, box: SigmoidBox) -> float:
    """Move one variable, and give the value in front of it."""
    low, high, span = box
    if span[j] == 0.0:
        variables[j] = min(max(variables[j] + part, low[j]), high[j])
        value: float = variables[j]
    else:
        variables[j] = min(max(variables[j] + part, -FARTHEST_VARIABLE), FARTHEST_VARIABLE)
        value = low[j] + span[j] / (1.0 + math.exp(-variables[j]))
    return value


@compiled
def sweep(
    rows: RowArrays, right: Floats, turns: StepTurns, path: SigmoidPath, box: SigmoidBox
) -> None:
    """One step for each row of an order."""
    starts, columns, values, _ = rows
    for turn in range(turns.order.shape[0]):
        i = turns.order[turn]
        equation = SparseRow(columns[starts[i] : starts[i + 1]], row_values(starts, values, i))
        now = SigmoidPath(path.variables, path.point, path.sums, path.before + turn)
        step(equation, right[i], turns.rule, now, box)
