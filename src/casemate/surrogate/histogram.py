"""A distribution over up to 2e8 cells, held as rows x columns of numbers and one global scale.

Source     The dense form of the databases that the update algorithms of source document 003
           maintain.
Guarantee  The same cells give the same bits on every machine: every sum has a fixed order, which
           the compiler may not change.
Cost       A product question is one pass over the rows and columns it touches; an update is one
           pass, fused with the look at what the next update needs. 8 bytes a cell.
Departure  The normaliser is worked out, never summed: an update inside a 0/1 question touches
           only its cells, and the scale carries the rest
           (`test_an_update_touches_only_the_cells_inside`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from casemate.compiled import compiled
from casemate.grid import (
    Floats,
    Marginal,
    Product,
    Scope,
    contract,
    over_many_ranges,
    over_ranges,
    summed_area,
)

# Compiled passes over cells stored as rows x columns --------------------------------------------
#
# Rows are added up column by column, from the first to the last. Rows without weight, and the
# columns before the first weight and after the last, are not touched.


Places = NDArray[np.int64]


class ProductVectors(NamedTuple):
    """A product question over rows x columns: a weight for each row, and one for each column."""

    rows: Floats
    columns: Floats


@compiled
def _support_range(columns: Floats) -> tuple[int, int]:
    """The first column with a weight and the one after the last."""
    first, last = 0, columns.shape[0]
    while first < last and columns[first] == 0:
        first += 1
    while last > first and columns[last - 1] == 0:
        last -= 1
    return first, last


@compiled
def _scale(row: Floats, factors: Floats) -> None:
    for j in range(row.shape[0]):
        row[j] *= factors[j]


@compiled
def _add(row: Floats, weight: float, sums: Floats) -> None:
    for j in range(row.shape[0]):
        sums[j] += weight * row[j]


@compiled
def _scale_then_add(row: Floats, factors: Floats, weight: float, sums: Floats) -> None:
    for j in range(row.shape[0]):
        scaled = row[j] * factors[j]
        row[j] = scaled
        sums[j] += weight * scaled


@compiled
def _dot(sums: Floats, columns: Floats) -> float:
    total = 0.0
    for j in range(sums.shape[0]):
        total += sums[j] * columns[j]
    return total


@compiled
def weigh(cells: Floats, asked: ProductVectors) -> float:
    """The sum of rows[i] * cells[i, j] * columns[j]."""
    rows, columns = asked
    first, last = _support_range(columns)
    sums = np.zeros(last - first)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _add(cells[i, first:last], rows[i], sums)
    return _dot(sums, columns[first:last])


@compiled
def tilt(cells: Floats, inside: ProductVectors, ratio: float) -> None:
    """Multiply the cells inside a 0/1 question by `ratio`."""
    rows, columns = inside
    first, last = _support_range(columns)
    factors = np.where(columns != 0, ratio, 1.0)
    for i in range(cells.shape[0]):
        if rows[i] != 0:
            _scale(cells[i, first:last], factors[first:last])


@compiled
def _factors_and_sums(columns: Floats, ratio: float) -> tuple[Floats, Floats]:
    """Two vectors half a page apart: at the same place in a page, each store stalls a load."""
    length = columns.shape[0]
    second = (length + 511) // 512 * 512 + 256
    buffer = np.zeros(second + length)
    buffer[:length] = np.where(columns != 0, ratio, 1.0)
    return buffer[:length], buffer[second:]


@compiled
def tilt_then_weigh(
    cells: Floats, inside: ProductVectors, ratio: float, asked: ProductVectors
) -> float:
    """Multiply the cells inside one 0/1 question, and weigh the next question, in one pass."""
    rows, columns = inside
    asked_rows, asked_columns = asked
    first, last = _support_range(columns)
    factors, sums = _factors_and_sums(columns, ratio)
    for i in range(cells.shape[0]):
        if asked_rows[i] == 0:
            if rows[i] != 0:
                _scale(cells[i, first:last], factors[first:last])
        elif rows[i] == 0:
            _add(cells[i], asked_rows[i], sums)
        else:
            _scale_then_add(cells[i], factors, asked_rows[i], sums)
    return _dot(sums, asked_columns)


@compiled
def spread(cells: Floats, groups: Places, factors: Floats) -> None:
    """Multiply every row by the factors of its group, one for each column."""
    for i in range(cells.shape[0]):
        _scale(cells[i], factors[groups[i]])


@compiled
def gather(cells: Floats, groups: Places, sums: Floats) -> None:
    """Add every row to the sums of its group, one for each column."""
    for i in range(cells.shape[0]):
        _add(cells[i], 1.0, sums[groups[i]])


@compiled
def spread_then_gather(
    cells: Floats, groups: Places, factors: Floats, next_groups: Places, sums: Floats
) -> None:
    """Multiply every row by its factors and add it to the next groups' sums, in one pass."""
    for i in range(cells.shape[0]):
        _scale_then_add(cells[i], factors[groups[i]], 1.0, sums[next_groups[i]])


