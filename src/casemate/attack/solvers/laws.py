"""Laws of the noise in published answers, and answers that carry it.

Compiled losses, and what a change of one unknown does to the losses of its equations.

`left` holds what is left of each equation, divided by its spread; `system` is (starts, rows,
values, inverse spreads, law), entries sorted by unknown; no stored values means that all are 1.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from casemate.attack.solvers.watched_program import as_sparse
from casemate.compiled import compiled
from casemate.exact import Floats, Rows, times

GAUSSIAN, LAPLACE = 0, 1
BEYOND = 1 + 1e-9
"""A residual of at most this many spreads keeps a bound; the rest of it is rounding."""


@compiled(inline="always")
def loss(law: Any, rest: Any) -> Any:
    """The negative log-likelihood of a residual, up to a constant."""
    if law == GAUSSIAN:
        return 0.5 * rest * rest
    if law == LAPLACE:
        return abs(rest)
    return max(0.0, abs(rest) - BEYOND)


@compiled
def total_loss(law: Any, left: Any) -> Any:
    """The loss of all equations together."""
    total = 0.0
    for i in range(left.shape[0]):
        total += loss(law, left[i])
    return total


@compiled
def saved(system: Any, left: Any, unknown: Any, step: Any) -> Any:
    """How much loss goes away when one unknown changes by `step`."""
    starts, rows, values, inverse, law = system
    plain = values.shape[0] == 0
    total = 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        moved = step * inverse[i] if plain else step * inverse[i] * values[k]
        total += loss(law, left[i]) - loss(law, left[i] - moved)
    return total


@compiled
def parabola(system: Any, left: Any, unknown: Any) -> Any:
    """For Gaussian noise: a change by d saves `slope` * d - `curve` * d^2 / 2."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    slope, curve = 0.0, 0.0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        weight = inverse[i] if plain else inverse[i] * values[k]
        slope += weight * left[i]
        curve += weight * weight
    return slope, curve


@compiled
def change(system: Any, left: Any, unknown: Any, step: Any) -> None:
    """Let one unknown change by `step`."""
    starts, rows, values, inverse, _ = system
    plain = values.shape[0] == 0
    for k in range(starts[unknown], starts[unknown + 1]):
        i = rows[k]
        left[i] -= step * inverse[i] if plain else step * inverse[i] * values[k]


# Answers -----------------------------------------------------------------------------------------


def plain_sums(equations: Rows, point: Floats) -> Floats:
    """What each equation comes to at a point, in the unit of its answer: exact in whole numbers."""
    found = np.empty(equations.height)
    starts, columns, values, _ = equations.stored
    times(starts, columns, values, point, found)
    return found


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

        return float(total_loss(int(self.law), left))

    @cached_property
    def system(self) -> Any:
        """Entries by unknown, inverse spreads and the law, for compiled loops."""
        turned, plain = as_sparse(self.equations).tocsc(), self.equations.values is None
        stored = turned.indptr, turned.indices, np.zeros(0) if plain else turned.data
        return (*stored, 1 / self.spread, int(self.law))


def spreads(spread: Floats | float, height: int) -> Floats:
    """The spread of every answer, each of which must have one."""
    found = np.broadcast_to(spread, height).astype(np.float64)
    if not ((found > 0) & np.isfinite(found)).all():
        raise ValueError("every answer needs a finite spread above 0; exact answers have none")
    return found
