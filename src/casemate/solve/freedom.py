"""Whether a solution can move: in one direction, with every column going where it has to go.

A solution of equations that lies at an end of some column's range shows that column's value if all
other solutions have it at that end too. It does not iff there is a direction in which the column
leaves its end, no other column passes its own, and no equation changes; and if there is such a
direction for each of some columns, their sum is one for all of them. So columns whose direction
has a given sign, at least 1 in size, and equations that stay at 0, are a linear program without an
objective; it is kept while equations come, and one that would leave no direction is turned away.

Exact      Nothing here is: the program is in doubles, and its answers say what to try. Whoever
           relies on them checks what comes of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STILL = 1e-9
"""A sum that changes by less, in units of its own size, does not change."""


@dataclass(frozen=True, eq=False)
class Held:
    """A weighted sum of columns that may change only between `low` and `high`."""

    columns: NDArray[np.int64]
    weights: Floats
    low: float = 0.0
    high: float = 0.0


class Freedom:
    """A direction for columns between `low` and `high`, and the sums that it must hold.

    >>> free = Freedom(np.array([1.0, -np.inf, 1.0]), np.full(3, np.inf))
    >>> sums = [Held(np.array(columns), np.ones(2)) for columns in ([0, 1], [1, 2], [0, 2])]
    >>> [free.admit([each]) for each in sums]  # the last would let neither of two columns go up
    [True, True, False]
    """

    def __init__(self, low: Floats, high: Floats) -> None:
        import highspy

        self._low, self._high = low, high
        self._now = np.clip(np.zeros(len(low)), low, high)  # the direction at present
        self._highs = highspy.Highs()
        options = {"output_flag": False, "presolve": "off", "threads": 1, "solver": "simplex"}
        for name, value in options.items():
            self._highs.setOptionValue(name, value)
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._highs.addVars(len(low), low, high)

    def admit(self, sums: Sequence[Held]) -> bool:
        """Hold some more sums, unless no direction would be left."""
        scaled = [_scaled(each) for each in sums]
        if any(self._impossible(each) for each in scaled):
            return False
        before, basis = self._highs.getNumRow(), self._highs.getBasis()
        for each in scaled:
            places = each.columns.astype(np.int32)
            self._highs.addRow(each.low, each.high, len(places), places, each.weights)
        if all(self._is_held(each) for each in scaled):
            return True
        self._highs.run()
        if self._highs.getModelStatus() == self._optimal:
            self._now = np.array(self._highs.getSolution().col_value, np.float64)
            return True
        added = np.arange(before, self._highs.getNumRow(), dtype=np.int32)
        self._highs.deleteRows(len(added), added)
        if basis.valid:
            self._highs.setBasis(basis)
        return False

    def _impossible(self, held: Held) -> bool:
        """Whether the columns' own ends already exclude it."""
        up, down = np.maximum(held.weights, 0), np.minimum(held.weights, 0)
        low, high = self._low[held.columns], self._high[held.columns]
        least = _product(up, low) + _product(down, high)
        most = _product(up, high) + _product(down, low)
        return least > held.high + STILL or most < held.low - STILL

    def _is_held(self, held: Held) -> bool:
        change = float(held.weights @ self._now[held.columns])
        return held.low - STILL <= change <= held.high + STILL


def _scaled(held: Held) -> Held:
    """The same, with weights of at most 1: an end that is not 0 is moved with them."""
    size = float(np.abs(held.weights).max(initial=0.0)) or 1.0
    return Held(held.columns, held.weights / size, held.low / size, held.high / size)


def _product(weights: Floats, ends: Floats) -> float:
    """The sum of weights times ends, where nothing times no end is nothing."""
    return float(weights @ np.where(weights == 0, 0.0, ends))
