"""The exact cells of questions, read from the protected table: what the doors see, and nobody else.

A scope is counted once by one statement and kept: what is kept depends on the questions alone, so
the time a question takes says nothing about the data. Everything is a whole number. Counts stay
below 2^53, so sums of them in floats are exact; weighted sums are made in 64-bit integers.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from casemate.answer.asked import Asked
from casemate.answer.classes import Classes, merged
from casemate.query.histogram import histogram
from casemate.surrogate.marginals import over_many_ranges, summed_area
from casemate.surrogate.product import Floats, Product, Scope
from casemate.table.source import Source
from casemate.table.universe import Universe

Counts = NDArray[np.int64]
KEPT = 2**26
"""Cells of counted scopes that are kept in memory."""


class PrivateCells:
    """Counts of a protected table by scope; never printed."""

    def __init__(self, shape: tuple[int, ...], count: Callable[[Scope], Counts]) -> None:
        self.shape = shape
        self._count = count
        self._tables: dict[Scope, Counts] = {}
        self._areas: dict[Scope, Floats] = {}

    @classmethod
    def of(cls, universe: Universe, source: Source, key: bytes | None) -> "PrivateCells":
        """The cells of an open table; `key` chooses the rows of a person that count."""
        return cls(universe.shape, lambda scope: histogram(universe, scope, source, key=key))

    def total(self) -> int:
        """How many rows count."""
        return int(self.marginal(()))

    def marginal(self, scope: Scope) -> Counts:
        """The counts over a scope, summed from a wider one where that was counted."""
        if scope not in self._tables:
            wider = next((s for s in self._tables if set(scope) < set(s)), None)
            table = self._count(scope) if wider is None else self._summed(wider, scope)
            self._make_room(table.size)
            self._tables[scope] = table
        return self._tables[scope]

    def classified(self, classes: Classes) -> list[int]:
        """The counts of a table whose cells were put together into classes."""
        table = merged(self.marginal(classes.scope), classes)
        return [int(each) for each in table.ravel()]

    def exact(self, asked: Asked) -> list[list[int]]:
        """The exact cells of each part of a question, in units."""
        found = []
        for part in asked.parts:
            values = self.values(part.products)
            sizes = [len(cell) for cell in part.cells]
            ends = np.cumsum([0, *sizes]).tolist()
            found.append([sum(values[a:b]) for a, b in pairwise(ends)])
        return found

    def values(self, products: Sequence[Product]) -> list[int]:
        """The exact value of each product; ranges over one scope are looked up together."""
        values = [0] * len(products)
        ranged: dict[Scope, list[int]] = defaultdict(list)
        for place, product in enumerate(products):
            if product.ranges is not None and product.scope:
                ranged[product.scope].append(place)
            else:
                values[place] = self._contracted(product)
        for scope, places in ranged.items():
            ranges = np.array([products[place].ranges for place in places])
            sums = over_many_ranges(self._area(scope), ranges)
            for place, value in zip(places, sums.tolist(), strict=True):
                values[place] = int(value)
        return values

    def _contracted(self, product: Product) -> int:
        table = self.marginal(product.scope)
        for attribute in product.scope:
            factor = product.factor(attribute).astype(np.int64)
            table = factor @ table.reshape(factor.size, -1)
        return int(table.ravel()[0])

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
        while self._tables and sum(t.size for t in self._tables.values()) + cells > KEPT:
            oldest = next(iter(self._tables))
            self._tables.pop(oldest)
            self._areas.pop(oldest, None)

    def __repr__(self) -> str:
        """How large the grid is, and nothing of what is in it."""
        return f"<PrivateCells: {math.prod(self.shape)} cells>"
