"""Predicted errors of every number that a question asks for, when only the noise is known.

Source     Our own; the law of the largest of many draws as extreme value theory has it.
Guarantee  None: these are predictions. Means are those of the continuous laws. The largest of
           correlated errors is smaller than the largest of independent ones, which is predicted.
Unit       An error is counted in people: for a count they are people, for a sum it is divided by
           the most that one person can move it, as the gate does.
Per answer One draw of noise for each number, all numbers of a statement sharing what the statement
           may cost. A person is in one group of a GROUP BY, so all groups cost what one does.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import NormalDist

import numpy as np

from casemate.answer.budget_plan import BudgetPlan
from casemate.grid import (
    MAX_CANONICAL_CELLS,
    Floats,
    GridQuestion,
    LinearCells,
    Product,
    Relation,
    Scope,
)
from casemate.privacy.noise import variance
from casemate.surrogate import WIDE_TABLE_ATTRIBUTES

NORMAL_MEAN = math.sqrt(2 / math.pi)
"""The mean of |X| for a normal X of deviation one."""

TYPICAL_MAXIMUM = math.exp(-np.euler_gamma)
"""So many draws are expected above the mean of the largest draw."""

SIGNIFICANT_DIGITS = 4
"""Sizes that agree so far are one size: a thousand questions have few different ones."""


@dataclass(frozen=True)
class ErrorShape:
    """A law of scale one: the mean of its magnitude, its tail, and the tail's inverse."""

    mean: float
    tail: Callable[[float], float]  # P(|X| > x)
    quantile: Callable[[float], float]  # the x that |X| stays within with this probability


NORMAL = ErrorShape(
    NORMAL_MEAN,
    lambda x: math.erfc(x / math.sqrt(2)),
    lambda confidence: NormalDist().inv_cdf((1 + confidence) / 2),
)
LAPLACE = ErrorShape(1.0, lambda x: math.exp(-x), lambda confidence: -math.log1p(-confidence))


def largest(shape: ErrorShape, scales: Floats, times: float = 1.0) -> float:
    """The expected largest magnitude, if for each of these scales there are so many draws.

    >>> round(largest(NORMAL, np.ones(1), times=10**5), 2)
    4.54
    """
    sizes, counts = np.unique(_round_significant(scales), return_counts=True)
    present = [(float(s), times * int(c)) for s, c in zip(sizes, counts, strict=True) if s > 0]
    if not present:
        return 0.0
    low, high = 0.0, 750.0 * max(size for size, _ in present)  # no tail of ours reaches further
    while high > low * (1 + 1e-6) + 1e-12:
        middle = (low + high) / 2
        above = sum(count * shape.tail(middle / size) for size, count in present)
        low, high = (middle, high) if above > TYPICAL_MAXIMUM else (low, middle)
    return high


def _round_significant(scales: Floats) -> Floats:
    """To some digits, whatever the magnitude."""
    sizes = np.abs(scales).astype(np.float64)
    safe = np.where(sizes > 0, sizes, 1.0)
    unit = 10.0 ** (np.floor(np.log10(safe)) - SIGNIFICANT_DIGITS + 1)
    return np.where(sizes > 0, np.round(safe / unit) * unit, 0.0)


# Gaussian noise with exact accounting: the baseline of everything that saves questions ----------


def exact_gaussian(epsilon: float, delta: float) -> float:
    """The least deviation of noise, to one sensitivity, that is (epsilon, delta)-private.

    Source     Balle and Wang, arXiv:1805.06530, Theorem 8: noise of deviation s on a number that
               moves by one is (epsilon, delta)-private exactly if Phi(m/2 - epsilon/m) -
               exp(epsilon) Phi(-m/2 - epsilon/m) <= delta, with m = 1/s. Many such numbers together
               behave like one whose m squared is the sum of theirs (Dong, Roth and Su,
               arXiv:1905.02383).
    Guarantee  Floats, for comparison only: the ledger adds up rho, for questions that are chosen
               along the way, and this is for questions that are all fixed in advance.

    >>> round(exact_gaussian(1.0, 1e-6), 3)
    4.225
    """
    if epsilon <= 0 or not 0 < delta < 1:
        raise ValueError(f"need epsilon > 0 and 0 < delta < 1, got {epsilon} and {delta}")
    from scipy.optimize import brentq

    def excess(log_deviation: float) -> float:
        return delta_of(math.exp(log_deviation), epsilon) - delta

    return math.exp(brentq(excess, math.log(1e-6), math.log(1e9), xtol=1e-14))


