"""What an attacker has: equations in what is secret, published numbers, and what else is known.

Source     Source document 002, "Solving the equations", min |A x - b|; C. F. Gauss and A. C. Aitken
           for the weights: of all linear estimates without bias, the one that divides every
           equation by the deviation of its noise has the least variance for every unknown at once.
Departure  In `Standard` form values that are known are not unknowns: what they add to an answer is
           taken off. A total that is known counts as one more answer with very little noise.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from casemate.attack.solvers.convex import RangeConstraints
from casemate.attack.solvers.watched_program import as_sparse
from casemate.errors import Misconfigured
from casemate.exact import Floats, Passes, Rows, box_ends

# Noise that is stated ---------------------------------------------------------------------------
#
# The laws of noise an attacker may suppose, and a simulator that lays them over answers.
#
# This is no mechanism: the draws are ordinary floating-point numbers from an ordinary generator,
# and nothing is private because of them. A law says how far a published number may be from the true
# one (an attacker needs that to say how sure it is), and `laid_over` plays such a publisher in an
# experiment. Noise that protects somebody comes from `casemate.privacy`.

Kind = Literal["laplace", "gaussian", "uniform", "round"]

_SCALES = "laplace:b, gaussian:deviation, uniform:half-width or round:step"
_DEVIATION = {
    "laplace": math.sqrt(2),
    "gaussian": 1.0,
    "uniform": 1 / math.sqrt(3),
    "round": 1 / math.sqrt(12),
}


@dataclass(frozen=True)
class NoiseLaw:
    """One law of noise and its scale; rounding to a step counts as noise within half a step.

    The scale is Laplace's b, a Gaussian's standard deviation, a uniform law's half-width, or the
    step that answers are rounded to.

    >>> law = NoiseLaw.read("laplace:2.5")
    >>> law.kind, law.scale, str(law)
    ('laplace', 2.5, 'laplace:2.5')
    >>> NoiseLaw.read("round:10").bounded
    5.0
    """

    kind: Kind
    scale: float

    def __post_init__(self) -> None:
        """Refuse what is no law."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"a law of noise is one of {', '.join(get_args(Kind))}")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ValueError("the scale of a law of noise must be finite and above 0")

    @classmethod
    def read(cls, text: str) -> "NoiseLaw":
        """The law that a text such as `laplace:2.5` states."""
        kind, _, scale = text.strip().partition(":")
        for each in get_args(Kind):
            if kind.strip().lower() == each:
                return cls(each, _scale(scale, text))
        raise Misconfigured(
            f"unknown law of noise {text!r}: give {_SCALES}, for example laplace:2.5"
        )

    def __str__(self) -> str:
        """The text that `read` takes."""
        return f"{self.kind}:{repr(float(self.scale)).removesuffix('.0')}"

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return _DEVIATION[self.kind] * self.scale

    @property
    def bounded(self) -> float | None:
        """How far the noise can be from 0 at most, or None where it has no such bound."""
        return {"uniform": self.scale, "round": self.scale / 2}.get(self.kind)

    def laid_over(self, answers: Floats, random: np.random.Generator) -> Floats:
        """The answers as somebody would publish them who adds this noise, or rounds to the step."""
        true = np.asarray(answers, np.float64)
        if self.kind == "round":
            return np.asarray(np.round(true / self.scale) * self.scale)  # a half goes to the even
        return np.asarray(true + self.scale * self._draws(true.shape, random))

    def _draws(self, shape: tuple[int, ...], random: np.random.Generator) -> Floats:
        if self.kind == "laplace":
            return random.laplace(size=shape)
        if self.kind == "gaussian":
            return random.standard_normal(shape)
        return random.uniform(-1.0, 1.0, shape)


def _scale(text: str, law: str) -> float:
    try:
        scale = float(text)
    except ValueError:
        raise Misconfigured(
            f"the law of noise {law!r} has no number after its name: give {_SCALES}, "
            "for example laplace:2.5"
        ) from None
    if not (math.isfinite(scale) and scale > 0):
        raise Misconfigured(
            f"the scale of the law of noise {law!r} must be finite and above 0: give {_SCALES}, "
            "for example laplace:2.5, or state no law where there is no noise"
        )
    return scale


# The problem ------------------------------------------------------------------------------------


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
    limits: RangeConstraints | None = None
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
        low, high = (each.copy() for each in box_ends(prior.low, prior.high, width))
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
    def bounded(self) -> bool:
        """Whether anything at all is known of the unknowns' ranges."""
        return bool(np.isfinite(self.low).any() or np.isfinite(self.high).any())

    def scaled_residuals(self, values: Floats) -> Floats:
        """What each answer differs from what the values add up to, in units of its spread."""
        left = self.answers - self.equations.lengths * self.equations.times(values)
        return np.asarray(left / np.maximum(np.abs(self.spread), 1e-300))

    def with_answers(self, answers: Floats) -> "Problem":
        """The same equations with other published numbers."""
        return replace(self, answers=answers)


def rows_of(aggregates: Any) -> Passes:
    """Equations from a matrix: an array, anything with `tocsr`, or equations already."""
    if hasattr(aggregates, "times") and hasattr(aggregates, "transpose_times"):
        found: Passes = aggregates
        return found
    if hasattr(aggregates, "tocsr"):
        sparse = aggregates.tocsr()
        return _rows(sparse.indptr, sparse.indices, sparse.data, sparse.shape[1])
    matrix = _numbers(aggregates, "coefficients")
    if matrix.ndim != 2:
        raise ValueError("the queries must be a matrix: a row for each query, a column a record")
    row, column = np.nonzero(matrix)
    starts = np.searchsorted(row, np.arange(len(matrix) + 1))
    return _rows(starts, column, matrix[row, column], matrix.shape[1])


