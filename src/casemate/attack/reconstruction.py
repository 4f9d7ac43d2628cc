"""What an attack found: a value for every unknown, how sure it is of each, and how it got there."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from casemate.solve.rows import Floats


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