@compiled
def sum_out(source: Floats, target: Floats) -> None:
    """Add up the middle axis of before x width x after, in order."""
    before, width, after = source.shape
    for i in range(before):
        for j in range(after):
            total = source[i, 0, j]
            for k in range(1, width):
                total += source[i, k, j]
            target[i, j] = total


# Marginals --------------------------------------------------------------------------------------
#
# They are made by adding up the attributes they do not keep, one after the other, the widest first.
# Scopes that drop the same attributes first share those sums. Each marginal still has one fixed
# chain of sums, so its bits do not depend on which others were wanted or remembered.


MAX_CACHED_NUMBERS = 2**24
"""So many numbers of marginals are remembered at most."""


def sum_over_axis(table: Floats, axis: int) -> Floats:
    """The table without one axis, its entries added up in order."""
    before, after = math.prod(table.shape[:axis]), math.prod(table.shape[axis + 1 :])
    target = np.empty((before, after))
    sum_out(np.ascontiguousarray(table).reshape(before, table.shape[axis], after), target)
    return target.reshape(table.shape[:axis] + table.shape[axis + 1 :])


def marginals(cells: Floats, scopes: Iterable[Scope]) -> dict[Scope, Floats]:
    """All these marginals of an array with one axis for each attribute, by shared summation."""
    widest_first = sorted(range(cells.ndim), key=lambda axis: (-cells.shape[axis], axis))
    found: dict[Scope, Floats] = {}
    _descend(cells, tuple(range(cells.ndim)), widest_first, sorted(set(scopes)), found)
    return found


def _descend(
    table: Floats,
    present: Scope,
    undecided: Sequence[int],
    scopes: Sequence[Scope],
    found: dict[Scope, Floats],
) -> None:
    """Decide about one attribute: those scopes that drop it share its sum."""
    if not undecided:
        found[present] = table
        return
    attribute, rest = undecided[0], undecided[1:]
    without = [scope for scope in scopes if attribute not in scope]
    within = [scope for scope in scopes if attribute in scope]
    if without:
        place = present.index(attribute)
        remaining = present[:place] + present[place + 1 :]
        _descend(sum_over_axis(table, place), remaining, rest, without, found)
    if within:
        _descend(table, present, rest, within, found)


@dataclass
class MarginalTables:
    """The marginals that are asked for, until the cells change; then all are made again at once."""

    _tables: dict[Scope, Floats] = field(default_factory=dict)
    _areas: dict[Scope, Floats] = field(default_factory=dict)
    _used: dict[Scope, None] = field(default_factory=dict)  # since the cells changed, latest last
    _wanted: list[Scope] = field(default_factory=list)  # those used before they changed

    def forget(self) -> None:
        """The cells have changed."""
        if self._used:
            self._wanted = list(self._used)
        self._tables, self._areas, self._used = {}, {}, {}

    def table(self, cells: Floats, scope: Scope) -> Floats:
        """The marginal of a scope; `cells` has one axis for each attribute."""
        if scope not in self._tables:
            self._tables |= marginals(cells, [scope, *self._wanted])
            self._wanted = []
        self._used.pop(scope, None)
        self._used[scope] = None
        found = self._tables[scope]
        self._shrink()
        return found

    def area(self, cells: Floats, scope: Scope) -> Floats:
        """The summed-area table of a scope."""
        table = self.table(cells, scope)
        if scope not in self._areas:
            self._areas[scope] = summed_area(table)
        return self._areas[scope]

    def _shrink(self) -> None:
        """Drop what was used longest ago, so that memory stays bounded."""
        while (
            len(self._tables) > 1
            and sum(t.size for t in self._tables.values()) > MAX_CACHED_NUMBERS
        ):
            oldest = next((s for s in self._tables if s not in self._used), next(iter(self._used)))
            for kept in (self._tables, self._areas, self._used):
                kept.pop(oldest, None)


