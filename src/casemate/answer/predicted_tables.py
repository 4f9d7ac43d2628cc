"""How far off sums over cells are that come from noisy tables, when only the tables are known.

Source     Our own, after the decomposition of a function on a grid into effects: q = sum of q_A
           over sets of attributes A, each q_A a function of the attributes in A that sums to
           nothing along each of them. Noise that is the same on all cells of a table is independent
           between effects, and a table over B measures the effect of every A within B.
Statement  The best linear estimate of q from tables of variance v has the variance

               sum over A of |q_A|^2 v / (sum over tables B that hold A of 1/cells of B beside A)

           (the effect of no attribute is the total, which is measured by itself as well). For a
           product of one factor per attribute, |q_A|^2 is a product of variances of the factors
           in A and of squared means of the others. Effects that no table holds are the part of a
           question that nobody knows before asking: they are not in the prediction.
Departure  A stand-in is no linear estimate: it keeps counts from being negative and fits ratios.
           `HARD` and `SOFT` say how much larger its errors were than this formula in runs of
           `DenseSurrogate` (benchmarks/planner.py measures them again).
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from casemate.surrogate.product import Floats, Product, Scope
from casemate.surrogate.replay import WIDE

HARD = 1.2
"""Errors of a fit, over the formula: .6 to 1.5 in our runs with tables of one attribute, 1.0 to
1.2 with tables of two. It depends on the data, and this is one number for all."""

SOFT = 1.8
"""The same with wider tables, which are approached and not matched: 1.0 to 2.6."""


@dataclass(frozen=True)
class NoisyTables:
    """Tables over some scopes of a grid, each cell with noise of one variance."""

    shape: tuple[int, ...]
    scopes: tuple[Scope, ...]
    variance: float
    total_variance: float = 0.0  # of the number of people; 0 where it is public

    @property
    def widest(self) -> int:
        """How many attributes the widest table has."""
        return max((len(scope) for scope in self.scopes), default=0)

    @property
    def fit(self) -> float:
        """How much larger the errors of a stand-in are than those of the best linear estimate."""
        return SOFT if self.widest >= WIDE else HARD

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
        return _added(self.inner)

    def effect(self, attributes: Scope) -> float:
        """The squared length of the effect of some attributes."""
        spread = {a: self.inner[a] - self.sizes[a] * self.means[a] for a in attributes}
        return max(0.0, _added(self.means | spread))


def _added(factors: dict[int, Floats]) -> float:
    return float(np.prod(list(factors.values()), axis=0).sum())
