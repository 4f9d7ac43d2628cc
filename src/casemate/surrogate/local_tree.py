"""A tree of pairs: what is left of local maximum entropy where a scope has too many cells.

Source     The tree of pairs of largest mutual information, which among all trees is nearest to
           the distribution whose pairs are given (Chow and Liu, 1968).
Cost       One table for each two attributes of the scope, once; then an answer is one small
           product for each attribute.
"""

import math
from collections.abc import Callable

import numpy as np

from casemate.surrogate.product import Floats, Product, Scope

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