def _numbers(given: Any, what: str) -> Floats:
    """An array of numbers; NumPy's own message quotes what is none."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"the {what} must be numbers, and some are none") from None


def _rows(starts: Any, columns: Any, values: Any, width: int) -> Rows:
    if not np.isfinite(values).all():
        raise ValueError("a coefficient of a query is not a finite number; correct it")
    plain = bool((values == 1).all())
    kept = None if plain else np.asarray(values, np.float64)
    return Rows(np.asarray(starts, np.int64), np.asarray(columns, np.uint32), kept, int(width))


# Equations divided by the deviation of their noise: where least squares is at its best ----------


EXACT_ANSWER_DEVIATION = 1e-3
"""The deviation of an answer without noise, beside the smallest one that has some."""

UNSTORED_CELLS_PER_ENTRY = 16
"""Cells of equations that are not stored which cost as much to pass as a stored entry."""

Flags = NDArray[np.bool_]


def weights(problem: Problem) -> Floats:
    """What to multiply scaled equations by so that least squares has the least variance.

    For `EquationView`: with these weights every equation counts by the inverse of its
    noise's deviation. Without a stated law the noises are supposed to differ by `spread` alone.
    The typical weight is 1; where all noises and lengths are alike, all are.

    >>> weights(Problem.of([[1, 1], [1, 1], [1, 0]], [5, 5, 2])).round(3).tolist()
    [1.0, 1.0, 0.707]
    """
    found = problem.equations.lengths / _relative_deviations(problem)
    return np.asarray(found / (np.median(found) if len(found) else 1.0))


def _relative_deviations(problem: Problem) -> Floats:
    """How the deviations of the noises compare; none of them is 0."""
    spread = np.abs(problem.spread)
    least = float(spread[spread > 0].min(initial=np.inf))
    return np.maximum(spread, EXACT_ANSWER_DEVIATION * (least if np.isfinite(least) else 1.0))


@dataclass(frozen=True, eq=False)
class Standard:
    """Equations in the free unknowns whose noises all have the deviation of an answer of spread 1.

    It is a `Passes` whose rows have length 1 by decree: right sides are divided already.
    """

    equations: Passes
    factors: Floats  # what the scaled equations are multiplied by; 0 leaves one out
    target: Floats
    free: NDArray[np.int64]
    total: float = 0.0  # what the sum of the free unknowns is multiplied by; 0 without a total
    used: int = field(default=0)

    @classmethod
    def of(cls, problem: Problem, trusted: Flags | None = None) -> "Standard":
        """The equations of a problem, without those that are not trusted."""
        equations, deviations = problem.equations, _relative_deviations(problem)
        kept = np.ones(equations.height, np.bool_) if trusted is None else trusted
        given = problem.low == problem.high
        known = np.where(given, problem.low, 0.0)
        left = problem.answers - equations.lengths * equations.times(known)
        target = np.where(kept, left / deviations, 0.0)
        factors = np.where(kept, equations.lengths / deviations, 0.0)
        total = 0.0
        if problem.total is not None:
            total = 1 / (EXACT_ANSWER_DEVIATION * float(deviations.min(initial=1.0)))
            target = np.append(target, total * (problem.total - known.sum()))
        used = int(kept.sum()) + (problem.total is not None)
        return cls(equations, factors, target, np.flatnonzero(~given), total, used)

    @property
    def height(self) -> int:
        """How many equations there are, the total among them."""
        return len(self.target)

    @property
    def width(self) -> int:
        """How many unknowns are free."""
        return len(self.free)

    @property
    def lengths(self) -> Floats:
        """What right sides are still to be divided by: 1."""
        return np.ones(self.height)

    @property
    def entries(self) -> float:
        """How many entries a pass reads; a guess where they are not stored."""
        if isinstance(self.equations, Rows):
            return float(max(len(self.equations.columns), 1))
        return max(self.equations.height * self.equations.width / UNSTORED_CELLS_PER_ENTRY, 1.0)

    def times(self, point: Floats) -> Floats:
        """What each equation comes to at a point."""
        found = self.factors * self.equations.times(self._all_unknowns(point))
        return np.append(found, self.total * point.sum()) if self.total else found

    def transpose_times(self, weights: Floats) -> Floats:
        """The equations multiplied by weights and added up."""
        own = weights[: self.equations.height]
        found = self.equations.transpose_times(self.factors * own)[self.free]
        return found + self.total * weights[-1] if self.total else found

    def dense(self) -> Floats:
        """All the equations as a matrix, without those that are left out."""
        if isinstance(self.equations, Rows):
            matrix: Floats = as_sparse(self.equations).toarray()
            matrix = matrix if self.width == matrix.shape[1] else matrix[:, self.free]
            matrix *= (self.factors / self.equations.lengths)[:, None]
        else:
            units = (self._unit(place) for place in self.free)
            passes = [self.factors * self.equations.times(unit) for unit in units]
            matrix = np.array(passes).reshape(self.width, self.equations.height).T
        if self.total:
            matrix = np.vstack([matrix, np.full(self.width, self.total)])
        return matrix

    def _all_unknowns(self, point: Floats) -> Floats:
        if self.width == self.equations.width:
            return point
        found = np.zeros(self.equations.width)
        found[self.free] = point
        return found

    def _unit(self, place: np.int64) -> Floats:
        unit = np.zeros(self.equations.width)
        unit[place] = 1.0
        return unit