def delta_of(deviation: float, epsilon: float) -> float:
    """The delta of noise of this deviation at epsilon."""
    from scipy.special import log_ndtr, ndtr

    m = 1 / deviation
    below = epsilon + log_ndtr(-m / 2 - epsilon / m)  # its logarithm, which never overflows
    return float(ndtr(m / 2 - epsilon / m) - math.exp(below))


# Sums over cells that come from noisy tables ----------------------------------------------------


HARD_FIT_ERROR_RATIO = 1.2
"""Errors of a fit, over the formula: .6 to 1.5 in our runs with tables of one attribute, 1.0 to
1.2 with tables of two. It depends on the data, and this is one number for all."""

SOFT_FIT_ERROR_RATIO = 1.8
"""The same with wider tables, which are approached and not matched: 1.0 to 2.6."""


@dataclass(frozen=True)
class NoisyTables:
    """Tables over some scopes of a grid, each cell with noise of one variance.

    Source     Our own, after the decomposition of a function on a grid into effects: q = sum of q_A
               over sets of attributes A, each q_A a function of the attributes in A that sums to
               nothing along each of them. Noise that is the same on all cells of a table is
               independent between effects, and a table over B measures the effect of every A
               within B.
    Statement  The best linear estimate of q from tables of variance v has the variance

                  sum over A of |q_A|^2 v / (sum over tables B that hold A of 1/cells of B beside A)

               (the effect of no attribute is the total, which is measured by itself as well). For a
               product of one factor per attribute, |q_A|^2 is a product of variances of the factors
               in A and of squared means of the others. Effects that no table holds are the part of
               a question that nobody knows before asking: they are not in the prediction.
    Departure  A stand-in is no linear estimate: it keeps counts from being negative and fits
               ratios. `HARD_FIT_ERROR_RATIO` and `SOFT_FIT_ERROR_RATIO` say how much larger its
               errors were than this formula in runs of `DenseSurrogate` (benchmarks/planner.py
               measures them again).
    """

    shape: tuple[int, ...]
    scopes: tuple[Scope, ...]
    variance: float
    total_variance: float = 0.0  # of the number of people; 0 where it is public

    @classmethod
    def of(cls, plan: BudgetPlan, shape: tuple[int, ...]) -> "NoisyTables":
        """The tables that a plan measures first."""
        return cls(shape, plan.start, variance(plan.start_law), variance(plan.total_law))

    @property
    def widest(self) -> int:
        """How many attributes the widest table has."""
        return max((len(scope) for scope in self.scopes), default=0)

    @property
    def fit(self) -> float:
        """How much larger the errors of a stand-in are than those of the best linear estimate."""
        return (
            SOFT_FIT_ERROR_RATIO if self.widest >= WIDE_TABLE_ATTRIBUTES else HARD_FIT_ERROR_RATIO
        )

    def holds(self, scope: Scope) -> bool:
        """Whether one of the tables has all of these attributes."""
        return self._narrowest(scope) is not None

    def reading(self, cell: Sequence[Product]) -> float | None:
        """The deviation of a sum of products that is read off the best single table, if one can."""
        sums = Sums.of(cell, self.shape)
        beside = self._narrowest(sums.scope)
        return None if beside is None else math.sqrt(self.variance * beside * sums.squared)

    def deviation(self, cell: Sequence[Product]) -> float:
        """The predicted deviation of the noise in a sum of products, before `fit`.

        >>> women = Product((2, 3), {0: np.array([False, True])})
        >>> round(NoisyTables((2, 3), ((0, 1),), variance=4.0).deviation([women]) ** 2, 9)
        6.0
        """
        sums = Sums.of(cell, self.shape)
        beside = self._narrowest(sums.scope)
        if len(self.scopes) == 1 and beside is not None:
            total = sums.effect(())
            rest = self.variance * beside * max(0.0, sums.squared - total * sums.cells)
            return math.sqrt(rest + total * self._variance_of(()))
        effects = (
            effect
            for count in range(min(self.widest, len(sums.scope)) + 1)
            for effect in combinations(sums.scope, count)
        )
        return math.sqrt(sum(sums.effect(each) * self._variance_of(each) for each in effects))

    def _narrowest(self, scope: Scope) -> int | None:
        """Of the tables that hold a scope, the fewest cells that one has for each of its cells."""
        wanted = set(scope)
        beside = (
            math.prod(self.shape[a] for a in each if a not in wanted)
            for each in self.scopes
            if wanted <= set(each)
        )
        return min(beside, default=None)

    def _variance_of(self, effect: Scope) -> float:
        """The variance of an effect of length one, from every table that holds it."""
        if not effect and not self.total_variance:
            return 0.0
        share = self._share(effect)
        if share and not self.variance:
            return 0.0
        precision = share / self.variance if share else 0.0
        precision += 0.0 if effect else 1 / self.total_variance
        return 1 / precision if precision else 0.0  # held by no table: unknown, and not noise

    def _share(self, effect: Scope) -> float:
        """The sum, over the tables that hold an effect, of one over the cells beside it."""
        if len(self.scopes) > 1:
            return self._shares.get(effect, 0.0)
        beside = self._narrowest(effect)
        return 1 / beside if beside else 0.0

    @cached_property
    def _shares(self) -> dict[Scope, float]:
        """The same for every effect at once: there may be thousands of narrow tables."""
        found: dict[Scope, float] = defaultdict(float)
        for scope in self.scopes:
            for count in range(len(scope) + 1):
                for effect in combinations(scope, count):
                    found[effect] += 1 / math.prod(self.shape[a] for a in scope if a not in effect)
        return found


