"""What an attacker has: equations in what is secret, published numbers, and what else is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from casemate.attack.noise_law import NoiseLaw
from casemate.solve.rows import Floats, Passes, Rows, ends


@dataclass(frozen=True)
class Prior:
    """What is known of the unknowns before anything is published.

    `low`, `high` and `whole` are one for all, or one for each; `known` gives single values by the
    number of the unknown; `total` is what all of them add up to; `sparse` says that most of them
    are 0, and how strongly: the weight of their absolute sum beside the squared residual.
    """

    low: Floats | float = -np.inf
    high: Floats | float = np.inf
    whole: NDArray[np.bool_] | bool = False
    known: Mapping[int, float] = field(default_factory=dict, repr=False)
    total: float | None = None
    sparse: float = 0.0


@dataclass(frozen=True, eq=False)
class Limits:
    """Linear combinations of unknowns that lie between two numbers, either of them infinite."""

    rows: Rows
    low: Floats
    high: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Equations, what was published for each, and what is known of the unknowns.

    Equation i adds up to `answers[i]`, give or take noise of the law `noise` multiplied by
    `spread[i]`; without a law nothing is known of noise, and there may be none. Every unknown lies
    between `low` and `high`, and is a whole number where `whole` says so. `limits` are further
    inequalities that hold without noise. `public[i]` is what everybody knows of the i-th published
    number, in its own unit, and is not part of the equation any more.
    """

    equations: Passes
    answers: Floats
    low: Floats
    high: Floats
    whole: NDArray[np.bool_]
    noise: NoiseLaw | None = None
    spread: Floats = field(default_factory=lambda: np.zeros(0))
    limits: Limits | None = None
    total: float | None = None
    sparse: float = 0.0
    public: Floats | float = 0.0

    def __post_init__(self) -> None:
        """Fill in what is the same for every equation, and refuse what does not fit together."""
        if len(self.answers) != self.equations.height:
            raise ValueError(
                f"there are {self.equations.height} queries and {len(self.answers)} answers; "
                "give one answer for each query"
            )
        if not np.isfinite(self.answers).all():
            raise ValueError("an answer is not a finite number; leave such queries out")
        if not len(self.spread):
            object.__setattr__(self, "spread", np.ones(self.equations.height))

    def __repr__(self) -> str:
        """How large it is; never what was published."""
        return f"<Problem: {self.equations.height} equations in {self.equations.width} unknowns>"

    @classmethod
    def of(
        cls,
        aggregates: Any,
        answers: Any,
        prior: Prior | None = None,
        noise: NoiseLaw | None = None,
    ) -> "Problem":
        """A problem from rows (an array, or equations in any form) and one answer for each.

        >>> Problem.of([[1, 1], [0, 1]], [5, 2], Prior(low=0.0, known={1: 2.0})).low.tolist()
        [0.0, 2.0]
        """
        prior = prior or Prior()
        equations = rows_of(aggregates)
        width = equations.width
        low, high = (each.copy() for each in ends(prior.low, prior.high, width))
        if np.isnan(low).any() or np.isnan(high).any():
            raise ValueError("a bound is not a number; leave it out where there is none")
        for place, value in prior.known.items():
            if not 0 <= place < width:
                raise ValueError(f"there are {width} unknowns, and number {place} is none of them")
            if not low[place] <= value <= high[place]:
                raise ValueError("a known value contradicts its bounds; correct one of them")
            low[place] = high[place] = value
        whole = np.broadcast_to(np.asarray(prior.whole, np.bool_), width).copy()
        right = _numbers(answers, "answers")
        return cls(
            equations, right, low, high, whole, noise, total=prior.total, sparse=prior.sparse
        )

    @property
    def deviations(self) -> Floats | None:
        """The standard deviation of the noise of each answer, where its law is known."""
        return None if self.noise is None else self.noise.deviation * np.abs(self.spread)

    @property
    def bounded(self) -> bool:
        """Whether anything at all is known of the unknowns' ranges."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def with_answers(self, answers: Floats) -> "Problem":
        """The same equations with other published numbers."""
        return replace(self, answers=answers)


def rows_of(aggregates: Any) -> Passes:
    """Equations from a matrix: an array, anything with `tocsr`, or equations already."""
    if hasattr(aggregates, "times") and hasattr(aggregates, "transposed"):
        found: Passes = aggregates
        return found
    if hasattr(aggregates, "tocsr"):
        sparse = aggregates.tocsr()
        return _stored(sparse.indptr, sparse.indices, sparse.data, sparse.shape[1])
    matrix = _numbers(aggregates, "coefficients")
    if matrix.ndim != 2:
        raise ValueError("the queries must be a matrix: a row for each query, a column a record")
    if not np.isfinite(matrix).all():
        raise ValueError("a coefficient of a query is not a finite number; correct it")
    row, column = np.nonzero(matrix)
    starts = np.searchsorted(row, np.arange(len(matrix) + 1))
    return _stored(starts, column, matrix[row, column], matrix.shape[1])


def _numbers(given: Any, what: str) -> Floats:
    """An array of numbers; NumPy's own message quotes what is none."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"the {what} must be numbers, and some are none") from None


def _stored(starts: Any, columns: Any, values: Any, width: int) -> Rows:
    plain = bool((values == 1).all())
    kept = None if plain else np.asarray(values, np.float64)
    return Rows(np.asarray(starts, np.int64), np.asarray(columns, np.uint32), kept, int(width))