# The histogram ----------------------------------------------------------------------------------


Target = Product | Marginal
"""What an update looks at: the mass inside a 0/1 question, or a whole marginal."""

MAX_DENSE_CELLS = 2 * 10**8
"""A universe of more cells (1.6 gigabytes) needs another kind of stand-in."""

ROW_CELL_LIMITS = 64, 256, 1024
"""Cells of a row: at least the first, better the second, and then no more than the third, which
is what the fastest memory holds beside a row of factors and one of sums."""

MAX_CACHED_MARGINAL_CELLS = 2**22
"""Marginals larger than this are not remembered; their questions are answered from the cells."""

MIN_DERIVED_MASS_OUTSIDE = 1e-3
"""Where less than this lies outside a question, the total is summed afresh before it is used."""


class Histogram:
    """Probabilities of the cells of a grid."""

    def __init__(self, shape: tuple[int, ...], prior: Floats | None = None) -> None:
        self.shape = tuple(int(width) for width in shape)
        self.size = math.prod(self.shape)
        if not self.shape or min(self.shape) < 1 or self.size > MAX_DENSE_CELLS:
            raise ValueError(
                f"a dense stand-in has 1 to {MAX_DENSE_CELLS} cells, got the grid {self.shape}; "
                f"use fewer bins, or a stand-in for larger universes"
            )
        self._split = _split(self.shape)
        rows = math.prod(self.shape[: self._split])
        cells = np.ones(self.shape) if prior is None else _validated_prior(prior, self.shape)
        self._cells = np.ascontiguousarray(cells).reshape(rows, -1)
        self._tables = MarginalTables()
        self._scale = 1.0
        self._settle()

    STATE = frozenset(("cells", "scale"))

    def state(self) -> dict[str, Floats]:
        """Everything that it holds, to be kept."""
        return {"cells": self._cells, "scale": np.array([self._scale])}

    def restore(self, state: Mapping[str, Floats]) -> None:
        """Hold what was kept."""
        if state["cells"].shape != self._cells.shape or state["scale"].shape != (1,):
            raise ValueError(f"these cells are not of the grid {self.shape}")
        self._tables.forget()
        self._cells, self._scale = state["cells"], float(state["scale"][0])

    # What it answers -----------------------------------------------------------------------

    def fraction(self, product: Product) -> float:
        """The value of a question, as a fraction of the total."""
        self._check(product)
        scope = product.scope
        if not caches_marginal(self.shape, scope):
            return self._scale * self._weigh(product)
        if product.ranges is None:
            factors = [product.factor(attribute) for attribute in scope]
            return self._scale * float(contract(self._tables.table(self._grid, scope), factors))
        area = self._tables.area(self._grid, scope)
        firsts, ends = zip(*product.ranges, strict=True) if scope else ((), ())
        return self._scale * float(over_ranges(area, firsts, ends))

    def fractions(self, products: Sequence[Product]) -> Floats:
        """The values of many questions; ranges over one scope are looked up together."""
        values = np.empty(len(products))
        together: dict[Scope, list[int]] = {}
        for place, product in enumerate(products):
            self._check(product)
            if product.ranges and caches_marginal(self.shape, product.scope):
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
        if caches_marginal(self.shape, scope):
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
            return np.array(self._scale * self._weigh(target))
        groups, sums = self._row_groups(target.scope), self._empty_sums(target.scope)
        gather(self._cells, groups, sums)
        return self._scale * self._marginal_from_sums(sums, target.scope)

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
        return self._rescale(seen)

    def spread(self, scope: Scope, factors: Floats, then: Target | None = None) -> Floats | None:
        """Multiply each cell by the factor of its place in a marginal; look at what comes next."""
        self._tables.forget()
        groups, wide = self._row_groups(scope), self._factors_by_row_group(scope, factors)
        if isinstance(then, Marginal):
            following, sums = self._row_groups(then.scope), self._empty_sums(then.scope)
            spread_then_gather(self._cells, groups, wide, following, sums)
            return self._scale * self._marginal_from_sums(sums, then.scope)
        spread(self._cells, groups, wide)
        return self.look(then) if then else None

    def outside(self, product: Product, inside: float) -> float:
        """The mass outside a question, given that inside; summed afresh where it is small."""
        if 1.0 - inside >= MIN_DERIVED_MASS_OUTSIDE:
            return 1.0 - inside
        self._settle()
        return max(1.0 - self._scale * self._weigh(product), 0.0)

    # Rows and columns ----------------------------------------------------------------------

    @property
    def _grid(self) -> Floats:
        return self._cells.reshape(self.shape)

    def _check(self, product: Product) -> None:
        if product.shape != self.shape:
            raise ValueError(f"a question about the grid {product.shape} met one of {self.shape}")

    def _settle(self) -> None:
        """Let the scale make the total one."""
        self._scale = 1.0 / self._weigh(Product(self.shape, {}))

    def _rescale(self, seen: Floats | None) -> Floats | None:
        """Work the scale into the cells before either leaves the range of floats."""
        if not 1e-100 < self._scale < 1e100:
            self._cells *= self._scale
            self._scale = 1.0
        return seen

    def _weigh(self, product: Product) -> float:
        return weigh(self._cells, self._vectors(product))

    def _vectors(self, product: Product) -> ProductVectors:
        self._check(product)
        attributes = tuple(range(len(self.shape)))
        rows, columns = attributes[: self._split], attributes[self._split :]
        return ProductVectors(product.over(rows), product.over(columns))

    def _row_groups(self, scope: Scope) -> Places:
        """The place of each row among the combinations of the scope's row attributes."""
        return _places(self.shape[: self._split], [a for a in scope if a < self._split])

    def _empty_sums(self, scope: Scope) -> Floats:
        groups = math.prod(self.shape[a] for a in scope if a < self._split)
        return np.zeros((groups, self._cells.shape[1]))

    def _factors_by_row_group(self, scope: Scope, factors: Floats) -> Floats:
        """One factor for each group of rows and each column."""
        columns = [a - self._split for a in scope if a >= self._split]
        places = _places(self.shape[self._split :], columns)
        return np.ascontiguousarray(factors.reshape(-1, int(places.max()) + 1)[:, places])

    def _marginal_from_sums(self, sums: Floats, scope: Scope) -> Floats:
        """The marginal out of the sums of groups of rows."""
        rows = [self.shape[a] for a in scope if a < self._split]
        table = sums.reshape([*rows, *self.shape[self._split :]])
        for attribute in reversed(range(self._split, len(self.shape))):
            if attribute not in scope:
                table = sum_over_axis(table, len(rows) + attribute - self._split)
        return table


