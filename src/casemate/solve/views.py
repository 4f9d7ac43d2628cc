"""Equations seen in another way: some of their unknowns only, or weighted; nothing is copied."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from casemate.solve.rows import Floats, Passes


@dataclass(frozen=True, eq=False)
class View:
    """Equations behind others, of the same size and lengths."""

    equations: Passes

    @property
    def height(self) -> int:
        """How many equations there are."""
        return self.equations.height

    @property
    def width(self) -> int:
        """How many unknowns."""
        return self.equations.width

    @property
    def lengths(self) -> Floats:
        """What right sides are to be divided by."""
        return self.equations.lengths


@dataclass(frozen=True, eq=False)
class Freed(View):
    """Equations in the unknowns that are free; the others count as 0, and lengths stay."""

    free: NDArray[np.bool_]

    def times(self, point: Floats) -> Floats:
        """What each equation comes to at a point."""
        return self.equations.times(np.where(self.free, point, 0.0))

    def transposed(self, weights: Floats) -> Floats:
        """The equations multiplied by weights and added up, where they are free."""
        return np.where(self.free, self.equations.transposed(weights), 0.0)


@dataclass(frozen=True, eq=False)
class Weighted(View):
    """Equations multiplied by weights."""

    weights: Floats

    @property
    def lengths(self) -> Floats:
        """What right sides are to be divided by."""
        return self.equations.lengths / self.weights

    def times(self, point: Floats) -> Floats:
        """What each weighted equation comes to at a point."""
        return self.weights * self.equations.times(point)

    def transposed(self, weights: Floats) -> Floats:
        """The weighted equations multiplied by weights and added up."""
        return self.equations.transposed(self.weights * weights)
