"""A distribution over up to 1e8 cells, held as rows x columns of numbers and one global scale.

Source     The dense form of the databases that the update algorithms of source document 003
           maintain.
Cost       A product question is one pass over the rows and columns it touches; an update is one
           pass, fused with the look at what the next update needs. 8 bytes a cell.
Departure  The normaliser is worked out, never summed: an update inside a 0/1 question touches
           only its cells, and the scale carries the rest
           (`test_an_update_touches_only_the_cells_inside`).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from casemate.grid import (
    Floats,
    Marginal,
    MarginalTables,
    Product,
    Scope,
    contracted,
    gather,
    marginals,
    over_many_ranges,
    over_ranges,
    spread,
    spread_then_gather,
    summed_over,
    tilt,
    tilt_then_weigh,
    weigh,
)

Target = Product | Marginal
"""What an update looks at: the mass inside a 0/1 question, or a whole marginal."""

LARGEST_DENSE = 2 * 10**8
"""More cells than this are refused: they need another kind of stand-in."""

ROW = 64, 256, 1024
"""Cells of a row: at least the first, better the second, and then no more than the third, which
is what the fastest memory holds beside a row of factors and one of sums."""

REMEMBERED = 2**22
"""Marginals larger than this are not remembered; their questions are answered from the cells."""

NARROW = 1e-3
"""Where less than this lies outside a question, the total is summed afresh before it is used."""


class Histogram:
    """Probabilities of the cells of a grid."""

    def __init__(self, shape: tuple[int, ...], prior: Floats | None = None) -> None:
        self.shape = tuple(int(width) for width in shape)
        self.size = math.prod(self.shape)
        if not self.shape or min(self.shape) < 1 or self.size > LARGEST_DENSE:
            raise ValueError(
                f"a dense stand-in has 1 to {LARGEST_DENSE} cells, got the grid {self.shape}; "
                f"use fewer bins, or a stand-in for larger universes"
            )
        self._split = _split(self.shape)
        rows = math.prod(self.shape[: self._split])
        cells = np.ones(self.shape) if prior is None else _checked(prior, self.shape)
        self._cells = np.ascontiguousarray(cells).reshape(rows, -1)
        self._tables = MarginalTables()
        self._scale = 1.0
        self._settle()

    # What it answers -----------------------------------------------------------------------

    def fraction(self, product: Product) -> float:
        """The value of a question, as a fraction of the total."""
        self._check(product)
        scope = product.scope
        if not remembers(self.shape, scope):
            return self._scale * self._weighed(product)
        if product.ranges is None:
            factors = [product.factor(attribute) for attribute in scope]
            return self._scale * float(contracted(self._tables.table(self._grid, scope), factors))
        area = self._tables.area(self._grid, scope)
        firsts, ends = zip(*product.ranges, strict=True) if scope else ((), ())
        return self._scale * float(over_ranges(area, firsts, ends))

    def fractions(self, products: Sequence[Product]) -> Floats:
        """The values of many questions; ranges over one scope are looked up together."""
        values = np.empty(len(products))
        together: dict[Scope, list[int]] = {}
        for place, product in enumerate(products):
            self._check(product)
            if product.ranges and remembers(self.shape, product.scope):
                together.setdefault(product.scope, []).append(place)
            else:
                values[place] = self.fraction(product)
        for scope, places in together.items():
            area = self._tables.area(self._grid, scope)
            ranges = np.array([products[place].ranges for place in places])
            values[places] = self._scale * over_many_ranges(area, ranges)
        return values

    def marginal(self, scope: Scope) -> Floats:
        """The probabilities over a scope, one axis for each attribute."""
        Marginal(scope)
        if remembers(self.shape, scope):
            return self._scale * self._tables.table(self._grid, scope)
        return self._scale * marginals(self._grid, [scope])[scope]

    def marginals(self, scopes: Sequence[Scope]) -> dict[Scope, Floats]:
        """Many marginals by shared summation."""
        return {s: self._scale * table for s, table in marginals(self._grid, scopes).items()}

    def dense(self) -> Floats:
        """Every probability, one a cell, the last attribute fastest."""
        return self._scale * self._cells.ravel()

    # How it changes ------------------------------------------------------------------------

    def look(self, target: Target) -> Floats:
        """What an update needs to know: the mass inside, or the marginal."""
        if isinstance(target, Product):
            return np.array(self._scale * self._weighed(target))
        groups, sums = self._row_groups(target.scope), self._empty_sums(target.scope)
        gather(self._cells, groups, sums)
        return self._scale * self._folded(sums, target.scope)

    def tilt(
        self, product: Product, inside: float, outside: float, then: Target | None = None
    ) -> Floats | None:
        """Multiply the cells inside a 0/1 question and those outside; look at what comes next."""
        self._tables.forget()
        ratio = inside / outside
        self._scale *= outside
        if isinstance(then, Product):
            vectors, following = self._vectors(product), self._vectors(then)
            raw = tilt_then_weigh(self._cells, vectors, ratio, following)
            seen: Floats | None = np.array(self._scale * raw)
        else:
            tilt(self._cells, self._vectors(product), ratio)
            seen = self.look(then) if then else None
        return self._kept_in_range(seen)

    def spread(self, scope: Scope, factors: Floats, then: Target | None = None) -> Floats | None:
        """Multiply each cell by the factor of its place in a marginal; look at what comes next."""
        self._tables.forget()
        groups, wide = self._row_groups(scope), self._widened(scope, factors)
        if isinstance(then, Marginal):
            following, sums = self._row_groups(then.scope), self._empty_sums(then.scope)
            spread_then_gather(self._cells, groups, wide, following, sums)
            return self._scale * self._folded(sums, then.scope)
        spread(self._cells, groups, wide)
        return self.look(then) if then else None

    def outside(self, product: Product, inside: float) -> float:
        """The mass outside a question, given that inside; summed afresh where it is small."""
        if 1.0 - inside >= NARROW:
            return 1.0 - inside
        self._settle()
        return max(1.0 - self._scale * self._weighed(product), 0.0)

    # Rows and columns ----------------------------------------------------------------------

    @property
    def _grid(self) -> Floats:
        return self._cells.reshape(self.shape)

    def _check(self, product: Product) -> None:
        if product.shape != self.shape:
            raise ValueError(f"a question about the grid {product.shape} met one of {self.shape}")

    def _settle(self) -> None:
        """Let the scale make the total one."""
        self._scale = 1.0 / self._weighed(Product(self.shape, {}))

    def _kept_in_range(self, seen: Floats | None) -> Floats | None:
        """Work the scale into the cells before either leaves the range of floats."""
        if not 1e-100 < self._scale < 1e100:
            self._cells *= self._scale
            self._scale = 1.0
        return seen

    def _weighed(self, product: Product) -> float:
        return float(weigh(self._cells, self._vectors(product)))

    def _vectors(self, product: Product) -> tuple[Floats, Floats]:
        self._check(product)
        attributes = tuple(range(len(self.shape)))
        return product.over(attributes[: self._split]), product.over(attributes[self._split :])

    def _row_groups(self, scope: Scope) -> NDArray[np.int64]:
        """The place of each row among the combinations of the scope's row attributes."""
        return _places(self.shape[: self._split], [a for a in scope if a < self._split])

    def _empty_sums(self, scope: Scope) -> Floats:
        groups = math.prod(self.shape[a] for a in scope if a < self._split)
        return np.zeros((groups, self._cells.shape[1]))

    def _widened(self, scope: Scope, factors: Floats) -> Floats:
        """One factor for each group of rows and each column."""
        columns = [a - self._split for a in scope if a >= self._split]
        places = _places(self.shape[self._split :], columns)
        return np.ascontiguousarray(factors.reshape(-1, int(places.max()) + 1)[:, places])

    def _folded(self, sums: Floats, scope: Scope) -> Floats:
        """The marginal out of the sums of groups of rows."""
        rows = [self.shape[a] for a in scope if a < self._split]
        table = sums.reshape([*rows, *self.shape[self._split :]])
        for attribute in reversed(range(self._split, len(self.shape))):
            if attribute not in scope:
                table = summed_over(table, len(rows) + attribute - self._split)
        return table


