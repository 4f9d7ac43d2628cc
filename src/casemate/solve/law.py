"""Laws of the noise in published answers, and answers that carry it."""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from casemate.solve.columns import Columns, plain_sums
from casemate.solve.rows import Floats, Rows


class Law(IntEnum):
    """How answers differ from the truth; `spread` is always the scale of this law.

    A law is also a loss: its negative log-likelihood in units of the spread, which is half the
    square, the absolute value, or what lies beyond the bound.
    """

    GAUSSIAN = 0  # spread: the standard deviation
    LAPLACE = 1  # spread: the mean absolute deviation
    UNIFORM = 2  # spread: the half width; rounding to a step is this law with half the step

    @property
    def variance(self) -> float:
        """The variance of noise of spread 1."""
        return (1.0, 2.0, 1 / 3)[self]


@dataclass(frozen=True, eq=False)
class Noisy:
    """Equations, their answers, and the law and the spread of the noise in each."""

    equations: Rows
    right: Floats
    law: Law
    spread: Floats

    @classmethod
    def of(cls, equations: Rows, right: Floats, law: Law, spread: Floats | float) -> "Noisy":
        """Answers each of which has a spread."""
        return cls(equations, right, law, spreads(spread, equations.height))

    def left(self, point: Floats) -> Floats:
        """What is left of each equation at a point, in spreads."""
        return (self.right - plain_sums(self.equations, point)) / self.spread

    def residual(self, left: Floats) -> float:
        """What is left, relative to the right sides, both over the lengths of the equations."""
        lengths = self.equations.lengths
        size = float(np.linalg.norm(self.right / lengths)) or 1.0
        return float(np.linalg.norm(left * self.spread / lengths)) / size

    def loss(self, left: Floats) -> float:
        """The negative log-likelihood of what is left, up to a constant."""
        from casemate.solve.law_kernel import total_loss

        return float(total_loss(int(self.law), left))

    @cached_property
    def system(self) -> Any:
        """Entries by unknown, inverse spreads and the law, for compiled loops."""
        return (*Columns.of(self.equations).stored, 1 / self.spread, int(self.law))


def spreads(spread: Floats | float, height: int) -> Floats:
    """The spread of every answer, each of which must have one."""
    found = np.broadcast_to(spread, height).astype(np.float64)
    if not ((found > 0) & np.isfinite(found)).all():
        raise ValueError("every answer needs a finite spread above 0; exact answers have none")
    return found
