"""The noise in published answers: its laws, answers that carry it, and laws as losses.

The compiled functions say what a change of one unknown does to the losses of its equations.
Residuals are in units of each equation's spread.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.watched_program import as_sparse
from casemate.compiled import compiled
from casemate.exact import Floats, Rows

GAUSSIAN_LOSS, LAPLACE_LOSS = 0, 1
BOUND_SLACK_SPREADS = 1 + 1e-9
"""A residual of at most this many spreads keeps a bound; the rest of it is rounding."""


class LossColumns(NamedTuple):
    """The equations by unknown, as kernels take them: entries from `starts[unknown]` on."""

    starts: NDArray[np.int32]
    rows: NDArray[np.int32]
    values: Floats  # none: all of them are 1
    inverse_spreads: Floats
    law: int


@compiled(inline="always")
def loss(law: int, residual: float) -> float:
    """The negative log-likelihood of a residual, up to a constant."""
    if law == GAUSSIAN_LOSS:
        return 0.5 * residual * residual
    if law == LAPLACE_LOSS:
        return abs(residual)
    return max(0.0, abs(residual) - BOUND_SLACK_SPREADS)


@compiled
def total_loss(law: int, residuals: Floats) -> float:
    """The loss of all equations together."""
    total = 0.0
    for i in range(residuals.shape[0]):
        total += loss(law, residuals[i])
    return total


@compiled
def loss_saved(system: LossColumns, residuals: Floats, unknown: int, step: float) -> float:
    """How much loss goes away when one unknown changes by `step`."""
    starts, rows, values, inverse, law = system
    plain = values.shape[0] == 0
    total = 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        moved = step * inverse[i] if plain else step * inverse[i] * values[k]
        total += loss(law, residuals[i]) - loss(law, residuals[i] - moved)
    return total


@compiled
def parabola(system: LossColumns, residuals: Floats, unknown: int) -> tuple[float, float]:
    """For Gaussian noise: a change by d saves `slope` * d - `curve` * d^2 / 2."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    slope, curve = 0.0, 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        weight = inverse[i] if plain else inverse[i] * values[k]
        slope += weight * residuals[i]
        curve += weight * weight
    return slope, curve


@compiled
def change(system: LossColumns, residuals: Floats, unknown: int, step: float) -> None:
    """Let one unknown change by `step`."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        residuals[i] -= step * inverse[i] if plain else step * inverse[i] * values[k]


# Laws, and answers that carry them --------------------------------------------------------------


class AnswerLaw(IntEnum):
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
    law: AnswerLaw
    spread: Floats

    @classmethod
    def of(cls, equations: Rows, right: Floats, law: AnswerLaw, spread: Floats | float) -> "Noisy":
        """Answers each of which has a spread."""
        return cls(equations, right, law, spreads(spread, equations.height))

    def residuals(self, point: Floats) -> Floats:
        """What is left of each equation at a point, in spreads."""
        return (self.right - self.equations.sums(point)) / self.spread

    def residual(self, residuals: Floats) -> float:
        """What is left, relative to the right sides, both over the lengths of the equations."""
        lengths = self.equations.lengths
        size = float(np.linalg.norm(self.right / lengths)) or 1.0
        return float(np.linalg.norm(residuals * self.spread / lengths)) / size

    def loss(self, residuals: Floats) -> float:
        """The negative log-likelihood of residuals, up to a constant."""
        return float(total_loss(int(self.law), residuals))

    @cached_property
    def columns(self) -> LossColumns:
        """The equations by unknown, for compiled loops."""
        matrix, plain = as_sparse(self.equations).tocsc(), self.equations.values is None
        values = np.zeros(0) if plain else matrix.data
        return LossColumns(matrix.indptr, matrix.indices, values, 1 / self.spread, int(self.law))


def spreads(spread: Floats | float, height: int) -> Floats:
    """The spread of every answer, each of which must have one."""
    found = np.broadcast_to(spread, height).astype(np.float64)
    if not ((found > 0) & np.isfinite(found)).all():
        raise ValueError("every answer needs a finite spread above 0; exact answers have none")
    return found
