"""Equations that each add up everybody between two ends of one order, by sums from the beginning.

A pass costs as much as there are unknowns and equations, however long the ranges are. The error of
a difference of two such sums is that of the longer one, about 1e-16 of all values added up.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats


@dataclass(frozen=True, eq=False)
class Ranges:
    """Equation i adds up the unknowns order[first[i]], ..., order[last[i] - 1].

    >>> ranges = Ranges(np.array([2, 0, 1]), np.array([0, 1]), np.array([1, 3]))
    >>> (ranges.times(np.array([1.0, 2.0, 3.0])) * ranges.lengths).round(9).tolist()
    [3.0, 3.0]
    """

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @property
    def height(self) -> int:
        """How many equations there are."""
        return len(self.first)

    @property
    def width(self) -> int:
        """How many unknowns."""
        return len(self.order)

    @cached_property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation; 1 for an empty one."""
        counts: Floats = np.maximum(self.last - self.first, 1).astype(np.float64)
        return np.sqrt(counts)

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        sums = np.concatenate([[0.0], np.cumsum(point[self.order])])
        between: Floats = sums[self.last] - sums[self.first]
        return between / self.lengths

    def transposed(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        scaled, size = weights / self.lengths, self.width + 1
        begin = np.bincount(self.first, scaled, minlength=size)
        end = np.bincount(self.last, scaled, minlength=size)
        found = np.empty(self.width)
        found[self.order] = np.cumsum(begin - end)[:-1]
        return found
