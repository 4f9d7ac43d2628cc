"""What an attack found: a value for every unknown, how sure it is of each, and how it got there.

Following a solve: how the residual fell, and the last point, should somebody interrupt it.
"""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from casemate.attack.solvers.iteration import Progress
from casemate.exact import Floats


class Solver(StrEnum):
    """The solvers by the names under which they are asked for."""

    LEAST_SQUARES = "least-squares"
    BOX = "box"
    CONVEX = "convex"
    ROBUST = "robust"
    LP = "lp"
    INTEGER = "integer"
    KACZMARZ = "kaczmarz"
    SGD = "sgd"

    @classmethod
    def _missing_(cls, value: object) -> "Solver":
        raise ValueError(f"there is no solver {value!r}; use one of {', '.join(cls)}")


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction:
    """A value for each unknown, between what it lies, and how the solver got there.

    `low` and `high` hold the true value with probability `confidence`; both are infinite where
    nothing is known. `probability` is how likely a whole number is the right one (NaN for numbers
    that are not whole, or where nobody can say). `history` has the relative residual after so
    many steps. `finished` is False where the work was stopped before its end.
    """

    solver: Solver
    values: Floats
    low: Floats
    high: Floats
    probability: Floats
    confidence: float
    residual: float
    iterations: int
    seconds: float
    history: tuple[tuple[int, float], ...] = ()
    finished: bool = True

    def __repr__(self) -> str:
        """How it was done; never what was found."""
        return (
            f"<Reconstruction of {len(self.values)} unknowns by {self.solver}: "
            f"{self.iterations} steps, residual {self.residual:.2g}>"
        )

    @property
    def width(self) -> Floats:
        """How wide each interval is."""
        return np.asarray(self.high - self.low)


# Watch ------------------------------------------------------------------------------------------


MOST = 256
"""Points of a history that are kept; of a longer one every second is dropped."""


@dataclass
class Watch:
    """A progress callback that remembers.

    >>> import numpy as np
    >>> watch = Watch()
    >>> watch(1, 0.5, np.zeros(2))
    >>> watch.history, watch.steps
    ([(1, 0.5)], 1)
    """

    told: Progress | None = None
    history: list[tuple[int, float]] = field(default_factory=list)
    point: Floats | None = None
    steps: int = 0
    residual: float = 1.0
    _every: int = 1
    _count: int = 0

    def __call__(self, steps: int, residual: float, point: Floats) -> None:
        """Take note of one step, and pass it on."""
        self.steps, self.residual, self.point = steps, float(residual), point
        if self._count % self._every == 0:
            self.history.append((steps, float(residual)))
        self._count += 1
        if len(self.history) > MOST:
            self.history = self.history[::2]
            self._every *= 2
        if self.told is not None:
            self.told(steps, residual, point)
