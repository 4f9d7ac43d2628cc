"""Tables of counts whose codes are put together into classes: the coarsest that a question needs.

Two codes of an attribute are in one class if every factor of the question gives them the same
weight. A measured table of classes answers the question as well as a table of all codes, with less
noise in each answer and less to say about any other question.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from casemate.answer.asked import Asked
from casemate.surrogate.product import Floats, Product, Scope

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

    def answers(self, asked: Asked) -> bool:
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


def spanned(asked: Asked) -> Classes:
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
