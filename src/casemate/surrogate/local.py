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

What measurements say about a few attributes alone: restricted to them, merged, renumbered.

A tree of pairs: what is left of local maximum entropy where a scope has too many cells.

Source     The tree of pairs of largest mutual information, which among all trees is nearest to
           the distribution whose pairs are given (Chow and Liu, 1968).
Cost       One table for each two attributes of the scope, once; then an answer is one small
           product for each attribute.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from casemate.grid import (
    Floats,
    Marginal,
    MeasuredMarginal,
    MeasuredProduct,
    Measurement,
    Product,
    Scope,
    agreed,
)
from casemate.surrogate.dense import LARGEST_DENSE
from casemate.surrogate.protocol import KnownTotal, check_grid, checked_shape
from casemate.surrogate.replay import SWEEPS, WIDE, DenseSurrogate


def restricted(measurements: Sequence[Measurement], scope: Scope) -> list[Measurement]:
    """Tables summed to the attributes of the scope, and the questions that lie inside it.

    Tables that become the same one are their mean, each weighed by its variance; those that are
    part of another one of their kind (narrow, or wide) say nothing new and are left out.
    """
    kept: list[Measurement] = [*_told_most(_merged(measurements, scope))]
    for one in measurements:
        if isinstance(one, MeasuredProduct) and set(one.product.scope) <= set(scope):
            kept.append(MeasuredProduct(narrowed(one.product, scope), one.value, one.variance))
    return kept


def narrowed(product: Product, scope: Scope) -> Product:
    """The same question on the grid of the scope alone, which holds all that it looks at."""
    place = {attribute: axis for axis, attribute in enumerate(scope)}
    return Product(
        tuple(product.shape[attribute] for attribute in scope),
        {place[attribute]: mask for attribute, mask in product.masks.items()},
        {place[attribute]: weight for attribute, weight in product.weights.items()},
    )


def _merged(measurements: Sequence[Measurement], scope: Scope) -> list[MeasuredMarginal]:
    """One table for each set of axes that some measured table shares with the scope."""
    found: dict[Scope, MeasuredMarginal] = {}
    for table in measurements:
        if isinstance(table, MeasuredMarginal) and set(table.marginal.scope) & set(scope):
            one = _summed(table, scope)
            axes = one.marginal.scope
            found[axes] = _mean(found[axes], one) if axes in found else one
    return list(found.values())


def _summed(table: MeasuredMarginal, scope: Scope) -> MeasuredMarginal:
    """The table without the attributes that are not asked for; the variance of a cell grows."""
    attributes = table.marginal.scope
    dropped = tuple(axis for axis, a in enumerate(attributes) if a not in scope)
    values: Floats = table.values.sum(axis=dropped)
    axes = tuple(scope.index(attribute) for attribute in attributes if attribute in scope)
    return MeasuredMarginal(
        Marginal(axes), values, table.variance * (table.values.size // values.size)
    )


def _mean(one: MeasuredMarginal, other: MeasuredMarginal) -> MeasuredMarginal:
    """Both together; an exact one counts alone."""
    both = one.variance + other.variance
    share = other.variance / both if both else 0.5  # of the first: the less the other is worth
    values = share * one.values + (1 - share) * other.values
    return MeasuredMarginal(one.marginal, values, one.variance * share)


def _told_most(tables: Sequence[MeasuredMarginal]) -> list[MeasuredMarginal]:
    """The tables that are not part of another narrow one, or of another wide one."""

    def more(one: MeasuredMarginal, other: MeasuredMarginal) -> bool:
        inner, outer = set(one.marginal.scope), set(other.marginal.scope)
        return inner < outer and (len(inner) >= WIDE) == (len(outer) >= WIDE)

    return [one for one in tables if not any(more(one, other) for other in tables)]


# Local tree -------------------------------------------------------------------------------------


Table = Callable[[Scope], Floats]
"""From a scope of one or two attributes to its counts."""


class PairTree:
    """Counts over a scope in which each attribute depends on one that comes before it."""

    def __init__(self, scope: Scope, table: Table) -> None:
        self._scope = scope
        self._root = table(scope[:1])
        self._branches = [
            (child, parent, conditional(_facing(table, parent, child)))
            for child, parent in _tree(scope, table)
        ]

    def answer(self, product: Product) -> float:
        """The sum over all cells: each leaf is summed into its parent, the last one first."""
        sums = {attribute: product.factor(attribute) for attribute in self._scope}
        for child, parent, shares in reversed(self._branches):
            sums[parent] = sums[parent] * (shares * sums[child]).sum(axis=1)
        return float((self._root * sums[self._scope[0]]).sum())

    def dense(self) -> Floats:
        """All the counts, one axis for each attribute of the scope."""
        cells, present = self._root, [self._scope[0]]
        for child, parent, shares in self._branches:
            axes = [1] * cells.ndim + [shares.shape[1]]
            axes[present.index(parent)] = shares.shape[0]
            cells = cells[..., None] * shares.reshape(axes)
            present.append(child)
        return np.ascontiguousarray(cells.transpose([present.index(a) for a in self._scope]))


def information(pair: Floats) -> float:
    """The mutual information of the two attributes of a table of counts."""
    shares = pair / pair.sum()
    alone = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    held = (shares > 0) & (alone > 0)
    return float((shares[held] * np.log(shares[held] / alone[held])).sum())


def conditional(pair: Floats) -> Floats:
    """Each row of a table of counts as shares; a row without counts is shared evenly."""
    rows = pair.sum(axis=1, keepdims=True)
    shares = np.full(pair.shape, 1 / pair.shape[1])
    np.divide(pair, rows, out=shares, where=rows > 0)
    return shares


def _tree(scope: Scope, table: Table) -> list[tuple[int, int]]:
    """Child and parent, in the order in which they join: always the pair that tells most."""
    best = dict.fromkeys(scope[1:], (-math.inf, scope[0]))
    joined, newest = [], scope[0]
    while best:
        for attribute, (told, _) in best.items():
            here = information(_facing(table, newest, attribute))
            if here > told:
                best[attribute] = here, newest
        newest = max(best, key=lambda attribute: best[attribute][0])
        joined.append((newest, best.pop(newest)[1]))
    return joined


def _facing(table: Table, row: int, column: int) -> Floats:
    """The counts of two attributes, the first one in rows."""
    return table((row, column)) if row < column else table((column, row)).T


# Local ------------------------------------------------------------------------------------------


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
        if cells > LARGEST_DENSE:
            raise ValueError(
                f"a table over {scope} would have {cells} cells, more than {LARGEST_DENSE}; "
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