@dataclass(frozen=True, eq=False)
class Sums:
    """A sum of products by attribute: the inner products of their factors, and their means."""

    scope: Scope
    sizes: dict[int, int]  # cells of each attribute of the scope
    inner: dict[int, Floats]  # of the factors of one attribute, one row for each product
    means: dict[int, Floats]  # products of the factors' means, likewise

    @classmethod
    def of(cls, cell: Sequence[Product], shape: tuple[int, ...]) -> "Sums":
        """The sum of these products."""
        scope = tuple(sorted({a for product in cell for a in product.scope}))
        factors = {a: np.array([product.factor(a) for product in cell]) for a in scope}
        means = {a: np.outer(each.mean(axis=1), each.mean(axis=1)) for a, each in factors.items()}
        inner = {a: each @ each.T for a, each in factors.items()}
        inner = inner or {-1: np.ones((len(cell), len(cell)))}  # without attributes: the total
        return cls(scope, {a: shape[a] for a in scope}, inner, means or inner)

    @property
    def cells(self) -> int:
        """How many cells the scope has."""
        return math.prod(self.sizes.values())

    @property
    def squared(self) -> float:
        """The sum of the squared weights over the cells of the scope."""
        return _sum_of_products(self.inner)

    def effect(self, attributes: Scope) -> float:
        """The squared length of the effect of some attributes."""
        spread = {a: self.inner[a] - self.sizes[a] * self.means[a] for a in attributes}
        return max(0.0, _sum_of_products(self.means | spread))


def _sum_of_products(factors: dict[int, Floats]) -> float:
    return float(np.prod(list(factors.values()), axis=0).sum())


