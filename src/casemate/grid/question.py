"""Questions on the grid: every number a statement needs, as a weighted sum of counts over cells.

A `Linear` is one aggregate: a number for each of its cells, each the sum of products that are
apart from each other. Weights are whole numbers of units, so exact answers are integers. An `Asked`
is one statement: its text is the same for every way to write the same question, because it is made
of the cells and not of the SQL.

Which tables must look alike, and how far a question moves between two of them.

Guarantee  Add-remove: one person's rows come or go. Replace, or only private values protected: one
           person's rows become others, so a sum moves by the whole range of what a row adds, and
           a table of counts loses rows in one place and gains them in another. Each bound is for
           `rows` rows of one person, wherever they fall.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from casemate.grid.product import Floats, Product, Scope
from casemate.table import Budget, Neighbours, Policy, Protects


@dataclass(frozen=True)
class Relation:
    """The neighbouring relation of a policy.

    >>> Relation().of_sum(-2, 5), Relation(exchanged=True, rows=3).of_sum(-2, 5)
    (5, 21)
    """

    exchanged: bool = False  # rows become others, instead of coming or going
    rows: int = 1  # of one person
    counted: bool = False  # whether everybody knows the number of rows

    @classmethod
    def of(cls, policy: Policy, budget: Budget) -> Self:
        """The relation under which the budget is counted."""
        replaced = budget.neighbours is Neighbours.REPLACE
        values_only = budget.protects is Protects.PRIVATE_COLUMNS
        rows = policy.rows_per_person
        return cls(replaced or values_only, rows, values_only or (replaced and rows == 1))

    def of_sum(self, low: int, high: int) -> int:
        """How far a sum moves to which a row adds a number from low to high, or nothing."""
        low, high = min(low, 0), max(high, 0)
        return self.rows * (high - low if self.exchanged else max(-low, high))

    @property
    def squared_of_table(self) -> Fraction:
        """How far a table of counts moves, in squared Euclidean distance."""
        return Fraction(self.rows**2 * (2 if self.exchanged else 1))

    @property
    def of_table(self) -> Fraction:
        """How far a table of counts moves in all."""
        return Fraction(self.rows * (2 if self.exchanged else 1))


# Asked ------------------------------------------------------------------------------------------


LONGEST_TEXT = 2000
"""A question whose text is longer is named by a digest of it."""

LARGEST_SHOWN = 2**16
"""Cells of a scope up to which equal sets of cells are recognised however they were composed."""

MOST_SHOWN = 2**21
"""The same for all cells of a part together: it is the time that naming them takes."""


@dataclass(frozen=True, eq=False)
class LinearCells:
    """Cells of one aggregate, each a sum of products that are apart from each other.

    One unit is worth `unit`; a count has units of one row. Weights in products are whole numbers.

    >>> women = Product((2, 3), {0: np.array([False, True])})
    >>> LinearCells(((women,),)).sensitivity(Relation(rows=2))
    2
    """

    cells: tuple[tuple[Product, ...], ...]
    unit: Fraction = Fraction(1)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The least and the most that one row adds to a cell, nothing included."""
        low, high = 0, 0
        for product in (each for cell in self.cells for each in cell):
            ends = [(0, int(mask.any())) for mask in product.masks.values()]
            ends += [(int(w.min()), int(w.max())) for w in product.weights.values()]
            lowest, highest = _times(ends)
            low, high = min(low, lowest), max(high, highest)
        return low, high

    def sensitivity(self, relation: Relation) -> int:
        """How far one person moves a cell, in units; at least one."""
        return max(1, relation.of_sum(*self.span))

    @property
    def products(self) -> list[Product]:
        """All products, cell after cell."""
        return [product for cell in self.cells for product in cell]

    def gathered(self, values: Sequence[float] | Floats) -> Floats:
        """One number for each cell from one for each of `products`."""
        sizes = [len(cell) for cell in self.cells]
        if all(size == 1 for size in sizes):
            return np.asarray(values, np.float64)
        found = np.zeros(len(sizes))
        np.add.at(found, np.repeat(np.arange(len(sizes)), sizes), values)
        return found


