"""Questions on the grid: weighted sums of counts over cells, and how far neighbours move them.

A `LinearCells` is one aggregate: a number for each of its cells, each the sum of products that are
apart from each other. Weights are whole numbers of units, so exact answers are integers. A
`GridQuestion` is one statement: its text is the same for every way to write the same question,
because it is made of the cells and not of the SQL. A `Relation` says which tables must look alike.

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
from numpy.typing import NDArray

from casemate.grid.product import Floats, Mask, Product, Scope
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


# Questions --------------------------------------------------------------------------------------


MAX_TEXT_CHARACTERS = 2000
"""A question whose text is longer is named by a digest of it."""

MAX_CANONICAL_CELLS = 2**16
"""Cells of a scope up to which equal sets of cells are recognised however they were composed."""

MAX_CANONICAL_CELLS_OF_PART = 2**21
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
            lowest, highest = _interval_product(ends)
            low, high = min(low, lowest), max(high, highest)
        return low, high

    def sensitivity(self, relation: Relation) -> int:
        """How far one person moves a cell, in units; at least one."""
        return max(1, relation.of_sum(*self.span))

    @property
    def products(self) -> list[Product]:
        """All products, cell after cell."""
        return [product for cell in self.cells for product in cell]

    def sum_by_cell(self, values: Sequence[float] | Floats) -> Floats:
        """One number, or row of numbers, for each cell from one for each of `products`."""
        each, sizes = np.asarray(values, np.float64), [len(cell) for cell in self.cells]
        if all(size == 1 for size in sizes):
            return each
        found = np.zeros((len(sizes), *each.shape[1:]))
        np.add.at(found, np.repeat(np.arange(len(sizes)), sizes), each)
        return found


def _interval_product(ends: Sequence[tuple[int, int]]) -> tuple[int, int]:
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
    a sum, and the count of the same cells; `shares` those of which a count is divided by that of a
    whole that it is part of.
    """

    parts: tuple[LinearCells, ...]
    together: int = 1
    ratios: tuple[tuple[int, int], ...] = ()
    shares: tuple[tuple[int, int], ...] = ()

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
                    _canonical(
                        cell,
                        min(MAX_CANONICAL_CELLS, MAX_CANONICAL_CELLS_OF_PART // len(part.cells)),
                    )
                    for cell in part.cells
                ],
            }
            for part in self.parts
        ]
        if self.together > 1 or self.ratios:
            parts.append({"together": self.together, "ratios": self.ratios})
        if self.shares:
            parts.append({"shares": self.shares})
        written = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        if len(written) <= MAX_TEXT_CHARACTERS:
            return written
        return f"sha256:{hashlib.sha256(written.encode()).hexdigest()}"


def ratio_residual(above: LinearCells, below: LinearCells, ratios: Sequence[float]) -> LinearCells:
    """A sum less so many times the count, cell by cell: what a ratio errs by, times the count."""
    cells = []
    for sums, counts, ratio in zip(above.cells, below.cells, ratios, strict=True):
        cells.append(
            tuple(
                shifted_product(added, count, ratio)
                for added, count in zip(sums, counts, strict=True)
            )
        )
    return LinearCells(tuple(cells), above.unit)


@dataclass(frozen=True, eq=False)
class CellSplit:
    """A count over a whole in two: what codes of one attribute are worth, inside and outside."""

    whole: Product
    attribute: int
    inside: Mask
    worth: tuple[float, float]

    @property
    def part(self) -> Product:
        """The records that are inside."""
        return Product(self.whole.shape, {**self.whole.masks, self.attribute: self.inside})

    @property
    def rest(self) -> Product:
        """The records of the whole that are outside."""
        outside = (self.whole.factor(self.attribute) != 0) & ~self.inside
        return Product(self.whole.shape, {**self.whole.masks, self.attribute: outside})


def split_of(added: Product, whole: Product) -> CellSplit | None:
    """The two classes in which records of a whole add one number each, by codes of one attribute.

    >>> split_of(Product((2, 3), {1: np.array([True, False, False])}), Product((2, 3), {})).worth
    (1.0, 0.0)
    """
    places = sorted({*added.scope, *whole.scope})
    apart = [a for a in places if not np.array_equal(added.factor(a), whole.factor(a))]
    if len(apart) != 1 or not whole.counts:
        return None
    factor, kept = added.factor(apart[0]), whole.factor(apart[0]) != 0
    found = np.unique(factor[kept]).tolist()
    if len(found) != 2 or factor[~kept].any():
        return None
    return CellSplit(whole, apart[0], kept & (factor == found[1]), (found[1], found[0]))


