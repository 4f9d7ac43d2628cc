"""What an attack found: a value for every unknown, how sure it is of each, and how it got there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from casemate.attack.solvers.iteration import Progress
from casemate.exact import Floats
from casemate.published import Equations
from casemate.query.language import Scalar
from casemate.query.records import Category, Unknown, possible_values
from casemate.table import Policy


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


# Following a solve: how the residual fell, and the last point if it is interrupted --------------


MOST_HISTORY_POINTS = 256
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
        if len(self.history) > MOST_HISTORY_POINTS:
            self.history = self.history[::2]
            self._every *= 2
        if self.told is not None:
            self.told(steps, residual, point)


# What was found, by record: numbers with intervals, categories with a likeliest value -----------


@dataclass(frozen=True, repr=False)
class ReconstructedSecret:
    """What an attack says about one private value of one record.

    `low` and `high` are None for categories, and where a number has no end; `probability` is how
    likely the value is right, None where nobody can say.
    """

    record: Scalar
    person: Scalar
    column: str
    value: Scalar
    low: float | None
    high: float | None
    probability: float | None

    def __repr__(self) -> str:
        """Which column it is; never whose value, or what it is."""
        return f"<Secret: a value of {self.column}>"


def secrets(
    equations: Equations, policy: Policy, reconstruction: Reconstruction
) -> Iterator[ReconstructedSecret]:
    """What was found about every secret that anything was published about, by record."""
    for record, columns in sorted(_columns_of(equations).items()):
        unknown = _unknown(columns[0], equations)
        sure = (
            _number(columns[0], reconstruction)
            if unknown.category is None
            else _category(columns, equations, policy, reconstruction)
        )
        place, people = record[0], equations.people
        yield ReconstructedSecret(people.record(place), people.person(place), unknown.column, *sure)


def _columns_of(equations: Equations) -> dict[tuple[int, str], list[int]]:
    """The unknowns of every number and of every category, by the record's place and the name.

    Whether a number is past a cut is no secret of its own beside the number.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for column in range(equations.system.columns):
        unknown = _unknown(column, equations)
        if unknown.category is None or isinstance(unknown.category, Category):
            where = int(equations.record[column]), unknown.column
            found.setdefault(where, []).append(column)
    return found


def _unknown(column: int, equations: Equations) -> Unknown:
    return equations.unknowns[int(equations.unknown[column])]


Sure = tuple[Scalar, float | None, float | None, float | None]


def _number(column: int, found: Reconstruction) -> Sure:
    value = float(found.values[column])
    ends = _finite(found.low[column]), _finite(found.high[column])
    return value, *ends, _finite(found.probability[column])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _category(
    columns: list[int], equations: Equations, policy: Policy, found: Reconstruction
) -> Sure:
    """The likeliest value of a category: its 0/1 unknowns, and what they leave for the others.

    Values that nothing was published about are equally likely; the first of them stands for all.
    """
    declared = policy.column(_unknown(columns[0], equations).column)
    values = (possible_values(declared) if declared is not None else None) or ()
    shares: dict[Scalar, float] = {}
    for column in columns:
        category = _unknown(column, equations).category
        if isinstance(category, Category):
            shares[category.value] = float(found.values[column])
    others = [value for value in values if value not in shares]
    left = (1.0 - sum(shares.values())) / max(1, len(others))
    best = max(values, key=lambda value: shares.get(value, left))
    odds = min((float(found.probability[column]) for column in columns), default=np.nan)
    return best, None, None, _finite(odds if best in shares else odds / max(1, len(others)))