def _times(ends: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The interval of a product of numbers, each in its own interval."""
    low, high = 1, 1
    for least, most in ends:
        corners = [a * b for a in (low, high) for b in (least, most)]
        low, high = min(corners), max(corners)
    return low, high


@dataclass(frozen=True, eq=False)
class GridQuestion:
    """One statement as one question: the parts it is compared by.

    `together` says of how many cells at most one shown number is made: a proof of the number needs
    the proofs of as many cells at once. `ratios` has the parts that will be divided, cell by cell:
    a sum, and the count of the same cells.
    """

    parts: tuple[LinearCells, ...]
    together: int = 1
    ratios: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.parts or not all(part.cells for part in self.parts):
            raise ValueError("a question has parts, and each has at least one cell")

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid it is about."""
        return next(product.shape for part in self.parts for product in part.products)

    @cached_property
    def scope(self) -> Scope:
        """The attributes that any part looks at, in order."""
        return tuple(
            sorted({a for part in self.parts for each in part.products for a in each.scope})
        )

    @cached_property
    def text(self) -> str:
        """The name of the question: canonical JSON of its cells, or a digest of that.

        What is made of the cells is part of it, because it decides how much is proven of each.
        """
        parts: list[dict[str, object]] = [
            {
                "unit": str(part.unit),
                "cells": [
                    _canonical(cell, min(LARGEST_SHOWN, MOST_SHOWN // len(part.cells)))
                    for cell in part.cells
                ],
            }
            for part in self.parts
        ]
        if self.together > 1 or self.ratios:
            parts.append({"together": self.together, "ratios": self.ratios})
        written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        if len(written) <= LONGEST_TEXT:
            return written
        return f"sha256:{hashlib.sha256(written.encode()).hexdigest()}"


def off_ratio(above: LinearCells, below: LinearCells, ratios: Sequence[float]) -> LinearCells:
    """A sum less so many times the count, cell by cell: what a ratio errs by, times the count."""
    cells = []
    for sums, counts, ratio in zip(above.cells, below.cells, ratios, strict=True):
        cells.append(
            tuple(
                Product(count.shape, count.masks, _less(added, count, ratio))
                for added, count in zip(sums, counts, strict=True)
            )
        )
    return LinearCells(tuple(cells), above.unit)


def _less(added: Product, count: Product, ratio: float) -> dict[int, Floats]:
    """The weights of a sum, on the attribute that it adds up, less a constant."""
    places = added.weights or {a: added.factor(a) for a in added.scope if a not in count.masks}
    if not places:
        return {0: added.factor(0) - ratio}
    return {place: added.factor(place) - ratio for place in places}


def _canonical(cell: Sequence[Product], largest: int) -> object:
    """A form of a cell that does not depend on how it was cut into products, if it is small."""
    if len(cell) == 1:
        return _plain(cell[0])
    scope = tuple(sorted({a for product in cell for a in product.scope}))
    sizes = [cell[0].shape[a] for a in scope] if cell else []
    if math.prod(sizes) > largest:
        return sorted((_plain(product) for product in cell), key=json.dumps)
    added = sum((product.over(scope) for product in cell), start=np.zeros(math.prod(sizes)))
    table, kept = added.reshape(sizes), list(scope)
    for axis in range(len(sizes) - 1, -1, -1):
        first = np.take(table, [0], axis=axis)
        if (table == first).all():
            table = np.take(table, 0, axis=axis)
            del kept[axis]
    return {"scope": kept, "table": [float(each) for each in table.ravel()]}


def _plain(product: Product) -> dict[str, object]:
    written = product.to_dict()
    return {"masks": written["masks"], "weights": written["weights"]}
