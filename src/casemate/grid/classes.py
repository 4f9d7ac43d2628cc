"""Tables of counts whose codes are put together into classes: the coarsest that a question needs.

Two codes of an attribute are in one class if every factor of the question gives them the same
weight. A measured table of classes answers the question as well as a table of all codes, with less
noise in each answer and less to say about any other question.

The exact cells of questions, read from the protected table: what the doors see, and nobody else.

A scope is counted once by one statement and kept: what is kept depends on the questions alone, so
the time a question takes says nothing about the data. A scope of many codes is counted by the
classes that a question tells apart, so memory is bounded by the question. Everything is a whole
number. Counts stay below 2^53, so sums of them in floats are exact; weighted sums are made in
64-bit integers.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from casemate.grid.product import Floats, Product, Scope
from casemate.grid.question import GridQuestion
from casemate.grid.summed_area import contracted, over_many_ranges, summed_area
from casemate.query.snapping import histogram
from casemate.table import Universe
from casemate.table.sources import Source

Labels = tuple[int, ...]
"""For each code of an attribute the number of its class; classes are numbered as they appear."""


@dataclass(frozen=True)
class Classes:
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

    def without(self, axis: int) -> "Classes":
        """The classes of the other attributes."""
        kept = [place for place in range(len(self.scope)) if place != axis]
        return Classes(
            tuple(self.scope[place] for place in kept), tuple(self.labels[place] for place in kept)
        )

    def answers(self, asked: GridQuestion) -> bool:
        """Whether the table answers every part of a question by itself."""
        if not set(asked.scope) <= set(self.scope):
            return False
        if self.whole:
            return True
        needed = dict(zip(asked.scope, spanned(asked).labels, strict=True))
        return all(
            a not in needed or _refines(labels, needed[a])
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


def all_codes(scope: Scope, shape: tuple[int, ...]) -> Classes:
    """The table of all codes of a scope."""
    return Classes(scope, tuple(tuple(range(shape[attribute])) for attribute in scope))


def spanned(asked: GridQuestion) -> Classes:
    """The coarsest table that answers every part of a question."""
    products = list(dict.fromkeys(each for part in asked.parts for each in part.products))
    return Classes(asked.scope, tuple(_labels(products, a) for a in asked.scope))


def _labels(products: Sequence[Product], attribute: int) -> Labels:
    factors = {product.factor(attribute).tobytes(): product for product in products}
    columns = np.array([each.factor(attribute) for each in factors.values()]).T
    numbers: dict[bytes, int] = {}
    return tuple(
        numbers.setdefault(row.tobytes(), len(numbers)) for row in np.ascontiguousarray(columns)
    )


def _refines(labels: Labels, coarser: Labels) -> bool:
    """Whether every class of the first lies in one class of the second."""
    return len(set(zip(labels, coarser, strict=True))) == max(labels) + 1


def merged(table: NDArray[np.int64], classes: Classes) -> NDArray[np.int64]:
    """A table of counts with the codes of each class added up."""
    for axis, (labels, size) in enumerate(zip(classes.labels, classes.sizes, strict=True)):
        if size == len(labels):
            continue
        codes = np.moveaxis(table, axis, 0)
        folded = np.zeros((size, *codes.shape[1:]), np.int64)
        np.add.at(folded, np.array(labels), codes)
        table = np.moveaxis(folded, 0, axis)
    return table


# Private cells ----------------------------------------------------------------------------------


Counts = NDArray[np.int64]
KEPT = 2**24
"""Cells of counted scopes that are kept in memory."""

MOST_WHOLE = 2**22
"""Cells of a scope up to which all its codes are counted, for other questions to use."""

MOST_SCANS = 4
"""Scopes counted for one question; more are read from its classes, by one statement."""

MOST_AREA_AXES = 6
"""Ranges over more attributes have more corners than it is worth to look up."""


class PrivateCells:
    """Counts of a protected table by scope; never printed."""

    def __init__(self, shape: tuple[int, ...], count: Callable[[Classes], Counts]) -> None:
        self.shape = shape
        self._count = count
        self._tables: dict[Scope, Counts] = {}
        self._areas: dict[Scope, Floats] = {}
        self._classes: dict[Classes, Counts] = {}

    @classmethod
    def of(cls, universe: Universe, source: Source, key: bytes | None) -> "PrivateCells":
        """The cells of an open table; `key` chooses the rows of a person that count."""

        def count(classes: Classes) -> Counts:
            return histogram(universe, classes.scope, source, key=key, labels=classes.labels)

        return cls(universe.shape, count)

    def total(self) -> int:
        """How many rows count."""
        return int(self.marginal(()))

    def marginal(self, scope: Scope) -> Counts:
        """The counts over a scope, summed from a wider one where that was counted."""
        if scope not in self._tables:
            wider = next((s for s in self._tables if set(scope) < set(s)), None)
            whole = all_codes(scope, self.shape)
            table = self._count(whole) if wider is None else self._summed(wider, scope)
            self._make_room(table.size)
            self._tables[scope] = table
        return self._tables[scope]

    def classified(self, classes: Classes) -> list[int]:
        """The counts of a table whose cells were put together into classes."""
        table: list[int] = self._table(classes).ravel().tolist()
        return table

    def exact(self, asked: GridQuestion) -> list[list[int]]:
        """The exact cells of each part of a question, in units."""
        values = iter(self._values(asked, [one for part in asked.parts for one in part.products]))
        return [[sum(islice(values, len(cell))) for cell in part.cells] for part in asked.parts]

    def _values(self, asked: GridQuestion, products: Sequence[Product]) -> list[int]:
        """The exact value of each product: from the scopes it looks at, or from its classes."""
        scopes = {product.scope for product in products}
        if all(map(self._is_small, scopes)) and len(scopes - self._tables.keys()) <= MOST_SCANS:
            return self.values(products)
        classes = spanned(asked)
        table = self._table(classes)
        return [int(contracted(table, classes.factors(product))) for product in products]

    def values(self, products: Sequence[Product]) -> list[int]:
        """The exact value of each product; ranges over one scope are looked up together."""
        values = [0] * len(products)
        ranged: dict[Scope, list[int]] = defaultdict(list)
        for place, product in enumerate(products):
            if product.ranges is not None and 0 < len(product.scope) <= MOST_AREA_AXES:
                ranged[product.scope].append(place)
            else:
                factors = [product.factor(attribute) for attribute in product.scope]
                values[place] = int(contracted(self.marginal(product.scope), factors))
        for scope, places in ranged.items():
            ranges = np.array([products[place].ranges for place in places])
            sums = over_many_ranges(self._area(scope), ranges)
            for place, value in zip(places, sums.tolist(), strict=True):
                values[place] = int(value)
        return values

    def _is_small(self, scope: Scope) -> bool:
        return math.prod(self.shape[attribute] for attribute in scope) <= MOST_WHOLE

    def _table(self, classes: Classes) -> Counts:
        """The counts by class, put together here from a scope that is small."""
        if self._is_small(classes.scope):
            return merged(self.marginal(classes.scope), classes)
        if classes not in self._classes:
            self._make_room(classes.cells)
            self._classes[classes] = self._count(classes)
        return self._classes[classes]

    def _area(self, scope: Scope) -> Floats:
        table = self.marginal(scope)
        if scope not in self._areas:
            self._areas[scope] = summed_area(table.astype(np.float64))
        return self._areas[scope]

    def _summed(self, wider: Scope, scope: Scope) -> Counts:
        axes = tuple(axis for axis, attribute in enumerate(wider) if attribute not in scope)
        summed: Counts = self._tables[wider].sum(axis=axes, dtype=np.int64)
        return np.asarray(summed)

    def _make_room(self, cells: int) -> None:
        """Drop what was counted first, so that memory stays bounded."""
        while self._classes and self._kept + cells > KEPT:
            self._classes.pop(next(iter(self._classes)))
        while self._tables and self._kept + cells > KEPT:
            oldest = next(iter(self._tables))
            self._tables.pop(oldest)
            self._areas.pop(oldest, None)

    @property
    def _kept(self) -> int:
        tables = (*self._tables.values(), *self._classes.values())
        return sum(table.size for table in tables)

    def __repr__(self) -> str:
        """How large the grid is, and nothing of what is in it."""
        return f"<PrivateCells: {math.prod(self.shape)} cells>"