def remembers(shape: tuple[int, ...], scope: Scope) -> bool:
    """Whether questions about a scope are answered from its marginal, which is remembered."""
    cells = math.prod(shape[attribute] for attribute in scope)
    return cells <= REMEMBERED and 4 * cells <= math.prod(shape)


def _split(shape: tuple[int, ...]) -> int:
    """How many attributes make the rows: the last ones make columns until a row is long enough."""
    least, good, most = ROW
    split, columns = len(shape), 1
    while split > 0 and columns < good:
        wider = columns * shape[split - 1]
        if columns >= least and wider > most:
            break
        split, columns = split - 1, wider
    return split


def _places(shape: tuple[int, ...], attributes: Sequence[int]) -> NDArray[np.int64]:
    """For each cell of a grid, its place among the combinations of some of the attributes."""
    place = np.zeros(shape, np.int64)
    for attribute in attributes:
        axes = [1] * len(shape)
        axes[attribute] = shape[attribute]
        place = place * shape[attribute] + np.arange(shape[attribute]).reshape(axes)
    return np.ascontiguousarray(place.ravel())


def _checked(prior: Floats, shape: tuple[int, ...]) -> Floats:
    """A copy of the prior, if data could correct it everywhere."""
    if prior.shape != shape or not np.isfinite(prior).all() or prior.min() <= 0:
        raise ValueError(
            f"a prior has one positive number for each cell of the grid {shape}, because a cell "
            f"without mass could never gain any; got the shape {prior.shape}"
        )
    return prior.astype(np.float64)
