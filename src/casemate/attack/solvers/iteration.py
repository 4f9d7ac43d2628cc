"""The one loop of all iterative solvers: a state that steps until it is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from casemate.exact import Floats, Passes

Progress = Callable[[int, float, Floats], None]
"""Called with the steps made, the relative residual, and the point."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A point, how far its equations are from holding (relative to their right sides), and how
    many steps led there; `converged` says whether no better point is near."""

    values: Floats
    residual: float
    iterations: int
    converged: bool


class Iteration(Protocol):
    """A point on its way; the constructor is the first state."""

    steps: int

    @property
    def point(self) -> Floats:
        """Where it is."""

    @property
    def residual(self) -> float:
        """How far the equations are from holding, relative to their right sides."""

    def is_done(self, tolerance: float) -> bool:
        """Whether there is no better point near."""

    def step(self) -> None:
        """Go on."""


def iterate(work: Iteration, tolerance: float, most: int, progress: Progress | None) -> Solved:
    """Go on until it is done, or so many steps are made; what `progress` raises ends the work."""
    while work.steps < most and not work.is_done(tolerance):
        work.step()
        if progress is not None:
            progress(work.steps, work.residual, work.point)
    return Solved(work.point, work.residual, work.steps, converged=work.is_done(tolerance))


def after(progress: Progress | None, steps: int) -> Progress | None:
    """The same callback for work that follows so many steps."""
    if progress is None:
        return None
    return lambda more, residual, point: progress(steps + more, residual, point)


def relative_residual(equations: Passes, right: Floats) -> Callable[[Floats], float]:
    """How far the equations are from holding at a point, relative to their right sides."""
    target = right / equations.lengths
    size = norm(target)
    return lambda point: float(np.linalg.norm(target - equations.times(point))) / size


def norm(target: Floats) -> float:
    """The length of the right sides, by which residuals are divided; 1 where all of them are 0."""
    return float(np.linalg.norm(target)) or 1.0