def shifted_product(added: Product, count: Product, ratio: float) -> Product:
    """One sum less so many times the count of the same records."""
    return Product(count.shape, count.masks, _shifted_weights(added, count, ratio))


def _shifted_weights(added: Product, count: Product, ratio: float) -> dict[int, Floats]:
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


# Question classes -------------------------------------------------------------------------------
#
# Codes put together into classes: the coarsest table of counts that a question needs.
#
# Two codes of an attribute are in one class if every factor of the question gives them the same
# weight. A measured table of classes answers the question as well as a table of all codes, with
# less noise in each answer and less to say about any other question.

Labels = tuple[int, ...]
"""For each code of an attribute the number of its class; classes are numbered as they appear."""


@dataclass(frozen=True)
class CellClasses:
    """A scope and, for each of its attributes, the class of each code."""

    scope: Scope
    labels: tuple[Labels, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each attribute has."""
        return tuple(max(each) + 1 for each in self.labels)

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return math.prod(self.sizes)

    @property
    def whole(self) -> bool:
        """Whether every code is a class of its own."""
        return all(max(each) + 1 == len(each) for each in self.labels)

    def factors(self, product: Product) -> list[Floats]:
        """What each class of each attribute contributes to a product that does not cut any."""
        found = []
        for attribute, (labels, first) in zip(self.scope, self._arrays, strict=True):
            factor = product.factor(attribute)
            chosen = factor[first]
            if not np.array_equal(chosen[labels], factor):
                raise ValueError("this product cuts a class of the table")
            found.append(chosen)
        if not set(product.scope) <= set(self.scope):
            raise ValueError("this product looks at an attribute that the table does not have")
        return found

    @cached_property
    def _arrays(self) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """For each attribute the labels, and the first code of each class."""
        labels = [np.array(each, np.intp) for each in self.labels]
        return [(each, np.unique(each, return_index=True)[1]) for each in labels]

    def without(self, axis: int) -> "CellClasses":
        """The classes of the other attributes."""
        kept = [place for place in range(len(self.scope)) if place != axis]
        return CellClasses(
            tuple(self.scope[place] for place in kept), tuple(self.labels[place] for place in kept)
        )

    def answers(self, asked: GridQuestion) -> bool:
        """Whether the table answers every part of a question by itself."""
        if not set(asked.scope) <= set(self.scope):
            return False
        if self.whole:
            return True
        needed = dict(zip(asked.scope, coarsest_classes(asked).labels, strict=True))
        return all(
            a not in needed or len(set(zip(labels, needed[a], strict=True))) == max(labels) + 1
            for a, labels in zip(self.scope, self.labels, strict=True)
        )

    def products(self, shape: tuple[int, ...]) -> list[Product]:
        """The cells of the table as products, in order."""
        masks = [
            [np.array([each == number for each in labels], np.bool_) for number in range(size)]
            for labels, size in zip(self.labels, self.sizes, strict=True)
        ]
        return [
            Product(
                shape,
                {a: masks[i][k] for i, (a, k) in enumerate(zip(self.scope, index, strict=True))},
            )
            for index in np.ndindex(*self.sizes)
        ]


def all_codes(scope: Scope, shape: tuple[int, ...]) -> CellClasses:
    """The table of all codes of a scope."""
    return CellClasses(scope, tuple(tuple(range(shape[attribute])) for attribute in scope))


def coarsest_classes(asked: GridQuestion) -> CellClasses:
    """The coarsest table that answers every part of a question."""
    products = list(dict.fromkeys(each for part in asked.parts for each in part.products))
    return CellClasses(asked.scope, tuple(_labels(products, a) for a in asked.scope))


def _labels(products: Sequence[Product], attribute: int) -> Labels:
    factors = {product.factor(attribute).tobytes(): product for product in products}
    columns = np.array([each.factor(attribute) for each in factors.values()]).T
    numbers: dict[bytes, int] = {}
    return tuple(
        numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(columns)
    )


def merge_codes(table: NDArray[np.int64], classes: CellClasses) -> NDArray[np.int64]:
    """A table of counts with the codes of each class added up."""
    for axis, (labels, size) in enumerate(zip(classes.labels, classes.sizes, strict=True)):
        if size == len(labels):
            continue
        codes = np.moveaxis(table, axis, 0)
        folded = np.zeros((size, *codes.shape[1:]), np.int64)
        np.add.at(folded, np.array(labels), codes)
        table = np.moveaxis(folded, 0, axis)
    return table
