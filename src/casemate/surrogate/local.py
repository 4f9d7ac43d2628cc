"""Local maximum entropy: each scope is fitted alone, when somebody asks for it.

Source     The online construction of source document 003; iterative proportional fitting on the
           attributes that a question looks at, as in `replay`, and nowhere else.
Guarantee  A deterministic function of its settings and of the measurements in their order; what
           was asked before does not matter. It is not one distribution: two scopes that share
           attributes may disagree about them, by as much as their measurements do.
Cost       A few passes over the cells of the scope, once, for each measured table inside it;
           later questions about the scope are looked up. Nothing depends on the universe's size.
Departure  A measured question is used only where its whole scope was asked for. A scope of three
           or more attributes and more than `LARGEST_SCOPE` cells is a tree of pairs
           (`test_a_scope_of_too_many_cells_is_a_tree_of_pairs`).
"""

import math
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from casemate.surrogate.dense import LARGEST
from casemate.surrogate.known_total import KnownTotal, check_grid, checked_shape
from casemate.surrogate.local_restriction import narrowed, restricted
from casemate.surrogate.local_tree import PairTree
from casemate.surrogate.marginals import agreed
from casemate.surrogate.product import (
    Floats,
    Marginal,
    MeasuredMarginal,
    Measurement,
    Product,
    Scope,
)
from casemate.surrogate.replay import SWEEPS, WIDE, DenseSurrogate

LARGEST_SCOPE = 2**21
"""Cells of a scope of three or more attributes up to which it is fitted densely."""

KEPT = 2**23
"""So many cells of fitted scopes are remembered."""

MOST_TREES = 100
"""Trees of pairs that are remembered."""


class LocalSurrogate:
    """A stand-in that knows every scope for itself.

    `total` is what is known of the number of records and `total_variance` how well: 0 for a
    public number, infinity for none; measured totals and tables then sharpen it.
    """

    def __init__(self, shape: tuple[int, ...], total: float, total_variance: float = 0.0) -> None:
        self.shape = checked_shape(shape)
        self._known = KnownTotal(total, total_variance)
        self._measured: list[Measurement] = []
        self._settled: list[Measurement] | None = None
        self._fitted: OrderedDict[Scope, DenseSurrogate] = OrderedDict()
        self._trees: dict[Scope, PairTree] = {}
        self._sweeps = SWEEPS

    @property
    def total(self) -> float:
        """How many records there are, as far as is known; at least one."""
        return self._known.records

    # What it answers ------------------------------------------------------------------------------

    def answer(self, product: Product) -> float:
        """The value of one question, in counts."""
        if product.shape != self.shape:
            raise ValueError(f"a question about the grid {product.shape} met one of {self.shape}")
        scope = product.scope
        if not scope:
            return self.total
        if self._is_large(scope):
            return self._tree(scope).answer(product)
        return self._dense(scope).answer(narrowed(product, scope))

    def answers(self, products: Sequence[Product]) -> Floats:
        """The values of many questions, in counts."""
        return np.array([self.answer(product) for product in products], np.float64)

    def marginal(self, scope: Scope) -> Floats:
        """The counts over a scope."""
        Marginal(scope)
        cells = self._cells(scope)
        if cells > LARGEST:
            raise ValueError(
                f"a table over {scope} would have {cells} cells, more than {LARGEST}; "
                f"ask for fewer attributes, or for single products"
            )
        if not scope:
            return np.array(self.total)
        if self._is_large(scope):
            return self._tree(scope).dense()
        return self._dense(scope).marginal(tuple(range(len(scope))))

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """The counts over many scopes."""
        return {scope: self.marginal(scope) for scope in scopes}

    # How it changes -------------------------------------------------------------------------------

    def update(self, measurement: Measurement) -> None:
        """Learn from what a mechanism published."""
        self.learn([measurement])

    def learn(self, measurements: Sequence[Measurement], sweeps: int = SWEEPS) -> None:
        """Learn from what was published together; the most sweeps ever asked for count."""
        for measurement in measurements:
            check_grid(self.shape, measurement)
        for measurement in measurements:
            self._known.count(measurement)
        self._measured += measurements
        self._sweeps = max(self._sweeps, sweeps)
        self._settled = None
        self._fitted.clear()
        self._trees.clear()

    # Scope by scope -------------------------------------------------------------------------------

    def _cells(self, scope: Scope) -> int:
        return math.prod(self.shape[attribute] for attribute in scope)

    def _is_large(self, scope: Scope) -> bool:
        return len(scope) >= WIDE and self._cells(scope) > LARGEST_SCOPE

    def _tree(self, scope: Scope) -> PairTree:
        if scope not in self._trees:
            if len(self._trees) >= MOST_TREES:
                self._trees.clear()
            self._trees[scope] = PairTree(scope, self.marginal)
        return self._trees[scope]

    def _dense(self, scope: Scope) -> DenseSurrogate:
        """The fit of one scope; those used longest ago are forgotten, and made again alike."""
        if scope not in self._fitted:
            stand_in = DenseSurrogate(tuple(self.shape[a] for a in scope), self.total)
            stand_in.learn(restricted(self._agreed(), scope), self._sweeps)
            self._fitted[scope] = stand_in
        self._fitted.move_to_end(scope)
        while len(self._fitted) > 1 and sum(map(self._cells, self._fitted)) > KEPT:
            self._fitted.popitem(last=False)
        return self._fitted[scope]

    def _agreed(self) -> list[Measurement]:
        """What was measured, the narrow tables moved so that all of them agree where they meet."""
        if self._settled is None:
            narrow = [
                (place, each)
                for place, each in enumerate(self._measured)
                if isinstance(each, MeasuredMarginal) and len(each.marginal.scope) < WIDE
            ]
            moved = agreed([table for _, table in narrow], self._known.value)
            self._settled = list(self._measured)
            for (place, table), values in zip(narrow, moved, strict=True):
                one = MeasuredMarginal(table.marginal, values, table.variance)
                self._settled[place] = one
        return self._settled