# The errors of questions ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PredictedErrors:
    """The scale of the error of each number, by question, and the law they have."""

    scales: tuple[Floats, ...]
    shape: ErrorShape = NORMAL

    @property
    def typical(self) -> Floats:
        """The mean error of each question's numbers."""
        return np.array([self.shape.mean * float(each.mean()) for each in self.scales])

    @property
    def mean(self) -> float:
        """The mean over the questions."""
        return float(self.typical.mean())

    def largest(self, times: float) -> float:
        """The largest error, if each question stands for so many."""
        return largest(self.shape, np.concatenate(self.scales), times)

    def proven(self, confidence: float, questions: Sequence[GridQuestion]) -> float:
        """The largest half-width of an interval around noise of this size."""
        widths = [
            self.shape.quantile(1 - (1 - confidence) / asked.together) * float(scales.max())
            for asked, scales in zip(questions, self.scales, strict=True)
        ]
        return max(widths)


# Noise on every answer ------------------------------------------------------------------------


def gaussian_answers(
    questions: Sequence[GridQuestion], relation: Relation, deviation: float
) -> PredictedErrors:
    """Normal noise of this deviation to one sensitivity, for a whole statement."""
    scales = []
    for asked in questions:
        moved = [_sensitivity_ratio(part, relation, 2) for part in asked.parts]
        share = math.sqrt(len(asked.parts))  # of rho, for each part
        scales.append(_by_cell(asked, [deviation * share * each for each in moved]))
    return PredictedErrors(tuple(scales))


def laplace_answers(
    questions: Sequence[GridQuestion], relation: Relation, scale: float, *, pure: bool
) -> PredictedErrors:
    """Laplace noise of this scale to one sensitivity; pure budgets add up epsilon, others rho."""
    scales = []
    for asked in questions:
        moved = [_sensitivity_ratio(part, relation, 1) for part in asked.parts]
        share = len(asked.parts) if pure else math.sqrt(len(asked.parts))
        scales.append(_by_cell(asked, [scale * share * each for each in moved]))
    return PredictedErrors(tuple(scales), LAPLACE)


def _by_cell(asked: GridQuestion, sizes: Sequence[float]) -> Floats:
    counts = [len(part.cells) for part in asked.parts]
    return np.repeat(np.array(sizes), counts)


def _sensitivity_ratio(part: LinearCells, relation: Relation, norm: int) -> float:
    """How far a person moves all cells of a part together, over how far one of them."""
    if len(part.cells) == 1:
        return 1.0
    together = float(_overlap(part) ** (1 / norm))
    if not relation.exchanged:
        return together
    most = relation.rows * max(abs(end) for end in part.span)
    left_and_joined = 2 ** (1 / norm) * most / part.sensitivity(relation)
    return float(max(1.0, together * left_and_joined))


def _overlap(part: LinearCells) -> float:
    """In how many cells of a part a row can be; groups are apart, and running totals are not."""
    scope = tuple(sorted({a for product in part.products for a in product.scope}))
    sizes = [part.products[0].shape[a] for a in scope]
    if not scope or math.prod(sizes) > MAX_CANONICAL_CELLS:
        return 1.0
    held = [np.any([each.over(scope) != 0 for each in cell], axis=0) for cell in part.cells if cell]
    return float(max(1, np.sum(held, axis=0).max()))


# Tables ---------------------------------------------------------------------------------------


def fitted_answers(
    questions: Sequence[GridQuestion], relation: Relation, tables: NoisyTables
) -> PredictedErrors:
    """The noise of tables in the answers of the stand-in that is fitted to them."""
    return _from_cells(questions, relation, lambda cell: tables.fit * tables.deviation(cell))


def read_answers(
    questions: Sequence[GridQuestion], relation: Relation, tables: NoisyTables
) -> PredictedErrors | None:
    """The noise in answers that are read off one table each; None where one is in none."""
    if not all(tables.holds(asked.scope) for asked in questions):
        return None
    return _from_cells(questions, relation, lambda cell: tables.reading(cell) or 0.0)


def _from_cells(
    questions: Sequence[GridQuestion],
    relation: Relation,
    deviation: Callable[[Sequence[Product]], float],
) -> PredictedErrors:
    found = []
    for asked in questions:
        cells = ((part, cell) for part in asked.parts for cell in part.cells)
        errors = [deviation(cell) / part.sensitivity(relation) for part, cell in cells]
        found.append(np.array(errors))
    return PredictedErrors(tuple(found))
