"""The exact cells of questions, read from the protected table: what the doors see, and nobody else.

A scope is counted once by one statement and kept: what is kept depends on the questions alone, so
the time a question takes says nothing about the data. A scope of many codes is counted by the
classes that a question tells apart, so memory is bounded by the question. Everything is a whole
number. Counts stay below 2^53, so sums of them in floats are exact; weighted sums are made in
64-bit integers.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from casemate.grid.product import Floats, Product, Scope, contract, over_many_ranges, summed_area
from casemate.grid.question import (
    CellClasses,
    GridQuestion,
    all_codes,
    coarsest_classes,
    merge_codes,
)
from casemate.query.snapping import histogram
from casemate.table import Universe
from casemate.table.sources import Source

Counts = NDArray[np.int64]
MAX_CACHED_CELLS = 2**24
"""Cells of counted scopes that are kept in memory."""

MAX_COUNTED_CODES = 2**22
"""Cells of a scope up to which all its codes are counted, for other questions to use."""

MAX_SCANS_PER_QUESTION = 4
"""Scopes counted for one question; more are read from its classes, by one statement."""

MAX_AREA_AXES = 6
"""Ranges over more attributes have more corners than it is worth to look up."""


class PrivateCells:
    """Counts of a protected table by scope; never printed."""

    def __init__(self, shape: tuple[int, ...], count: Callable[[CellClasses], Counts]) -> None:
        self.shape = shape
        self._count = count
        self._tables: dict[Scope, Counts] = {}
        self._areas: dict[Scope, Floats] = {}
        self._classes: dict[CellClasses, Counts] = {}

    @classmethod
    def of(cls, universe: Universe, source: Source, key: bytes | None) -> "PrivateCells":
        """The cells of an open table; `key` chooses the rows of a person that count."""

        def count(classes: CellClasses) -> Counts:
            return histogram(universe, classes.scope, source, key=key, labels=classes.labels)

        return cls(universe.shape, count)

    def total(self) -> int:
        """How many rows count."""
        return int(self.marginal(()))

    def marginal(self, scope: Scope) -> Counts:
        """The counts over a scope, summed from a wider one where that was counted."""
        if scope not in self._tables:
            wider = next((s for s in self._tables if set(scope) < set(s)), None)
            if wider is None:
                table = self._count(all_codes(scope, self.shape))
            else:
                axes = tuple(axis for axis, a in enumerate(wider) if a not in scope)
                table = np.asarray(self._tables[wider].sum(axis=axes, dtype=np.int64))
            self._make_room(table.size)
            self._tables[scope] = table
        return self._tables[scope]

    def class_counts(self, classes: CellClasses) -> list[int]:
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
        if (
            all(map(self._is_small, scopes))
            and len(scopes - self._tables.keys()) <= MAX_SCANS_PER_QUESTION
        ):
            return self.values(products)
        classes = coarsest_classes(asked)
        table = self._table(classes)
        return [int(contract(table, classes.factors(product))) for product in products]

    def values(self, products: Sequence[Product]) -> list[int]:
        """The exact value of each product; ranges over one scope are looked up together."""
        values = [0] * len(products)
        ranged: dict[Scope, list[int]] = defaultdict(list)
        for place, product in enumerate(products):
            if product.ranges is not None and 0 < len(product.scope) <= MAX_AREA_AXES:
                ranged[product.scope].append(place)
            else:
                factors = [product.factor(attribute) for attribute in product.scope]
                values[place] = int(contract(self.marginal(product.scope), factors))
        for scope, places in ranged.items():
            ranges = np.array([products[place].ranges for place in places])
            sums = over_many_ranges(self._area(scope), ranges)
            for place, value in zip(places, sums.tolist(), strict=True):
                values[place] = int(value)
        return values

    def _is_small(self, scope: Scope) -> bool:
        return math.prod(self.shape[attribute] for attribute in scope) <= MAX_COUNTED_CODES

    def _table(self, classes: CellClasses) -> Counts:
        """The counts by class, put together here from a scope that is small."""
        if self._is_small(classes.scope):
            return merge_codes(self.marginal(classes.scope), classes)
        if classes not in self._classes:
            self._make_room(classes.cells)
            self._classes[classes] = self._count(classes)
        return self._classes[classes]

    def _area(self, scope: Scope) -> Floats:
        table = self.marginal(scope)
        if scope not in self._areas:
            self._areas[scope] = summed_area(table.astype(np.float64))
        return self._areas[scope]

    def _make_room(self, cells: int) -> None:
        """Drop what was counted first, so that memory stays bounded."""
        while self._classes and self._cached_cells + cells > MAX_CACHED_CELLS:
            self._classes.pop(next(iter(self._classes)))
        while self._tables and self._cached_cells + cells > MAX_CACHED_CELLS:
            oldest = next(iter(self._tables))
            self._tables.pop(oldest)
            self._areas.pop(oldest, None)

    @property
    def _cached_cells(self) -> int:
        tables = (*self._tables.values(), *self._classes.values())
        return sum(table.size for table in tables)

    def __repr__(self) -> str:
        """How large the grid is, and nothing of what is in it."""
        return f"<PrivateCells: {math.prod(self.shape)} cells>"