def caches_marginal(shape: tuple[int, ...], scope: Scope) -> bool:
    """Whether questions about a scope are answered from its marginal, which is remembered."""
    cells = math.prod(shape[attribute] for attribute in scope)
    return cells <= MAX_CACHED_MARGINAL_CELLS and 4 * cells <= math.prod(shape)


def _split(shape: tuple[int, ...]) -> int:
    """How many attributes make the rows: the last ones make columns until a row is long enough."""
    least, good, most = ROW_CELL_LIMITS
    split, columns = len(shape), 1
    while split > 0 and columns < good:
        wider = columns * shape[split - 1]
        if columns >= least and wider > most:
            break
        split, columns = split - 1, wider
    return split


def _places(shape: tuple[int, ...], attributes: Sequence[int]) -> Places:
    """For each cell of a grid, its place among the combinations of some of the attributes."""
    place = np.zeros(shape, np.int64)
    for attribute in attributes:
        axes = [1] * len(shape)
        axes[attribute] = shape[attribute]
        place = place * shape[attribute] + np.arange(shape[attribute]).reshape(axes)
    return np.ascontiguousarray(place.ravel())


def _validated_prior(prior: Floats, shape: tuple[int, ...]) -> Floats:
    """A copy of the prior, if data could correct it everywhere."""
    if prior.shape != shape or not np.isfinite(prior).all() or prior.min() <= 0:
        raise ValueError(
            f"a prior has one positive number for each cell of the grid {shape}, because a cell "
            f"without mass could never gain any; got the shape {prior.shape}"
        )
    return prior.astype(np.float64)
