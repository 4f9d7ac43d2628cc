"""Equations as rows of doubles, each scaled to length 1, and compiled passes over them.

Approximate solvers work here; nothing that is decided exactly does. Coefficients that are all 1 are
not stored, so a question about k records costs 4 k bytes.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.exact.system import System

Floats = NDArray[np.float64]


class Passes(Protocol):
    """Equations that can be gone through, stored or not."""

    @property
    def height(self) -> int:
        """How many equations there are."""

    @property
    def width(self) -> int:
        """How many unknowns."""

    @property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation before it was scaled; 1 for an empty one."""

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""

    def transpose_times(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""


class RowArrays(NamedTuple):
    """Stored equations as kernels take them."""

    starts: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: Floats | None  # None: all of them are 1, and kernels are compiled without them
    inverse_squares: Floats  # 1 over the squared length of each equation


@dataclass(frozen=True, eq=False)
class Rows:
    """Stored equations: the columns of each from `starts[i]` on, and their coefficients.

    >>> rows = Rows.of(System.of([[3, 0, 4], [0, 2, 0]]))
    >>> rows.times(np.array([1.0, 1.0, 1.0])).tolist(), rows.lengths.tolist()
    ([1.4, 1.0], [5.0, 2.0])
    """

    starts: NDArray[np.int64]
    columns: NDArray[np.uint32]
    values: Floats | None  # None: all of them are 1
    width: int

    @classmethod
    def of(cls, system: System) -> "Rows":
        """The equations of a system."""
        starts, columns, stored = system.by_row()
        values: Floats = stored.astype(np.float64)
        plain = bool((values == 1).all())
        return cls(starts, columns.astype(np.uint32), None if plain else values, system.columns)

    @property
    def height(self) -> int:
        """How many equations there are."""
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> Floats:
        """The Euclidean length of each equation; 1 for an empty one."""
        counts = np.diff(self.starts)
        if self.values is None:
            return np.sqrt(np.maximum(counts, 1))
        row = np.repeat(np.arange(self.height), counts)
        squares = np.bincount(row, weights=self.values**2, minlength=self.height)
        return np.sqrt(np.where(counts > 0, squares, 1.0))

    def times(self, point: Floats) -> Floats:
        """What each scaled equation comes to at a point."""
        return self.sums(point) / self.lengths

    def sums(self, point: Floats) -> Floats:
        """What each equation comes to before it is scaled: exact in whole numbers."""
        found = np.empty(self.height)
        row_sums(self.starts, self.columns, self._coefficients, point, found)
        return found

    def transpose_times(self, weights: Floats) -> Floats:
        """The scaled equations multiplied by weights and added up."""
        found = np.zeros(self.width)
        scaled = weights / self.lengths
        transposed_sums(self.starts, self.columns, self._coefficients, scaled, found)
        return found

    @cached_property
    def arrays(self) -> RowArrays:
        """The equations for compiled loops."""
        return RowArrays(self.starts, self.columns, self.values, 1 / self.lengths**2)

    @cached_property
    def _coefficients(self) -> Floats:
        return np.zeros(0) if self.values is None else self.values


def box_ends(low: Floats | float, high: Floats | float, width: int) -> tuple[Floats, Floats]:
    """The ends of a box, one of each for every unknown."""
    below, above = (np.broadcast_to(end, width).astype(np.float64) for end in (low, high))
    if (below > above).any():
        raise ValueError("the lower end of a range must not be above the upper one")
    return below, above


# Compiled passes --------------------------------------------------------------------------------
# No stored values means that all of them are 1. Sums may be taken in any order, which lets the
# compiler gather several entries at a time: nearly twice as fast as one after the other, and as
# exact.


ANY_ORDER = {"reassoc", "nsz"}


@compiled(fastmath=ANY_ORDER)
def row_sums(
    starts: NDArray[np.int64],
    columns: NDArray[np.uint32],
    values: Floats,
    point: Floats,
    found: Floats,
) -> None:
    """What each equation comes to at a point."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        own = columns[starts[i] : starts[i + 1]]
        total = 0.0
        if plain:
            for k in range(own.shape[0]):
                total += point[own[k]]
        else:
            factors = values[starts[i] : starts[i + 1]]
            for k in range(own.shape[0]):
                total += factors[k] * point[own[k]]
        found[i] = total


@compiled
def transposed_sums(
    starts: NDArray[np.int64],
    columns: NDArray[np.uint32],
    values: Floats,
    weights: Floats,
    found: Floats,
) -> None:
    """Add up the equations multiplied by weights."""
    plain = values.shape[0] == 0
    for i in range(starts.shape[0] - 1):
        weight = weights[i]
        if plain:
            for k in range(starts[i], starts[i + 1]):
                found[columns[k]] += weight
        else:
            for k in range(starts[i], starts[i + 1]):
                found[columns[k]] += weight * values[k]
